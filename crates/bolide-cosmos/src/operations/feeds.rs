//! `GET …/docs`: all items, page by page (cosmos-rest §5.7).

use std::sync::Arc;

use bolide_core::{Answered, Container, FeedPage, ReadFeed};
use bolide_model::Result;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use super::data_plane::map;
use crate::service::Call;
use crate::wire::{Reply, envelope, headers, scope};

pub(super) async fn read(call: &Call<'_>, container: &Arc<Container>) -> Answered<Reply> {
    let read = ReadFeed {
        scope: scope::scope(call.headers())?,
        max_items: scope::max_items(call.headers())?,
        continuation: continuation(call.headers())?,
    };
    let answer = call.account().read_feed(&call.ctx, container, &read).await?;
    Ok(map(answer, |FeedPage { items, continuation }| {
        let rows: Vec<Bytes> = items.iter().map(|item| item.to_json()).collect();
        documents(container, &rows.join(&b','), rows.len(), continuation)
    }))
}

/// Where the last page ended.
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
