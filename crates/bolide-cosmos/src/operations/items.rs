//! Items: create, upsert, read, replace, patch, delete (cosmos-rest §5).

use std::sync::Arc;

use bolide_core::{
    ChargedResult, Container, CreateItem, DeleteItem, ItemRead, ItemWritten, PatchItem, ReadItem, Response,
};
use bolide_core::{Cost, ItemTarget, ItemWrite, ReplaceItem, StoredItem, TriggeredWrite, UpsertItem};
use bolide_model::document::{Document, Patch};
use bolide_model::names::refuse_backslash;
use bolide_model::{Error, ErrorKind, Result};
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::data_plane::map;
use super::{if_match, if_none_match};
use crate::addressing;
use crate::request::Call;
use crate::wire::{Payload, Reply, binary_json, headers, scope};

pub(super) async fn create(call: &Call<'_>, container: &Arc<Container>) -> ChargedResult<Reply> {
    if headers::names_triggers(call.headers()) {
        return triggered(call, container, ItemWrite::Create(document(call).await?), None).await;
    }
    let create = CreateItem {
        document: document(call).await?,
        partition_key: scope::partition_key(call.headers(), container)?,
    };
    let response = call.account().create_item(&call.ctx, container, create).await?;
    Ok(written(call, response))
}

pub(super) async fn upsert(call: &Call<'_>, container: &Arc<Container>) -> ChargedResult<Reply> {
    if headers::names_triggers(call.headers()) {
        let if_match = if_match(call.headers())?;
        return triggered(call, container, ItemWrite::Upsert(document(call).await?), if_match).await;
    }
    let upsert = UpsertItem {
        document: document(call).await?,
        partition_key: scope::partition_key(call.headers(), container)?,
        if_match: if_match(call.headers())?,
    };
    let response = call.account().upsert_item(&call.ctx, container, upsert).await?;
    Ok(written(call, response))
}

/// Replaces an item. A missing item gives a 404 whatever is wrong with the body, as in the service.
pub(super) async fn replace(call: &Call<'_>, container: &Arc<Container>) -> ChargedResult<Reply> {
    let answered = try_replace(call, container).await;
    match answered {
        Err(refusal) if is_of_body(&refusal.error) => {
            let read = ReadItem {
                target: addressing::item(container, &call.route.leaf)?,
                partition_key: scope::one_key(call.headers(), container)?,
                if_none_match: None,
            };
            match call.account().read_item(&call.ctx, container, &read).await {
                Err(missing) if missing.error.kind == ErrorKind::NotFound => Err(missing),
                _ => Err(refusal),
            }
        }
        answered => answered,
    }
}

/// Whether a replace was refused because of its body.
fn is_of_body(error: &Error) -> bool {
    matches!(
        error.kind,
        ErrorKind::BadRequest | ErrorKind::PartitionKeyMismatch | ErrorKind::PartitionKeyMissing | ErrorKind::TooLarge
    )
}

async fn try_replace(call: &Call<'_>, container: &Arc<Container>) -> ChargedResult<Reply> {
    if headers::names_triggers(call.headers()) {
        let write = ItemWrite::Replace(addressing::item(container, &call.route.leaf)?, document(call).await?);
        return triggered(call, container, write, if_match(call.headers())?).await;
    }
    let replace = ReplaceItem {
        target: addressing::item(container, &call.route.leaf)?,
        partition_key: scope::one_key(call.headers(), container)?,
        document: document(call).await?,
        if_match: if_match(call.headers())?,
    };
    if call.sender.is_for_one_item() {
        check_keeps_id(call, container, &replace).await?;
    }
    let response = call.account().replace_item(&call.ctx, container, replace).await?;
    Ok(written(call, response))
}

/// Refuses to change the id of an item: a token for one item must not replace others. (A patch never changes an id.)
async fn check_keeps_id(call: &Call<'_>, container: &Arc<Container>, replace: &ReplaceItem) -> ChargedResult<()> {
    let read;
    let id = match &replace.target {
        ItemTarget::Id(id) => id.as_str(),
        ItemTarget::Rid(_) => {
            let target = ReadItem {
                target: replace.target.clone(),
                partition_key: replace.partition_key.clone(),
                if_none_match: None,
            };
            read = call.account().read_item(&call.ctx, container, &target).await?.value;
            match &read {
                ItemRead::Found(item) => item.id(),
                ItemRead::NotModified { .. } => {
                    return Err(Error::internal("an unconditional read was conditional").into());
                }
            }
        }
    };
    if replace.document.id()? == id {
        return Ok(Response {
            value: (),
            cost: Cost::default(),
        });
    }
    let message = "the permission is for one item, whose id a replace has to keep";
    Err(Error::new(ErrorKind::Forbidden, message).into())
}

pub(super) async fn patch(call: &Call<'_>, container: &Arc<Container>) -> ChargedResult<Reply> {
    if headers::names_triggers(call.headers()) {
        let patch = patch_of(call).await?;
        let write = ItemWrite::Patch(addressing::item(container, &call.route.leaf)?, patch);
        return triggered(call, container, write, if_match(call.headers())?).await;
    }
    let patch = PatchItem {
        target: addressing::item(container, &call.route.leaf)?,
        partition_key: scope::one_key(call.headers(), container)?,
        patch: patch_of(call).await?,
        if_match: if_match(call.headers())?,
    };
    let response = call.account().patch_item(&call.ctx, container, patch).await?;
    Ok(written(call, response))
}

