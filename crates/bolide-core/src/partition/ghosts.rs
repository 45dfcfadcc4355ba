//! Counts items that are still stored but no longer exist for users: ghosts, which are expired and not purged yet, exactly at server time (TTL-253,
//! TTL-272), and items that were deleted with their partition key.
//!
//! The cursors of the count are ahead of the purge's cursors in the same queues. Horizons never fall, so an item whose entry they have passed and
//! that is still stored is a ghost and stays one. So each entry is counted once, and the removal of its item subtracts it again
//! (`PartitionState::removed`). Counting costs O(1) per expired item over its life, however often it is requested. Items that were deleted with their
//! partition key are counted in the order of their item keys, each of them once, too; if they expire before they are removed, they are not counted
//! again.
//!
//! Documents of collections may end by date rules, too ([`dates`]); each of them is counted once.
//!
//! Counts are kept in memory only: after a start, counting begins again at the purge cursors.

mod dates;

use bolide_model::ttl::{Class, Deadline, Horizon, Policy, Settings, Stamp};
use bolide_model::{Result, UnixSeconds};
use bolide_storage::Page;

use super::Partition;
use super::date_cursors::DateCursors;
use super::state::{Amount, Cursors, PartitionState};
use super::write_batch::{Decision, WriteBatch};
use crate::format::keys::{ExpiryPosition, LogPosition};
use crate::format::queues::{self, Queue, QueueEntry};
use crate::format::record::Record;
use dates::{DateGhosts, DatePages};

/// Maximum number of rows of each scan in one write batch, so that users' writes are not delayed.
pub(crate) const ROWS: usize = 2_000;
/// Maximum number of rows of each scan in the first write batch: usually there are few new rows to count.
pub(crate) const FEW_ROWS: usize = 32;
const BYTES: usize = 512 * 1024;

/// The ghosts counted so far: items that are expired and still stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ghosts {
    own: GhostQueue<ExpiryPosition>,
    inherited: GhostQueue<LogPosition>,
    /// Documents that date rules have ended.
    dates: DateGhosts,
    /// Whether all expired entries were counted, or removed by the purge, at least once since the partition was opened.
    is_counted: bool,
}

/// The counted ghosts of one expiry queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct GhostQueue<P> {
    amount: Amount,
    /// Position of the cursor: the expired entries before it are counted.
    upto: P,
    /// The first counted ghost of the queue; `None` if there are no counted ghosts.
    oldest: Option<Oldest<P>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Oldest<P> {
    position: P,
    stamp: Stamp,
    /// Whether this ghost was removed: then the first ghost is after this position, and its position is not known yet.
    is_removed: bool,
}

impl Ghosts {
    /// Returns empty counts whose cursors are at the purge's cursors: no ghosts are stored before them.
    pub fn behind(purge: Cursors) -> Ghosts {
        let mut ghosts = Ghosts::default();
        ghosts.skip_to(purge, &DateCursors::default());
        ghosts
    }

    /// Returns the number and bytes of the counted ghosts.
    pub fn amount(&self) -> Amount {
        self.own.amount.with(self.inherited.amount).with(self.dates.amount)
    }

    /// Returns the stamp of the first ghost of each core queue. If that ghost was removed, its stamp is returned until the next one is found.
    pub fn oldest(&self) -> [Option<Stamp>; 2] {
        [
            self.own.oldest.map(|oldest| oldest.stamp),
            self.inherited.oldest.map(|oldest| oldest.stamp),
        ]
    }

    /// Like [`Ghosts::oldest`], for the queues of the date rules.
    pub fn oldest_dates(&self) -> impl Iterator<Item = Deadline> {
        self.dates.oldest()
    }

    /// Returns whether all expired entries were counted, or removed by the purge, at least once since the partition was opened.
    pub fn are_counted(&self) -> bool {
        self.is_counted
    }

    /// Returns whether the first ghost of each queue is known.
    pub fn are_oldest_known(&self) -> bool {
        !self.own.is_oldest_removed() && !self.inherited.is_oldest_removed() && self.dates.are_oldest_known()
    }

    /// Advances the cursors to the purge's cursors, if those are further: no ghosts are left before them.
    fn skip_to(&mut self, purge: Cursors, dates: &DateCursors) {
        self.own.upto = self.own.upto.max(purge.expiry);
        self.inherited.upto = self.inherited.upto.max(purge.log);
        self.dates.skip_to(dates);
    }

    /// Records that the purge has removed all expired items, and that its cursors are at these positions.
    pub fn all_removed(&mut self, purge: Cursors, dates: &DateCursors) {
        self.skip_to(purge, dates);
        self.dates.all_removed();
        self.is_counted = true;
    }

    /// Returns whether the cursors have passed an entry of a record.
    pub fn have_passed(&self, record: &Record) -> bool {
        self.core_have_passed(record) || self.dates.have_passed(record)
    }

