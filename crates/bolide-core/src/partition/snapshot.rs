//! The functions that read what a partition stores.
//!
//! ```text
//!   Partition::snapshot       items: visible records only, by one horizon and one set of tombstones
//!   Partition::read_index     entries of property indexes, which may belong to ghosts, and no items
//!   Partition::read_live_index  the same, with what tells which of their items exist (`live_index.rs`)
//!   Partition::read_log       the log: which versions were written when, and no items
//!   Partition::read_history   the history: changes, replaced and deleted versions included
//!   Partition::read_raw       rows as they are stored, ghosts included: for `background` and `admin` only
//! ```
//!
//! A decision inside the worker reads in the same ways: items by `WriteBatch::slot`, rows by `WriteBatch::get_raw` and `WriteBatch::scan_raw`.

use std::sync::atomic::Ordering;

use bolide_model::time::CommitTime;
use bolide_model::ttl::{Horizon, Settings};
use bolide_model::{Lsn, Result, UnixMillis};
use bolide_storage::{Engine, EngineError, Head, Page, PartitionId, ReadRequest, ReadResponse, Scan, Space};
use bytes::Bytes;

use super::edition::{self, SettingsNumber, settings_changed};
use super::state::PartitionState;
use super::tombstones::TombstoneView;
use super::visibility::Visibility;
use super::worker::error_of;
use super::{Partition, engine_error};
use crate::format::keys::{self, LogPosition};
use crate::format::record::Record;

/// The time that decides what a snapshot shows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AsOf<'s> {
    /// The server time of the request, or the stamp of the newest commit in the snapshot if that is later. So, of two items that expire in the same
    /// second, a snapshot never shows one and lacks the other only because the purge has removed that one first (docs/ttl.md, "Time").
    Time { settings: &'s Settings, now: UnixMillis },
    /// The horizon of an earlier snapshot of the same request.
    Horizon(&'s Horizon),
}

impl AsOf<'_> {
    pub(super) async fn horizon(self, partition: &Partition, head: Head) -> Horizon {
        match self {
            AsOf::Time { settings, now } => {
                let now = now.max(head.stamp);
                partition.show_exactly(settings, now).await;
                settings.horizon(now)
            }
            AsOf::Horizon(horizon) => horizon.clone(),
        }
    }
}

/// Rows of a partition at one head. Its functions return visible records only.
pub(crate) struct Snapshot {
    pub head: Head,
    visibility: Visibility,
    gets: Vec<Option<Bytes>>,
    pages: Vec<Page>,
}

/// Keys of the index space: from the first, inclusive, to the end, exclusive.
#[derive(Debug, Clone)]
pub(crate) struct IndexInterval {
    pub from: Bytes,
    pub to: Option<Bytes>,
}

impl IndexInterval {
    /// Returns whether a key lies inside.
    pub fn contains(&self, key: &[u8]) -> bool {
        key >= &self.from[..] && self.to.as_ref().is_none_or(|to| key < &to[..])
    }
}

/// Maximum number of bytes of the entries of one read.
const INDEX_READ_BYTES: usize = 4 * 1024 * 1024;

/// A row that was scanned and that may be a ghost.
pub(crate) struct StoredRow {
    key: Bytes,
    value: Bytes,
}

impl StoredRow {
    pub fn key(&self) -> &Bytes {
        &self.key
    }
}

/// The rows of one scan of a snapshot.
pub(crate) struct ItemPage {
    /// In key order.
    pub rows: Vec<StoredRow>,
    more: bool,
    /// Whether the scan was made. It was not if the scans before it returned as much as one read may hold.
    pub is_made: bool,
}

impl Snapshot {
    /// Returns the horizon that decides which of its rows are visible.
    pub fn horizon(&self) -> &Horizon {
        self.visibility.horizon()
    }

    /// Returns the record of the item at index `at` of the requested keys, if it is visible.
    ///
    /// # Errors
    /// `Corrupt` if the stored value is not a valid record.
    pub fn record(&mut self, at: usize, item_key: &[u8]) -> Result<Option<Record>> {
        let record = self.gets.get_mut(at).and_then(Option::take).map(Record::decode);
        Ok(record
            .transpose()?
            .filter(|record| self.visibility.shows(item_key, record)))
    }

