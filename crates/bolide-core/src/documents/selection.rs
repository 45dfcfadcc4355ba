//! Finds the documents that a filter can match through the indexes of their collection.
//!
//! Each part of an index that serves a filter has a superset of the documents that match. The entries of the most selective one, read at one snapshot of a
//! range, name the candidates. They are read and judged as a scan reads documents, in the order of their keys: what is visible, what matches and where
//! a cursor goes on does not depend on the index. A document that matches all the time is among the candidates, whatever others write meanwhile.
//!
//! Transactions and snapshots scan: they read versions that the entries need not describe.

use std::collections::VecDeque;
use std::sync::Arc;

use bolide_model::Result;
use bolide_mql::collation::Collation;
use bolide_mql::filter::{Conjunction, Filter};
use bolide_mql::index::{self, IndexBounds, IndexDefinition, KeyRange};
use bytes::Bytes;

use super::ReadScope;
use crate::container::{CollectionIndex, Container, ContainerState};
use crate::format::keys::{self, PropertyEntry};
use crate::index::PropertyIndex;
use crate::partition::{IndexInterval, Partition};

/// So few candidates are read whatever a scan would do.
pub(super) const FEW_CANDIDATES: usize = 256;
/// Maximum number of candidates. Above it, reading each by its key takes as long as a scan of a collection of medium size.
pub(super) const MAX_CANDIDATES: usize = 10_000;
/// The same for an index that the command names.
const MAX_HINTED: usize = 100_000;
/// Scanning this many documents takes as long as reading one by its key.
pub(super) const DOCUMENTS_PER_CANDIDATE: u64 = 8;
/// With so few candidates no other index is looked at.
const ENOUGH: usize = 16;
/// Maximum number of parts of indexes that are compared for a filter. It may have thousands of branches.
const MAX_PROBES: usize = 256;
/// Maximum number of entries that are read to compare them.
const MAX_COMPARED: usize = 20 * MAX_CANDIDATES;
/// Maximum number of branches of an `$or`.
const MAX_BRANCHES: usize = 64;
/// How deep an `$or` may be inside of others.
const MAX_DEPTH: usize = 2;

/// What a scan is for: the documents that a filter matches.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The filter, which the caller applies.
    pub filter: Arc<Filter>,
    /// The collation of the command.
    pub collation: Option<Arc<Collation>>,
    /// The index that the command names, by its id in the collection. It is read as a whole if the filter does not bound it.
    pub hint: Option<u32>,
}

/// A part of an index that is read.
#[derive(Debug, Clone)]
pub struct IndexPart {
    /// The id of the index in its collection.
    pub index: u32,
    /// The index.
    pub definition: Arc<IndexDefinition>,
    /// Which of its keys.
    pub bounds: IndexBounds,
    /// Whether it has keys of documents with arrays.
    pub is_multikey: bool,
}

/// How a scan finds documents: by parts of indexes, all of which are read. None: in the whole collection.
pub type ScanPlan = Vec<IndexPart>;

/// The candidates in one range.
#[derive(Debug)]
pub(super) struct Found {
    /// Their keys, in order.
    pub keys: VecDeque<Bytes>,
    /// Number of entries that were read.
    pub entries: u64,
    pub plan: ScanPlan,
}

/// The entries of parts of indexes.
struct Read<'a> {
    keys: Vec<Bytes>,
    entries: usize,
    parts: Vec<Part<'a>>,
}

/// A part of an index that can be read.
#[derive(Clone)]
struct Part<'a> {
    index: &'a PropertyIndex,
    of_collection: &'a CollectionIndex,
    bounds: IndexBounds,
}

