//! Finds the items that a filter can select through a property index.
//!
//! Each condition that an index serves describes a superset of the items that pass the filter. The entries of the most selective one, read at one snapshot
//! of each partition, name the candidates. They are read and judged in the order of their keys, exactly as a scan reads items: what is visible, what passes
//! and where a page continues does not depend on the index, so a plan may change between two pages. An item that passes the filter all the time is
//! among the candidates, whatever others write meanwhile.

use std::sync::Arc;
use std::sync::OnceLock;

use bolide_model::partition_key::PartitionKey;
use bolide_model::{Lsn, Result};
use bolide_query::Query;
use bolide_query::index::{
    IndexCondition, IndexOrder, Interval, KEY_OF_UNDEFINED, NearestQuery, SpatialCondition, SpatialIndex, TextCondition,
};
use bolide_storage::Space;
use bytes::Bytes;

use super::composite::{self, CompositeUse, conditions_of_key};
use super::{nearest, text_candidates};
use crate::container::ContainerState;
use crate::executor::Watch;
use crate::format::entries::KEY_OF_MANY;
use crate::format::keys::{self, PropertyEntry};
use crate::index::PropertyIndexes;
use crate::memory::{MemoryBudget, MemoryShare};
use crate::partition::{IndexInterval, Partition};
use crate::runtime::IndexUse;
use crate::scan::Slice;

/// A scan reads at least this many items at once, so that with fewer no index helps.
pub(super) const FEW_ITEMS: u64 = 1_000;
/// Maximum number of candidates. Above it, reading each by its key takes as long as a scan of a container of medium size.
pub(super) const MAX_CANDIDATES: usize = 10_000;
/// Scanning this many items takes as long as reading one by its key.
pub(super) const ITEMS_PER_CANDIDATE: u64 = 8;
/// So few candidates are read whatever else could be done.
pub(super) const FEW_CANDIDATES: usize = 256;
/// Memory for a candidate, in bytes.
const CANDIDATE_BYTES: usize = 2 * size_of::<Slice>() + 128;

/// The items that a filter can select.
pub(super) struct Candidates {
    /// A slice for each, in the order of their keys.
    pub slices: Vec<Slice>,
    /// Where each range's entries were read.
    pub read: Vec<(u32, Lsn)>,
    /// The id of the index.
    pub index: u32,
    /// Whether a scan would hold all items in one read and process them in the order of their creation.
    pub is_small: bool,
    _memory: MemoryShare,
}

/// Maximum number of conditions that are compared. A query may have thousands.
pub(super) const MAX_CONDITIONS: usize = 16;
/// Maximum number of intervals of a condition, in all ranges together: each is looked up in each range.
pub(super) const MAX_LOOKUPS: usize = 8_192;
/// With so few candidates no other condition is looked at.
const ENOUGH: usize = 16;

/// The part of a container that a query reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Whole ranges.
    Ranges,
    /// The items of a partition key, or of those that begin with some components.
    Key,
    /// Any other part: a scan of a part of a range has an order of its own.
    Other,
}

/// What the indexes of a container can do for a query.
pub(super) struct IndexReader<'a> {
    pub query: &'a Query,
    pub state: &'a ContainerState,
    pub slices: &'a [Slice],
    pub index_use: IndexUse,
    pub memory: &'a MemoryBudget,
    pub watch: Arc<Watch>,
    /// The conditions that an index serves.
    pub conditions: Vec<IndexCondition>,
    /// Those that a full-text index serves.
    pub texts: Vec<TextCondition>,
    /// Those that a spatial index serves, each with the id of the index.
    pub shapes: Vec<(u32, SpatialCondition)>,
    pub order: Option<IndexOrder>,
    /// What the composite indexes can do.
    pub composite: CompositeUse,
    /// The vector whose nearest neighbours are searched, if an index finds them.
    pub nearest: Option<NearestQuery>,
    /// Whether the query reads a part of one range: the items of a partition key.
    pub is_pinned: bool,
    /// Whether it reads whole ranges.
    pub is_of_ranges: bool,
    /// Number of items that are stored in the ranges, ghosts included, once it was read.
    stored: OnceLock<u64>,
}

