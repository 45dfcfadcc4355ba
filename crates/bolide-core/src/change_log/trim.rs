//! Removes entries from the history once their retention is over.
//!
//! Like the purge, it queues small steps at the partition's worker. The partition stores how far its history has been trimmed, so each step begins
//! where the last one ended, and a reader that needs removed entries gets an error.

use std::sync::Arc;

use bolide_model::{Error, ErrorKind, Result};
use bolide_storage::{Scan, Space};

use super::{HistoryEntry, has_left};
use crate::format::keys::{self, LogPosition};
use crate::partition::Partition;
use crate::partition::write_batch::{Decision, WriteBatch};

/// Maximum number of entries of one step, so that it does not delay users' writes.
const ROWS: usize = 200;
const BYTES: usize = 512 * 1024;

/// Carries out one step. Returns whether no further step is needed now.
pub(crate) async fn step(retention: Option<i64>, partition: &Arc<Partition>) -> Result<bool> {
    partition.background(move |batch| decide(batch, retention)).await
}

/// Removes all entries whose retention is over.
pub(crate) async fn all(retention: Option<i64>, partition: &Arc<Partition>) -> Result<()> {
    while !step(retention, partition).await? {}
    Ok(())
}

/// Begins a history with the next write. Entries that an earlier policy left are removed first.
pub(crate) async fn begin(retention: Option<i64>, partition: &Arc<Partition>) -> Result<()> {
    all(retention, partition).await?;
    partition
        .background(|batch| {
            // The commit of this change has an LSN too.
            let lsn = batch.next_lsn().next();
            batch.state.history_from = LogPosition { lsn, seq: 0 };
            batch.state.history_after = batch.time;
            Ok(())
        })
        .await
}

fn decide(batch: &mut WriteBatch<'_>, retention: Option<i64>) -> Decision<bool> {
    let now = batch.seconds();
    let scan = Scan {
        space: Space::Log,
        from: keys::history(batch.state.history_from).bytes,
        to: None,
        reverse: false,
        max_rows: ROWS,
        max_bytes: BYTES,
        keys_only: false,
    };
    let page = batch.scan_raw(&[scan])?.pop().unwrap_or_default();
    let damaged = || Error::new(ErrorKind::Corrupt, "an entry of the history is damaged");
    for (key, value) in &page.rows {
        let crts = HistoryEntry::crts_of(value).ok_or_else(damaged)?;
        if !has_left(crts, retention, now) {
            batch
                .after
                .rest_trim_until(crts.0.saturating_add(retention.unwrap_or_default()));
            return Ok(true);
        }
        let position = keys::history_position(key).ok_or_else(damaged)?;
        batch.delete(keys::history(position));
        batch.state.history_after = batch
            .state
            .history_after
            .max(HistoryEntry::time_of(value).unwrap_or_default());
        batch.state.history_from = position.next();
    }
    if !page.more {
        batch.after.rest_trim_until(i64::MAX);
    }
    Ok(!page.more)
}
