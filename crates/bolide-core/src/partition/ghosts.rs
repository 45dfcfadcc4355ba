//! Counting what is stored and does not exist any more: items that have expired and are not purged yet, exactly at server time (TTL-253,
//! TTL-272), and items that were deleted with their partition key.
//!
//! Cursors run ahead of the purge's over the same two queues. What they have passed and is still stored has expired and stays so, since
//! horizons never fall. So each entry is counted once; removing its item takes it off again (`PartitionState::removed`). Counting costs O(1)
//! for each expired item over its life, whoever asks how often. Items that were deleted with their key are counted in the order of their keys,
//! each of them once as well; when they expire before they are removed they are not counted again.
//!
//! Counts are kept in memory only. They begin again from the purge cursors after a start.

use bolide_model::ttl::{Class, Horizon, Policy, Settings, Stamp};
use bolide_model::{Result, UnixSeconds};
use bolide_storage::Page;

use super::Partition;
use super::state::{Amount, Cursors, PartitionState};
use super::write_batch::{Decision, WriteBatch};
use crate::format::keys::{ExpiryPosition, LogPosition};
use crate::format::queues::{self, Queue, QueueEntry};
use crate::format::record::Record;

/// Rows of each scan in one batch: more would hold up users' writes.
pub(crate) const ROWS: usize = 2_000;
/// Rows of each scan in the first batch: mostly there is next to nothing to count.
pub(crate) const FEW_ROWS: usize = 32;
const BYTES: usize = 512 * 1024;

/// Expired items that are still stored, as far as they are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Ghosts {
    own: GhostQueue<ExpiryPosition>,
    inherited: GhostQueue<LogPosition>,
    /// All that had expired was counted at some time since the partition was opened.
    is_counted: bool,
}

/// Those of one expiry queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct GhostQueue<P> {
    amount: Amount,
    /// Entries before it are counted.
    upto: P,
    /// The first of those counted; `None`: there are none.
    oldest: Option<Oldest<P>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Oldest<P> {
    position: P,
    stamp: Stamp,
    /// It was removed: the first is one behind it.
    is_removed: bool,
}

impl Ghosts {
    /// Nothing is counted, and nothing is stored before the purge's cursors.
    pub fn behind(purge: Cursors) -> Ghosts {
        let mut ghosts = Ghosts::default();
        ghosts.skip_to(purge);
        ghosts
    }

    /// How many are counted.
    pub fn amount(&self) -> Amount {
        self.own.amount.with(self.inherited.amount)
    }

    /// The stamps of the first of each queue: of the one that is removed, until the next one is found.
    pub fn oldest(&self) -> [Option<Stamp>; 2] {
        [
            self.own.oldest.map(|oldest| oldest.stamp),
            self.inherited.oldest.map(|oldest| oldest.stamp),
        ]
    }

    /// Whether all that had expired was counted at some time since the partition was opened.
    pub fn are_counted(&self) -> bool {
        self.is_counted
    }

    /// Whether the first of each queue is known.
    pub fn are_oldest_known(&self) -> bool {
        !self.own.is_oldest_removed() && !self.inherited.is_oldest_removed()
    }

    /// Nothing that has expired is left before the purge's cursors.
    fn skip_to(&mut self, purge: Cursors) {
        self.own.upto = self.own.upto.max(purge.expiry);
        self.inherited.upto = self.inherited.upto.max(purge.log);
    }

    /// The purge has removed all that had expired.
    pub fn all_removed(&mut self, purge: Cursors) {
        self.skip_to(purge);
        self.is_counted = true;
    }

    /// Whether the cursors have passed the entry of a record.
    pub fn have_passed(&self, record: &Record) -> bool {
        match record.stamp().class {
            Class::Inherited => record.version() < self.inherited.upto,
            Class::Own => record
                .expiry_position()
                .is_some_and(|position| position < self.own.upto),
            Class::Never => false,
        }
    }

    /// A record that was counted is removed.
    pub fn remove(&mut self, record: &Record) {
        match record.stamp().class {
            Class::Inherited => self.inherited.remove(record.version(), record.size()),
            Class::Own => {
                if let Some(position) = record.expiry_position() {
                    self.own.remove(position, record.size());
                }
            }
            Class::Never => {}
        }
    }
}

impl<P: Queue> GhostQueue<P> {
    fn add(&mut self, entry: &QueueEntry<P>) {
        self.amount.add(entry.size);
        self.oldest.get_or_insert(Oldest {
            position: entry.position,
            stamp: entry.stamp,
            is_removed: false,
        });
    }

    fn remove(&mut self, position: P, size: usize) {
        self.amount.remove(size);
        if self.amount.items == 0 {
            self.oldest = None;
        } else if let Some(oldest) = self.oldest.as_mut().filter(|oldest| oldest.position == position) {
            oldest.is_removed = true;
        }
    }

    fn is_oldest_removed(&self) -> bool {
        self.oldest.is_some_and(|oldest| oldest.is_removed)
    }
}

