//! The full check of a container's storage: every item has all of its entries, and there is no entry without its item (TTL-267, P5). Where
//! there is a history, it ends with what is stored (TTL-274).

use std::collections::HashMap;
use std::sync::Arc;

use bolide_model::ttl::Horizon;
use bolide_model::{Lsn, Result};
use bolide_storage::Space;
use bytes::Bytes;

use crate::account::Account;
use crate::container::{Container, ContainerState};
use crate::history::{self, HistoryEntry};
use crate::keys::{self, LogPosition};
use crate::partition::state::PartitionState;
use crate::partition::{Pages, Partition};
use crate::purge::ghosts;
use crate::record::{ExpiryEntry, LogEntry, Record};

/// More problems than this are only counted.
const PROBLEMS: usize = 100;

/// What a full check found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifyReport {
    /// Items physically there, ghosts included.
    pub stored: u64,
    /// Items that are live.
    pub live: u64,
    /// What does not fit together, the first hundred in words.
    pub problems: Vec<String>,
}

impl VerifyReport {
    /// Everything fits together.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }

    fn problem(&mut self, what: impl FnOnce() -> String) {
        if self.problems.len() < PROBLEMS {
            self.problems.push(what());
        }
    }
}

impl Account {
    /// Checks all items of a container against indexes, unique keys, queues and counters. Requests wait meanwhile.
    ///
    /// # Errors
    /// From the engine. What does not fit together is no error but in the report.
    pub async fn verify(&self, container: &Arc<Container>) -> Result<VerifyReport> {
        let change = container.lock().await;
        let state = change.state();
        let mut report = VerifyReport::default();
        for partition in &state.layout.partitions {
            // Requests wait, time does not: items are judged by the second that the ghosts were counted at.
            let (counted, now) = ghosts::counted_at(&state, partition).await?;
            let horizon = state.settings.horizon(now);
            check_partition(&state, partition, &counted, horizon, &mut report).await?;
        }
        Ok(report)
    }
}

async fn check_partition(
    state: &ContainerState,
    partition: &Partition,
    counters: &PartitionState,
    horizon: Horizon,
    report: &mut VerifyReport,
) -> Result<()> {
    let mut expected = Expected::default();
    let stored_before = report.stored;
    let (mut bytes, mut ghosts) = (0, 0);
    for (key, value) in read_space(partition, Space::Item).await? {
        let record = Record::decode(value)?;
        report.stored += 1;
        let is_live = record.stamp().is_live(horizon);
        ghosts += u64::from(!is_live);
        report.live += u64::from(is_live && !counters.drops.hides(&key, &record));
        bytes += record.size() as u64;
        if keys::number_of_item(&key) != record.number() {
            report.problem(|| format!("item '{}' is stored under another number", record.id()));
        }
        if !is_inside(partition, &key) {
            report.problem(|| format!("item '{}' is outside its range", record.id()));
        }
        if record.unique().count() != state.properties.unique_keys.len() {
            report.problem(|| format!("item '{}' has not all unique keys", record.id()));
        }
        expected.add(&key, &record);
    }
    let versions = std::mem::take(&mut expected.versions);
    expected.compare(partition, report).await?;
    if history::retention(state).is_some() {
        check_history(partition, counters, versions, report).await?;
    }

    let stored = report.stored - stored_before;
    check_counter(report, "stored items", counters.stored.items, stored);
    check_counter(report, "stored bytes", counters.stored.bytes, bytes);
    check_counter(report, "ghosts", counters.ghosts.counted.items, ghosts);
    check_log_order(partition, report).await
}

fn is_inside(partition: &Partition, item_key: &[u8]) -> bool {
    let epk = keys::epk_of_item(item_key);
    epk >= partition.epk.min.as_bytes() && epk < partition.epk.max.as_bytes()
}

fn check_counter(report: &mut VerifyReport, name: &str, counted: u64, found: u64) {
    if counted != found {
        report.problem(|| format!("the counter of {name} says {counted}, found {found}"));
    }
}

/// The entries that the items ask for.
#[derive(Default)]
struct Expected {
    index: HashMap<Bytes, Bytes>,
    log: HashMap<Bytes, Bytes>,
    expiry: HashMap<Bytes, Bytes>,
    /// Item key → version.
    versions: HashMap<Bytes, LogPosition>,
}

