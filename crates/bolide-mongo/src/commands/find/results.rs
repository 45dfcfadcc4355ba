//! The results of a query, between batches.
//!
//! In natural order, and in the order of an index, documents are read as batches need them. In any other order all are read and sorted for the first batch; those
//! that wait for the client are judged again when they are returned.

use std::sync::Arc;

use bolide_core::{MemoryShare, ReadScope, StoredDocument, Task};
use bolide_mql::filter::Filter;
use bolide_mql::{Code, Context, Error, Result};
use futures_util::future::BoxFuture;

use super::super::data::in_order::InOrder;
use super::super::data::tasks;
use super::super::data::writer::DataContext;
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
    pub documents: InOrder,
    pub filter: Arc<Filter>,
    pub shape: Shape,
    pub skip: u64,
    /// How many documents it may still return; `None` without a limit.
    pub left: Option<u64>,
    /// One that did not fit into the last batch.
    pub kept: Option<StoredDocument>,
}

impl CursorSource for FindCursor {
    fn next_batch<'a>(&'a mut self, request: &'a BatchRequest) -> BoxFuture<'a, Result<Batch>> {
        Box::pin(async move {
            let lost = || Error::new(Code::CURSOR_NOT_FOUND, "the cursor failed before");
            let mut query = self.query.take().ok_or_else(lost)?;
            if self.has_begun {
                self.data.request = request.now;
                self.data.consumed = request.consumed.clone();
                query.documents.resume();
            }
            self.has_begun = true;
            let scope = self.data.scope();
            let mut language = self.language.clone();
            language.interrupt = request.interrupt.clone();
            let limits = Limits {
                documents: request.max_documents.unwrap_or(usize::MAX),
                bytes: request.max_bytes,
            };
            let (query, batch) = if query.documents.matches().is_short() {
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
        let bytes = query.documents.waiting_bytes();
        if bytes <= self.memory.bytes() {
            self.memory.shrink_to(bytes);
            return Ok(());
        }
        let grown = self.state.account.memory().try_grow(&mut self.memory, bytes);
        grown.map_err(|error| codes::error(&error))
    }
}

/// The limits of a batch.
#[derive(Clone, Copy)]
struct Limits {
    documents: usize,
    bytes: usize,
}

impl Query {
    async fn batch(&mut self, scope: &ReadScope, language: &Context, limits: Limits) -> Result<Batch> {
        let mut batch = Batch::default();
        let (mut bytes, is_by_id) = (0_usize, self.documents.matches().ids().is_some());
        self.documents.want(self.wanted(limits));
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
                self.kept = Some(document);
                break;
            }
            batch.documents.push(shaped);
            self.left = self.left.map(|left| left - 1);
        }
        batch.is_last |= self.left == Some(0);
        self.documents.rest();
        Ok(batch)
    }

    /// How many documents the batch needs, those that are skipped included. `None`: as many as there are bytes for.
    fn wanted(&self, limits: Limits) -> Option<u64> {
        let of_batch = match limits.documents {
            usize::MAX => None,
            documents => Some(documents as u64),
        };
        let least = match (of_batch, self.left) {
            (Some(batch), Some(left)) => Some(batch.min(left)),
            (batch, left) => batch.or(left),
        };
        least.map(|documents| documents.saturating_add(self.skip))
    }

    async fn next(&mut self, scope: &ReadScope, language: &Context) -> Result<Option<StoredDocument>> {
        if let Some(kept) = self.kept.take()
            && self.documents.matches().is_live(scope, &kept).await?
        {
            return Ok(Some(kept));
        }
        while self.skip > 0 {
            if self.documents.next(scope, language).await?.is_none() {
                return Ok(None);
            }
            self.skip -= 1;
        }
        self.documents.next(scope, language).await
    }
}
