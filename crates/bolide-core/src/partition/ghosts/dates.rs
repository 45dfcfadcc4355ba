//! Counts the documents that date rules have ended.
//!
//! There is a queue for each rule, with a cursor of its own: every entry that it has passed belongs to a ghost. A document may be in several queues, and
//! it may have expired by the core rule (`_ts`), too. It is counted once:
//!
//! ```text
//!   passed by the cursor of its core queue   → counted there, also if date rules have ended it
//!   otherwise passed by a cursor of a rule   → counted here
//! ```
//!
//! So when the cursor of a core queue passes a document that is counted here, the count moves. To know that, and whether another rule has counted a
//! document, its record is read, unless nothing else can have counted it.

use std::collections::HashMap;

use bolide_model::Result;
use bolide_model::ttl::{Deadline, Horizon, RuleId, Settings};
use bolide_storage::{Key, Page, Scan, Space};
use bytes::Bytes;

use super::{BYTES, Ghosts};
use crate::format::keys::{DeadlinePosition, ExpiryPosition, LogPosition};
use crate::format::queues::{self, Queue};
use crate::format::record::Record;
use crate::partition::date_cursors::DateCursors;
use crate::partition::state::{Amount, PartitionState};
use crate::partition::write_batch::{Decision, WriteBatch};

