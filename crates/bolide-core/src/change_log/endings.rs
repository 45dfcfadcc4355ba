//! The ends of documents in the history of a collection: each is written once, at the time at which it happened, whether the document is removed then,
//! later, or never.
//!
//! Documents that have ended are found at the heads of the queues, as the purge finds them, from positions of their own. A version whose end was told
//! stays stored until the purge or a write removes it, which tells nothing any more. What happened before the history began is passed over.

use std::collections::HashSet;
use std::sync::Arc;

use bolide_model::time::CommitTime;
use bolide_model::ttl::{Horizon, Settings};
use bolide_model::{Result, UnixMillis};
use bolide_storage::{Key, Page, Scan, Space};
use bytes::Bytes;

use super::{Change, Keeping, log_at};
use crate::format::keys::{DeadlinePosition, ExpiryPosition, LogPosition};
use crate::format::queues::{self, Queue};
use crate::format::record::Record;
use crate::partition::Partition;
use crate::partition::endings::Endings;
use crate::partition::write_batch::{Decision, WriteBatch};

/// Maximum number of entries of one queue in one step, and of their bytes.
const ROWS: usize = 200;
const SCAN_BYTES: usize = 256 * 1024;
/// Maximum size of the documents that one step reads, in bytes.
const STEP_BYTES: usize = 4 * 1024 * 1024;

/// Tells the ends of documents by the settings of a collection.
pub(crate) struct CollectionEndings {
    settings: Settings,
    /// How the history is kept; `None`: it begins, and what has ended before is passed over.
    keeping: Option<Keeping>,
    /// When the settings came into force, in the order of commits and by the clock: what they have ended, they have ended then or later.
    since: (CommitTime, UnixMillis),
}

impl CollectionEndings {
    pub fn new(settings: Settings, keeping: Keeping, since: (CommitTime, UnixMillis)) -> CollectionEndings {
        CollectionEndings {
            settings,
            keeping: Some(keeping),
            since,
        }
    }
}

/// Passes over everything that has ended in a partition whose history begins.
///
/// # Errors
/// From the engine.
pub(crate) async fn pass_over(settings: &Settings, partition: &Arc<Partition>) -> Result<()> {
    let endings = Arc::new(CollectionEndings {
        settings: settings.clone(),
        keeping: None,
        since: (CommitTime::default(), UnixMillis(i64::MIN)),
    });
    loop {
        let telling = endings.clone();
        let next = partition.background(move |batch| telling.tell(batch)).await?;
        if next.is_some() {
            return Ok(());
        }
    }
}

/// A document that is due in a queue.
struct Due {
    item_key: Bytes,
    version: LogPosition,
    size: usize,
    after: Position,
}

/// A position in one of the queues.
#[derive(Debug, Clone, Copy)]
enum Position {
    Log(LogPosition),
    Own(ExpiryPosition),
    Date(DeadlinePosition),
}

/// The due entries at the head of a queue.
#[derive(Default)]
struct QueueHead {
    due: Vec<Due>,
    /// The position behind entries that are skipped or gone, after those that are due.
    resume: Option<Position>,
    /// Whether the queue was read to the first entry that is not due, or to its end.
    is_complete: bool,
    /// When that entry will be due, if it is known.
    next: Option<UnixMillis>,
}

impl Endings for CollectionEndings {
    fn tell(&self, batch: &mut WriteBatch<'_>) -> Decision<Option<UnixMillis>> {
        let horizon = self.settings.horizon(batch.now);
        let heads = self.heads(batch, &horizon)?;
        let (taken, is_cut) = take(&heads);
        let ended = self.ended(batch, &horizon, &taken)?;
        if let Some(keeping) = &self.keeping {
            for ended in &ended {
                self.log(batch, keeping, ended);
            }
        }
        for due in &taken {
            batch.pass_told(due.after);
        }
        if is_cut {
            return Ok(None);
        }
        for position in heads.iter().filter_map(|head| head.resume) {
            batch.pass_told(position);
        }
        let is_complete = heads.iter().all(|head| head.is_complete);
        let next = heads.iter().filter_map(|head| head.next).min();
        Ok(is_complete.then(|| next.unwrap_or(UnixMillis(i64::MAX))))
    }
}

/// Takes due entries of the queues, one queue after the other, up to the one that reaches [`STEP_BYTES`]. Returns whether there are more.
fn take(heads: &[QueueHead]) -> (Vec<&Due>, bool) {
    let (mut taken, mut bytes) = (Vec::new(), 0);
    for due in heads.iter().flat_map(|head| &head.due) {
        if bytes >= STEP_BYTES {
            return (taken, true);
        }
        bytes += due.size;
        taken.push(due);
    }
    (taken, false)
}

/// A version that has ended.
struct Ended {
    /// `None`: no setting in force tells when.
    end: Option<UnixMillis>,
    item_key: Bytes,
    record: Record,
}