impl Partition {
    /// Counts what has expired by now, up to so many rows; `None` if that was not all. Else the counters, and the second by which they were
    /// counted.
    ///
    /// # Errors
    /// As [`Partition::background`].
    pub async fn count_ghosts(&self, settings: Settings, rows: usize) -> Result<Option<(PartitionState, UnixSeconds)>> {
        let count = move |batch: &mut WriteBatch<'_>| {
            let is_complete = count_some(batch, &settings, rows)?;
            Ok(is_complete.then(|| (batch.state.clone(), batch.seconds())))
        };
        self.background(count).await
    }
}

/// Counts what has expired behind the cursors, and what was deleted with its key, up to so many rows of each; tells whether that was all.
pub(crate) fn count_some(batch: &mut WriteBatch<'_>, settings: &Settings, rows: usize) -> Decision<bool> {
    let (horizon, policy) = (batch.horizon(settings), settings.policy);
    let mut ghosts = batch.state.ghosts;
    let purge = batch.state.purge;
    ghosts.skip_to(purge);
    let scans = [
        queues::scan(ghosts.own.upto, None, rows, BYTES),
        queues::scan(ghosts.inherited.upto, None, rows, BYTES),
    ];
    let pages = batch.scan_raw(&scans)?;
    let own_behind = behind_removed(batch, &ghosts.own, purge.expiry, rows)?;
    let inherited_behind = behind_removed(batch, &ghosts.inherited, purge.log, rows)?;
    let hidden = match batch.state.tombstones.uncounted(rows, BYTES) {
        Some(scan) => batch.scan_raw(&[scan])?.pop(),
        None => None,
    };

    let state = &mut batch.state;
    state.ghosts = ghosts;
    find_oldest(state, own_behind, |ghosts| &mut ghosts.own)?;
    find_oldest(state, inherited_behind, |ghosts| &mut ghosts.inherited)?;
    let own = count(state, &pages[0], horizon, policy, |ghosts| &mut ghosts.own)?;
    let inherited = count(state, &pages[1], horizon, policy, |ghosts| &mut ghosts.inherited)?;
    if let Some(page) = hidden {
        state.tombstones.count_hidden(&page)?;
    }
    let (Some(own), Some(inherited)) = (own, inherited) else {
        return Ok(false);
    };
    state.ghosts.is_counted = true;
    let is_complete = state.is_settled();
    batch.after.rest_count_until(own.min(inherited));
    Ok(is_complete)
}

/// Counts what has expired in a page of a queue, and moves its cursor behind that. The second at which the first entry that has not expired
/// does; `None` if there may be more that has.
fn count<P: Queue>(
    state: &mut PartitionState,
    page: &Page,
    horizon: Horizon,
    policy: Policy,
    queue: fn(&mut Ghosts) -> &mut GhostQueue<P>,
) -> Result<Option<i64>> {
    for entry in queues::entries::<P>(page) {
        let entry = entry?;
        if entry.belongs() {
            if entry.stamp.base.0 > P::threshold(horizon) {
                return Ok(Some(entry.stamp.ends_at(policy).unwrap_or(i64::MAX)));
            }
            if !is_hidden(state, &entry) {
                queue(&mut state.ghosts).add(&entry);
                state.tally_ghost(&entry.item_key, entry.size);
            }
        }
        queue(&mut state.ghosts).upto = entry.position.next();
    }
    Ok((!page.more).then_some(i64::MAX))
}

/// The entries behind the oldest of a queue, if that was removed. None that has expired is before `purge`.
fn behind_removed<P: Queue>(
    batch: &mut WriteBatch<'_>,
    queue: &GhostQueue<P>,
    purge: P,
    rows: usize,
) -> Decision<Option<Page>> {
    let Some(oldest) = queue.oldest.filter(|oldest| oldest.is_removed) else {
        return Ok(None);
    };
    let from = oldest.position.max(purge);
    let scan = queues::scan(from, Some(queue.upto), rows, BYTES);
    Ok(batch.scan_raw(&[scan])?.pop())
}

/// Finds the oldest in the entries behind the one that was removed.
fn find_oldest<P: Queue>(
    state: &mut PartitionState,
    page: Option<Page>,
    queue: fn(&mut Ghosts) -> &mut GhostQueue<P>,
) -> Result<()> {
    let Some(page) = page else { return Ok(()) };
    let mut oldest = queue(&mut state.ghosts).oldest;
    for entry in queues::entries::<P>(&page) {
        let entry = entry?;
        let is_found = entry.belongs() && !is_hidden(state, &entry);
        if let Some(oldest) = &mut oldest {
            oldest.position = entry.position;
            if is_found {
                (oldest.stamp, oldest.is_removed) = (entry.stamp, false);
                break;
            }
        }
    }
    if !page.more {
        oldest = oldest.filter(|oldest| !oldest.is_removed);
    }
    queue(&mut state.ghosts).oldest = oldest;
    Ok(())
}

/// Whether the item of an entry was deleted with its partition key: it is counted as such.
fn is_hidden<P>(state: &PartitionState, entry: &QueueEntry<P>) -> bool {
    let tombstones = &state.tombstones;
    tombstones.hide_version(&entry.item_key, entry.version.lsn, entry.stamp)
}