impl Selection {
    /// Finds the candidates in a range; `None` if a scan is better, or if no index serves the filter.
    ///
    /// # Errors
    /// From the engine.
    pub(super) async fn find(&self, state: &ContainerState, partition: &Partition) -> Result<Option<Found>> {
        let indexes = self.indexes(state);
        if indexes.is_empty() {
            return Ok(None);
        }
        let limit = match self.hint {
            Some(_) => MAX_HINTED,
            None => {
                let share = partition.stored_items() / DOCUMENTS_PER_CANDIDATE;
                let share = usize::try_from(share).unwrap_or(usize::MAX);
                share.clamp(FEW_CANDIDATES, MAX_CANDIDATES)
            }
        };
        let mut search = Search::new(self, indexes, partition);
        let filter = self.filter.conditions();
        // An index with few entries is found without reading many of others.
        let mut best = search.best(&filter, FEW_CANDIDATES, 0).await?;
        if best.is_none() && limit > FEW_CANDIDATES {
            best = search.best(&filter, limit, 0).await?;
        }
        match best {
            Some(best) => Ok(Some(best.found(partition).await?)),
            None => Ok(None),
        }
    }

    /// Returns how many entries of other indexes than one lead to all documents in a range that match; `None` if there are more than `limit`, or if no other
    /// index serves the filter.
    ///
    /// # Errors
    /// From the engine.
    pub(super) async fn number_by_others(
        &self,
        state: &ContainerState,
        partition: &Partition,
        limit: usize,
        index: u32,
    ) -> Result<Option<usize>> {
        let mut indexes = self.indexes(state);
        indexes.retain(|(_, other)| other.id != index);
        let mut search = Search::new(self, indexes, partition);
        let best = search.best(&self.filter.conditions(), limit, 0).await?;
        Ok(best.map(|best| best.entries))
    }

    /// Returns the indexes that may be read.
    fn indexes<'a>(&self, state: &'a ContainerState) -> Vec<(&'a PropertyIndex, &'a CollectionIndex)> {
        let of_collection = state.collection.iter().flat_map(|collection| &collection.indexes);
        let usable = of_collection
            .filter(|index| !index.is_building && !index.definition.is_hidden())
            .filter(|index| self.hint.is_none_or(|hint| hint == index.id));
        usable
            .filter_map(|index| Some((state.indexes.usable_of_collection(index.id)?, index)))
            .collect()
    }
}

impl ReadScope {
    /// Returns the number of documents that are stored, those included that have ended and are not removed yet.
    ///
    /// # Errors
    /// From the engine; `NotFound` if the collection was removed.
    pub async fn stored_documents(&self, container: &Arc<Container>) -> Result<u64> {
        let state = container.state();
        let mut stored = 0;
        for partition in &state.layout.partitions {
            stored += partition.stored_items();
        }
        Ok(stored)
    }
}

struct Search<'a> {
    selection: &'a Selection,
    indexes: Vec<(&'a PropertyIndex, &'a CollectionIndex)>,
    partition: &'a Partition,
    probes: usize,
    compared: usize,
}

