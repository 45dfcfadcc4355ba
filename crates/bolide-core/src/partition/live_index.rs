//! Reads entries of indexes without the items that they belong to.
//!
//! An entry does not say whether its item is a ghost. So one read has the entries, the partition's counters, and the beginnings of the expiry queues,
//! whose due entries name every ghost of that moment. Read before or after the entries, they would lack a ghost, or name one whose entries are gone.
//! More entries than fit in one read are read from a held snapshot.

use std::collections::HashMap;
use std::sync::Arc;

use bolide_model::ttl::{Class, Horizon};
use bolide_model::{Lsn, Result, UnixMillis};
use bolide_query::index::{KEY_OF_NO_TEXT, KEY_OF_TEXT, key_of_term};
use bolide_storage::{EngineError, HeldSnapshot, HoldError, Key, Page, PartitionId, ReadRequest, ReadResponse};
use bytes::Bytes;

use super::snapshot::{AsOf, IndexInterval, entry_scan};
use super::state::{Cursors, PartitionState};
use super::text_counters::TextCounters;
use super::worker::read_state;
use super::{Partition, engine_error};
use crate::format::keys::{self, ExpiryPosition, LogPosition, PropertyEntry};
use crate::format::queues::{self, Queue};
use crate::format::text_entries::TextEntry;

/// Maximum number of ghosts that are looked at; with more, the items have to be read.
const MAX_GHOSTS: usize = 10_000;
/// Number of rows of the log in the first read: usually there are few that are due.
const FEW_LOG_ROWS: usize = 64;
/// Maximum number of reads until one has been made as of the time that it decides itself.
const TRIES: usize = 4;

/// Entries of an index at one version of a partition, and which of their items exist.
pub(crate) struct LiveIndex {
    pub lsn: Lsn,
    pub horizon: Horizon,
    /// Number of the partition's items, without ghosts.
    pub items: u64,
    /// One for each interval.
    pub pages: Vec<Page>,
    /// The words of full-text indexes, those of ghosts included.
    pub texts: TextCounters,
    /// The keys of ghosts, each with its version.
    ghosts: HashMap<Bytes, LogPosition>,
}

impl LiveIndex {
    /// Returns whether the item with this key exists.
    pub fn shows(&self, item_key: &Bytes) -> bool {
        !self.ghosts.contains_key(item_key)
    }

    /// Returns whether the item of an entry exists. Usually there are no ghosts, and the key of the item is not made.
    pub fn shows_entry(&self, entry: &PropertyEntry<'_>) -> bool {
        self.ghosts.is_empty() || self.shows(&entry.item_key())
    }

    /// Number of ghosts.
    pub fn ghosts(&self) -> usize {
        self.ghosts.len()
    }

    /// Returns whether all entries were read.
    pub fn is_complete(&self) -> bool {
        self.pages.iter().all(|page| page.is_made() && !page.more)
    }
}

/// How much of some intervals is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryRead {
    /// Whether each is read from its end.
    pub descending: bool,
    /// Maximum number of rows in each interval.
    pub rows: usize,
    /// Maximum number of bytes of all of them, approximately.
    pub bytes: usize,
    /// Whether the values of entries are left out.
    pub keys_only: bool,
}

impl Partition {
    /// Reads the entries of some intervals, and finds out which of their items exist. Returns `None` if only the items tell: there are many ghosts, or a
    /// partition key was deleted, or date rules end items.
    ///
    /// # Errors
    /// From the engine; `Corrupt` if a queue or the counters are damaged.
    pub async fn read_live_index(
        &self,
        intervals: &[IndexInterval],
        read: EntryRead,
        as_of: AsOf<'_>,
    ) -> Result<Option<LiveIndex>> {
        let (mut head, state) = read_state(self.engine.as_ref(), self.id).await?;
        let mut log_rows = FEW_LOG_ROWS;
        for _ in 0..TRIES {
            let horizon = as_of.horizon(self, head).await;
            if !horizon.dates.is_empty() {
                return Ok(None);
            }
            let mut request = request(&horizon, state.purge, log_rows);
            request.scans.extend(
                intervals
                    .iter()
                    .map(|interval| entry_scan(interval, read.descending, read.rows, read.keys_only)),
            );
            request.max_bytes = read.bytes;
            let reply = self.read_raw(request).await?;
            self.check_heard(as_of)?;
            head = reply.head;
            if as_of.horizon(self, head).await != horizon {
                continue;
            }
            match live_index(reply, horizon, log_rows)? {
                Found::Live(live) => return Ok(Some(live)),
                Found::TooMany => return Ok(None),
                Found::MoreOfTheLog => log_rows = MAX_GHOSTS,
            }
        }
        Ok(None)
    }
}

