//! Counting ghosts: how many items are expired and still stored, exactly at server time (TTL-253, TTL-272).
//!
//! Cursors run ahead of the purge's over the same two lines. What they have passed and is still stored is a ghost and stays one, so
//! each entry is counted once; removing one takes it off again (`PartitionState::removed`). Counting costs O(1) per expired
//! item over its life, whoever asks how often.

use std::sync::Arc;

use bolide_model::ttl::Class;
use bolide_model::{Result, UnixSeconds};
use bolide_storage::{Page, Scan, Space};

use crate::container::ContainerState;
use crate::format::keys::{self, ExpiryPosition, LogPosition};
use crate::format::record::{ExpiryEntry, LogEntry};
use crate::partition::Partition;
use crate::partition::round::{Round, Step};
use crate::partition::state::{Cursors, PartitionState};

/// Entries of each line counted in one round: more would hold up users' writes.
const ROWS: usize = 2_000;
/// Entries of each line looked at in the first round: who asks often finds next to nothing new.
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
            .upkeep(move |round| {
                let is_complete = count_some(round, &container, rows)?;
                Ok((is_complete, round.state.clone(), round.seconds()))
            })
            .await?;
        if is_complete {
            return Ok((counted, now));
        }
        rows = ROWS;
    }
}

/// Counts what is due behind the cursors, up to so many entries of each line; tells whether that was all.
pub(crate) fn count_some(round: &mut Round<'_>, container: &ContainerState, rows: usize) -> Step<bool> {
    let horizon = round.horizon(&container.settings);
    let (upto, purged) = (round.state.ghosts.upto, round.state.purge);
    // The purge may have run ahead: nothing is left behind its cursors.
    let upto = Cursors {
        log: upto.log.max(purged.log),
        expiry: upto.expiry.max(purged.expiry),
    };

    let scans = [
        scan(Space::Expiry, upto.expiry.to_bytes(), None, rows),
        scan(Space::Log, upto.log.to_bytes(), Some(keys::log_end()), rows),
    ];
    let pages = round.scan_all(&scans)?;
    round.state.ghosts.upto = upto;
    let own = count_own(&mut round.state, &pages[0], horizon.own)?;
    let log = count_log(&mut round.state, &pages[1], horizon.inherited)?;
    Ok(own && log)
}

fn count_own(state: &mut PartitionState, page: &Page, horizon: i64) -> Result<bool> {
    for (key, value) in &page.rows {
        let position = ExpiryPosition::decode(key).ok_or_else(crate::background::jobs::expire::damaged)?;
        if position.base.0 > horizon {
            return Ok(true);
        }
        let entry = ExpiryEntry::decode(value)?;
        state.count_ghost(&entry.item_key, entry.size as usize);
        state.ghosts.upto.expiry = position.next();
    }
    Ok(!page.more)
}

fn count_log(state: &mut PartitionState, page: &Page, horizon: i64) -> Result<bool> {
    for (key, value) in &page.rows {
        let version = LogPosition::decode(key).ok_or_else(crate::background::jobs::expire::damaged)?;
        let entry = LogEntry::decode(value)?;
        if entry.class == Class::Inherited {
            if entry.last_modified.0 > horizon {
                return Ok(true);
            }
            state.count_ghost(&entry.item_key, entry.size as usize);
        }
        state.ghosts.upto.log = version.next();
    }
    Ok(!page.more)
}

fn scan(space: Space, from: bytes::Bytes, to: Option<bytes::Bytes>, max_rows: usize) -> Scan {
    Scan {
        space,
        from,
        to,
        reverse: false,
        max_rows,
        max_bytes: BYTES,
        keys_only: false,
    }
}