    /// Returns the index entry at index `at` of the requested keys. It may belong to a ghost.
    pub fn index_entry(&self, at: usize) -> Option<&Bytes> {
        self.gets.get(at).and_then(Option::as_ref)
    }

    /// Returns the bytes that its rows take in memory, with `row_bytes` added for each row.
    pub fn row_bytes(&self, row_bytes: usize) -> usize {
        let of_page = |page: &Page| page.bytes() + page.rows.len() * row_bytes;
        let of_get = |value: &Bytes| value.len() + row_bytes;
        self.pages.iter().map(of_page).sum::<usize>() + self.gets.iter().flatten().map(of_get).sum::<usize>()
    }

    /// Takes the rows of the requested keys, as far as they were read; `None` for a key without a row.
    pub fn take_gets(&mut self, keys: &[Bytes]) -> Vec<Option<StoredRow>> {
        let gets = std::mem::take(&mut self.gets).into_iter().zip(keys);
        let row = |(value, key): (Option<Bytes>, &Bytes)| {
            let key = key.clone();
            value.map(|value| StoredRow { key, value })
        };
        gets.map(row).collect()
    }

    /// Takes the pages of the scans, in the order of the request.
    pub fn take_pages(&mut self) -> Vec<ItemPage> {
        let pages = std::mem::take(&mut self.pages);
        pages.into_iter().map(ItemPage::of).collect()
    }

    /// Returns a row's key and record, if the record is visible.
    ///
    /// # Errors
    /// `Corrupt` if the stored value is not a valid record.
    pub fn visible(&self, row: StoredRow) -> Result<Option<(Bytes, Record)>> {
        let record = Record::decode(row.value)?;
        Ok(self.visibility.shows(&row.key, &record).then_some((row.key, record)))
    }
}

impl ItemPage {
    /// Returns the key at which the scan continues; `None` if there are no more rows.
    pub fn resumes_at(&self) -> Option<Bytes> {
        self.rows.last().filter(|_| self.more).map(|row| keys::after(&row.key))
    }

    /// Returns the key before which a scan backward continues; `None` if there are no more rows.
    pub fn resumes_before(&self) -> Option<Bytes> {
        self.rows.last().filter(|_| self.more).map(|row| row.key.clone())
    }

    fn of(page: Page) -> ItemPage {
        ItemPage {
            more: page.more,
            is_made: page.is_made(),
            rows: page
                .rows
                .into_iter()
                .map(|(key, value)| StoredRow { key, value })
                .collect(),
        }
    }
}

impl Partition {
    /// Reads items at one snapshot. `request` may be called more than once.
    ///
    /// # Errors
    /// From the engine.
    pub async fn snapshot(&self, request: impl Fn() -> ReadRequest, as_of: AsOf<'_>) -> Result<Snapshot> {
        let (reply, tombstones) = self.read_raw_with_tombstones(request).await?;
        self.check_heard(as_of)?;
        let horizon = as_of.horizon(self, reply.head).await;
        Ok(Snapshot {
            head: reply.head,
            visibility: Visibility::new(horizon, tombstones),
            gets: reply.gets,
            pages: reply.pages,
        })
    }

    /// Reads the keys of entries of property indexes, at most `max_rows` in each interval.
    ///
    /// # Errors
    /// From the engine.
    pub async fn read_index(
        &self,
        intervals: &[IndexInterval],
        descending: bool,
        max_rows: usize,
    ) -> Result<(Head, Vec<Page>)> {
        let scan = |interval| entry_scan(interval, descending, max_rows, true);
        self.read_entries(intervals.iter().map(scan)).await
    }

    /// The same with the values of entries, for those that find items by their ids.
    ///
    /// # Errors
    /// From the engine.
    pub async fn read_index_values(
        &self,
        intervals: &[IndexInterval],
        descending: bool,
        max_rows: usize,
    ) -> Result<(Head, Vec<Page>)> {
        let scan = |interval| entry_scan(interval, descending, max_rows, false);
        self.read_entries(intervals.iter().map(scan)).await
    }

    /// Reads entries of property indexes with their values. Intervals behind those that filled the read are not read.
    ///
    /// # Errors
    /// From the engine.
    pub async fn read_index_entries(&self, intervals: &[IndexInterval]) -> Result<(Head, Vec<Page>)> {
        let scan = |interval| entry_scan(interval, false, usize::MAX, false);
        self.read_entries(intervals.iter().map(scan)).await
    }