pub(super) async fn delete(call: &Call<'_>, container: &Arc<Container>) -> ChargedResult<Reply> {
    if headers::names_triggers(call.headers()) {
        let write = ItemWrite::Delete(addressing::item(container, &call.route.leaf)?);
        return triggered(call, container, write, if_match(call.headers())?).await;
    }
    let delete = DeleteItem {
        target: addressing::item(container, &call.route.leaf)?,
        partition_key: scope::one_key(call.headers(), container)?,
        if_match: if_match(call.headers())?,
    };
    let response = call.account().delete_item(&call.ctx, container, delete).await?;
    Ok(map(response, |()| Reply::empty(StatusCode::NO_CONTENT)))
}

/// Deletes all items of a partition key (cosmos-rest §5.6). The remaining work in the background is not visible to clients.
pub(super) async fn delete_all(call: &Call<'_>, container: &Arc<Container>) -> ChargedResult<Reply> {
    let key = scope::one_key(call.headers(), container)?;
    let response = call.account().delete_all_of_key(&call.ctx, container, &key).await?;
    Ok(map(response, |()| {
        let mut reply = Reply::empty(StatusCode::OK);
        reply.fixed(&headers::KEY_DELETE_PENDING, "true");
        reply
    }))
}

pub(super) async fn read(call: &Call<'_>, container: &Arc<Container>) -> ChargedResult<Reply> {
    let read = ReadItem {
        target: addressing::item(container, &call.route.leaf)?,
        partition_key: scope::one_key(call.headers(), container)?,
        if_none_match: if_none_match(call.headers())?,
    };
    let response = call.account().read_item(&call.ctx, container, &read).await?;
    Ok(map(response, |read| match read {
        ItemRead::Found(item) => item_reply(call, StatusCode::OK, &item),
        ItemRead::NotModified { etag } => Reply::empty(StatusCode::NOT_MODIFIED).version(etag),
    }))
}

async fn document(call: &Call<'_>) -> Result<Document> {
    let document = call
        .decoded(|| Document::parse(&binary_json::to_text(call.body)?))
        .await?;
    check_id(call.headers(), &document)?;
    Ok(document)
}

/// Refuses an id that clients of older versions cannot use.
pub(super) fn check_id(headers: &HeaderMap, document: &Document) -> Result<()> {
    match document.value().get("id").and_then(Value::as_str) {
        Some(id) if headers::knows_no_backslash(headers) => refuse_backslash(id),
        _ => Ok(()),
    }
}

async fn patch_of(call: &Call<'_>) -> Result<Patch> {
    call.decoded(|| Patch::parse(&binary_json::to_text(call.body)?)).await
}

/// Refuses triggers in a batch, which must not succeed without running them: only writes of single items may name triggers.
pub(super) fn refuse_triggers(headers: &HeaderMap) -> Result<()> {
    if headers::names_triggers(headers) {
        return Err(Error::bad_request("triggers cannot be included in a batch"));
    }
    Ok(())
}

/// The triggers in a header, separated by commas.
fn triggers(headers: &HeaderMap, name: &http::HeaderName) -> Result<Vec<String>> {
    let names = headers::non_empty(headers, name)?.unwrap_or_default();
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    Ok(names.map(str::to_owned).collect())
}

/// A write with the triggers in its headers (cosmos-rest §11.4).
async fn triggered(
    call: &Call<'_>,
    container: &Arc<Container>,
    write: ItemWrite,
    if_match: Option<String>,
) -> ChargedResult<Reply> {
    let is_new = matches!(write, ItemWrite::Create(_) | ItemWrite::Upsert(_));
    let partition_key = if is_new {
        scope::partition_key(call.headers(), container)?
    } else {
        Some(scope::one_key(call.headers(), container)?)
    };
    let triggered = TriggeredWrite {
        before: triggers(call.headers(), &headers::PRE_TRIGGERS)?,
        after: triggers(call.headers(), &headers::POST_TRIGGERS)?,
        partition_key,
        write,
        if_match,
    };
    let response = call
        .account()
        .write_with_triggers(&call.ctx, container, triggered)
        .await?;
    let Response { value, cost } = response;
    let Some(item) = value.written else {
        let value = Reply::empty(StatusCode::NO_CONTENT);
        return Ok(Response { value, cost });
    };
    let mut response = written(call, Response { value: item, cost });
    if let Some(body) = value.body
        && !headers::prefers_minimal(call.headers())
    {
        response.value.payload = Payload::Whole(body.into());
    }
    Ok(response)
}

fn written(call: &Call<'_>, response: Response<ItemWritten>) -> Response<Reply> {
    let is_minimal = headers::prefers_minimal(call.headers());
    map(response, |written| {
        let status = if written.created {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        };
        let reply = item_reply(call, status, &written.item);
        if is_minimal { reply.without_body() } else { reply }
    })
}

fn item_reply(call: &Call<'_>, status: StatusCode, item: &StoredItem) -> Reply {
    let json = if headers::flag(call.headers(), &headers::EXCLUDE_SYSTEM_PROPERTIES) {
        item.to_json_without_links()
    } else {
        item.to_json()
    };
    let mut reply = Reply::json(status, json).version(item.etag());
    for name in [&headers::ITEM_LSN, &headers::ITEM_LLSN] {
        reply.number(name, item.lsn().0);
    }
    reply
}