/// Time for which the snapshot of a [`HeldIndex`] is held, in milliseconds: longer than a page may take.
const HOLD_MS: i64 = 30_000;
/// Maximum number of bytes of the queues in a held snapshot.
const QUEUE_BYTES: usize = 2 * 1024 * 1024;

/// The entries of the indexes of a partition at one version, for any number of reads, and which of their items exist.
pub(crate) struct HeldIndex {
    partition: PartitionId,
    held: Arc<dyn HeldSnapshot>,
    /// Without pages.
    pub live: LiveIndex,
}

impl Partition {
    /// As [`Partition::read_live_index`], but holds the entries for later reads. Also returns `None` if the engine holds too many snapshots.
    ///
    /// # Errors
    /// As [`Partition::read_live_index`].
    pub async fn hold_live_index(&self, as_of: AsOf<'_>) -> Result<Option<HeldIndex>> {
        let until = UnixMillis(self.engine.time().lo.0.saturating_add(HOLD_MS));
        let held = match self.engine.hold(self.id.home(), until).await {
            Ok(held) => held,
            Err(EngineError::Unavailable(_)) => return Ok(None),
            Err(error) => return Err(engine_error(error)),
        };
        let counters = ReadRequest::of_keys(vec![keys::state()]);
        let Some(reply) = read_held(held.as_ref(), self.id, counters).await? else {
            return Ok(None);
        };
        self.check_settings(reply.head)?;
        let horizon = as_of.horizon(self, reply.head).await;
        if !horizon.dates.is_empty() {
            return Ok(None);
        }
        let state = PartitionState::of_row(reply.gets.into_iter().next().flatten())?;
        for log_rows in [FEW_LOG_ROWS, MAX_GHOSTS] {
            let mut request = request(&horizon, state.purge, log_rows);
            request.max_bytes = QUEUE_BYTES;
            let Some(reply) = read_held(held.as_ref(), self.id, request).await? else {
                return Ok(None);
            };
            self.check_heard(as_of)?;
            match live_index(reply, horizon.clone(), log_rows)? {
                Found::Live(live) => {
                    return Ok(Some(HeldIndex {
                        partition: self.id,
                        held,
                        live,
                    }));
                }
                Found::TooMany => return Ok(None),
                Found::MoreOfTheLog => {}
            }
        }
        Ok(None)
    }
}

impl HeldIndex {
    /// Reads entries of an interval; `None` if the snapshot has ended.
    ///
    /// # Errors
    /// From the engine.
    pub async fn read(&self, interval: &IndexInterval, read: EntryRead) -> Result<Option<Page>> {
        let request = ReadRequest {
            scans: vec![entry_scan(interval, read.descending, read.rows, read.keys_only)],
            max_bytes: read.bytes,
            ..ReadRequest::default()
        };
        let reply = read_held(self.held.as_ref(), self.partition, request).await?;
        Ok(reply.map(|reply| reply.pages.into_iter().next().unwrap_or_default()))
    }
}

async fn read_held(
    held: &dyn HeldSnapshot,
    partition: PartitionId,
    request: ReadRequest,
) -> Result<Option<ReadResponse>> {
    match held.read(partition, request).await {
        Ok(reply) => Ok(Some(reply)),
        Err(HoldError::Expired) => Ok(None),
        Err(HoldError::Engine(error)) => Err(engine_error(error)),
    }
}

/// What texts of a full-text index have, without ghosts.
pub(crate) struct LiveFigures {
    /// Number of words of all texts.
    pub words: u64,
    /// Number of ghosts whose texts have an entry for each of some words.
    pub ghosts_with: Vec<u64>,
}