    async fn read_entries(&self, scans: impl Iterator<Item = Scan>) -> Result<(Head, Vec<Page>)> {
        let request = ReadRequest {
            scans: scans.collect(),
            max_bytes: INDEX_READ_BYTES,
            ..ReadRequest::default()
        };
        let reply = self.read_raw(request).await?;
        Ok((reply.head, reply.pages))
    }

    /// Returns the number of rows of a space between two keys, those of ghosts included, and at most `max`.
    ///
    /// # Errors
    /// From the engine.
    pub async fn count_rows(&self, space: Space, from: &Bytes, to: Option<&Bytes>, max: usize) -> Result<usize> {
        let scan = Scan {
            space,
            from: from.clone(),
            to: to.cloned(),
            reverse: false,
            max_rows: max,
            max_bytes: usize::MAX,
            keys_only: true,
        };
        let request = ReadRequest {
            scans: vec![scan],
            ..ReadRequest::default()
        };
        let reply = self.read_raw(request).await?;
        Ok(first_page(reply.pages).rows.len())
    }

    /// Reads entries of the log from a position on.
    ///
    /// # Errors
    /// From the engine.
    pub async fn read_log(&self, from: LogPosition, max_rows: usize, max_bytes: usize) -> Result<(Head, Page)> {
        let scan = log_scan(from.to_bytes(), Some(keys::log_end()), max_rows, max_bytes);
        let request = ReadRequest {
            scans: vec![scan],
            ..ReadRequest::default()
        };
        let reply = self.read_raw(request).await?;
        Ok((reply.head, first_page(reply.pages)))
    }

