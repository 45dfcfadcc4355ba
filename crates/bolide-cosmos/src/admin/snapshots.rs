//! Snapshots of the account: taking, listing, removing, restoring them; removing everything.

use std::sync::Arc;

use bolide_model::{Error, ErrorKind, Result, SnapshotName};
use serde_json::{Value, json};

use super::{Admin, ok, segments_of};
use crate::snapshots::{SnapshotInfo, Snapshots};
use crate::wire::{Reply, percent};

pub(super) async fn list(admin: &Admin<'_>) -> Result<Reply> {
    let snapshots = kept(admin)?.list().await?;
    let snapshots: Vec<Value> = snapshots.iter().map(shown).collect();
    Ok(ok(&json!({ "snapshots": snapshots })))
}

pub(super) async fn take(admin: &Admin<'_>) -> Result<Reply> {
    let taken = kept(admin)?.take(name(admin)?).await?;
    Ok(ok(&shown(&taken)))
}

pub(super) async fn remove(admin: &Admin<'_>) -> Result<Reply> {
    let name = name(admin)?;
    kept(admin)?.remove(name.clone()).await?;
    Ok(ok(&json!({"removed": name.as_str()})))
}

pub(super) async fn restore(admin: &Admin<'_>) -> Result<Reply> {
    let name = name(admin)?;
    let snapshots = kept(admin)?;
    admin.state.account.check_unsealed().await?;
    let now = snapshots.restore(Some(name.clone())).await?;
    Ok(ok(&json!({"restored": name.as_str(), "nowMs": now.0})))
}

/// Removes everything.
pub(super) async fn reset(admin: &Admin<'_>) -> Result<Reply> {
    let snapshots = kept(admin)?;
    admin.state.account.check_unsealed().await?;
    let now = snapshots.restore(None).await?;
    Ok(ok(&json!({"nowMs": now.0})))
}

fn shown(snapshot: &SnapshotInfo) -> Value {
    json!({"name": snapshot.name.as_str(), "timeMs": snapshot.time.0})
}

/// The snapshots, of a server that keeps any.
fn kept<'a>(admin: &'a Admin<'_>) -> Result<&'a Arc<dyn Snapshots>> {
    let snapshots = admin.state.options.snapshots.as_ref();
    snapshots.ok_or_else(|| Error::new(ErrorKind::WrongMode, "this server keeps no snapshots"))
}

/// The name in the path.
fn name(admin: &Admin<'_>) -> Result<SnapshotName> {
    let segments = segments_of(admin.path);
    let segment = segments.get(1).copied().unwrap_or_default();
    let text = percent::decode(segment).unwrap_or_default();
    SnapshotName::parse(&text)
}
