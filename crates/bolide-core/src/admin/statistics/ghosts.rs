//! Counts ghosts: items that are expired and still stored, exactly at server time (TTL-253, TTL-272).
//!
//! The cursors of the count are ahead of the purge's cursors in the same two queues. An item whose entry they have passed and that is still stored is
//! a ghost and stays one. So each entry is counted once, and the removal of its item subtracts it again (`PartitionState::removed`). Counting costs
//! O(1) per expired item over its life, however often it is requested.

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

/// Maximum number of entries of each queue counted in one write batch, so that users' writes are not delayed.
const ROWS: usize = 2_000;
/// Maximum number of entries of each queue read in the first write batch: a caller that asks often finds few new ones.
const FEW_ROWS: usize = 32;
const BYTES: usize = 512 * 1024;

/// Maximum number of times the ranges are counted again because a second passed between them.
const TRIES: usize = 5;

/// Returns the counters of all partitions of a container, in the order of its ranges, with the ghosts at one second for all of them, and that second.
/// (If counting always takes longer than a second, the counts are of different seconds.)
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

/// Returns a partition's counters with every ghost counted, and the second at which they were counted.
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

/// Counts expired entries after the cursors, at most `rows` entries of each queue. Returns whether all were counted.
pub(crate) fn count_some(batch: &mut WriteBatch<'_>, container: &ContainerState, rows: usize) -> Decision<bool> {
    let horizon = batch.horizon(&container.settings);
    let (upto, purged) = (batch.state.ghosts.upto, batch.state.purge);
    // The purge may be further: no items are left before its cursors.
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

/// Counts the expired entries in a page of a queue, and moves the queue's cursor behind them. Returns whether no expired entries follow.
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
