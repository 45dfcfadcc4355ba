//! Reads the documents of a collection in the order of an index.
//!
//! An index is read in parts, in each range of the collection: the keys behind one equality, and those of documents with arrays. Each part is in order, and they
//! are merged by what follows the equality, then the number and the place of the document. So the order is the same whether a range was split or not.
//!
//! Entries are read first, then their documents, which may have changed between. A document counts at the place that it has when it is read, if that is among
//! the entries that were read. So the documents that come first in one command are complete: only one that moves behind a place that was already passed is
//! not found there. Between two commands only the last place is kept: nothing that has ended waits for a client, and what has moved since is found where it is.
//!
//! Transactions and snapshots do not read in the order of an index: they read versions that the entries need not describe.

mod stream;

use std::cmp::Reverse;
use std::sync::Arc;

use bolide_model::Result;
use bolide_model::epk::Epk;
use bolide_mql::index::{self, IndexDefinition, IndexOrder};
use bolide_mql::sort::Sort;
use bytes::Bytes;

use super::selection::{DOCUMENTS_PER_CANDIDATE, FEW_CANDIDATES, MAX_CANDIDATES};
use super::{IndexPart, ReadScope, Selection, StoredDocument};
use crate::container::{CollectionIndex, Container, ContainerState};
use crate::format::keys;
use crate::partition::{IndexInterval, Partition};
use stream::{Loading, Stream};

/// Maximum number of parts in all ranges that are merged.
const MAX_STREAMS: usize = 64;
/// Number of entries of the first read of a part, if it is not known how many are wanted.
const FIRST_ROWS: usize = 101;
/// Minimum number of entries of the first read, if there are many parts.
const MIN_ROWS: usize = 8;

/// What the next step of a walk gives.
#[derive(Debug)]
pub enum Walked {
    /// The next document. The caller applies the filter.
    Document(StoredDocument),
    /// More was read; the next step may give a document.
    More,
    /// There are no more documents.
    End,
    /// Sorting the documents that are left is better, or necessary: those behind the last one in [`OrderedWalk::sort`], then in the order of numbers and places.
    GivenUp,
}

/// A walk through the documents that a filter may match, in the order of an index.
pub struct OrderedWalk {
    order: IndexOrder,
    /// The id of the index in its collection.
    index: u32,
    definition: Arc<IndexDefinition>,
    selection: Selection,
    /// Where all documents that match are, if it is one place.
    place: Option<Epk>,
    /// `None` while it rests.
    streams: Option<Vec<Stream>>,
    /// Behind this place it goes on: the bytes of an entry behind the beginning of its part.
    passed: Option<Bytes>,
    wanted: usize,
    /// How many more entries may be read in vain. `None` before it has begun.
    misses_left: Option<u64>,
    is_given_up: bool,
    is_multikey: bool,
    keys_examined: u64,
}

impl OrderedWalk {
    /// Returns a walk in the order of a sort; `None` if no index has this order. Which index has it depends on the definitions only, not on the documents.
    ///
    /// `place`: where all documents are that the filter matches, if it is one place; an unsharded collection has one.
    pub fn plan(container: &Container, selection: Selection, sort: &Sort, place: Option<&Epk>) -> Option<OrderedWalk> {
        let state = container.state();
        let conditions = selection.filter.conditions();
        let usable = state.collection.iter().flat_map(|collection| &collection.indexes);
        let usable = usable.filter(|index| selection.hint.is_none_or(|hint| hint == index.id));
        let ordered = usable
            .filter(|index| is_usable(&state, index, place))
            .filter_map(|index| {
                let collation = selection.collation.as_deref();
                let order = index::order(&index.definition, &conditions, collation, sort)?;
                Some((index, order))
            });
        let (index, order) = ordered.min_by_key(|(index, order)| {
            let fields = index.definition.key().fields().len();
            (Reverse(order.bounds.bounded_fields()), fields, index.id)
        })?;
        let (id, definition) = (index.id, index.definition.clone());
        Some(OrderedWalk {
            order,
            index: id,
            definition,
            selection,
            place: place.cloned(),
            streams: None,
            passed: None,
            wanted: FIRST_ROWS,
            misses_left: None,
            is_given_up: false,
            is_multikey: false,
            keys_examined: 0,
        })
    }

    /// The order in which documents come.
    pub fn sort(&self) -> &Sort {
        &self.order.sort
    }

    /// Whether the index is read from its end; then documents that sort alike come in the reverse order of their numbers and places.
    pub fn is_backward(&self) -> bool {
        self.order.is_backward
    }

    /// Whether it does not read in the order of the index, or no longer.
    pub fn is_given_up(&self) -> bool {
        self.is_given_up
    }

    /// The index, and which of its keys are read.
    pub fn part(&self) -> IndexPart {
        IndexPart {
            index: self.index,
            definition: self.definition.clone(),
            bounds: self.order.bounds.clone(),
            is_multikey: self.is_multikey,
        }
    }

    /// Returns how many entries of live documents it has read.
    pub fn keys_examined(&self) -> u64 {
        self.keys_examined
    }

