//! One part of an index in one range: its entries in order, and the documents to which they lead.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use bolide_model::Result;
use bolide_model::epk::Epk;
use bolide_model::ttl::Horizon;
use bolide_mql::index::{self, IndexDefinition};
use bolide_storage::{Key, ReadRequest, Space};
use bytes::Bytes;

use super::super::{DocumentId, StoredDocument};
use crate::format::keys::{self, PropertyEntry};
use crate::partition::{AsOf, IndexInterval, Partition};

/// Maximum number of entries of one read.
pub(super) const MAX_ROWS: usize = 1_000;
/// Maximum number of bytes of the documents that all parts have read, approximately, and the least of one read.
const READ_BYTES: usize = 2 * 1024 * 1024;
const MIN_READ_BYTES: usize = 64 * 1024;

/// A part of an index in one range.
pub(super) struct Stream {
    partition: Arc<Partition>,
    /// The property index; `None`: the entries by `_id`.
    index: Option<u32>,
    /// What the keys of its entries begin with.
    begin: Bytes,
    /// What is still to be read, in the direction of the walk.
    intervals: VecDeque<IndexInterval>,
    /// Documents that were read, in order, each with the bytes of its entry behind the beginning.
    read: VecDeque<(Bytes, StoredDocument)>,
    rows: usize,
    max_bytes: usize,
}

/// What every part of a walk reads by.
pub(super) struct Loading<'a> {
    pub definition: &'a IndexDefinition,
    pub is_backward: bool,
    pub place: Option<&'a Epk>,
    pub horizon: &'a Horizon,
}

/// What a read has found.
pub(super) struct Loaded {
    pub partition: Arc<Partition>,
    /// Number of visible documents, and their bytes.
    pub documents: usize,
    pub bytes: usize,
    /// Number of entries of visible documents.
    pub live_entries: u64,
    /// Number of entries that gave no document.
    pub misses: u64,
}

/// An entry, and the key of its item.
struct Entry {
    key: Bytes,
    item: Bytes,
}

impl Stream {
    /// A part without intervals; `rows`: how many entries the first read has. `parts`: how many parts the walk has.
    pub fn new(partition: Arc<Partition>, (index, begin): (Option<u32>, Bytes), rows: usize, parts: usize) -> Stream {
        Stream {
            partition,
            index,
            begin,
            intervals: VecDeque::new(),
            read: VecDeque::new(),
            rows,
            max_bytes: (READ_BYTES / parts.max(1)).max(MIN_READ_BYTES),
        }
    }

    /// Adds intervals, behind those that it has in the direction of the walk.
    pub fn extend(&mut self, intervals: impl Iterator<Item = IndexInterval>) {
        self.intervals.extend(intervals);
    }

    /// Whether its next document, if there is one, was not read yet.
    pub fn is_to_be_read(&self) -> bool {
        self.read.is_empty() && !self.intervals.is_empty()
    }

    /// The place of its next document that was read.
    pub fn first(&self) -> Option<&Bytes> {
        self.read.front().map(|(place, _)| place)
    }

    /// Takes the next document that was read.
    pub fn pop(&mut self) -> Option<(Bytes, StoredDocument)> {
        self.read.pop_front()
    }

    /// Reads more. Returns `None` if the entries do not tell the order of their documents.
    ///
    /// # Errors
    /// From the engine.
    pub async fn load(&mut self, by: &Loading<'_>) -> Result<Option<Loaded>> {
        let Some(interval) = self.intervals.pop_front() else {
            return Ok(None);
        };
        let (entries, more) = self.entries(&interval, by).await?;
        let Some(entries) = entries else { return Ok(None) };
        self.rows = (2 * self.rows).min(MAX_ROWS);
        let (documents, unread) = self.documents(&entries, by).await?;
        let end = match unread {
            Some(0) => return Ok(None),
            Some(at) => Some(at),
            None => more.then_some(entries.len()),
        };
        let entries = &entries[..end.unwrap_or(entries.len())];
        // What the entries that were read describe: up to the last of them, or all of the interval.
        let mut chunk = interval.clone();
        if let Some(last) = entries.last().filter(|_| end.is_some()) {
            let mut rest = interval;
            match by.is_backward {
                true => (chunk.from, rest.to) = (last.key.clone(), Some(last.key.clone())),
                false => {
                    let after = keys::after(&last.key);
                    (chunk.to, rest.from) = (Some(after.clone()), after);
                }
            }
            self.intervals.push_front(rest);
        }
        let visible: HashSet<&Bytes> = documents.iter().map(StoredDocument::key).collect();
        let live_entries = entries.iter().filter(|entry| visible.contains(&entry.item)).count();
        let (number, bytes) = (
            documents.len(),
            documents.iter().map(|document| document.record().size()).sum(),
        );
        let mut found = BTreeMap::new();
        for document in documents {
            let Some(key) = self.key_of(&document, by) else {
                return Ok(None);
            };
            if chunk.contains(&key) {
                found.insert(key.slice(self.begin.len()..), document);
            }
        }
        let misses = entries.len().saturating_sub(found.len()) as u64;
        match by.is_backward {
            true => self.read.extend(found.into_iter().rev()),
            false => self.read.extend(found),
        }
        Ok(Some(Loaded {
            partition: self.partition.clone(),
            documents: number,
            bytes,
            live_entries: live_entries as u64,
            misses,
        }))
    }

