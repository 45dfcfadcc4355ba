//! The documents that match a query in an order: read in the order of an index if one has it, otherwise collected and sorted.
//!
//! Documents that sort alike are in the order of their numbers, then of their places; if an index has the order, in its order: by its other fields, then so,
//! and backward if it is read from its end. It does not matter whether it is read. So all pages of a query that skips and limits have one order.

use std::collections::VecDeque;

use bolide_core::{IndexPart, OrderedWalk, ReadScope, StoredDocument, Walked};
use bolide_mql::context::memory::StageMemory;
use bolide_mql::sort::{Sort, Sorter};
use bolide_mql::{Context, Result};

use super::find::Matches;
use super::index_range::IndexRange;
use super::language::Hinted;
use super::order::Order;

/// The documents that match a query, in an order.
pub struct InOrder {
    matches: Matches,
    order: Order,
    range: Option<IndexRange>,
    walk: Option<OrderedWalk>,
    /// How many documents are wanted in all, and how many were returned.
    wanted: Option<u64>,
    returned: u64,
    /// Whether the order is that of a hint's index: without the index, none is needed.
    is_of_hint: bool,
    /// The order by all fields of the index.
    complete: Option<Order>,
    /// How many are sorted at a time, if not all are, and what they are found by.
    window: Option<(Window, Matches)>,
    /// Those that were sorted and not returned; `None`: nothing was sorted.
    sorted: Option<VecDeque<StoredDocument>>,
    /// Whether none come behind those that were sorted.
    is_complete: bool,
    /// Whether they were sorted in an earlier command, so that some may have ended.
    is_resumed: bool,
    /// The last one that was read in the order of an index, or returned.
    last: Option<StoredDocument>,
}

/// Documents that are sorted at a time.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Maximum number.
    pub documents: usize,
    /// Maximum number of bytes.
    pub bytes: usize,
}

impl InOrder {
    /// The documents of `matches`, which has not begun. `wanted`: how many are wanted at most. `range`: the part of a hint's index that they must be in.
    pub fn new(
        matches: Matches,
        (order, hinted): (Order, &Hinted),
        range: Option<IndexRange>,
        wanted: Option<u64>,
    ) -> InOrder {
        let walk = match (&order, &range) {
            (Order::Keys(sort), None) => matches.walk(sort, hinted),
            _ => None,
        };
        InOrder {
            matches,
            order,
            range,
            is_of_hint: false,
            complete: walk.as_ref().map(|walk| Order::Keys(walk.sort().clone())),
            walk,
            wanted,
            returned: 0,
            window: None,
            sorted: None,
            is_complete: false,
            is_resumed: false,
            last: None,
        }
    }

    /// The same, in the order of the index that a hint names, if there is no other order and it can be read in its order.
    #[must_use]
    pub fn by_hint(self, hinted: &Hinted) -> InOrder {
        if !matches!(self.order, Order::Natural) || self.range.is_some() {
            return self;
        }
        let index = hinted.index.as_ref();
        let sort = index.and_then(|index| Sort::parse(index.definition.key().document()).ok());
        let walk = sort.as_ref().and_then(|sort| self.matches.walk(sort, hinted));
        let (Some(sort), Some(walk)) = (sort, walk) else {
            return self;
        };
        InOrder {
            order: Order::Keys(sort),
            complete: Some(Order::Keys(walk.sort().clone())),
            walk: Some(walk),
            is_of_hint: true,
            ..self
        }
    }

    /// The same, of which so many are sorted at a time: for those who need the first ones only.
    #[must_use]
    pub fn in_windows(self, window: Window) -> InOrder {
        InOrder {
            window: Some((window, self.matches.clone())),
            ..self
        }
    }

    /// Whether an index has the order. It may not be read in it all the same.
    pub fn has_index(&self) -> bool {
        self.walk.is_some()
    }

    /// The documents without an order.
    pub fn matches(&self) -> &Matches {
        &self.matches
    }

    /// The order that was asked for.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// Decides how the first documents are found, without reading them. Returns the part of the index in whose order they are read, and whether from its end.
    ///
    /// # Errors
    /// `NamespaceNotFound` if the collection was removed; those of the storage.
    pub async fn prepare(&mut self, scope: &ReadScope) -> Result<Option<(IndexPart, bool)>> {
        if let Some(walk) = &mut self.walk {
            self.matches.begin(walk, scope, self.wanted).await?;
            if !walk.is_given_up() {
                return Ok(Some((walk.part(), walk.is_backward())));
            }
            self.forget_hint();
        }
        self.matches.prepare(scope).await?;
        Ok(None)
    }

    /// Whether documents are sorted: no index is read in their order, or no longer.
    pub fn has_sorted(&self) -> bool {
        self.sorted.is_some()
    }

    /// Returns how many live documents were compared with the filter.
    pub fn examined(&self) -> u64 {
        self.matches.examined()
    }

    /// Returns how many keys of indexes were read.
    pub fn keys_examined(&self) -> u64 {
        let in_order = self.walk.as_ref().map_or(0, OrderedWalk::keys_examined);
        in_order + self.matches.keys_examined()
    }

    /// Returns the size of the documents that wait for a client.
    pub fn waiting_bytes(&self) -> usize {
        let size = |document: &StoredDocument| document.document().as_bytes().len() + size_of::<StoredDocument>();
        self.sorted.iter().flatten().map(size).sum()
    }

