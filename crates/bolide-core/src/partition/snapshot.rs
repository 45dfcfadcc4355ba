//! The doors to what a partition stores.
//!
//! ```text
//!   Partition::snapshot       items: visible records only, judged by one horizon and one set of tombstones
//!   Partition::read_log       the log: which versions were written when, and no items
//!   Partition::read_history   the history: changes, ended ones included
//!   Partition::read_raw       rows as they are stored, ghosts included: for `background` and `admin` only
//! ```
//!
//! Inside the worker a decision has the same doors: `WriteBatch::slot` for items, `WriteBatch::get_raw` and `WriteBatch::scan_raw` for rows.

use bolide_model::ttl::{Horizon, Settings};
use bolide_model::{Result, UnixMillis};
use bolide_storage::{Head, Page, ReadRequest, ReadResponse, Scan, Space};
use bytes::Bytes;

use super::state::PartitionState;
use super::tombstones::TombstoneView;
use super::visibility::Visibility;
use super::{Partition, engine_error};
use crate::format::keys::{self, LogPosition};
use crate::format::record::Record;

/// What a snapshot is judged by.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AsOf<'s> {
    /// Server time; that of the newest commit in the snapshot if it is later. So of two items due in one second a snapshot never shows one
    /// and lacks the other because a purge has reached only one (docs/ttl.md, "Time").
    Time { settings: &'s Settings, now: UnixMillis },
    /// The horizon of an earlier snapshot of the same request.
    Horizon(Horizon),
}

impl AsOf<'_> {
    fn horizon(self, head: Head) -> Horizon {
        match self {
            AsOf::Time { settings, now } => settings.horizon(now.max(head.stamp).seconds()),
            AsOf::Horizon(horizon) => horizon,
        }
    }
}

/// Rows of a partition at one head, of which only visible records come out.
pub(crate) struct Snapshot {
    pub head: Head,
    visibility: Visibility,
    gets: Vec<Option<Bytes>>,
    pages: Vec<Page>,
}

/// A row that was scanned and is not judged yet.
pub(crate) struct StoredRow {
    key: Bytes,
    value: Bytes,
}

impl StoredRow {
    pub fn key(&self) -> &Bytes {
        &self.key
    }
}

/// What one scan of a snapshot gave.
pub(crate) struct ItemPage {
    /// In the order of their keys.
    pub rows: Vec<StoredRow>,
    more: bool,
    /// It was read; otherwise the scans before it were as much as one read may hold.
    pub is_made: bool,
}

impl Snapshot {
    /// By what its rows are judged.
    pub fn horizon(&self) -> Horizon {
        self.visibility.horizon()
    }

    /// The visible record of an item that was asked for at this place.
    ///
    /// # Errors
    /// `Corrupt` if what is stored is no record.
    pub fn record(&mut self, at: usize, item_key: &[u8]) -> Result<Option<Record>> {
        let record = self.gets.get_mut(at).and_then(Option::take).map(Record::decode);
        Ok(record
            .transpose()?
            .filter(|record| self.visibility.shows(item_key, record)))
    }

    /// The entry of an index that was asked for at this place. It may belong to a ghost.
    pub fn index_entry(&self, at: usize) -> Option<&Bytes> {
        self.gets.get(at).and_then(Option::as_ref)
    }

    /// What the rows of its scans take in memory, each with so many bytes more.
    pub fn scanned_bytes(&self, row_bytes: usize) -> usize {
        let of_page = |page: &Page| page.bytes() + page.rows.len() * row_bytes;
        self.pages.iter().map(of_page).sum()
    }

    /// What the scans gave, in their order.
    pub fn take_pages(&mut self) -> Vec<ItemPage> {
        let pages = std::mem::take(&mut self.pages);
        pages.into_iter().map(ItemPage::of).collect()
    }

    /// A row's key and record, if it is visible.
    ///
    /// # Errors
    /// `Corrupt` if what is stored is no record.
    pub fn visible(&self, row: StoredRow) -> Result<Option<(Bytes, Record)>> {
        let record = Record::decode(row.value)?;
        Ok(self.visibility.shows(&row.key, &record).then_some((row.key, record)))
    }
}

impl ItemPage {
    /// Where the scan goes on behind its rows; `None` if there are no others.
    pub fn resumes_at(&self) -> Option<Bytes> {
        self.rows.last().filter(|_| self.more).map(|row| keys::after(&row.key))
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
    /// Reads items at one snapshot. `request` may be asked for more than once.
    ///
    /// # Errors
    /// From the engine.
    pub async fn snapshot(&self, request: impl Fn() -> ReadRequest, as_of: AsOf<'_>) -> Result<Snapshot> {
        let (reply, tombstones) = self.read_raw_with_tombstones(request).await?;
        let horizon = as_of.horizon(reply.head);
        Ok(Snapshot {
            head: reply.head,
            visibility: Visibility::new(horizon, tombstones),
            gets: reply.gets,
            pages: reply.pages,
        })
    }

    /// Entries of the log from a place on.
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

    /// Entries of the history from a place on, and where it begins.
    ///
    /// # Errors
    /// From the engine.
    pub async fn read_history(
        &self,
        from: LogPosition,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<(Head, Page, LogPosition)> {
        let mut reply = self
            .read_raw(ReadRequest {
                gets: vec![keys::state()],
                scans: vec![log_scan(keys::history(from).bytes, None, max_rows, max_bytes)],
                ..ReadRequest::default()
            })
            .await?;
        let state = PartitionState::of_row(reply.gets.pop().flatten())?;
        Ok((reply.head, first_page(reply.pages), state.history_from))
    }

    /// Where the partition stands in the engine.
    ///
    /// # Errors
    /// From the engine.
    pub async fn head(&self) -> Result<Head> {
        Ok(self.read_raw(ReadRequest::default()).await?.head)
    }

    /// Reads rows as they are stored, ghosts included: for `background` and `admin`, as `cargo xtask tidy` checks.
    ///
    /// # Errors
    /// From the engine.
    pub async fn read_raw(&self, request: ReadRequest) -> Result<ReadResponse> {
        self.engine.read(self.id, request).await.map_err(engine_error)
    }

    /// As [`Partition::read_raw`], with the tombstones that hide some of the rows. `request` may be asked for more than once.
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
            if let Some(tombstones) = self.shared.tombstones.view(pin) {
                return Ok((reply, tombstones));
            }
            // What a tombstone hid was removed meanwhile, and the tombstone with it.
        }
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
