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
use crate::keys::{self, ExpiryPosition, LogPosition};
use crate::partition::Partition;
use crate::partition::round::{Round, Step};
use crate::partition::state::{Cursors, Ghosts, PartitionState};
use crate::record::{ExpiryEntry, LogEntry};

/// Entries counted in one round: more would hold up users' writes.
const ROWS: usize = 2_000;
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
    loop {
        let container = state.clone();
        let (is_complete, counted, now) = partition
            .upkeep(move |round| Ok((count_some(round, &container)?, round.state.clone(), round.seconds())))
            .await?;
        if is_complete {
            return Ok((counted, now));
        }
    }
}

/// Counts what is due behind the cursors; tells whether that was all.
fn count_some(round: &mut Round<'_>, container: &ContainerState) -> Step<bool> {
    let horizon = round.horizon(&container.settings);
    let purged = round.state.purge;
    let mut ghosts = round.state.ghosts;
    // The purge may have run ahead: nothing is left behind its cursors.
    ghosts.upto = Cursors {
        log: ghosts.upto.log.max(purged.log),
        expiry: ghosts.upto.expiry.max(purged.expiry),
    };

    let scans = [
        scan(Space::Expiry, ghosts.upto.expiry.to_bytes(), None),
        scan(Space::Log, ghosts.upto.log.to_bytes(), Some(keys::log_end())),
    ];
    let pages = round.scan_all(&scans)?;
    let own = count_own(&mut ghosts, &pages[0], horizon.own)?;
    let log = count_log(&mut ghosts, &pages[1], horizon.inherited)?;
    round.state.ghosts = ghosts;
    Ok(own && log)
}

fn count_own(ghosts: &mut Ghosts, page: &Page, horizon: i64) -> Result<bool> {
    for (key, value) in &page.rows {
        let position = ExpiryPosition::decode(key).ok_or_else(super::step::damaged)?;
        if position.base.0 > horizon {
            return Ok(true);
        }
        ghosts.count(ExpiryEntry::decode(value)?.size as usize);
        ghosts.upto.expiry = position.next();
    }
    Ok(!page.more)
}

fn count_log(ghosts: &mut Ghosts, page: &Page, horizon: i64) -> Result<bool> {
    for (key, value) in &page.rows {
        let version = LogPosition::decode(key).ok_or_else(super::step::damaged)?;
        let entry = LogEntry::decode(value)?;
        if entry.class == Class::Inherited {
            if entry.last_modified.0 > horizon {
                return Ok(true);
            }
            ghosts.count(entry.size as usize);
        }
        ghosts.upto.log = version.next();
    }
    Ok(!page.more)
}

fn scan(space: Space, from: bytes::Bytes, to: Option<bytes::Bytes>) -> Scan {
    Scan {
        space,
        from,
        to,
        reverse: false,
        max_rows: ROWS,
        max_bytes: BYTES,
        keys_only: false,
    }
}
