//! Imports items and keeps their `_ts` (TTL-275): only into a new container, in the order of `_ts`, and never with a `_ts` later than now.
//!
//! ```text
//!   parts ──lines, each checked──▶ a temporary partition ──in the order of _ts──▶ the container's partitions
//!                  └─▶ in memory, of each line: its partition and number, its _ts, digests of its id and unique keys
//! ```
//!
//! Items come in any order. All of them are checked before the first one is written, and they may be more than fit in memory. So they are stored in a
//! temporary partition, which is removed afterwards, after a crash by the next start.
//!
//! If the container has a history, a loaded item is a create in it, at the time of the import.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bolide_model::document::Document;
use bolide_model::epk::{Epk, EpkRange};
use bolide_model::ttl::{Own, Stamp};
use bolide_model::{Error, ErrorKind, Lsn, Result, UnixSeconds, limits};
use bolide_storage::{Head, Key, PartitionId, ReadRequest, Space};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
use sha2::Digest as _;

use crate::admin::Admin;
use crate::catalog::Catalog;
use crate::change_log::{self as history, Change};
use crate::container::{Container, ContainerState};
use crate::content::logical;
use crate::format::digest;
use crate::format::etag::Etag;
use crate::format::record::{Content, Parts, Record};
use crate::items::{add, number_in_range, unique_keys};
use crate::memory::MemoryShare;
use crate::partition::{Partition, Placement, engine_error};
use crate::throughput::{Meter, PacingSettings};

/// Maximum number of items of one commit.
const COMMIT_ITEMS: usize = 500;
/// Size of their texts in bytes at which a commit takes no more items.
const COMMIT_BYTES: usize = 4 * 1024 * 1024;
/// Maximum length of a line in bytes: an item with the names of its system properties, and white space.
const LINE_BYTES: usize = 2 * limits::ITEM_BYTES;
/// Memory of an import in bytes, besides that for each line.
const WORKING_BYTES: usize = 32 * 1024 * 1024;
/// How long it waits for memory that others use.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(5);

/// Identifies an id or the values of a unique key.
type Digest = [u8; 16];

/// An item to load.
struct Loaded {
    document: Document,
    last_modified: UnixSeconds,
    epk: Epk,
}

/// The data in memory of a line in the temporary partition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    /// Index of its partition in the container's layout.
    partition: u32,
    last_modified: i64,
    line: u32,
}

/// The data in memory of all lines.
#[derive(Default)]
struct Known {
    entries: Vec<Entry>,
    ids: Vec<(Digest, u32)>,
    unique: Vec<(Digest, u32)>,
}

impl Admin<'_> {
    /// See `Account::import`.
    pub(crate) async fn import<S>(&self, container: &Arc<Container>, parts: S) -> Result<u64>
    where
        S: Stream<Item = Result<Bytes>> + Unpin,
    {
        check_fresh(&container.state())?;
        let aside = Aside::open(self.catalog.clone()).await?;
        let loaded = self.import_over(&aside, container, parts).await;
        aside.remove().await;
        loaded
    }

    async fn import_over<S>(&self, aside: &Aside, container: &Arc<Container>, parts: S) -> Result<u64>
    where
        S: Stream<Item = Result<Bytes>> + Unpin,
    {
        let (mut known, _share) = self.put_aside(aside, &container.state(), parts).await?;
        check_distinct(&mut known.ids, "id")?;
        check_distinct(&mut known.unique, "unique key")?;
        known.entries.sort_unstable();

        let change = container.lock().await;
        let state = change.state();
        check_fresh(&state)?;
        let mut left = VecDeque::from(known.entries);
        let count = left.len() as u64;
        while let Some(first) = left.front().copied() {
            let next = left.iter().take(COMMIT_ITEMS);
            let next = next.take_while(|entry| entry.partition == first.partition);
            let next: Vec<Entry> = next.copied().collect();
            let texts = aside.read(&next).await?;
            let items = left.drain(..texts.len()).zip(texts);
            let items = items.map(|(entry, text)| Loaded::again(&state, entry, &text));
            let items = items.collect::<Result<Vec<_>>>()?;
            load(&state, &state.layout.partitions[first.partition as usize], items).await?;
        }
        for partition in &state.layout.partitions {
            partition.expect_due(i64::MIN);
        }
        Ok(count)
    }

    /// Checks all lines and stores them in the temporary partition. Takes memory for the data of each line.
    async fn put_aside<S>(
        &self,
        aside: &Aside,
        state: &Arc<ContainerState>,
        mut parts: S,
    ) -> Result<(Known, MemoryShare)>
    where
        S: Stream<Item = Result<Bytes>> + Unpin,
    {
        let now = self.runtime.server_time().seconds();
        let working = WORKING_BYTES.min(self.memory().longest_share());
        let mut share = self.memory().take(working, MEMORY_TIMEOUT).await?;
        let (mut lines, mut known) = (JsonLines::default(), Known::default());
        let mut rows = Rows::default();
        let mut is_end = false;
        while !is_end {
            match parts.next().await {
                Some(part) => lines.add(&part?)?,
                None => is_end = true,
            }
            while let Some((line, text)) = lines.next(is_end) {
                known.add(state, line, &text, now)?;
                if rows.add(line, text) {
                    let bytes = working + known.bytes();
                    self.memory().grow(&mut share, bytes, MEMORY_TIMEOUT).await?;
                    aside.write(std::mem::take(&mut rows)).await?;
                }
            }
        }
        aside.write(rows).await?;
        Ok((known, share))
    }
}

