//! Imports items, or documents of a collection, and keeps their `_ts` (TTL-275): only into a container that never had any, in the order of `_ts`, and never
//! with a `_ts` later than now.
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

mod aside;
mod json_lines;
mod loaded;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bolide_model::ttl::Floors;
use bolide_model::{Error, Result, UnixSeconds, limits};
use bolide_mql::document;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use sha2::Digest as _;

use self::aside::{Aside, Rows};
use self::json_lines::JsonLines;
use self::loaded::Loaded;
use crate::admin::Admin;
use crate::change_log::{self as history, Change};
use crate::container::{Container, ContainerState};
use crate::documents::{DraftOptions, add_document};
use crate::format::digest;
use crate::items::add;
use crate::memory::MemoryShare;
use crate::partition::Partition;

/// Maximum number of items of one commit.
const COMMIT_ITEMS: usize = 500;
/// Size of their texts in bytes at which a commit takes no more items.
const COMMIT_BYTES: usize = 4 * 1024 * 1024;
/// Maximum length of a line in bytes: an item with the names of its system properties, and white space.
const ITEM_LINE_BYTES: usize = 2 * limits::ITEM_BYTES;
/// The same for a line with a document of a collection.
const DOCUMENT_LINE_BYTES: usize = 2 * document::MAX_BYTES;
/// Memory of an import in bytes, besides that for each line.
const WORKING_BYTES: usize = 32 * 1024 * 1024;
/// The same for documents of a collection: three lines, and a document.
const DOCUMENTS_WORKING_BYTES: usize = 3 * DOCUMENT_LINE_BYTES + document::MAX_BYTES;
/// How long it waits for memory that others use.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(5);

/// Identifies an id or the values of a unique key.
type Digest = [u8; 16];

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
    pub(crate) async fn import<S>(&self, container: &Arc<Container>, options: DraftOptions, parts: S) -> Result<u64>
    where
        S: Stream<Item = Result<Bytes>> + Unpin,
    {
        check_fresh(&container.state()).await?;
        let aside = Aside::open(self.catalog.clone()).await?;
        let loaded = self.import_over(&aside, container, options, parts).await;
        aside.remove().await;
        loaded
    }

    async fn import_over<S>(
        &self,
        aside: &Aside,
        container: &Arc<Container>,
        options: DraftOptions,
        parts: S,
    ) -> Result<u64>
    where
        S: Stream<Item = Result<Bytes>> + Unpin,
    {
        let before = container.state();
        let (mut known, _share) = self.put_aside(aside, (&before, options), parts).await?;
        check_distinct(&mut known.ids, "id")?;
        check_distinct(&mut known.unique, "unique key")?;
        known.entries.sort_unstable();

        let change = container.lock().await;
        let state = change.state();
        check_fresh(&state).await?;
        if state.etag != before.etag {
            return Err(Error::bad_request("the definition was changed during the import"));
        }
        let mut left = VecDeque::from(known.entries);
        let count = left.len() as u64;
        while let Some(first) = left.front().copied() {
            let next = left.iter().take(COMMIT_ITEMS);
            let next = next.take_while(|entry| entry.partition == first.partition);
            let next: Vec<Entry> = next.copied().collect();
            let texts = aside.read(next.iter().map(|entry| entry.line)).await?;
            let items = left.drain(..texts.len()).zip(texts);
            let items =
                items.map(|(entry, text)| Loaded::new(&state, options, &text, UnixSeconds(entry.last_modified)));
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
        (state, options): (&Arc<ContainerState>, DraftOptions),
        mut parts: S,
    ) -> Result<(Known, MemoryShare)>
    where
        S: Stream<Item = Result<Bytes>> + Unpin,
    {
        let now = self.runtime.server_time().seconds();
        let (line_bytes, working) = match state.collection {
            None => (ITEM_LINE_BYTES, WORKING_BYTES),
            Some(_) => (DOCUMENT_LINE_BYTES, DOCUMENTS_WORKING_BYTES),
        };
        let working = working.min(self.memory().longest_share());
        let mut share = self.memory().take(working, MEMORY_TIMEOUT).await?;
        let (mut lines, mut known) = (JsonLines::new(line_bytes), Known::default());
        let mut rows = Rows::default();
        let mut is_end = false;
        while !is_end {
            match parts.next().await {
                Some(part) => lines.add(&part?)?,
                None => is_end = true,
            }
            while let Some((line, text)) = lines.next(is_end) {
                known.add((state, options), line, &text, now)?;
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

/// Checks that a container never had items, and that its settings have ended nothing: the items would be judged by settings that they never had.
async fn check_fresh(state: &ContainerState) -> Result<()> {
    let partitions = &state.layout.partitions;
    let Some(collection) = &state.collection else {
        // Numbers and not positions in the log, because the positions of a restored snapshot are higher than those of its commits.
        let mut is_unwritten = true;
        for partition in partitions {
            is_unwritten &= partition.counted_items().await? == 0;
        }
        if is_unwritten && state.history.len() == 1 && state.layout.version == 1 {
            return Ok(());
        }
        return Err(Error::bad_request(
            "items that keep their _ts can only be loaded into a fresh container: never written, its settings never changed",
        ));
    };
    if collection.option("viewOn").is_some() {
        return Err(Error::bad_request("a view has no documents"));
    }
    let mut is_unwritten = true;
    for partition in partitions {
        is_unwritten &= partition.counted_items().await? == 0;
    }
    if is_unwritten && state.settings.floors == Floors::default() {
        return Ok(());
    }
    Err(Error::bad_request(
        "documents that keep their _ts can only be loaded into a collection that never had documents, and whose TTL index on _ts was never changed",
    ))
}

impl Known {
    fn add(
        &mut self,
        (state, options): (&ContainerState, DraftOptions),
        line: u32,
        text: &[u8],
        now: UnixSeconds,
    ) -> Result<()> {
        let item = Loaded::new(state, options, text, now).map_err(|error| error.context(format!("line {line}")))?;
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
        self.ids.push((digest(&[epk, item.id()?]), line));
        for unique in item.unique(state) {
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

async fn load(state: &Arc<ContainerState>, partition: &Arc<Partition>, items: Vec<Loaded>) -> Result<()> {
    let (state, loading) = (state.clone(), partition.clone());
    partition
        .write_batch(move |batch| {
            for item in &items {
                let version = batch.next_version();
                batch.state.next_number += 1;
                let number = batch.state.next_number;
                let record = item.record(&state, &loading, version, number)?;
                if item.is_document() {
                    add_document(batch, &state, &item.epk, &record);
                    continue;
                }
                let key = add(batch, &state.indexes, &item.epk, &record);
                history::log(batch, state.keeping(), version, Change::written(&key, &record, None));
            }
            Ok(())
        })
        .await
}