    /// Returns whether the cursor of its core queue has passed a record.
    fn core_have_passed(&self, record: &Record) -> bool {
        match record.stamp().class {
            Class::Inherited => record.version() < self.inherited.upto,
            Class::Own => record
                .expiry_position()
                .is_some_and(|position| position < self.own.upto),
            Class::Never => false,
        }
    }

    /// Counts a document that was written behind a cursor: its date had passed already. Returns whether it was.
    pub fn add(&mut self, record: &Record) -> bool {
        // New versions of items without dates are never behind a cursor.
        if !self.dates.have_passed(record) {
            return false;
        }
        match record.stamp().class {
            _ if !self.core_have_passed(record) => self.dates.amount.add(record.size()),
            Class::Own => self.own.amount.add(record.size()),
            Class::Inherited | Class::Never => self.inherited.amount.add(record.size()),
        }
        self.dates.added(record);
        true
    }

    /// Subtracts a counted ghost whose record was removed.
    pub fn remove(&mut self, record: &Record) {
        match (record.stamp().class, record.expiry_position()) {
            _ if !self.core_have_passed(record) => self.dates.amount.remove(record.size()),
            (Class::Own, Some(position)) => self.own.remove(position, record.size()),
            _ => self.inherited.remove(record.version(), record.size()),
        }
        self.dates.removed(record);
        if self.amount().items == 0 {
            self.dates.all_removed();
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
    /// Counts items that are expired now or were deleted with their partition key, at most `rows` rows of each scan. Returns the counters, and the second
    /// at which they were counted; `None` if not all were counted.
    ///
    /// # Errors
    /// The errors of [`Partition::background`].
    pub async fn count_ghosts(&self, settings: Settings, rows: usize) -> Result<Option<(PartitionState, UnixSeconds)>> {
        let count = move |batch: &mut WriteBatch<'_>| {
            let is_complete = count_some(batch, &settings, rows)?;
            Ok(is_complete.then(|| (batch.state.clone(), batch.seconds())))
        };
        self.background(count).await
    }
}

/// Counts expired entries after the cursors, and items that were deleted with their partition key, at most `rows` rows of each scan. Returns whether
/// all were counted.
pub(crate) fn count_some(batch: &mut WriteBatch<'_>, settings: &Settings, rows: usize) -> Decision<bool> {
    let (horizon, policy) = (batch.horizon(settings), settings.policy);
    let mut ghosts = batch.state.ghosts.clone();
    let purge = batch.state.purge;
    ghosts.skip_to(purge, &batch.state.date_purge);
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
    let rules = (settings, &horizon);
    let dates = dates::read(batch, rules, &ghosts, (&pages[0], &pages[1]), rows)?;

    let state = &mut batch.state;
    state.ghosts = ghosts;
    find_oldest(state, own_behind, |ghosts| &mut ghosts.own)?;
    find_oldest(state, inherited_behind, |ghosts| &mut ghosts.inherited)?;
    let own = count(state, (&pages[0], &dates), &horizon, policy, |ghosts| &mut ghosts.own)?;
    let inherited = count(state, (&pages[1], &dates), &horizon, policy, |ghosts| {
        &mut ghosts.inherited
    })?;
    let by_dates = dates::count(state, &dates, rules)?;
    if let Some(page) = hidden {
        state.tombstones.count_hidden(&page)?;
    }
    let (Some(own), Some(inherited), Some(by_dates)) = (own, inherited, by_dates) else {
        return Ok(false);
    };
    state.ghosts.is_counted = true;
    let is_complete = state.is_settled();
    batch.after.rest_count_until(own.min(inherited).min(by_dates));
    Ok(is_complete)
}

/// Counts the expired entries in a page of a queue, and moves the queue's cursor behind them. Returns the second at which the next entry expires;
/// `i64::MAX` if none will; `None` if expired entries may follow after the page, or after those of whose items it is known whether they are counted.
fn count<P: Queue>(
    state: &mut PartitionState,
    (page, dates): (&Page, &DatePages),
    horizon: &Horizon,
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
                match dates.have_counted(&state.ghosts, &entry.item_key) {
                    Some(true) => state.ghosts.dates.amount.remove(entry.size),
                    Some(false) => state.tally_ghost(&entry.item_key, entry.size),
                    None => return Ok(None),
                }
                queue(&mut state.ghosts).add(&entry);
            }
        }
        queue(&mut state.ghosts).upto = entry.position.next();
    }
    Ok((!page.more).then_some(i64::MAX))
}

/// Reads the entries of a queue after its oldest ghost, if that was removed; otherwise returns `None`. The scan begins at `purge` if that is further,
/// because no ghosts are left before the purge's cursor.
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

/// Finds the oldest ghost in a page of the entries after the one that was removed.
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

/// Returns whether the item of an entry was deleted with its partition key. Such items are counted by their tombstones, not as ghosts.
fn is_hidden<P>(state: &PartitionState, entry: &QueueEntry<P>) -> bool {
    let tombstones = &state.tombstones;
    tombstones.hides_version(&entry.item_key, entry.version.lsn, entry.stamp)
}