impl<'a> IndexReader<'a> {
    /// Returns the reader for a query over some slices, which are a certain part of the container; `key`: the partition key that it is sent to.
    pub fn of(
        query: &'a Query,
        (state, slices): (&'a ContainerState, &'a [Slice]),
        (index_use, memory): (IndexUse, &'a MemoryBudget),
        watch: Arc<Watch>,
        (part, key): (Part, Option<&PartitionKey>),
    ) -> IndexReader<'a> {
        let is_pinned = part == Part::Key && slices.len() == 1;
        let has_any = (is_pinned || part == Part::Ranges)
            && !index_use.is_never()
            && state.indexes.list.iter().any(|index| index.is_ready);
        let all = match has_any {
            true => query.index_conditions(),
            false => Vec::new(),
        };
        let mut composite = CompositeUse::default();
        if has_any && state.indexes.usable_composite().next().is_some() {
            let implied = conditions_of_key(state, key, &all);
            let conditions: Vec<IndexCondition> = all.iter().cloned().chain(implied).collect();
            composite = CompositeUse::of(query, state, (slices.len(), part), &conditions);
        }
        let mut conditions: Vec<IndexCondition> = Vec::new();
        for condition in all {
            let is_served = state.indexes.usable(&condition.path).is_some();
            let is_short = condition.intervals.len() * slices.len() <= MAX_LOOKUPS;
            if is_served && is_short && conditions.len() < MAX_CONDITIONS && !conditions.contains(&condition) {
                conditions.push(condition);
            }
        }
        let mut texts = match has_any {
            true => query.text_conditions(),
            false => Vec::new(),
        };
        texts.retain(|condition| state.indexes.usable_text(&condition.text).is_some());
        texts.truncate(MAX_CONDITIONS);
        let mut shapes = match has_any {
            true => spatial_conditions(query, &state.indexes),
            false => Vec::new(),
        };
        shapes.retain(|(_, condition)| condition.intervals.len() * slices.len() <= MAX_LOOKUPS);
        let nearest = (!index_use.is_never()).then(|| query.nearest()).flatten();
        IndexReader {
            query,
            nearest: nearest.filter(|nearest| state.indexes.usable_for_nearest(nearest).is_some()),
            state,
            texts,
            shapes,
            slices,
            index_use,
            memory,
            watch,
            conditions,
            composite,
            // The order of an index is that of all keys.
            order: (has_any && !is_pinned).then(|| query.index_order()).flatten(),
            is_pinned,
            is_of_ranges: part == Part::Ranges && !index_use.is_never() && query.reads_items(),
            stored: OnceLock::new(),
        }
    }

    /// Returns the number of items that are stored in the ranges, ghosts included, as of the first call.
    pub fn stored_items(&self) -> u64 {
        let stored = || self.slices.iter().map(|slice| slice.partition.stored_items()).sum();
        *self.stored.get_or_init(stored)
    }

    /// Finds the candidates of the query, if there are at most `most`; `None` if there are more, if a scan is better, or if no index serves the query.
    ///
    /// # Errors
    /// From the engine; if the query has to end.
    pub async fn candidates(&self, most: usize) -> Result<Option<Candidates>> {
        if !self.has_conditions() {
            return Ok(None);
        }
        let stored = self.stored_items();
        let mut is_small = stored <= FEW_ITEMS && self.slices.len() == 1;
        let limit = match self.index_use.is_forced() {
            true => most,
            // To analyse a text takes much longer than to read its entries.
            false if stored <= FEW_ITEMS && self.texts.is_empty() => return Ok(None),
            _ => usize::try_from(stored / ITEMS_PER_CANDIDATE)
                .unwrap_or(usize::MAX)
                .min(most),
        };
        let mut best: Option<Found> = None;
        // They have fewer keys than those on one of their paths.
        for (index, keys) in &self.composite.keys {
            let limit = best.as_ref().map_or(limit, |best| best.keys.len());
            if best.is_some() && limit <= ENOUGH {
                break;
            }
            best = self.candidates_in((*index, keys, None), limit).await?.or(best);
        }
        for condition in &self.conditions {
            let limit = best.as_ref().map_or(limit, |best| best.keys.len());
            if best.is_some() && limit <= ENOUGH {
                break;
            }
            best = self.candidates_of(condition, limit).await?.or(best);
        }
        for condition in &self.texts {
            let limit = best.as_ref().map_or(limit, |best| best.keys.len());
            if best.is_some() && limit <= ENOUGH {
                break;
            }
            best = self.candidates_of_text(condition, limit).await?.or(best);
        }
        for (index, condition) in &self.shapes {
            let limit = best.as_ref().map_or(limit, |best| best.keys.len());
            if best.is_some() && limit <= ENOUGH {
                break;
            }
            let found = self.candidates_in((*index, &condition.intervals, None), limit).await?;
            best = found.or(best);
        }
        let Some(best) = best else { return Ok(None) };
        if self.is_pinned && !is_small {
            is_small = self.holds_few().await?;
            if is_small && !self.index_use.is_forced() {
                return Ok(None);
            }
        }
        Ok(match self.memory.try_take(best.keys.len() * CANDIDATE_BYTES) {
            Ok(memory) => Some(best.into_candidates(self.slices, is_small, memory)),
            Err(_) => None,
        })
    }

