//! `/_bolide/faults`: injects faults, for tests of clients and of recovery.

use bolide_model::document::parse_json_body;
use bolide_model::{Error, ErrorKind, Result};
use serde_json::{Value, json};

use super::{Admin, count, ok};
use crate::wire::Reply;

/// Arms a crash point.
pub(super) async fn set_point(admin: &Admin<'_>) -> Result<Reply> {
    check_enabled(admin)?;
    let members = admin.members()?;
    let point = members.get("point").and_then(Value::as_str).unwrap_or_default();
    let after = count(&members, "after")?.ok_or_else(|| Error::bad_request("`after` is missing"))?;
    match (point, &admin.state.options.snapshots) {
        ("purge-commit", _) => admin.state.account.set_purge_fault(after),
        ("snapshot-step", Some(snapshots)) => snapshots.set_fault(after),
        _ => return Err(Error::bad_request("`point` must be `purge-commit` or `snapshot-step`")),
    }
    Ok(ok(&json!({"point": point, "after": after})))
}

/// The rules that still apply.
pub(super) async fn show_rules(admin: &Admin<'_>) -> Result<Reply> {
    check_enabled(admin)?;
    Ok(ok(&admin.state.faults.to_json()))
}

/// Replaces the rules for injected faults.
pub(super) async fn set_rules(admin: &Admin<'_>) -> Result<Reply> {
    check_enabled(admin)?;
    let rules = parse_json_body(admin.body)?;
    admin.state.faults.replace(&rules)?;
    Ok(ok(&json!({"rules": rules.as_array().map_or(0, Vec::len)})))
}

fn check_enabled(admin: &Admin<'_>) -> Result<()> {
    if admin.state.options.faults_enabled {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Forbidden,
        "faults can only be injected when the server was started with --enable-faults",
    ))
}
