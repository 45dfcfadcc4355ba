//! The results of a query, between batches.
//!
//! In natural order documents are read as batches need them. In any other order all are read and sorted for the first batch; those that wait for the
//! client are judged again when they are returned.

use std::collections::VecDeque;
use std::sync::Arc;

use bolide_core::{MemoryShare, ReadScope, StoredDocument, Task};
use bolide_mql::context::memory::StageMemory;
use bolide_mql::filter::Filter;
use bolide_mql::sort::Sorter;
use bolide_mql::{Code, Context, Error, Result};
use futures_util::future::BoxFuture;

use super::super::data::find::Matches;
use super::super::data::order::Order;
use super::super::data::tasks;
use super::super::data::writer::DataContext;
use super::range::IndexRange;
use super::shape::Shape;
use crate::codes;
use crate::cursors::{Batch, BatchRequest, CursorSource};
use crate::state::MongoState;

/// The results of a query.
pub struct FindCursor {
    pub state: Arc<MongoState>,
    pub data: DataContext,
    pub language: Context,
    /// `None` only while a batch is made.
    pub query: Option<Query>,
    pub has_begun: bool,
    /// The memory of sorted documents that wait for the client.
    pub memory: MemoryShare,
}

/// A query between batches.
pub struct Query {
    pub matches: Matches,
    pub filter: Arc<Filter>,
    pub order: Order,
    pub range: Option<IndexRange>,
    pub shape: Shape,
    pub skip: u64,
    /// How many documents it may still return; `None` without a limit.
    pub left: Option<u64>,
    pub waiting: Waiting,
}

/// Documents that were read and not returned yet.
#[derive(Default)]
pub struct Waiting {
    /// One that did not fit into the last batch.
    kept: Option<StoredDocument>,
    /// Those of a query with another order, after it has read them.
    sorted: Option<VecDeque<StoredDocument>>,
    /// Whether they were read in an earlier command, so that some may have ended.
    is_resumed: bool,
}

impl CursorSource for FindCursor {
    fn next_batch<'a>(&'a mut self, request: &'a BatchRequest) -> BoxFuture<'a, Result<Batch>> {
        Box::pin(async move {
            let lost = || Error::new(Code::CURSOR_NOT_FOUND, "the cursor failed before");
            let mut query = self.query.take().ok_or_else(lost)?;
            if self.has_begun {
                self.data.request = request.now;
                self.data.consumed = request.consumed.clone();
                query.resume();
            }
            self.has_begun = true;
            let scope = self.data.scope();
            let mut language = self.language.clone();
            language.interrupt = request.interrupt.clone();
            let limits = Limits {
                documents: request.max_documents.unwrap_or(usize::MAX),
                bytes: request.max_bytes,
            };
            let (query, batch) = if query.matches.is_short() {
                let batch = query.batch(&scope, &language, limits).await;
                (query, batch?)
            } else {
                let work = move |task: &Task| {
                    language.interrupt = tasks::interrupt(task, language.interrupt.clone());
                    let batch = task.wait(query.batch(&scope, &language, limits));
                    Ok((query, batch?))
                };
                tasks::run(&self.state, work).await?
            };
            if !batch.is_last {
                self.hold(&query)?;
            }
            self.query = Some(query);
            Ok(batch)
        })
    }
}

impl FindCursor {
    /// Takes memory for the documents that wait, from the budget that all requests share.
    fn hold(&mut self, query: &Query) -> Result<()> {
        let bytes = query.waiting.bytes();
        if bytes <= self.memory.bytes() {
            self.memory.shrink_to(bytes);
            return Ok(());
        }
        let grown = self.state.account.memory().try_grow(&mut self.memory, bytes);
        grown.map_err(|error| codes::error(&error))
    }
}

impl Waiting {
    fn bytes(&self) -> usize {
        let size = |document: &StoredDocument| document.document().as_bytes().len() + size_of::<StoredDocument>();
        self.sorted.iter().flatten().map(size).sum()
    }
}

/// The limits of a batch.
#[derive(Clone, Copy)]
struct Limits {
    documents: usize,
    bytes: usize,
}

impl Query {
    fn resume(&mut self) {
        self.matches.resume();
        self.waiting.is_resumed = true;
    }

    async fn batch(&mut self, scope: &ReadScope, language: &Context, limits: Limits) -> Result<Batch> {
        let mut batch = Batch::default();
        let (mut bytes, is_by_id) = (0_usize, self.matches.ids().is_some());
        while batch.documents.len() < limits.documents {
            if self.left == Some(0) {
                batch.is_last = true;
                break;
            }
            let Some(document) = self.next(scope, language).await? else {
                batch.is_last = true;
                break;
            };
            let shaped = self.shape.apply(&document, &self.filter, language, is_by_id)?;
            bytes = bytes.saturating_add(shaped.as_bytes().len());
            if bytes > limits.bytes && !batch.documents.is_empty() {
                self.waiting.kept = Some(document);
                break;
            }
            batch.documents.push(shaped);
            self.left = self.left.map(|left| left - 1);
        }
        batch.is_last |= self.left == Some(0);
        Ok(batch)
    }

    async fn next(&mut self, scope: &ReadScope, language: &Context) -> Result<Option<StoredDocument>> {
        if let Some(kept) = self.waiting.kept.take()
            && self.matches.is_live(scope, &kept).await?
        {
            return Ok(Some(kept));
        }
        if !self.order.is_natural() || self.range.is_some() {
            return self.next_sorted(scope, language).await;
        }
        while self.skip > 0 {
            if self.matches.next(scope, language).await?.is_none() {
                return Ok(None);
            }
            self.skip -= 1;
        }
        self.matches.next(scope, language).await
    }

    async fn next_sorted(&mut self, scope: &ReadScope, language: &Context) -> Result<Option<StoredDocument>> {
        let mut sorted = match self.waiting.sorted.take() {
            Some(sorted) => sorted,
            None => {
                self.waiting.is_resumed = false;
                self.sort(scope, language).await?
            }
        };
        let mut next = sorted.pop_front();
        while let Some(document) = &next
            && self.waiting.is_resumed
            && !self.matches.is_live(scope, document).await?
        {
            language.interrupt.check(1)?;
            next = sorted.pop_front();
        }
        self.waiting.sorted = Some(sorted);
        Ok(next)
    }

    /// Reads all documents that match, and returns those after the skipped ones, up to the limit, in their order.
    async fn sort(&mut self, scope: &ReadScope, language: &Context) -> Result<VecDeque<StoredDocument>> {
        let skip = usize::try_from(self.skip).unwrap_or(usize::MAX);
        let limit = self
            .left
            .map(|left| usize::try_from(left).unwrap_or(usize::MAX).saturating_add(skip));
        let mut sorter = Sorter::new(limit, StageMemory::new("$sort"));
        while let Some(document) = self.matches.next(scope, language).await? {
            let of_index = match &self.range {
                None => None,
                Some(range) => match range.key(&document)? {
                    None => continue,
                    some => some,
                },
            };
            let key = match of_index {
                Some(key) if self.order.is_natural() => key,
                _ => self.order.key(&document, &self.filter, language)?,
            };
            let bytes = document.document().as_bytes().len();
            sorter.push(key, document, bytes)?;
        }
        self.skip = 0;
        Ok(sorter.finish().skip(skip).collect())
    }
}