    /// Returns whether an index serves a condition.
    pub fn has_conditions(&self) -> bool {
        let is_none = self.conditions.is_empty() && self.composite.keys.is_empty();
        !is_none || !self.texts.is_empty() || !self.shapes.is_empty()
    }

    /// Returns whether a scan holds all items of the only slice in one read.
    async fn holds_few(&self) -> Result<bool> {
        let [slice] = self.slices else { return Ok(false) };
        let most = FEW_ITEMS as usize + 1;
        let rows = slice
            .partition
            .count_rows(Space::Item, &slice.from, slice.to.as_ref(), most)
            .await?;
        Ok(rows < most)
    }

    /// Reads the entries of a condition; `None` if there are more than `limit`.
    async fn candidates_of(&self, condition: &IndexCondition, limit: usize) -> Result<Option<Found>> {
        let Some(index) = self.state.indexes.usable(&condition.path) else {
            return Ok(None);
        };
        // Items with too many values have one entry for all of them.
        let of_elements = condition.path.is_of_elements();
        let many = of_elements.then(|| Interval {
            from: KEY_OF_MANY.to_vec(),
            to: Some(KEY_OF_UNDEFINED.to_vec()),
        });
        self.candidates_in((index.id, &condition.intervals, many), limit).await
    }

    /// Reads the entries of some keys of an index; `None` if there are more than `limit`.
    async fn candidates_in(
        &self,
        (index, intervals, more): (u32, &[Interval], Option<Interval>),
        limit: usize,
    ) -> Result<Option<Found>> {
        let intervals = intervals.iter().chain(&more);
        let intervals: Vec<IndexInterval> = intervals.map(|values| interval(index, values)).collect();
        let mut found = Found::of(index);
        for (at, slice) in self.slices.iter().enumerate() {
            self.watch.check()?;
            match keys_in(&slice.partition, &intervals, limit).await? {
                Some(read) => found.add((at, slice), read),
                None => return Ok(None),
            }
            if found.keys.len() > limit {
                return Ok(None);
            }
        }
        Ok(Some(found))
    }

    /// Like [`IndexReader::candidates_of`], for the words of a text.
    async fn candidates_of_text(&self, condition: &TextCondition, limit: usize) -> Result<Option<Found>> {
        let Some(index) = self.state.indexes.usable_text(&condition.text) else {
            return Ok(None);
        };
        let mut found = Found::of(index.id);
        for (at, slice) in self.slices.iter().enumerate() {
            self.watch.check()?;
            match text_candidates::keys_in(&slice.partition, index.id, &condition.any_of, limit).await? {
                Some(read) => found.add((at, slice), read),
                None => return Ok(None),
            }
            if found.keys.len() > limit {
                return Ok(None);
            }
        }
        Ok(Some(found))
    }
}

