//! Checks the history: its entries follow each other, it ends with the stored versions, and no version that was written since it began is missing.
//!
//! The history is read to its end first, which gives the last entry of each item. Then the log is read, which has every stored version. Together with
//! each page of the log, the history is read to its end again, so that both are of the same head.

use std::collections::HashMap;

use bolide_model::{Result, UnixSeconds};
use bolide_storage::Space;
use bytes::Bytes;

use super::{VerifyReport, is_inside, scan};
use crate::change_log::{ChangeKind, HistoryEntry};
use crate::container::ContainerState;
use crate::format::keys::{self, LogPosition};
use crate::format::record::{LogEntry, Record};
use crate::memory::{MemoryBudget, MemoryShare};
use crate::partition::Partition;
use crate::partition::write_batch::{Decision, WriteBatch};

/// Memory for an item besides its key, in bytes.
const ITEM_BYTES: usize = 128;

/// Where the next page begins.
#[derive(Debug, Clone, Default)]
pub(super) struct PageStart {
    /// Key in the history; `None` before the first page.
    history: Option<Bytes>,
    /// Key in the log; `None` until the history was read to its end.
    log: Option<Bytes>,
}

/// The result of reading a page.
pub(super) enum Read {
    /// The container keeps no history.
    None,
    /// The history was trimmed beyond the start of the next page, or was begun again.
    Overtaken,
    Page(Page),
}

/// Rows of the history and of the log at one head.
pub(super) struct Page {
    /// The history is complete from this position on.
    begins: LogPosition,
    entries: Vec<Entry>,
    /// Whether the history was read to its end.
    is_end: bool,
    history: Bytes,
    /// Stored versions with the keys of their items.
    log: Vec<(LogPosition, Bytes)>,
    next_log: Option<Bytes>,
    found: VerifyReport,
}

/// An entry of the history.
struct Entry {
    item_key: Bytes,
    crts: UnixSeconds,
    previous: Option<LogPosition>,
    current: Option<LogPosition>,
    /// Whether the entry tells the end of a version.
    is_end: bool,
}

/// Reads the next page.
pub(super) fn read(
    batch: &mut WriteBatch<'_>,
    state: &ContainerState,
    partition: &Partition,
    at: &PageStart,
) -> Decision<Read> {
    if state.retention().is_none() {
        return Ok(Read::None);
    }
    let begins = batch.state.history_from;
    let begin_key = keys::history(begins).bytes;
    if at.history.as_ref().is_some_and(|from| begin_key > from) {
        return Ok(Read::Overtaken);
    }
    let from = at.history.clone().unwrap_or_else(keys::log_end);
    let mut scans = vec![scan(Space::Log, from, None)];
    scans.extend(at.log.clone().map(|from| scan(Space::Log, from, Some(keys::log_end()))));
    let mut pages = batch.scan_raw(&scans)?.into_iter();
    let (entries, log) = (pages.next().unwrap_or_default(), pages.next().unwrap_or_default());

    let mut page = Page {
        begins,
        entries: Vec::with_capacity(entries.rows.len()),
        is_end: !entries.more,
        history: at.history.clone().unwrap_or(begin_key),
        log: Vec::with_capacity(log.rows.len()),
        next_log: None,
        found: VerifyReport::default(),
    };
    for (key, value) in &entries.rows {
        let entry = HistoryEntry::decode(value)?;
        let position = keys::history_position(key);
        if position.is_none_or(|position| position < begins || position.lsn > batch.head()) {
            page.found
                .problem(|| format!("an entry of the history lies outside of it: {key:?}"));
        }
        if !is_inside(partition, &entry.item_key) {
            page.found
                .problem(|| format!("an entry of the history is out of place: {key:?}"));
        }
        page.history = position.map_or_else(|| keys::after(key), |position| keys::history(position.next()).bytes);
        page.entries.push(Entry {
            // A copy, because a slice would keep the whole page in memory.
            item_key: Bytes::copy_from_slice(&entry.item_key),
            crts: entry.crts,
            previous: entry.previous_version,
            current: entry.current.as_ref().map(Record::version),
            is_end: entry.kind == ChangeKind::Expire,
        });
    }
    for (key, value) in &log.rows {
        // Invalid keys are reported by the check of the log's entries.
        if let Some(position) = LogPosition::decode(key) {
            page.log.push((position, LogEntry::decode(value)?.item_key));
        }
        page.next_log = Some(keys::after(key)).filter(|_| log.more);
    }
    Ok(Read::Page(page))
}