/// Checks that a container is one of items, is empty, was never written, and that its settings were never changed.
fn check_fresh(state: &ContainerState) -> Result<()> {
    state.check_has_items("documents are loaded through the MongoDB API, not as items in JSON")?;
    let is_unwritten = state
        .layout
        .partitions
        .iter()
        .all(|partition| partition.lsn() == Lsn(0));
    if is_unwritten && state.history.len() == 1 && state.layout.version == 1 {
        return Ok(());
    }
    Err(Error::bad_request(
        "items that keep their _ts can only be loaded into a fresh container: never written, its settings never changed",
    ))
}

impl Known {
    fn add(&mut self, state: &ContainerState, line: u32, text: &[u8], now: UnixSeconds) -> Result<()> {
        let item = Loaded::new(state, text, now).map_err(|error| error.context(format!("line {line}")))?;
        let partitions = &state.layout.partitions;
        let partition = partitions
            .iter()
            .position(|partition| partition.epk.contains(&item.epk))
            .ok_or_else(|| Error::internal("a range is missing"))?;
        self.entries.push(Entry {
            partition: partition as u32,
            last_modified: item.last_modified.0,
            line,
        });
        let epk = item.epk.as_bytes();
        self.ids.push((digest(&[epk, item.document.id()?.as_bytes()]), line));
        for unique in unique_keys(&item.document, state) {
            let key = digest(&[epk, &unique.index.to_be_bytes(), &unique.digest]);
            self.unique.push((key, line));
        }
        Ok(())
    }

    /// Returns its memory in bytes, with the unused capacity of its vectors.
    fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + (self.ids.capacity() + self.unique.capacity()) * size_of::<(Digest, u32)>()
    }
}

impl Loaded {
    fn new(state: &ContainerState, text: &[u8], now: UnixSeconds) -> Result<Loaded> {
        let last_modified = serde_json::from_slice::<serde_json::Value>(text)
            .ok()
            .and_then(|item| item.get("_ts")?.as_i64())
            .ok_or_else(|| Error::bad_request("every item needs an integer _ts"))?;
        let document = Document::parse_shown(text)?;
        document.id()?;
        own_ttl(&document, state)?;
        let definition = &state.properties.partition_key;
        let key = document.partition_key(definition);
        definition.check_full(&key)?;
        let epk = logical::of(definition, &key);
        Ok(Loaded {
            document,
            last_modified: UnixSeconds(last_modified).min(now),
            epk,
        })
    }

    /// Parses a line that was checked before.
    fn again(state: &ContainerState, entry: Entry, text: &[u8]) -> Result<Loaded> {
        Loaded::new(state, text, UnixSeconds(entry.last_modified))
    }
}

/// Returns an item's own ttl. Where TTL is off, stores may contain invalid ones (TTL-217), and an import must accept what was exported from them.
fn own_ttl(document: &Document, state: &ContainerState) -> Result<Own> {
    match document.own_ttl() {
        Err(_) if !state.properties.policy.is_on() => Ok(Own::Absent),
        own => own,
    }
}

fn digest(parts: &[&[u8]]) -> Digest {
    let hash = digest::of_parts(parts).finalize();
    let mut digest = Digest::default();
    digest.copy_from_slice(&hash[..size_of::<Digest>()]);
    digest
}

fn check_distinct(all: &mut Vec<(Digest, u32)>, what: &str) -> Result<()> {
    all.sort_unstable();
    let twins = all.windows(2).find(|pair| pair[0].0 == pair[1].0);
    if let Some([(_, one), (_, other)]) = twins {
        return Err(Error::conflict(format!("lines {one} and {other} hold the same {what}")));
    }
    *all = Vec::new();
    Ok(())
}

/// Splits a text that comes in parts into lines.
#[derive(Default)]
struct JsonLines {
    rest: BytesMut,
    /// Number of bytes at the start of `rest` that contain no end of a line.
    searched: usize,
    /// Number of the last line taken, counted from 1.
    number: u32,
}

