//! The change feed (cosmos-rest §8): the latest version of each item, or all versions and deletes.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use bolide_core::{
    ChangeKind, ChangePage, ChargedResult, Container, FeedStart, ItemChange, ReadChanges, Response, StoredItem,
    VersionPage,
};
use bolide_model::account_key::Access;
use bolide_model::document::Document;
use bolide_model::partition_key::{Component, PartitionKeyDefinition};
use bolide_model::{Error, Result, UnixSeconds};
use bytes::Bytes;
use http::header::{IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::feeds;
use crate::request::Call;
use crate::request::Sender;
use crate::wire::{Reply, headers, scope};

/// The API version whose rows are envelopes.
const FIRST_VERSION_WITH_ENVELOPES: &str = "2021-09-15";

pub(super) async fn read(call: &Call<'_>, container: &Arc<Container>) -> ChargedResult<Reply> {
    let read = ReadChanges {
        scope: scope::scope(call.headers(), container)?,
        start: start(call.headers())?,
        max_items: scope::max_items(call.headers())?,
    };
    let mode = headers::non_empty(call.headers(), &headers::A_IM)?.unwrap_or_default();
    if mode.eq_ignore_ascii_case(headers::ALL_VERSIONS) {
        return all_versions(call, container, &read).await;
    }
    let format = headers::non_empty(call.headers(), &headers::FEED_WIRE_FORMAT)?;
    let row = if format == Some(FIRST_VERSION_WITH_ENVELOPES) {
        enveloped
    } else {
        StoredItem::to_json_with_lsn
    };
    let response = call.account().change_feed(&call.ctx, container, &read).await?;
    let ChangePage {
        items,
        continuation,
        memory: _memory,
    } = response.value;
    let container = container.clone();
    let page = feeds::written(call, items, StoredItem::document_bytes, move |items| {
        reply(&container, items.iter().map(row).collect(), &continuation)
    });
    Ok(Response {
        value: page.await?,
        cost: response.cost,
    })
}

async fn all_versions(call: &Call<'_>, container: &Arc<Container>, read: &ReadChanges) -> ChargedResult<Reply> {
    let shows_previous = headers::flag(call.headers(), &headers::PREVIOUS_IMAGES);
    // A client with read rights must not make writes more expensive, and the feed of a collection is refused.
    let may_begin = call.sender == Sender::Key(Access::Full) && container.collection().is_none();
    if read.start == FeedStart::Now && may_begin {
        call.account().keep_all_versions(container).await?;
    }
    let response = call.account().all_versions(&call.ctx, container, read).await?;
    let VersionPage {
        changes,
        continuation,
        memory: _memory,
    } = response.value;
    let container = container.clone();
    let page = feeds::written(call, changes, change_bytes, move |changes| {
        let definition = &container.properties().partition_key;
        let rows = changes
            .iter()
            .map(|change| version_row(change, definition, shows_previous));
        let rows = rows.collect::<Result<Vec<Bytes>>>()?;
        Ok(reply(&container, rows, &continuation))
    });
    let page: Result<Reply> = page.await?;
    Ok(Response {
        value: page?,
        cost: response.cost,
    })
}

fn change_bytes(change: &ItemChange) -> usize {
    let versions = [&change.current, &change.previous];
    versions.into_iter().flatten().map(StoredItem::document_bytes).sum()
}

fn reply(container: &Container, rows: Vec<Bytes>, continuation: &str) -> Reply {
    let reply = if rows.is_empty() {
        // .NET also reads the item count and the continuation from this response.
        let mut reply = Reply::empty(StatusCode::NOT_MODIFIED);
        reply.number(&headers::ITEM_COUNT, 0);
        reply
    } else {
        feeds::documents(container, &rows.join(&b','), rows.len(), None)
    };
    reply.etag(format!("\"{continuation}\""))
}

/// The start of the feed (cosmos-rest §8.1): a continuation takes precedence over a time.
fn start(headers: &HeaderMap) -> Result<FeedStart> {
    if let Some(etag) = headers::non_empty(headers, &IF_NONE_MATCH)? {
        return Ok(match etag.trim_matches('"') {
            "*" => FeedStart::Now,
            continuation => FeedStart::After(continuation.to_owned()),
        });
    }
    let Some(since) = headers::non_empty(headers, &IF_MODIFIED_SINCE)? else {
        return Ok(FeedStart::Beginning);
    };
    // Go writes UTC, which equals GMT.
    let gmt = since.strip_suffix("UTC").map(|date| format!("{date}GMT"));
    let since = httpdate::parse_http_date(gmt.as_deref().unwrap_or(since)).map_err(|_| {
        Error::bad_request(format!(
            "header `if-modified-since` is not an RFC 1123 date. value=`{since}`"
        ))
    })?;
    let seconds = since.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Ok(FeedStart::Time(UnixSeconds(i64::try_from(seconds).unwrap_or(i64::MAX))))
}

fn enveloped(item: &StoredItem) -> Bytes {
    let json = item.to_json();
    let mut row = Vec::with_capacity(json.len() + 64);
    row.extend_from_slice(b"{\"current\":");
    row.extend_from_slice(&json);
    row.extend_from_slice(
        format!(
            ",\"metadata\":{{\"lsn\":{},\"crts\":{}}}}}",
            item.lsn(),
            item.last_modified().0
        )
        .as_bytes(),
    );
    row.into()
}

/// A row of the all-versions mode (cosmos-rest §8.4, TTL-250). The service shows no previous version; clients can request it.
fn version_row(change: &ItemChange, definition: &PartitionKeyDefinition, shows_previous: bool) -> Result<Bytes> {
    let mut metadata = json!({
        "operationType": match change.kind {
            ChangeKind::Create => "create",
            ChangeKind::Replace => "replace",
            ChangeKind::Delete | ChangeKind::Expire => "delete",
        },
        "lsn": change.lsn.0,
        "crts": change.crts.0,
    });
    if let Some(previous) = &change.previous {
        metadata["previousImageLSN"] = previous.lsn().0.into();
        if change.current.is_none() {
            metadata["id"] = previous.id().into();
            metadata["partitionKey"] = partition_key(&previous.to_json(), definition)?;
        }
    }
    if change.kind == ChangeKind::Expire {
        // Only in this case: clients check that it exists, not its value.
        metadata["timeToLiveExpired"] = true.into();
    }
    let current = change
        .current
        .as_ref()
        .map_or(Bytes::from_static(b"{}"), StoredItem::to_json);
    let mut row = Vec::with_capacity(current.len() + 256);
    row.extend_from_slice(b"{\"current\":");
    row.extend_from_slice(&current);
    row.extend_from_slice(b",\"metadata\":");
    row.extend_from_slice(metadata.to_string().as_bytes());
    if let Some(previous) = change.previous.as_ref().filter(|_| shows_previous) {
        row.extend_from_slice(b",\"previous\":");
        row.extend_from_slice(&previous.to_json());
    }
    row.push(b'}');
    Ok(row.into())
}

/// The partition key of a deleted item as .NET reads it: an object of property name and value. Undefined values are left out.
fn partition_key(item: &[u8], definition: &PartitionKeyDefinition) -> Result<Value> {
    let key = Document::parse_shown(item)?.partition_key(definition);
    let members = definition
        .paths
        .iter()
        .zip(&key.0)
        .filter(|(_, component)| **component != Component::Undefined)
        .map(|(path, component)| (path.names().join("/"), component.to_json()));
    Ok(Value::Object(members.collect()))
}

#[cfg(test)]
mod tests;