impl CollectionEndings {
    /// Returns the versions of due entries that have ended and were not told yet, in the order of their ends.
    fn ended(&self, batch: &mut WriteBatch<'_>, horizon: &Horizon, taken: &[&Due]) -> Decision<Vec<Ended>> {
        let keys: Vec<Key> = taken
            .iter()
            .map(|due| Key::new(Space::Item, due.item_key.clone()))
            .collect();
        let stored = batch.get_all_raw(&keys)?;
        let (mut ended, mut seen) = (Vec::new(), HashSet::new());
        for (due, value) in taken.iter().zip(stored) {
            let Some(record) = value.map(Record::decode).transpose()? else {
                continue;
            };
            let has_ended = record.version() == due.version && !record.is_live(horizon);
            // It may be due in several queues.
            if has_ended && !batch.state.has_told_end(&record) && seen.insert(&due.item_key) {
                let end = self.settings.ends_at(record.stamp(), record.deadlines());
                ended.push(Ended {
                    end: end.filter(|end| *end <= batch.now),
                    item_key: due.item_key.clone(),
                    record,
                });
            }
        }
        // What no setting in force tells has ended before.
        ended.sort_by_key(|ended| (ended.end, ended.record.version()));
        Ok(ended)
    }

    fn log(&self, batch: &mut WriteBatch<'_>, keeping: &Keeping, ended: &Ended) {
        let end = ended.end.unwrap_or(batch.now);
        let time = batch.state.time_of_end(end, self.since.0, batch.time);
        // Not before it was written: its date may have passed already.
        let earliest = self.since.1.max(batch.state.history_happened);
        let happened = end.max(earliest).min(batch.now);
        let version = batch.next_version();
        let change = Change::ended(&ended.item_key, &ended.record);
        log_at(batch, Some(keeping.clone()), version, change, (time, happened));
    }
}

impl CollectionEndings {
    /// Returns the due entries at the heads of all queues.
    fn heads(&self, batch: &mut WriteBatch<'_>, horizon: &Horizon) -> Decision<Vec<QueueHead>> {
        let rules = &self.settings.dates;
        let mut scans: Vec<Scan> = vec![
            queues::scan(batch.state.told.expiry, None, ROWS, SCAN_BYTES),
            queues::scan(batch.state.told.log, None, ROWS, SCAN_BYTES),
        ];
        for rule in rules.iter() {
            scans.push(queues::scan_dates(
                batch.state.told_dates.of(rule.id),
                None,
                ROWS,
                SCAN_BYTES,
            ));
        }
        let pages = batch.scan_raw(&scans)?;
        let mut pages = pages.iter();
        let mut heads = Vec::with_capacity(scans.len());
        if let (Some(own), Some(log)) = (pages.next(), pages.next()) {
            heads.push(self.head(own, horizon, Position::Own)?);
            heads.push(self.head(log, horizon, Position::Log)?);
        }
        for page in pages {
            heads.push(self.date_head(page, horizon)?);
        }
        Ok(heads)
    }

    fn head<P: Queue>(&self, page: &Page, horizon: &Horizon, position: fn(P) -> Position) -> Result<QueueHead> {
        let mut head = QueueHead::default();
        for entry in queues::entries::<P>(page) {
            let entry = entry?;
            let after = position(entry.position.next());
            if !entry.belongs() {
                head.resume = Some(after);
                continue;
            }
            if entry.stamp.base.0 > P::threshold(horizon) {
                let next = entry.stamp.ends_at(self.settings.policy);
                head.next = next.map(|second| bolide_model::UnixSeconds(second).millis());
                head.resume = Some(position(P::before_rest(&entry, horizon)));
                head.is_complete = true;
                return Ok(head);
            }
            head.take(entry.item_key, entry.version, entry.size, after);
        }
        head.is_complete = !page.more;
        Ok(head)
    }

    fn date_head(&self, page: &Page, horizon: &Horizon) -> Result<QueueHead> {
        let mut head = QueueHead::default();
        for entry in queues::date_entries(page) {
            let entry = entry?;
            let deadline = entry.position.deadline;
            if !horizon.dates.has_ended(deadline) {
                head.next = self.settings.dates.ends_at(deadline);
                head.is_complete = true;
                return Ok(head);
            }
            let after = Position::Date(entry.position.next());
            head.take(entry.item_key, entry.position.version, entry.size, after);
        }
        head.is_complete = !page.more;
        Ok(head)
    }
}

impl QueueHead {
    fn take(&mut self, item_key: Bytes, version: LogPosition, size: usize, after: Position) {
        self.due.push(Due {
            item_key,
            version,
            size,
            after,
        });
    }
}

impl WriteBatch<'_> {
    /// Notes that the ends in a queue were told up to a position.
    fn pass_told(&mut self, position: Position) {
        let state = &mut self.state;
        match position {
            Position::Log(position) => state.told.log = state.told.log.max(position),
            Position::Own(position) => state.told.expiry = state.told.expiry.max(position),
            Position::Date(position) => state.told_dates.raise(position),
        }
    }
}

#[cfg(test)]
mod tests;
