//! Counting ghosts: how many items are expired and still stored, exactly at server time (TTL-253, TTL-272).
//!
//! Cursors run ahead of the purge's over the same two lines. What they have passed and is still stored is a ghost and stays one, so
//! each entry is counted once; removing one takes it off again (`PartitionState::removed`). Counting costs O(1) per expired
//! item over its life, whoever asks how often.

use std::sync::Arc;

use bolide_model::ttl::Horizon;
use bolide_model::{Result, UnixSeconds};
use bolide_storage::Page;

use crate::container::ContainerState;
use crate::format::keys::{ExpiryPosition, LogPosition};
use crate::format::queues::{self, Queue};
use crate::partition::Partition;
use crate::partition::state::{Cursors, PartitionState};
use crate::partition::write_batch::{Decision, WriteBatch};

/// Entries of each queue counted in one write batch. More would delay users' writes.
const ROWS: usize = 2_000;
/// Entries of each queue read in the first write batch. A caller that asks often finds few new ones.
const FEW_ROWS: usize = 32;
const BYTES: usize = 512 * 1024;

/// How often the ranges are counted again because a second passed between them.
const TRIES: usize = 5;

/// The counters of all partitions of a container, in the order of its ranges, with the ghosts of one and the same second; and that second.
/// (Counting that takes longer than a second ends with what it has.)
pub(crate) async fn counted_together(state: &Arc<ContainerState>) -> Result<(Vec<PartitionState>, UnixSeconds)> {
    let partitions = &state.layout.partitions;
    let mut tries = 0;
    loop {
        tries += 1;
        let mut all = Vec::with_capacity(partitions.len());
        let mut seconds = Vec::with_capacity(partitions.len());
        for partition in partitions {
            let (counted, at) = counted_at(state, partition).await?;
            all.push(counted);
            seconds.push(at);
        }
        let (first, last) = (seconds.first().copied(), seconds.last().copied());
        if first == last || tries == TRIES {
            return Ok((all, last.unwrap_or_default()));
        }
    }
}

/// A partition's counters with every ghost counted, at one moment, and the second of that moment.
pub(crate) async fn counted_at(
    state: &Arc<ContainerState>,
    partition: &Partition,
) -> Result<(PartitionState, UnixSeconds)> {
    let mut rows = FEW_ROWS;
    loop {
        let container = state.clone();
        let (is_complete, counted, now) = partition
            .background(move |batch| {
                let is_complete = count_some(batch, &container, rows)?;
                Ok((is_complete, batch.state.clone(), batch.seconds()))
            })
            .await?;
        if is_complete {
            return Ok((counted, now));
        }
        rows = ROWS;
    }
}

/// Counts what is due behind the cursors, up to so many entries of each queue; tells whether that was all.
pub(crate) fn count_some(batch: &mut WriteBatch<'_>, container: &ContainerState, rows: usize) -> Decision<bool> {
    let horizon = batch.horizon(&container.settings);
    let (upto, purged) = (batch.state.ghosts.upto, batch.state.purge);
    // The purge may have run ahead: nothing is left behind its cursors.
    let upto = Cursors {
        log: upto.log.max(purged.log),
        expiry: upto.expiry.max(purged.expiry),
    };

    let scans = [
        queues::scan(upto.expiry, None, rows, BYTES),
        queues::scan(upto.log, None, rows, BYTES),
    ];
    let pages = batch.scan_raw(&scans)?;
    batch.state.ghosts.upto = upto;
    let own = count::<ExpiryPosition>(&mut batch.state, &pages[0], horizon, |upto| &mut upto.expiry)?;
    let log = count::<LogPosition>(&mut batch.state, &pages[1], horizon, |upto| &mut upto.log)?;
    Ok(own && log)
}

/// Counts what is due in a page of a queue, and moves its cursor behind that; tells whether something was not due, or nothing is left.
fn count<P: Queue>(
    state: &mut PartitionState,
    page: &Page,
    horizon: Horizon,
    cursor: fn(&mut Cursors) -> &mut P,
) -> Result<bool> {
    for entry in queues::entries::<P>(page) {
        let entry = entry?;
        if entry.belongs() {
            if entry.stamp.base.0 > P::threshold(horizon) {
                return Ok(true);
            }
            state.count_ghost(&entry.item_key, entry.size);
        }
        *cursor(&mut state.ghosts.upto) = entry.position.next();
    }
    Ok(!page.more)
}