/// The state of the check of the history.
#[derive(Default)]
pub(super) struct HistoryScan {
    start: PageStart,
    pub report: VerifyReport,
    begins: Option<LogPosition>,
    crts: Option<UnixSeconds>,
    /// The last entry of each item.
    last: HashMap<Bytes, Last>,
    bytes: usize,
    share: MemoryShare,
}

struct Last {
    /// The version after the entry; `None` after a delete.
    version: Option<LogPosition>,
    /// Whether the log has the item.
    is_stored: bool,
    /// The version whose end was told; it may still be stored.
    ended: Option<LogPosition>,
}

/// Whether the check of the history is complete.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Walked {
    SoFar,
    ToTheEnd,
}

impl HistoryScan {
    pub fn place(&self) -> PageStart {
        self.start.clone()
    }

    /// Checks a page.
    ///
    /// # Errors
    /// `Throttled` if there is no memory for more items.
    pub fn take(&mut self, page: Page, memory: &MemoryBudget) -> Result<Walked> {
        self.report.add(page.found);
        let begins = *self.begins.get_or_insert(page.begins);
        self.start.history = Some(page.history);
        for entry in page.entries {
            self.follow(entry);
        }
        memory.try_grow(&mut self.share, self.bytes)?;
        if !page.is_end {
            return Ok(Walked::SoFar);
        }
        let Some(_) = self.start.log else {
            self.start.log = Some(Bytes::new());
            return Ok(Walked::SoFar);
        };
        for (version, item_key) in page.log {
            self.meet(begins, version, &item_key);
        }
        self.start.log = page.next_log;
        if self.start.log.is_some() {
            return Ok(Walked::SoFar);
        }
        self.end();
        Ok(Walked::ToTheEnd)
    }

    /// Checks the next entry of the history.
    fn follow(&mut self, entry: Entry) {
        let Entry {
            item_key,
            crts,
            previous,
            current,
            is_end,
        } = entry;
        if self.crts.is_some_and(|before| crts < before) {
            self.report
                .problem(|| format!("the time of the history falls at an entry of {item_key:?}"));
        }
        self.crts = Some(crts);
        let last = Last {
            version: current,
            is_stored: false,
            ended: previous.filter(|_| is_end),
        };
        let key_bytes = item_key.len();
        match self.last.get_mut(&item_key) {
            Some(known) => {
                if known.version != previous {
                    self.report
                        .problem(|| format!("an entry of the history does not follow the one before: {item_key:?}"));
                }
                *known = last;
            }
            None => {
                self.bytes += key_bytes + ITEM_BYTES;
                self.last.insert(item_key, last);
            }
        }
    }

    /// Checks a stored version, at a head up to which the history was read.
    fn meet(&mut self, begins: LogPosition, version: LogPosition, item_key: &Bytes) {
        match self.last.get_mut(item_key) {
            Some(last) => {
                last.is_stored = true;
                if last.version != Some(version) && last.ended != Some(version) {
                    self.report.problem(|| differs(item_key));
                }
            }
            None if version >= begins => self
                .report
                .problem(|| format!("a stored version is missing in the history: {item_key:?}")),
            None => {}
        }
    }

    fn end(&mut self) {
        for (item_key, last) in &self.last {
            if last.version.is_some() && !last.is_stored {
                self.report.problem(|| differs(item_key));
            }
        }
    }
}

fn differs(item_key: &Bytes) -> String {
    format!("the history's last version of an item is not the one stored: {item_key:?}")
}