/// Describes, in a line for each, the indexes that a query can use. Which one it uses, if any, depends on the number of its entries.
pub(super) fn explain(query: &Query, indexes: &PropertyIndexes) -> String {
    let conditions = query.index_conditions().into_iter();
    let conditions = conditions.filter(|condition| indexes.usable(&condition.path).is_some());
    let lines = conditions.map(|condition| format!("index: {} serves a condition\n", condition.path));
    let texts = query.text_conditions().into_iter();
    let texts = texts.filter(|condition| indexes.usable_text(&condition.text).is_some());
    let texts = texts.map(|condition| format!("index: {} serves a condition\n", condition.text));
    let shapes = spatial_conditions(query, indexes).into_iter();
    let shapes = shapes.map(|(_, condition)| format!("index: {} (spatial) serves a condition\n", condition.path));
    let ranking = query.text_ranking().map(|ranking| ranking.text);
    let ranking = ranking.filter(|text| indexes.usable_text(text).is_some());
    let ranking = ranking.map(|text| format!("index: {text} serves the order\n"));
    let order = query.index_order();
    let order = order.filter(|order| indexes.usable_in_order(order).is_some());
    let order = order.map(|order| format!("index: {} serves the order\n", order.path));
    let nearest = nearest::explain(query.nearest(), indexes);
    lines
        .chain([composite::explain(query, indexes)])
        .chain(texts)
        .chain(shapes)
        .chain(order)
        .chain(ranking)
        .chain(nearest)
        .collect()
}

/// Returns the conditions of a query that a spatial index serves, each with the id of the index.
fn spatial_conditions(query: &Query, indexes: &PropertyIndexes) -> Vec<(u32, SpatialCondition)> {
    let usable: Vec<(u32, &SpatialIndex)> = indexes.usable_spatial().collect();
    if usable.is_empty() {
        return Vec::new();
    }
    let served: Vec<&SpatialIndex> = usable.iter().map(|(_, index)| *index).collect();
    let conditions = query.spatial_conditions(&served).into_iter();
    let conditions = conditions.filter_map(|condition| {
        let index = usable.iter().find(|(_, index)| index.path == condition.path)?;
        Some((index.0, condition))
    });
    conditions.take(MAX_CONDITIONS).collect()
}

struct Found {
    index: u32,
    /// Each with the index of its slice.
    keys: Vec<(usize, Bytes)>,
    read: Vec<(u32, Lsn)>,
}

impl Found {
    fn of(index: u32) -> Found {
        Found {
            index,
            keys: Vec::new(),
            read: Vec::new(),
        }
    }

    /// Adds what was found in a slice.
    fn add(&mut self, (at, slice): (usize, &Slice), (lsn, mut keys): (Lsn, Vec<Bytes>)) {
        // An item with several values in an array has several entries.
        keys.sort_unstable();
        keys.dedup();
        let inside = keys.into_iter().filter(|key| slice.contains(key));
        self.keys.extend(inside.map(|key| (at, key)));
        self.read.push((slice.partition.range, lsn));
    }

    fn into_candidates(self, slices: &[Slice], is_small: bool, memory: MemoryShare) -> Candidates {
        Candidates {
            slices: self.keys.into_iter().map(|(at, key)| point(&slices[at], key)).collect(),
            read: self.read,
            index: self.index,
            is_small,
            _memory: memory,
        }
    }
}

/// Reads the entries of some intervals of values in one partition, all at one snapshot; `None` if there are more than `limit`.
async fn keys_in(
    partition: &Partition,
    intervals: &[IndexInterval],
    limit: usize,
) -> Result<Option<(Lsn, Vec<Bytes>)>> {
    let (head, pages) = partition.read_index(intervals, false, limit + 1).await?;
    let mut keys = Vec::new();
    for page in pages {
        keys.extend(
            page.rows
                .iter()
                .filter_map(|(key, _)| PropertyEntry::parse(key))
                .map(|entry| entry.item_key()),
        );
        if page.more || keys.len() > limit {
            return Ok(None);
        }
    }
    Ok(Some((head.lsn, keys)))
}

/// Returns the slice that holds one item of a slice.
pub(super) fn point(slice: &Slice, key: Bytes) -> Slice {
    Slice {
        partition: slice.partition.clone(),
        to: Some(keys::after(&key)),
        from: key,
        prefix: None,
    }
}

/// Returns the keys of the entries of an interval of values.
pub(super) fn interval(index: u32, values: &Interval) -> IndexInterval {
    let prefix = keys::property_prefix(index);
    let with_prefix = |value: &[u8]| Bytes::from([&prefix, value].concat());
    IndexInterval {
        from: with_prefix(&values.from),
        to: match &values.to {
            Some(to) => Some(with_prefix(to)),
            None => keys::after_prefix(&prefix),
        },
    }
}