    /// Says how many documents are wanted next, so that not more are read. `None`: all.
    pub fn want(&mut self, documents: Option<u64>) {
        let wanted = documents.and_then(|documents| usize::try_from(documents).ok());
        self.wanted = wanted.unwrap_or(FIRST_ROWS).clamp(1, stream::MAX_ROWS);
    }

    /// Counts a document that the filter did not match.
    pub fn missed(&mut self) {
        self.count_misses(1);
    }

    /// Ends the reads of a command. The walk goes on in another one, where it was.
    pub fn rest(&mut self) {
        self.streams = None;
    }

    /// Decides whether reading in the order of the index is better than sorting what other indexes or a scan find: it is unless another index finds few documents.
    /// `documents`: how many are wanted in all; `None` is all.
    ///
    /// # Errors
    /// From the engine; `NotFound` if the collection was removed.
    pub async fn begin(&mut self, scope: &ReadScope, container: &Arc<Container>, documents: Option<u64>) -> Result<()> {
        if self.misses_left.is_some() || self.is_given_up {
            return Ok(());
        }
        if scope.transaction().is_some() {
            self.is_given_up = true;
            return Ok(());
        }
        let (state, _) = scope.enter(container).await?;
        let mut stored = 0;
        for partition in self.partitions(&state)? {
            stored += partition.stored_items();
        }
        self.misses_left = Some(match self.selection.hint {
            Some(_) => u64::MAX,
            // As many reads of single documents take as long as a scan.
            None => (stored / DOCUMENTS_PER_CANDIDATE).max(FEW_CANDIDATES as u64),
        });
        self.is_given_up = self.are_others_better(&state, stored, documents).await? || !self.open(&state).await?;
        if !self.is_given_up {
            container.count_index_use(self.index);
        }
        Ok(())
    }

    /// Returns the next document, or reads more.
    ///
    /// # Errors
    /// As [`OrderedWalk::begin`]; `Throttled` if the throughput of the collection is used up.
    pub async fn next(&mut self, scope: &ReadScope, container: &Arc<Container>) -> Result<Walked> {
        self.begin(scope, container, None).await?;
        if self.is_given_up {
            return Ok(Walked::GivenUp);
        }
        if self.streams.is_none() {
            let (state, _) = scope.enter(container).await?;
            if !self.open(&state).await? {
                return Ok(self.give_up());
            }
        }
        let mut streams = self.streams.iter().flatten();
        match streams.position(Stream::is_to_be_read) {
            Some(at) => self.load(at, scope, container).await,
            None => Ok(self.pop()),
        }
    }

    /// Returns the first document of all that were read.
    fn pop(&mut self) -> Walked {
        let streams = self.streams.iter_mut().flatten();
        let with_documents = streams.filter(|stream| stream.first().is_some());
        let first = match self.order.is_backward {
            true => with_documents.max_by(|a, b| a.first().cmp(&b.first())),
            false => with_documents.min_by(|a, b| a.first().cmp(&b.first())),
        };
        match first.and_then(Stream::pop) {
            Some((place, document)) => {
                self.passed = Some(place);
                Walked::Document(document)
            }
            None => Walked::End,
        }
    }

    /// Reads more of one part.
    async fn load(&mut self, at: usize, scope: &ReadScope, container: &Arc<Container>) -> Result<Walked> {
        let (state, now) = scope.enter(container).await?;
        let loading = Loading {
            definition: &self.definition,
            is_backward: self.order.is_backward,
            place: self.place.as_ref(),
            horizon: &state.settings.horizon(now),
        };
        let Some(stream) = self.streams.as_mut().and_then(|streams| streams.get_mut(at)) else {
            return Ok(Walked::End);
        };
        let Some(loaded) = stream.load(&loading).await? else {
            return Ok(self.give_up());
        };
        scope.charge_scan(container, (&state, &loaded.partition), (loaded.documents, loaded.bytes));
        self.keys_examined += loaded.live_entries;
        self.count_misses(loaded.misses);
        Ok(Walked::More)
    }

    fn give_up(&mut self) -> Walked {
        self.is_given_up = true;
        self.streams = None;
        Walked::GivenUp
    }

    fn count_misses(&mut self, misses: u64) {
        let Some(left) = &mut self.misses_left else { return };
        match left.checked_sub(misses) {
            Some(less) => *left = less,
            None => {
                self.give_up();
            }
        }
    }

    /// The partitions that may have documents.
    fn partitions(&self, state: &ContainerState) -> Result<Vec<Arc<Partition>>> {
        Ok(match &self.place {
            Some(place) => vec![state.layout.partition_of(place)?.clone()],
            None => state.layout.partitions.clone(),
        })
    }