impl Partition {
    /// Returns the number of words of all texts of a full-text index, without ghosts, and how many ghosts have some words; `None` if a ghost is no longer stored
    /// as this version.
    ///
    /// # Errors
    /// From the engine.
    pub async fn live_figures(&self, index: u32, live: &LiveIndex, words: &[&String]) -> Result<Option<LiveFigures>> {
        let mut figures = LiveFigures {
            words: live.texts.words(index),
            ghosts_with: vec![0; words.len()],
        };
        if live.ghosts.is_empty() {
            return Ok(Some(figures));
        }
        let words: Vec<Vec<u8>> = words.iter().map(|word| key_of_term(word)).collect();
        let keys_of = |item_key| {
            let words = words.iter().map(|word| &word[..]);
            let keys = [KEY_OF_TEXT, KEY_OF_NO_TEXT].into_iter().chain(words);
            keys.map(move |key| keys::property_entry(index, key, item_key))
        };
        let gets: Vec<Key> = live.ghosts.keys().flat_map(|item_key| keys_of(item_key)).collect();
        let request = ReadRequest::of_keys(gets);
        let found = self.read_raw(request).await?.gets;
        let mut of_ghosts = 0;
        for (version, entries) in live.ghosts.values().zip(found.chunks(2 + words.len())) {
            let (whole, of_words) = entries.split_at(entries.len().min(2));
            let entry = whole.iter().flatten().find_map(|value| TextEntry::decode(value));
            // The entries of one version of an item are written and removed together.
            match entry.filter(|entry| entry.version == *version) {
                Some(entry) => of_ghosts += entry.words,
                None => return Ok(None),
            }
            for (count, entry) in figures.ghosts_with.iter_mut().zip(of_words) {
                *count += u64::from(entry.is_some());
            }
        }
        figures.words = figures.words.saturating_sub(of_ghosts);
        Ok(Some(figures))
    }
}

/// Returns a request for the counters and for what is due in the expiry queues behind the purge.
fn request(horizon: &Horizon, purge: Cursors, log_rows: usize) -> ReadRequest {
    let due = ExpiryPosition::of_base(horizon.own.saturating_add(1));
    ReadRequest {
        gets: vec![keys::state()],
        scans: vec![
            queues::scan(purge.expiry, due, MAX_GHOSTS + 1, usize::MAX),
            queues::scan(purge.log, None, log_rows, usize::MAX),
        ],
        ..ReadRequest::default()
    }
}

enum Found {
    Live(LiveIndex),
    /// The scan of the log ended before an entry that is not due.
    MoreOfTheLog,
    TooMany,
}

fn live_index(reply: ReadResponse, horizon: Horizon, log_rows: usize) -> Result<Found> {
    let state = PartitionState::of_row(reply.gets.into_iter().next().flatten())?;
    let mut pages = reply.pages.into_iter();
    let (own, log) = (pages.next().unwrap_or_default(), pages.next().unwrap_or_default());
    if !state.tombstones.is_empty() || own.more {
        return Ok(Found::TooMany);
    }
    let mut ghosts = HashMap::new();
    for entry in queues::entries::<ExpiryPosition>(&own) {
        let entry = entry?;
        ghosts.insert(entry.item_key, entry.version);
    }
    let mut is_at_end = !log.more;
    for entry in queues::entries::<LogPosition>(&log) {
        let entry = entry?;
        // The log is in the order of `_ts`, whatever the class of an entry.
        if entry.stamp.base.0 > LogPosition::threshold(&horizon) {
            is_at_end = true;
            break;
        }
        if entry.stamp.class == Class::Inherited {
            ghosts.insert(entry.item_key, entry.version);
        }
    }
    if !is_at_end {
        return Ok(match log_rows < MAX_GHOSTS {
            true => Found::MoreOfTheLog,
            false => Found::TooMany,
        });
    }
    Ok(Found::Live(LiveIndex {
        lsn: reply.head.lsn,
        items: state.stored.items.saturating_sub(ghosts.len() as u64),
        texts: state.texts,
        horizon,
        pages: pages.collect(),
        ghosts,
    }))
}
