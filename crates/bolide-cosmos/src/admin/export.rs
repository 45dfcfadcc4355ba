//! `…/export`: the live items of a container, or documents of a collection, as lines of JSON, made page by page while they are sent.

use std::sync::Arc;

use bolide_core::{Account, Container, ExportPosition};
use bolide_model::{Result, limits};
use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;

use super::Admin;
use crate::request_body::{MEMORY_TIMEOUT, bound};
use crate::wire::{Payload, Reply, headers};

/// Maximum memory of a page of items: these, and their lines.
const ITEMS_BYTES: usize = 2 * (limits::PAGE_BYTES + limits::ITEM_BYTES);

/// The same for documents of a collection, which may have 16 MiB each.
const DOCUMENTS_BYTES: usize = 64 * 1024 * 1024;

/// Returns the items. Pages need a permit, so that many exports use no more memory than a few.
pub(super) async fn answer(admin: &Admin<'_>, container: &Arc<Container>) -> Result<Reply> {
    let (account, turns) = (admin.state.account.clone(), admin.state.exports.clone());
    let container = container.clone();
    let start = Some(ExportPosition::start(&container));
    let pages = stream::try_unfold(start, move |position| {
        let (account, container, turns) = (account.clone(), container.clone(), turns.clone());
        async move {
            let Some(position) = position else {
                return Ok(None);
            };
            let _turn = turns.acquire().await.expect("it is never closed");
            page(&account, &container, position).await.map(Some)
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
    position: ExportPosition,
) -> Result<(Bytes, Option<ExportPosition>)> {
    let bytes = match container.collection() {
        None => ITEMS_BYTES,
        Some(_) => DOCUMENTS_BYTES,
    };
    let bytes = bytes.min(account.memory().longest_share());
    let mut share = account.memory().take(bytes, MEMORY_TIMEOUT).await?;
    // Every page uses the time when it is made, as in any other feed (TTL-247).
    let ctx = account.begin_admin().await?;
    let page = account.export(&ctx, container, position).await?;
    share.shrink_to(page.lines.len());
    Ok((bound(page.lines.into(), Some(share)), page.next))
}