    /// Ends the reads of a command. What was read ahead in the order of an index is read again.
    pub fn rest(&mut self) {
        if let Some(walk) = &mut self.walk {
            walk.rest();
        }
    }

    /// Continues in another command, at its time.
    pub fn resume(&mut self) {
        self.is_resumed = true;
        self.matches.resume();
        self.rest();
    }

    /// Says how many documents are wanted next, so that not many more are read.
    pub fn want(&mut self, documents: Option<u64>) {
        if let Some(walk) = &mut self.walk {
            walk.want(documents);
        }
    }

    /// Returns the next document; `None` at the end.
    ///
    /// # Errors
    /// Those of the storage, the filter and the order.
    pub async fn next(&mut self, scope: &ReadScope, context: &Context) -> Result<Option<StoredDocument>> {
        if self.order.is_natural() && self.range.is_none() {
            return self.matches.next(scope, context).await;
        }
        if let (None, Some(mut walk)) = (&self.sorted, self.walk.take()) {
            let next = self.next_of_index(&mut walk, scope, context).await;
            let is_given_up = walk.is_given_up();
            self.walk = Some(walk);
            if !is_given_up {
                return next;
            }
            if let Some(found) = next? {
                return Ok(Some(found));
            }
            self.forget_hint();
            if self.order.is_natural() {
                return self.matches.next(scope, context).await;
            }
        }
        self.next_of_sorted(scope, context).await
    }

    /// Takes any order if that of a hint's index cannot be read and nothing was read in it.
    fn forget_hint(&mut self) {
        if self.is_of_hint && self.last.is_none() {
            (self.order, self.walk, self.complete) = (Order::Natural, None, None);
        }
    }

    /// Returns the next document in the order of the index; `None` at the end, and if the walk was given up.
    async fn next_of_index(
        &mut self,
        walk: &mut OrderedWalk,
        scope: &ReadScope,
        context: &Context,
    ) -> Result<Option<StoredDocument>> {
        self.matches.begin(walk, scope, self.wanted).await?;
        loop {
            context.interrupt.check(1)?;
            match self.matches.step(walk, scope).await? {
                Walked::Document(document) => {
                    self.last = Some(document.clone());
                    if self.matches.compare(&document, context)? {
                        self.returned += 1;
                        return Ok(Some(document));
                    }
                    walk.missed();
                }
                Walked::More => {}
                Walked::End | Walked::GivenUp => return Ok(None),
            }
        }
    }

    async fn next_of_sorted(&mut self, scope: &ReadScope, context: &Context) -> Result<Option<StoredDocument>> {
        loop {
            let mut sorted = match self.sorted.take() {
                Some(sorted) => sorted,
                None => self.sort(scope, context).await?,
            };
            let mut next = sorted.pop_front();
            while let Some(document) = &next
                && self.is_resumed
                && !self.matches.is_live(scope, document).await?
            {
                context.interrupt.check(1)?;
                next = sorted.pop_front();
            }
            if next.is_some() || self.is_complete {
                self.sorted = Some(sorted);
                self.last.clone_from(&next);
                return Ok(next);
            }
        }
    }

    /// Collects the documents behind the last one, and returns the first of them in their order: as many as are wanted, or a window.
    async fn sort(&mut self, scope: &ReadScope, context: &Context) -> Result<VecDeque<StoredDocument>> {
        self.is_resumed = false;
        let after = match &self.last {
            Some(last) => self.key(last, context)?,
            None => None,
        };
        let left = self.wanted.map(|wanted| wanted.saturating_sub(self.returned));
        let left = left.map(|left| usize::try_from(left).unwrap_or(usize::MAX));
        let (limit, memory) = match &self.window {
            Some((window, fresh)) => {
                self.matches = fresh.clone();
                (Some(window.documents), StageMemory::with_limit("$sort", window.bytes))
            }
            None => (left, StageMemory::new("$sort")),
        };
        let mut sorter = Sorter::new(limit, memory);
        while let Some(document) = self.matches.next(scope, context).await? {
            let Some(key) = self.key(&document, context)? else {
                continue;
            };
            if after.as_ref().is_some_and(|after| key <= *after) {
                continue;
            }
            let bytes = document.document().as_bytes().len();
            sorter.push(key, document, bytes)?;
        }
        let sorted: VecDeque<StoredDocument> = sorter.finish().collect();
        self.is_complete = self.window.is_none() || limit.is_none_or(|limit| sorted.len() < limit);
        Ok(sorted)
    }

    /// Returns bytes by whose order documents are returned, all different; `None` for a document outside of the range.
    fn key(&self, document: &StoredDocument, context: &Context) -> Result<Option<Vec<u8>>> {
        let of_range = match &self.range {
            None => None,
            Some(range) => match range.key(document)? {
                None => return Ok(None),
                some => some,
            },
        };
        let filter = self.matches.filter();
        let mut key = match (of_range, &self.complete) {
            (Some(key), _) if self.order.is_natural() => key,
            // What an index has no keys of may have no place in the whole order.
            (_, Some(complete)) => match complete.key(document, filter, context) {
                Ok(key) => key,
                Err(_) => self.order.key(document, filter, context)?,
            },
            _ => self.order.key(document, filter, context)?,
        };
        let begin = key.len();
        key.extend_from_slice(&document.number().to_be_bytes());
        key.extend_from_slice(document.place().as_bytes());
        if self.walk.as_ref().is_some_and(OrderedWalk::is_backward) {
            key[begin..].iter_mut().for_each(|byte| *byte = !*byte);
        }
        Ok(Some(key))
    }
}