impl<'a> Search<'a> {
    fn new(
        selection: &'a Selection,
        indexes: Vec<(&'a PropertyIndex, &'a CollectionIndex)>,
        partition: &'a Partition,
    ) -> Search<'a> {
        Search {
            selection,
            indexes,
            partition,
            probes: 0,
            compared: 0,
        }
    }

    /// Returns the entries of the most selective part, or of one for each branch of an `$or`; `None` if there are more than `limit`.
    async fn best(&mut self, conditions: &Conjunction<'_>, limit: usize, depth: usize) -> Result<Option<Read<'a>>> {
        let mut best: Option<Read<'a>> = None;
        for part in self.parts(conditions) {
            let limit = best.as_ref().map_or(limit, |best| best.entries.saturating_sub(1));
            let is_enough = best.is_some() && limit < ENOUGH;
            if self.probes == MAX_PROBES || self.compared > MAX_COMPARED || is_enough {
                break;
            }
            self.probes += 1;
            best = self.read(part, limit).await?.or(best);
        }
        if depth == MAX_DEPTH {
            return Ok(best);
        }
        for branches in &conditions.alternatives {
            let limit = best.as_ref().map_or(limit, |best| best.entries.saturating_sub(1));
            if (best.is_some() && limit < ENOUGH) || branches.len() > MAX_BRANCHES {
                continue;
            }
            best = Box::pin(self.all_of(conditions, branches, limit, depth))
                .await?
                .or(best);
        }
        Ok(best)
    }

    /// Returns the entries for all branches of an `$or`; `None` if there are more than `limit`, or if no index serves one of them.
    async fn all_of(
        &mut self,
        around: &Conjunction<'_>,
        branches: &[Conjunction<'_>],
        limit: usize,
        depth: usize,
    ) -> Result<Option<Read<'a>>> {
        let mut all = Read {
            keys: Vec::new(),
            entries: 0,
            parts: Vec::new(),
        };
        for branch in branches {
            let conditions = branch.conditions.iter().chain(&around.conditions);
            let branch = Conjunction {
                conditions: conditions.cloned().collect(),
                alternatives: branch.alternatives.clone(),
                is_complete: false,
            };
            let left = limit - all.entries;
            let Some(read) = self.best(&branch, left, depth + 1).await? else {
                return Ok(None);
            };
            all.entries += read.entries;
            all.keys.extend(read.keys);
            all.parts.extend(read.parts);
        }
        Ok(Some(all))
    }

    /// Returns the parts of indexes that serve conditions, those first that bound most fields.
    fn parts(&self, conditions: &Conjunction<'_>) -> Vec<Part<'a>> {
        let collation = self.selection.collation.as_deref();
        let mut parts = Vec::new();
        for (index, of_collection) in &self.indexes {
            let served = index::bounds(&of_collection.definition, conditions, collation).into_iter();
            parts.extend(served.map(|bounds| Part {
                index,
                of_collection,
                bounds,
            }));
        }
        if parts.is_empty()
            && self.selection.hint.is_some()
            && let Some((index, of_collection)) = self.indexes.first()
            && of_collection.definition.kind() != index::Kind::Wildcard
        {
            parts.push(Part {
                index,
                of_collection,
                bounds: IndexBounds::whole(&of_collection.definition),
            });
        }
        parts.sort_by_key(|part| std::cmp::Reverse(part.bounds.bounded_fields()));
        parts
    }

    /// Reads the entries of a part; `None` if there are more than `limit`.
    async fn read(&mut self, part: Part<'a>, limit: usize) -> Result<Option<Read<'a>>> {
        let ranges = part.bounds.ranges.iter();
        let intervals: Vec<IndexInterval> = ranges.map(|range| interval(part.index, range)).collect();
        let (_, pages) = self.partition.read_index(&intervals, false, limit + 1).await?;
        let mut read = Read {
            keys: Vec::new(),
            entries: 0,
            parts: vec![part],
        };
        self.compared += pages.iter().map(|page| page.rows.len()).sum::<usize>();
        for page in pages {
            read.entries += page.rows.len();
            if page.more || read.entries > limit {
                return Ok(None);
            }
            let entries = page.rows.iter().filter_map(|(key, _)| PropertyEntry::parse(key));
            read.keys.extend(entries.map(|entry| entry.item_key()));
        }
        Ok(Some(read))
    }
}

impl Read<'_> {
    async fn found(self, partition: &Partition) -> Result<Found> {
        let mut keys = self.keys;
        // A document with several values in an array has several entries.
        keys.sort_unstable();
        keys.dedup();
        let mut plan = ScanPlan::new();
        for part in self.parts {
            let multikey = interval(part.index, &index::multikey_range());
            let (_, pages) = partition.read_index(&[multikey], false, 1).await?;
            plan.push(IndexPart {
                index: part.of_collection.id,
                definition: part.of_collection.definition.clone(),
                bounds: part.bounds,
                is_multikey: pages.iter().any(|page| !page.rows.is_empty()),
            });
        }
        Ok(Found {
            keys: keys.into(),
            entries: self.entries as u64,
            plan,
        })
    }
}

/// Returns the keys of the entries of a range of stored keys.
fn interval(index: &PropertyIndex, range: &KeyRange) -> IndexInterval {
    let prefix = keys::property_prefix(index.id);
    let with_prefix = |key: &[u8]| Bytes::from([&prefix, key].concat());
    IndexInterval {
        from: with_prefix(&range.from),
        to: Some(with_prefix(&range.to)),
    }
}