    /// Whether sorting the documents that another index finds takes fewer reads. If the filter matches documents everywhere in the order alike, the walk reads
    /// `wanted * stored / found` documents, where the other index finds `found`.
    async fn are_others_better(&self, state: &ContainerState, stored: u64, documents: Option<u64>) -> Result<bool> {
        let is_bounded = self.order.has_equalities || self.selection.hint.is_some();
        if is_bounded || self.selection.filter.is_empty() {
            return Ok(false);
        }
        let as_many = documents.unwrap_or(u64::MAX).saturating_mul(stored).isqrt();
        let share = (stored / DOCUMENTS_PER_CANDIDATE).clamp(FEW_CANDIDATES as u64, MAX_CANDIDATES as u64);
        let mut left = usize::try_from(as_many.min(share)).unwrap_or(MAX_CANDIDATES);
        for partition in self.partitions(state)? {
            match self
                .selection
                .number_by_others(state, &partition, left, self.index)
                .await?
            {
                Some(found) => left -= found.min(left),
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Begins to read where the walk was. Returns `false` if the index does not have the order, or no longer.
    async fn open(&mut self, state: &ContainerState) -> Result<bool> {
        let Some((stored, prefix)) = self.prefix(state) else {
            return Ok(false);
        };
        let partitions = self.partitions(state)?;
        let parts = self.order.parts.len().saturating_mul(partitions.len());
        if parts > MAX_STREAMS {
            return Ok(false);
        }
        self.is_multikey = false;
        let mut streams = Vec::with_capacity(parts);
        for partition in partitions {
            if self.is_obstructed(&partition, &prefix).await? {
                return Ok(false);
            }
            for part in &self.order.parts {
                let begin = Bytes::from([&prefix[..], &part.begin].concat());
                let mut stream = Stream::new(partition.clone(), (stored, begin.clone()), self.rows(parts), parts);
                let intervals = part.ranges.iter().map(|range| interval(&prefix, range));
                let left = |interval| self.behind(interval, &begin);
                match self.order.is_backward {
                    true => stream.extend(intervals.rev().filter_map(left)),
                    false => stream.extend(intervals.filter_map(left)),
                }
                streams.push(stream);
            }
        }
        self.streams = Some(streams);
        Ok(true)
    }

    /// How many entries the first read of one of so many parts has.
    fn rows(&self, parts: usize) -> usize {
        // Without a filter one range has two parts, of which that for documents with arrays is usually empty.
        match parts {
            0..=2 => self.wanted,
            _ => (2 * self.wanted.div_ceil(parts)).clamp(MIN_ROWS.min(self.wanted), self.wanted),
        }
    }

    /// The property index, and what the keys of its entries begin with; `None` if they may no longer be read.
    fn prefix(&self, state: &ContainerState) -> Option<(Option<u32>, Bytes)> {
        let mut indexes = state.collection.iter().flat_map(|collection| &collection.indexes);
        let index = indexes.find(|index| index.id == self.index)?;
        if !is_usable(state, index, self.place.as_ref()) {
            return None;
        }
        match (&self.place, self.definition.is_id()) {
            (Some(place), true) => Some((None, keys::id_index(place.as_bytes(), &[]).bytes)),
            (None, true) => None,
            (_, false) => {
                let stored = state.indexes.usable_of_collection(self.index)?;
                Some((
                    Some(stored.id),
                    Bytes::copy_from_slice(&keys::property_prefix(stored.id)),
                ))
            }
        }
    }

    /// Whether there are entries that are not in order. Notes whether there are any of documents with arrays.
    async fn is_obstructed(&mut self, partition: &Partition, prefix: &[u8]) -> Result<bool> {
        if self.definition.is_id() {
            return Ok(false);
        }
        let mut intervals: Vec<IndexInterval> = vec![interval(prefix, &index::multikey_range())];
        intervals.extend(self.order.obstacles.iter().map(|range| interval(prefix, range)));
        let (_, pages) = partition.read_index(&intervals, false, 1).await?;
        let mut has_rows = pages.iter().map(|page| !page.rows.is_empty());
        self.is_multikey |= has_rows.next().unwrap_or_default();
        Ok(has_rows.any(|has| has))
    }

    /// What of an interval is behind the place that was passed, in the direction of the walk.
    fn behind(&self, mut interval: IndexInterval, begin: &[u8]) -> Option<IndexInterval> {
        if let Some(passed) = &self.passed {
            let key = [begin, passed].concat();
            match self.order.is_backward {
                true => interval.to = Some(interval.to.map_or(key.clone().into(), |to| to.min(key.into()))),
                false => interval.from = interval.from.max(keys::after(&key)),
            }
        }
        let is_empty = interval.to.as_ref().is_some_and(|to| interval.from >= *to);
        (!is_empty).then_some(interval)
    }
}

/// Whether the entries of an index may be read, and are in order.
fn is_usable(state: &ContainerState, index: &CollectionIndex, place: Option<&Epk>) -> bool {
    if index.is_building || index.definition.is_hidden() {
        return false;
    }
    match index.definition.is_id() {
        // The entries by `_id` are in order at one place only.
        true => place.is_some(),
        false => state.indexes.usable_of_collection(index.id).is_some(),
    }
}

fn interval(prefix: &[u8], range: &index::KeyRange) -> IndexInterval {
    IndexInterval {
        from: Bytes::from([prefix, &range.from].concat()),
        to: Some(Bytes::from([prefix, &range.to].concat())),
    }
}
