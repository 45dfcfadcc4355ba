//! `GET …/docs`: all items, page by page (cosmos-rest §5.7).

use std::sync::Arc;

use bolide_core::{ChargedResult, Container, FeedPage, ReadFeed, Response, StoredItem};
use bolide_model::Result;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use crate::request::Call;
use crate::wire::{Reply, envelope, headers, scope};

/// Maximum bytes of rows that are written on the threads of connections.
const INLINE_BYTES: usize = 128 * 1024;

pub(super) async fn read(call: &Call<'_>, container: &Arc<Container>) -> ChargedResult<Reply> {
    let read = ReadFeed {
        scope: scope::scope(call.headers(), container)?,
        max_items: scope::max_items(call.headers())?,
        continuation: continuation(call.headers())?,
    };
    let response = call.account().read_feed(&call.ctx, container, &read).await?;
    let FeedPage {
        items,
        continuation,
        memory,
    } = response.value;
    let (count, container) = (items.len(), container.clone());
    let page = written(call, items, StoredItem::document_bytes, move |items| {
        let rows: Vec<Bytes> = items.iter().map(StoredItem::to_json).collect();
        drop((items, memory));
        documents(&container, &rows.join(&b','), count, continuation)
    });
    Ok(Response {
        value: page.await?,
        cost: response.cost,
    })
}

/// Writes the rows of a page; a large one on the threads for queries, because it would delay other requests on the threads of connections.
pub(super) async fn written<R: Send + 'static, T: Send + 'static>(
    call: &Call<'_>,
    rows: Vec<R>,
    bytes: fn(&R) -> usize,
    write: impl FnOnce(Vec<R>) -> T + Send + 'static,
) -> Result<T> {
    if rows.iter().map(bytes).sum::<usize>() <= INLINE_BYTES {
        return Ok(write(rows));
    }
    call.account().aside(move || write(rows)).await
}

/// The end of the previous page.
pub(super) fn continuation(headers: &HeaderMap) -> Result<Option<String>> {
    Ok(headers::non_empty(headers, &headers::CONTINUATION)?.map(str::to_owned))
}

/// A page of items or of a query's rows: JSON texts with commas between them.
pub(super) fn documents(container: &Container, rows: &[u8], count: usize, continuation: Option<String>) -> Reply {
    let mut reply = Reply::json(
        StatusCode::OK,
        envelope(&container.rid().to_string(), "Documents", rows, count),
    );
    reply.number(&headers::ITEM_COUNT, count as u64);
    if let Some(continuation) = continuation {
        reply.text(&headers::CONTINUATION, continuation);
    }
    reply
}
