//! The `cursor` field of replies, and the cursor that it announces.

use std::time::Duration;

use bolide_core::RequestContext;
use bolide_mql::{Code, Error, Result};
use bson::raw::{CStr, cstr};
use bson::{RawArrayBuf, RawDocumentBuf, Timestamp, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use crate::cursors::{Batch, BatchRequest, Cursor, CursorSource};
use crate::limits;
use crate::namespace::Namespace;
use crate::operations::time_limit_exceeded;

/// How the first batch of a cursor is made.
#[derive(Debug, Clone, Copy, Default)]
pub struct FirstBatch {
    /// `batchSize`; `None`: 101 documents.
    pub max_documents: Option<usize>,
    /// Whether the cursor ends with it, even if there are more results: `singleBatch`.
    pub is_single: bool,
    /// Whether the cursor never times out: `noCursorTimeout`.
    pub has_no_timeout: bool,
    /// Whether what the first batch leaves of `maxTimeMS` limits all further ones. A change stream waits in each for as long as its client says.
    pub keeps_time_limit: bool,
    /// The time of the snapshot that the query reads, outside of a transaction.
    pub snapshot: Option<Timestamp>,
    /// Whether it is a change stream.
    pub is_change_stream: bool,
}

impl FirstBatch {
    /// Reads the argument `cursor: {batchSize?}`.
    ///
    /// # Errors
    /// Of its fields.
    pub fn read_options(arguments: &mut Arguments<'_>) -> Result<FirstBatch> {
        let Some(options) = arguments.document("cursor")? else {
            return Ok(FirstBatch::default());
        };
        let mut fields = Arguments::of_document("cursor", options)?;
        let size = fields.non_negative("batchSize")?;
        fields.finish()?;
        Ok(FirstBatch {
            max_documents: size.map(|size| usize::try_from(size).unwrap_or(usize::MAX)),
            ..FirstBatch::default()
        })
    }
}

/// Makes the first batch of a query, and keeps the cursor if there is more.
///
/// # Errors
/// Errors of the query; too many open cursors.
pub async fn first(
    context: &CommandContext<'_>,
    now: RequestContext,
    namespace: Namespace,
    mut source: Box<dyn CursorSource>,
    options: FirstBatch,
) -> Result<Reply> {
    let request = BatchRequest {
        now,
        max_documents: Some(options.max_documents.unwrap_or(limits::FIRST_BATCH_DOCUMENTS)),
        max_bytes: limits::BATCH_BYTES,
        max_wait: None,
        interrupt: context.interrupt(),
        consumed: context.consumed.clone(),
    };
    let batch = source.next_batch(&request).await?;
    let text = namespace.to_string();
    let id = if batch.is_last || options.is_single {
        0
    } else {
        context.state.cursors.open(Cursor {
            namespace,
            user: context.user.clone(),
            session: context.global.session.clone(),
            has_no_timeout: options.has_no_timeout,
            time_left: context
                .deadline
                .filter(|_| options.keeps_time_limit)
                .map(|deadline| deadline.saturating_duration_since(context.state.monotonic().now())),
            is_change_stream: options.is_change_stream,
            source,
        })?
    };
    Ok(reply(id, &text, (cstr!("firstBatch"), batch), options.snapshot))
}

/// Makes the next batch of an open cursor.
///
/// # Errors
/// As [`crate::cursors::Cursors::take`]; errors of the query.
pub async fn next(
    context: &CommandContext<'_>,
    id: i64,
    namespace: &Namespace,
    max_documents: Option<usize>,
    max_wait: Option<Duration>,
) -> Result<Reply> {
    let now = context.begin().await?;
    let cursors = &context.state.cursors;
    let session = context.global.session.as_ref();
    let mut cursor = cursors.take(id, namespace, context.user.as_deref(), session)?;
    if let Some(code) = context.state.fail_points.get_more.take() {
        return Err(Error::new(code, "Hit the 'failGetMoreAfterCursorCheckout' failpoint"));
    }
    let begun = context.state.monotonic().now();
    let time_left = cursor.time_left().copied();
    if time_left.is_some() && context.state.fail_points.always_late.take().is_some() {
        return Err(time_limit_exceeded());
    }
    let request = BatchRequest {
        now,
        max_documents,
        max_bytes: limits::BATCH_BYTES,
        max_wait,
        interrupt: context.running.interrupt(time_left.map(|left| begun + left)),
        consumed: context.consumed.clone(),
    };
    let killed = cursor.killed();
    let batch = tokio::select! {
        biased;
        batch = cursor.next_batch(&request) => batch?,
        () = killed => return Err(Error::new(Code::CURSOR_KILLED, "the cursor was killed")),
    };
    if let Some(left) = cursor.time_left() {
        *left = left.saturating_sub(context.state.monotonic().since(begun));
    }
    let is_open = !batch.is_last && cursor.put_back();
    let id = if is_open { id } else { 0 };
    Ok(reply(id, &namespace.to_string(), (cstr!("nextBatch"), batch), None))
}

fn reply(id: i64, namespace: &str, (name, batch): (&CStr, Batch), snapshot: Option<Timestamp>) -> Reply {
    let mut documents = RawArrayBuf::new();
    for document in batch.documents {
        documents.push(document);
    }
    let mut cursor = RawDocumentBuf::new();
    cursor.append(name, documents);
    if let Some(token) = batch.resume_token {
        cursor.append(cstr!("postBatchResumeToken"), token);
    }
    cursor.append(cstr!("id"), id);
    cursor.append(cstr!("ns"), namespace);
    if let Some(snapshot) = snapshot {
        cursor.append(cstr!("atClusterTime"), snapshot);
    }
    rawdoc! { "cursor": cursor }.into()
}

/// Results that are all known already.
pub struct Known {
    rest: std::vec::IntoIter<RawDocumentBuf>,
}

impl Known {
    /// A source of these documents.
    pub fn new(documents: Vec<RawDocumentBuf>) -> Known {
        Known {
            rest: documents.into_iter(),
        }
    }
}

impl CursorSource for Known {
    fn next_batch<'a>(&'a mut self, request: &'a BatchRequest) -> futures_util::future::BoxFuture<'a, Result<Batch>> {
        Box::pin(async move {
            let max = request.max_documents.unwrap_or(usize::MAX);
            let mut batch = Batch::default();
            let mut bytes = 0_usize;
            while batch.documents.len() < max
                && let Some(next) = self.rest.as_slice().first()
            {
                bytes = bytes.saturating_add(next.as_bytes().len());
                if bytes > request.max_bytes && !batch.documents.is_empty() {
                    break;
                }
                batch.documents.extend(self.rest.next());
            }
            batch.is_last = self.rest.as_slice().is_empty();
            Ok(batch)
        })
    }
}

#[cfg(test)]
mod tests;
