//! `…/export`: the live items of a container as lines of JSON, made page by page while they are sent.

use std::sync::Arc;

use bolide_core::{Account, Container, FeedPage, ReadFeed, ScanScope};
use bolide_model::{Result, limits};
use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;

use super::Admin;
use crate::request_body::{MEMORY_PATIENCE, bound};
use crate::wire::{Payload, Reply, headers};

/// Items of one page; small enough that a page of large items stays in memory easily.
const PAGE_ITEMS: usize = 500;

/// What a page takes at most: its items, and their lines.
const PAGE_BYTES: usize = 2 * (limits::PAGE_BYTES + limits::ITEM_BYTES);

/// Where an export stands.
enum Place {
    Page(Option<String>),
    End,
}

/// Answers with the items. Pages take turns, so that many exports take no more memory than a few.
pub(super) async fn answer(admin: &Admin<'_>, container: &Arc<Container>) -> Result<Reply> {
    let (account, turns) = (admin.state.account.clone(), admin.state.exports.clone());
    let container = container.clone();
    let pages = stream::try_unfold(Place::Page(None), move |place| {
        let (account, container, turns) = (account.clone(), container.clone(), turns.clone());
        async move {
            let Place::Page(continuation) = place else {
                return Ok(None);
            };
            let _turn = turns.acquire().await.expect("it is never closed");
            let (lines, next) = page(&account, &container, continuation).await?;
            Ok(Some((lines, next.map_or(Place::End, |next| Place::Page(Some(next))))))
        }
    });
    let mut reply = Reply::empty(StatusCode::OK);
    reply.fixed(&headers::CONTENT_TYPE, "application/x-ndjson");
    reply.payload = Payload::Pages(Box::pin(pages));
    Ok(reply)
}

async fn page(
    account: &Account,
    container: &Arc<Container>,
    continuation: Option<String>,
) -> Result<(Bytes, Option<String>)> {
    let mut share = account
        .memory()
        .take(PAGE_BYTES.min(account.memory().longest_share()), MEMORY_PATIENCE)
        .await?;
    // Every page is judged when it is made, as any other feed's (TTL-247).
    let ctx = account.begin_admin().await?;
    let read = ReadFeed {
        scope: ScanScope::default(),
        max_items: Some(PAGE_ITEMS),
        continuation,
    };
    let answer = account
        .read_feed(&ctx, container, &read)
        .await
        .map_err(|refusal| refusal.error)?;
    let FeedPage {
        items,
        continuation,
        memory: _memory,
    } = answer.value;
    let lines = account
        .aside(move || {
            let mut lines = Vec::new();
            for item in &items {
                lines.extend_from_slice(&item.to_json());
                lines.push(b'\n');
            }
            lines
        })
        .await?;
    share.shrink_to(lines.len());
    Ok((bound(lines.into(), Some(share)), continuation))
}
