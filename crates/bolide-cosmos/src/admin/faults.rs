//! `/_bolide/faults`: trouble on demand, for tests of clients and of recovery.

use bolide_model::Error;
use bolide_model::document::parse_json_body;
use serde_json::{Value, json};

use super::{Admin, count, ok, wrong_mode};
use crate::status::Failure;
use crate::wire::Reply;

/// Arms a crash point.
pub(super) fn set_point(admin: &Admin<'_>) -> Result<Reply, Failure> {
    check_enabled(admin)?;
    let members = admin.members()?;
    match members.get("point").and_then(Value::as_str) {
        Some("purge-commit") => {}
        _ => return Err(Error::bad_request("the only `point` there is: `purge-commit`").into()),
    }
    let after = count(&members, "after")?.ok_or_else(|| Error::bad_request("`after` is missing"))?;
    admin.state.account.set_purge_fault(after);
    Ok(ok(&json!({"point": "purge-commit", "after": after})))
}

/// Replaces the rules by which requests are answered with faults.
pub(super) fn set_rules(admin: &Admin<'_>) -> Result<Reply, Failure> {
    check_enabled(admin)?;
    let rules = parse_json_body(admin.body)?;
    admin.state.faults.replace(&rules)?;
    Ok(ok(&json!({"rules": rules.as_array().map_or(0, Vec::len)})))
}

fn check_enabled(admin: &Admin<'_>) -> Result<(), Failure> {
    if admin.state.options.faults_enabled {
        return Ok(());
    }
    Err(wrong_mode(
        "faults can only be injected when the server was started with --enable-faults",
    ))
}