    /// Reads entries of the history from a position on, and the position from which on the history is complete.
    ///
    /// # Errors
    /// From the engine.
    pub async fn read_history(
        &self,
        from: LogPosition,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<(Head, Page, LogPosition)> {
        let engine = self.engine.as_ref();
        let read = history_page(engine, self.id, from, (max_rows, max_bytes)).await;
        let read = read.map_err(|error| error_of(engine, error))??;
        self.check_settings(read.head)?;
        let page = Page {
            rows: read.rows,
            more: read.more,
        };
        Ok((read.head, page, read.from))
    }

    /// Lets the worker read the head, and publish what belongs to it.
    pub(super) async fn catch_up(&self) -> Result<()> {
        self.background(|batch| batch.get_raw(&keys::state()).map(drop)).await
    }

    /// Checks that what was read as a further step of a request lacks nothing that another server has purged.
    ///
    /// # Errors
    /// `Unavailable`.
    pub(super) fn check_heard(&self, as_of: AsOf<'_>) -> Result<()> {
        match as_of {
            AsOf::Horizon(_) => self.shared.heard.check(),
            AsOf::Time { .. } => Ok(()),
        }
    }

    /// Learns what other servers have committed.
    ///
    /// # Errors
    /// From the engine.
    pub async fn follow(&self) -> Result<()> {
        match self.head().await?.lsn == self.lsn() {
            true => Ok(()),
            false => self.catch_up().await,
        }
    }

    /// Returns the newest log sequence number, commits of other servers included.
    ///
    /// # Errors
    /// From the engine.
    pub async fn newest_lsn(&self) -> Result<Lsn> {
        match self.engine.is_shared() {
            true => Ok(self.head().await?.lsn),
            false => Ok(self.lsn()),
        }
    }

    /// Returns the partition's head in the engine.
    ///
    /// # Errors
    /// From the engine.
    pub async fn head(&self) -> Result<Head> {
        Ok(self.read_raw(ReadRequest::default()).await?.head)
    }

    /// Reads rows as they are stored, ghosts included: for `background` and `admin`, as `cargo xtask tidy` checks.
    ///
    /// # Errors
    /// From the engine; [`Reason::SettingsChanged`](bolide_model::Reason::SettingsChanged) if the partition has other settings.
    pub async fn read_raw(&self, request: ReadRequest) -> Result<ReadResponse> {
        // Before the read: a commit that ends meanwhile is not in it.
        let known = self.lsn();
        let read = self.engine.read(self.id, request).await;
        let reply = read.map_err(|error| error_of(self.engine.as_ref(), error))?;
        self.shared.lost.compare(self.id, known, reply.head)?;
        self.check_settings(reply.head)?;
        Ok(reply)
    }

    /// Tells whether a head has later settings.
    pub fn is_ahead(&self, head: Head) -> bool {
        SettingsNumber::of(head.edition) > self.settings
    }

    /// Checks that what was read at a head has these settings.
    ///
    /// # Errors
    /// [`Reason::SettingsChanged`](bolide_model::Reason::SettingsChanged).
    pub fn check_settings(&self, head: Head) -> Result<()> {
        match SettingsNumber::of(head.edition) == self.settings {
            true => Ok(()),
            false => Err(settings_changed()),
        }
    }

    /// Like [`Partition::read_raw`], with the tombstones that hide some of the rows. `request` may be called more than once.
    ///
    /// # Errors
    /// From the engine.
    pub async fn read_raw_with_tombstones(
        &self,
        request: impl Fn() -> ReadRequest,
    ) -> Result<(ReadResponse, TombstoneView)> {
        loop {
            let pin = self.shared.tombstones.pin();
            let reply = self.read_raw(request()).await?;
            if edition::deletions(reply.head.edition) != self.shared.deletions.load(Ordering::Acquire)
                && reply.head.lsn > self.lsn()
            {
                // Another server has deleted a partition key, or this one is about to show that it has.
                self.catch_up().await?;
                continue;
            }
            if let Some(tombstones) = self.shared.tombstones.view(pin) {
                return Ok((reply, tombstones));
            }
            // Items that a tombstone hid were removed during the read, and then the tombstone itself. Read again.
        }
    }
}

/// Returns a scan of entries.
pub(super) fn entry_scan(interval: &IndexInterval, descending: bool, max_rows: usize, keys_only: bool) -> Scan {
    Scan {
        space: Space::Index,
        from: interval.from.clone(),
        to: interval.to.clone(),
        reverse: descending,
        max_rows,
        max_bytes: usize::MAX,
        keys_only,
    }
}

fn log_scan(from: Bytes, to: Option<Bytes>, max_rows: usize, max_bytes: usize) -> Scan {
    Scan {
        space: Space::Log,
        from,
        to,
        reverse: false,
        max_rows,
        max_bytes,
        keys_only: false,
    }
}

fn first_page(pages: Vec<Page>) -> Page {
    pages.into_iter().next().unwrap_or_default()
}

/// Entries of the history of a partition, which need not be open.
pub(crate) struct HistoryPage {
    pub head: Head,
    /// Keys and values of the entries.
    pub rows: Vec<(Bytes, Bytes)>,
    /// Whether there are more.
    pub more: bool,
    /// Position from which on the history is complete.
    pub from: LogPosition,
    /// The history has every change after this time.
    pub complete_after: CommitTime,
    /// Time of the last entry.
    pub last: CommitTime,
}

/// Reads entries of the history from a position on, at most `max_rows`, and of about `max_bytes`.
///
/// # Errors
/// From the engine; `NotFound` if the partition does not exist.
pub(crate) async fn read_history(
    engine: &dyn Engine,
    partition: PartitionId,
    from: LogPosition,
    limits: (usize, usize),
) -> Result<HistoryPage> {
    let read = history_page(engine, partition, from, limits).await;
    read.map_err(engine_error)?
}

/// Like [`read_history`], with the engine's own error.
async fn history_page(
    engine: &dyn Engine,
    partition: PartitionId,
    from: LogPosition,
    (max_rows, max_bytes): (usize, usize),
) -> std::result::Result<Result<HistoryPage>, EngineError> {
    let request = ReadRequest {
        gets: vec![keys::state()],
        scans: vec![log_scan(keys::history(from).bytes, None, max_rows, max_bytes)],
        ..ReadRequest::default()
    };
    let mut reply = engine.read(partition, request).await?;
    let page = first_page(reply.pages);
    let state = PartitionState::of_row(reply.gets.pop().flatten());
    Ok(state.map(|state| HistoryPage {
        head: reply.head,
        rows: page.rows,
        more: page.more,
        from: state.history_from,
        complete_after: state.history_after,
        last: state.history_last,
    }))
}