impl Expected {
    fn add(&mut self, key: &Bytes, record: &Record) {
        let epk = keys::epk_of_item(key);
        self.versions.insert(key.clone(), record.version());
        let number = Bytes::copy_from_slice(&record.number().to_be_bytes());
        self.index
            .insert(keys::id_index(epk, record.id().as_bytes()).bytes, number);
        for (at, digest) in record.unique().enumerate() {
            self.index
                .insert(keys::unique_index(epk, at, &digest).bytes, key.clone());
        }
        let size = record.size() as u32;
        let entry = LogEntry {
            class: record.stamp().class,
            last_modified: record.last_modified(),
            size,
            item_key: key.clone(),
        };
        self.log.insert(record.version().to_bytes(), entry.encode());
        if let Some(position) = record.expiry_position() {
            self.expiry.insert(
                position.to_bytes(),
                ExpiryEntry {
                    size,
                    item_key: key.clone(),
                }
                .encode(),
            );
        }
    }

    async fn compare(self, partition: &Partition, report: &mut VerifyReport) -> Result<()> {
        let spaces = [
            (Space::Index, self.index),
            (Space::Log, self.log),
            (Space::Expiry, self.expiry),
        ];
        for (space, mut expected) in spaces {
            for (key, value) in read_space(partition, space).await? {
                match expected.remove(&key) {
                    Some(wanted) if wanted == value => {}
                    Some(_) => report.problem(|| format!("an entry of {space:?} does not fit its item: {key:?}")),
                    None => report.problem(|| format!("an entry of {space:?} has no item: {key:?}")),
                }
            }
            for key in expected.keys() {
                report.problem(|| format!("an item has no entry in {space:?}: {key:?}"));
            }
        }
        Ok(())
    }
}

/// `_ts` never falls along the log, and nothing is newer than the head (TTL-208, P3).
async fn check_log_order(partition: &Partition, report: &mut VerifyReport) -> Result<()> {
    let mut last_modified = None;
    let mut newest = Lsn(0);
    for (key, value) in read_space(partition, Space::Log).await? {
        let entry = LogEntry::decode(&value)?;
        if last_modified.is_some_and(|last| entry.last_modified < last) {
            report.problem(|| format!("_ts falls along the log at {key:?}"));
        }
        last_modified = Some(entry.last_modified);
        newest = LogPosition::decode(&key).map_or(newest, |position| position.lsn);
    }
    if newest > partition.lsn() {
        report.problem(|| format!("the log has lsn {newest}, behind the head {}", partition.lsn()));
    }
    Ok(())
}

/// The history's last word on an item is the version that is stored, or that it is gone; and it misses no version that was written since
/// it began. `versions` are those stored.
async fn check_history(
    partition: &Partition,
    counters: &PartitionState,
    versions: HashMap<Bytes, LogPosition>,
    report: &mut VerifyReport,
) -> Result<()> {
    let mut last: HashMap<Bytes, Option<LogPosition>> = HashMap::new();
    let mut crts = None;
    let mut pages = Pages::over_history(partition);
    loop {
        let page = pages.next().await?;
        if page.is_empty() {
            break;
        }
        for (key, value) in &page {
            let entry = HistoryEntry::decode(value)?;
            let position = keys::history_position(key);
            if position.is_none_or(|position| position < counters.history_from || position.lsn > partition.lsn()) {
                report.problem(|| format!("an entry of the history lies outside of it: {key:?}"));
            }
            if crts.is_some_and(|crts| entry.crts < crts) || !is_inside(partition, &entry.item_key) {
                report.problem(|| format!("an entry of the history is out of place: {key:?}"));
            }
            let before = entry.previous.as_ref().map(Record::version);
            if last.get(&entry.item_key).is_some_and(|known| *known != before) {
                report.problem(|| format!("an entry of the history does not follow the one before: {key:?}"));
            }
            crts = Some(entry.crts);
            last.insert(entry.item_key, entry.current.as_ref().map(Record::version));
        }
    }
    for (key, version) in &last {
        if versions.get(key) != version.as_ref() {
            report.problem(|| format!("the history's last version of an item is not the one stored: {key:?}"));
        }
    }
    for (key, version) in &versions {
        if *version >= counters.history_from && !last.contains_key(key) {
            report.problem(|| format!("a stored version is missing in the history: {key:?}"));
        }
    }
    Ok(())
}

/// All rows of one space. Held in memory: a full check is for operators and tests.
pub(super) async fn read_space(partition: &Partition, space: Space) -> Result<Vec<(Bytes, Bytes)>> {
    let mut pages = Pages::over(partition, space);
    let mut rows = Vec::new();
    loop {
        let page = pages.next().await?;
        if page.is_empty() {
            return Ok(rows);
        }
        rows.extend(page);
    }
}