impl JsonLines {
    fn add(&mut self, part: &[u8]) -> Result<()> {
        if self.rest.len() > LINE_BYTES {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!(
                    "line {}: it is longer than an item may be. limit={LINE_BYTES} bytes",
                    self.number + 1
                ),
            ));
        }
        self.rest.extend_from_slice(part);
        Ok(())
    }

    /// Returns the next complete line and its number. Lines of white space are left out. At the end of the text the last line needs no line end.
    fn next(&mut self, is_end: bool) -> Option<(u32, Bytes)> {
        loop {
            let end = self.rest[self.searched..].iter().position(|byte| *byte == b'\n');
            let line = match end {
                Some(end) => self.rest.split_to(self.searched + end + 1),
                None if is_end && !self.rest.is_empty() => self.rest.split(),
                None => {
                    self.searched = self.rest.len();
                    return None;
                }
            };
            self.searched = 0;
            self.number += 1;
            if !line.trim_ascii().is_empty() {
                return Some((self.number, line.freeze()));
            }
        }
    }
}

/// Lines that are stored in the temporary partition with one commit.
#[derive(Default)]
struct Rows {
    rows: Vec<(Key, Bytes)>,
    bytes: usize,
}

impl Rows {
    /// Adds a line. Returns whether the commit is full.
    fn add(&mut self, line: u32, text: Bytes) -> bool {
        self.bytes += text.len();
        self.rows.push((Aside::key(line), text));
        self.rows.len() >= COMMIT_ITEMS || self.bytes >= COMMIT_BYTES
    }
}

/// The temporary partition of an import's lines, by their numbers. It is listed for removal from the beginning, so a crash leaves nothing behind.
struct Aside {
    catalog: Arc<Catalog>,
    partition: Arc<Partition>,
    is_removed: bool,
}

impl Aside {
    async fn open(catalog: Arc<Catalog>) -> Result<Aside> {
        let take = |catalog: Arc<Catalog>| async move { catalog.take_partition_ids(1).await };
        let id = PartitionId(catalog.carry_out(take).await?);
        let now = catalog.now().await?;
        let head = Head::first(now);
        catalog.engine().create(id, head).await.map_err(engine_error)?;
        let placement = Placement {
            id,
            range: 0,
            epk: EpkRange::all(),
            parents: vec![],
        };
        let meter = Meter::shared(&PacingSettings::of(None), 1, now.seconds());
        let engine = catalog.engine().clone();
        let partition = Partition::open(engine, placement, meter, catalog.signals().clone()).await?;
        Ok(Aside {
            catalog,
            partition,
            is_removed: false,
        })
    }

    fn key(line: u32) -> Key {
        Key::new(Space::Item, Bytes::copy_from_slice(&line.to_be_bytes()))
    }

    async fn write(&self, rows: Rows) -> Result<()> {
        if rows.rows.is_empty() {
            return Ok(());
        }
        self.partition
            .write_batch(move |batch| {
                for (key, text) in &rows.rows {
                    batch.put(key.clone(), text.clone());
                }
                Ok(())
            })
            .await
    }

    /// Returns the texts of some lines, or of the first ones of them if they are more than one commit takes.
    async fn read(&self, entries: &[Entry]) -> Result<Vec<Bytes>> {
        let request = ReadRequest {
            gets: entries.iter().map(|entry| Aside::key(entry.line)).collect(),
            max_bytes: COMMIT_BYTES,
            ..ReadRequest::default()
        };
        let texts = self.partition.read_raw(request).await?.gets;
        let missing = || Error::new(ErrorKind::Corrupt, "a line that was put aside is missing");
        texts.into_iter().map(|text| text.ok_or_else(missing)).collect()
    }

    async fn remove(mut self) {
        self.is_removed = true;
        remove(self.catalog.clone(), self.partition.id).await;
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // The import was cancelled with its request.
        if !self.is_removed {
            tokio::spawn(remove(self.catalog.clone(), self.partition.id));
        }
    }
}

async fn remove(catalog: Arc<Catalog>, partition: PartitionId) {
    let remove = |catalog: Arc<Catalog>| async move { catalog.remove_dropped(vec![partition]).await };
    if let Err(error) = catalog.carry_out(remove).await {
        tracing::warn!(%error, "what an import had put aside is removed at the next start");
    }
}

async fn load(state: &Arc<ContainerState>, partition: &Arc<Partition>, items: Vec<Loaded>) -> Result<()> {
    let state = state.clone();
    let (range, id) = (partition.range, partition.id.0);
    partition
        .write_batch(move |batch| {
            for item in &items {
                let text = item.document.to_stored_text()?;
                let version = batch.next_version();
                batch.state.next_number += 1;
                let own = own_ttl(&item.document, &state)?;
                let record = Record::new(&Parts {
                    version,
                    last_modified: item.last_modified,
                    stamp: Stamp::new(item.last_modified, own),
                    etag: Etag::of_write(id, version.lsn, version.seq),
                    number: number_in_range(range, batch.state.next_number),
                    id: item.document.id()?.as_bytes(),
                    deadlines: &[],
                    unique: &unique_keys(&item.document, &state),
                    content: Content::Json,
                    document: text.as_bytes(),
                });
                let key = add(batch, &item.epk, &record);
                history::log(batch, state.keeping(), version, Change::written(&key, &record, None));
            }
            Ok(())
        })
        .await
}