    /// Reads entries, and tells whether there are more. `None` if the key of one was cut.
    async fn entries(&self, interval: &IndexInterval, by: &Loading<'_>) -> Result<(Option<Vec<Entry>>, bool)> {
        let reads = std::slice::from_ref(interval);
        let has_values = self.index.is_none();
        let (_, mut pages) = match has_values {
            true => {
                self.partition
                    .read_index_values(reads, by.is_backward, self.rows)
                    .await?
            }
            false => self.partition.read_index(reads, by.is_backward, self.rows).await?,
        };
        let page = pages.pop().unwrap_or_default();
        let mut entries = Vec::with_capacity(page.rows.len());
        for (key, value) in page.rows {
            let item = match has_values {
                true => {
                    let place = by.place.map(Epk::as_bytes).unwrap_or_default();
                    let id = keys::id_in_index(&key).and_then(|key| key.strip_prefix(place));
                    if id.is_none_or(DocumentId::is_cut) {
                        return Ok((None, false));
                    }
                    Bytes::from([place, &value].concat())
                }
                false => {
                    let Some(entry) = PropertyEntry::parse(&key) else {
                        continue;
                    };
                    if index::is_cut(entry.value) {
                        return Ok((None, false));
                    }
                    entry.item_key()
                }
            };
            entries.push(Entry { key, item });
        }
        Ok((Some(entries), page.more))
    }

    /// Reads the visible documents of entries, each once. Tells which entry is the first whose document was not read, if there is one.
    async fn documents(&self, entries: &[Entry], by: &Loading<'_>) -> Result<(Vec<StoredDocument>, Option<usize>)> {
        let is_here = |item: &Bytes| by.place.is_none_or(|place| keys::epk_of_item(item) == place.as_bytes());
        let mut seen = HashSet::new();
        let wanted = entries.iter().map(|entry| &entry.item);
        let wanted: Vec<Bytes> = wanted
            .filter(|item| is_here(item) && seen.insert(*item))
            .cloned()
            .collect();
        if wanted.is_empty() {
            return Ok((Vec::new(), None));
        }
        let request = || ReadRequest {
            gets: wanted.iter().map(|key| Key::new(Space::Item, key.clone())).collect(),
            max_bytes: self.max_bytes,
            ..ReadRequest::default()
        };
        let mut snapshot = self.partition.snapshot(request, AsOf::Horizon(by.horizon)).await?;
        let rows = snapshot.take_gets(&wanted);
        let unread = wanted.get(rows.len());
        let unread = unread.and_then(|unread| entries.iter().position(|entry| entry.item == *unread));
        let mut documents = Vec::with_capacity(rows.len());
        for row in rows.into_iter().flatten() {
            if let Some((key, record)) = snapshot.visible(row)? {
                documents.push(StoredDocument::new(key, record));
            }
        }
        Ok((documents, unread))
    }

    /// Returns the key of the entry at which a document counts: the first one that it has in the direction of the walk. `None` if it does not tell the order.
    fn key_of(&self, document: &StoredDocument, by: &Loading<'_>) -> Option<Bytes> {
        let Some(index) = self.index else {
            let place = by.place.map(Epk::as_bytes).unwrap_or_default();
            return Some(keys::id_index(place, document.record().id_bytes()).bytes);
        };
        let mut stored = index::stored_keys(by.definition, document.document());
        let first = match by.is_backward {
            true => stored.pop(),
            false => stored.into_iter().next(),
        };
        // A document that has left the index, as it is now, counts nowhere.
        let Some(first) = first else { return Some(Bytes::new()) };
        if index::is_cut(&first) {
            return None;
        }
        Some(keys::property_entry(index, &first, document.key()).bytes)
    }
}