/// Maximum number of records read in one write batch, and approximately of their bytes.
const RECORDS: usize = 500;
const RECORD_BYTES: usize = 4 * 1024 * 1024;
/// Least number of rows of each rule's scan; with many rules, the rows of one write batch are divided among them.
const LEAST_ROWS: usize = 8;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DateGhosts {
    /// Ghosts that no core queue counts.
    pub amount: Amount,
    cursors: DateCursors,
    /// The first ghost of each rule's queue, counted here or not, in the order of the rules.
    oldest: Vec<Oldest>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Oldest {
    position: DeadlinePosition,
    /// Whether this ghost was removed: then the first ghost is after this position, and its position is not known yet.
    is_removed: bool,
}

impl DateGhosts {
    pub fn skip_to(&mut self, purge: &DateCursors) {
        self.cursors.raise_all(purge);
    }

    pub fn all_removed(&mut self) {
        self.oldest.clear();
    }

    pub fn have_passed(&self, record: &Record) -> bool {
        !self.cursors.are_at_start() && self.passed(record).next().is_some()
    }

    fn passed<'r>(&'r self, record: &'r Record) -> impl Iterator<Item = DeadlinePosition> + 'r {
        let positions = record.deadline_positions();
        positions.filter(|position| self.cursors.have_passed(position))
    }

    /// Records that a ghost is stored now, behind the cursors.
    pub fn added(&mut self, record: &Record) {
        let passed: Vec<DeadlinePosition> = self.passed(record).collect();
        for position in passed {
            self.meet(position);
        }
    }

    /// Records that a ghost is no longer stored.
    pub fn removed(&mut self, record: &Record) {
        for position in record.deadline_positions() {
            if let Some(oldest) = self.oldest.iter_mut().find(|oldest| oldest.position == position) {
                oldest.is_removed = true;
            }
        }
    }

    pub fn are_oldest_known(&self) -> bool {
        self.oldest.iter().all(|oldest| !oldest.is_removed)
    }

    /// Returns scans for the first ghost of each rule whose oldest ghost was removed. No ghosts are left before the purge's cursors.
    fn behind_removed(&self, purge: &DateCursors) -> impl Iterator<Item = (RuleId, Scan)> {
        let removed = self.oldest.iter().filter(|oldest| oldest.is_removed);
        removed.map(|oldest| {
            let rule = oldest.position.deadline.rule;
            let from = oldest.position.max(purge.of(rule));
            (rule, queues::scan_dates(from, Some(self.cursors.of(rule)), 1, BYTES))
        })
    }

    pub fn oldest(&self) -> impl Iterator<Item = Deadline> {
        self.oldest.iter().map(|oldest| oldest.position.deadline)
    }

    /// Moves a cursor behind the entry of a ghost.
    fn pass(&mut self, position: DeadlinePosition) {
        self.cursors.raise(position.next());
        self.meet(position);
    }

    fn meet(&mut self, position: DeadlinePosition) {
        let rule = |oldest: &Oldest| oldest.position.deadline.rule;
        let ghost = Oldest {
            position,
            is_removed: false,
        };
        match self.oldest.binary_search_by_key(&position.deadline.rule, rule) {
            Ok(at) if position <= self.oldest[at].position => self.oldest[at] = ghost,
            Ok(_) => {}
            Err(at) => self.oldest.insert(at, ghost),
        }
    }
}

/// What was read to count the documents that date rules have ended.
#[derive(Default)]
pub(super) struct DatePages {
    queues: Vec<RulePages>,
    /// For each rule whose oldest ghost was removed, the first entry behind it. A rule may be here that the collection has no more: an index that was
    /// dropped when its last ghost had been removed.
    behind_removed: Vec<(RuleId, Page)>,
    /// Whether something else may have counted a document, so that its record is needed.
    needs_records: bool,
    /// `None` for an entry without an item, which only damage leaves.
    records: HashMap<Bytes, Option<Record>>,
}

/// Rows of the queue of one rule.
struct RulePages {
    rule: RuleId,
    /// Entries from the cursor on.
    page: Page,
}

/// Reads the next entries of the queue of each date rule, and the records that are needed to count them and the entries of the core queues, `own` and
/// `log`.
pub(super) fn read(
    batch: &mut WriteBatch<'_>,
    (settings, horizon): (&Settings, &Horizon),
    ghosts: &Ghosts,
    (own, log): (&Page, &Page),
    rows: usize,
) -> Decision<DatePages> {
    let rules = settings.dates.iter().count();
    if rules == 0 && ghosts.dates.amount.items == 0 && ghosts.dates.are_oldest_known() {
        return Ok(DatePages::default());
    }
    let rows = (rows / rules.max(1)).max(LEAST_ROWS);
    let next = settings
        .dates
        .iter()
        .map(|rule| queues::scan_dates(ghosts.dates.cursors.of(rule.id), None, rows, BYTES));
    let next = batch.scan_raw(&next.collect::<Vec<_>>());
    let removed: Vec<(RuleId, Scan)> = ghosts.dates.behind_removed(&batch.state.date_purge).collect();
    let first = batch.scan_raw(&removed.iter().map(|(_, scan)| scan.clone()).collect::<Vec<_>>());
    let (next, first) = (next?, first?);
    let rules = settings.dates.iter().map(|rule| rule.id);
    let mut read = DatePages {
        queues: rules.zip(next).map(|(rule, page)| RulePages { rule, page }).collect(),
        behind_removed: removed.into_iter().map(|(rule, _)| rule).zip(first).collect(),
        ..DatePages::default()
    };
    read.read_records(batch, horizon, ghosts, (own, log))?;
    Ok(read)
}

impl DatePages {
    fn read_records(
        &mut self,
        batch: &mut WriteBatch<'_>,
        horizon: &Horizon,
        ghosts: &Ghosts,
        (own, log): (&Page, &Page),
    ) -> Decision<()> {
        let (own, log) = (due::<ExpiryPosition>(own, horizon)?, due::<LogPosition>(log, horizon)?);
        let is_core_used = !own.is_empty()
            || !log.is_empty()
            || ghosts.own.upto != ExpiryPosition::default()
            || ghosts.inherited.upto != LogPosition::default();
        let mut wanted: Vec<(Bytes, usize)> = Vec::new();
        if ghosts.dates.amount.items > 0 {
            wanted.extend(own);
            wanted.extend(log);
        }
        let mut dated = Vec::new();
        let mut used: Vec<_> = ghosts.dates.cursors.rules().collect();
        for queue in &self.queues {
            let before = dated.len();
            for entry in queues::date_entries(&queue.page) {
                let entry = entry?;
                if !horizon.dates.has_ended(entry.position.deadline) {
                    break;
                }
                dated.push((entry.item_key, entry.size));
            }
            if dated.len() > before && !used.contains(&queue.rule) {
                used.push(queue.rule);
            }
        }
        self.needs_records = is_core_used || used.len() > 1;
        if self.needs_records {
            wanted.extend(dated);
        }
        self.look_up(batch, wanted)
    }

    /// Reads the first of some records, as many as one write batch reads.
    fn look_up(&mut self, batch: &mut WriteBatch<'_>, wanted: Vec<(Bytes, usize)>) -> Decision<()> {
        let (mut keys, mut bytes) = (Vec::new(), 0);
        for (item_key, size) in wanted {
            if keys.len() >= RECORDS || bytes >= RECORD_BYTES {
                break;
            }
            bytes += size;
            keys.push(Key::new(Space::Item, item_key));
        }
        let values = batch.get_all_raw(&keys)?;
        for (key, value) in keys.into_iter().zip(values) {
            self.records.insert(key.bytes, value.map(Record::decode).transpose()?);
        }
        Ok(())
    }

    /// Returns whether the count of the dates has an item that a core queue is about to count; `None` if that is not known.
    pub fn have_counted(&self, ghosts: &Ghosts, item_key: &Bytes) -> Option<bool> {
        if ghosts.dates.amount.items == 0 {
            return Some(false);
        }
        let record = self.records.get(item_key)?.as_ref();
        Some(record.is_some_and(|record| ghosts.dates.have_passed(record)))
    }
}

/// Returns the item keys and sizes of the due entries in a page of a core queue.
fn due<P: Queue>(page: &Page, horizon: &Horizon) -> Result<Vec<(Bytes, usize)>> {
    let mut due = Vec::new();
    for entry in queues::entries::<P>(page) {
        let entry = entry?;
        if !entry.belongs() {
            continue;
        }
        if entry.stamp.base.0 > P::threshold(horizon) {
            break;
        }
        due.push((entry.item_key, entry.size));
    }
    Ok(due)
}

/// Counts the entries of ended documents in the pages, and moves the cursors behind them. Returns the second at which the next document ends;
/// `i64::MAX` if none will; `None` if entries of ended documents may follow.
pub(super) fn count(
    state: &mut PartitionState,
    pages: &DatePages,
    (settings, horizon): (&Settings, &Horizon),
) -> Result<Option<i64>> {
    for (rule, page) in &pages.behind_removed {
        find_oldest(state, *rule, page)?;
    }
    let mut next = Some(i64::MAX);
    for queue in &pages.queues {
        let end = count_queue(state, pages, queue, (settings, horizon))?;
        next = next.zip(end).map(|(next, end)| next.min(end));
    }
    Ok(next)
}

/// Finds the oldest ghost of a rule, in the entries behind the one that was removed.
fn find_oldest(state: &mut PartitionState, rule: RuleId, page: &Page) -> Result<()> {
    let dates = &mut state.ghosts.dates;
    dates.oldest.retain(|oldest| oldest.position.deadline.rule != rule);
    if let Some(first) = queues::date_entries(page).next() {
        dates.meet(first?.position);
    }
    Ok(())
}

fn count_queue(
    state: &mut PartitionState,
    pages: &DatePages,
    queue: &RulePages,
    (settings, horizon): (&Settings, &Horizon),
) -> Result<Option<i64>> {
    for entry in queues::date_entries(&queue.page) {
        let entry = entry?;
        let deadline = entry.position.deadline;
        if !horizon.dates.has_ended(deadline) {
            let end = settings.dates.ends_at(deadline);
            return Ok(Some(end.map_or(i64::MAX, |end| end.seconds_up().0)));
        }
        let is_counted = match pages.records.get(&entry.item_key) {
            _ if !pages.needs_records => false,
            Some(Some(record)) => state.ghosts.have_passed(record),
            Some(None) => true,
            None => return Ok(None),
        };
        if !is_counted {
            state.ghosts.dates.amount.add(entry.size);
            state.tally_ghost(&entry.item_key, entry.size);
        }
        state.ghosts.dates.pass(entry.position);
    }
    Ok((!queue.page.more).then_some(i64::MAX))
}
