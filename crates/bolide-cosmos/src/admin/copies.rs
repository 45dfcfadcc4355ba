//! `/_bolide/copies` and `/_bolide/seal`: what `bolide copy` asks to move the whole store while it is in use, row by row.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bolide_core::{CopyId, CopyPage, PagePosition, PartitionId, SealedPartition};
use bolide_model::{Error, Result};
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::{Admin, count, ok, segments_of};
use crate::request_body::{MEMORY_TIMEOUT, bound};
use crate::wire::{Payload, Reply, headers};

/// Maximum memory of a page: its rows as the engine returns them, and their bytes; the last row may be a document of 16 MiB.
const PAGE_BYTES: usize = 36 * 1024 * 1024;

/// Begins a copy.
pub(super) async fn begin(admin: &Admin<'_>) -> Result<Reply> {
    let begun = admin.state.account.begin_copy().await?;
    Ok(ok(&json!({"id": begun.id.to_string(), "timeMs": begun.time.0})))
}

/// Gives a copy up.
pub(super) async fn end(admin: &Admin<'_>) -> Result<Reply> {
    admin.state.account.end_copy(id(admin)?).await?;
    Ok(ok(&json!({})))
}

/// Returns the partitions to copy. From the first time on their changes are recorded.
pub(super) async fn partitions(admin: &Admin<'_>) -> Result<Reply> {
    let partitions = admin.state.account.copied_partitions(id(admin)?).await?;
    let partitions: Vec<u64> = partitions.iter().map(|partition| partition.0).collect();
    Ok(ok(&json!({"partitions": partitions})))
}

/// Returns a page of all rows of a partition.
pub(super) async fn rows(admin: &Admin<'_>) -> Result<Reply> {
    let (id, members) = (id(admin)?, admin.members()?);
    let partition = partition(&members)?;
    let space = count(&members, "space")?.unwrap_or(u64::MAX);
    let position = PagePosition::new(space, from(&members)?)?;
    page(admin, async || {
        admin.state.account.copied_rows(id, partition, position.clone()).await
    })
    .await
}

/// Returns rows of a partition that were changed since this was asked last.
pub(super) async fn changes(admin: &Admin<'_>) -> Result<Reply> {
    let (id, members) = (id(admin)?, admin.members()?);
    let partition = partition(&members)?;
    page(admin, async || admin.state.account.copied_changes(id, partition).await).await
}

/// Refuses writes of all servers from now on, for the length of a lease; or lengthens it.
pub(super) async fn seal(admin: &Admin<'_>) -> Result<Reply> {
    let (id, members) = (id(admin)?, admin.members()?);
    if flag(&members, "renew")? {
        admin.state.account.renew_seal(id).await?;
        return Ok(ok(&json!({})));
    }
    Ok(ok(&shown(&admin.state.account.seal_for_copy(id).await?)))
}

/// Ends a copy of which everything is at its target.
pub(super) async fn finish(admin: &Admin<'_>) -> Result<Reply> {
    let (id, members) = (id(admin)?, admin.members()?);
    let unseal = flag(&members, "unseal")?;
    Ok(ok(&shown(&admin.state.account.finish_copy(id, unseal).await?)))
}

/// Shows whether writes are refused.
pub(super) async fn show_seal(admin: &Admin<'_>) -> Result<Reply> {
    let seal = admin.state.account.seal().await?;
    Ok(ok(&match seal {
        None => json!({"sealed": false}),
        Some(seal) => json!({
            "sealed": true,
            "moved": seal.until.is_none(),
            "copy": seal.copy.to_string(),
            "untilMs": seal.until.map(|until| until.0),
        }),
    }))
}

/// Lets the store be written again.
pub(super) async fn unseal(admin: &Admin<'_>) -> Result<Reply> {
    admin.state.account.unseal().await?;
    Ok(ok(&json!({"sealed": false})))
}

/// Answers with the bytes of a page, within the memory of all requests.
async fn page(admin: &Admin<'_>, read: impl AsyncFnOnce() -> Result<CopyPage>) -> Result<Reply> {
    let memory = admin.state.account.memory();
    let mut share = memory
        .take(PAGE_BYTES.min(memory.longest_share()), MEMORY_TIMEOUT)
        .await?;
    let bytes = read().await?.encode();
    share.shrink_to(bytes.len());
    let mut reply = Reply::empty(StatusCode::OK);
    reply.fixed(&headers::CONTENT_TYPE, "application/octet-stream");
    reply.payload = Payload::Whole(bound(bytes, Some(share)));
    Ok(reply)
}

fn shown(partitions: &[SealedPartition]) -> Value {
    let partitions = partitions.iter().map(|partition| {
        json!({
            "id": partition.id.0,
            "lsn": partition.head.lsn.0,
            "stampMs": partition.head.stamp.0,
            "edition": partition.head.edition.0,
            "items": partition.items,
        })
    });
    json!({"partitions": partitions.collect::<Vec<_>>()})
}

/// The id in the path.
fn id(admin: &Admin<'_>) -> Result<CopyId> {
    segments_of(admin.path).get(1).copied().unwrap_or_default().parse()
}

fn partition(members: &Map<String, Value>) -> Result<PartitionId> {
    let id = count(members, "partition")?;
    id.map(PartitionId)
        .ok_or_else(|| Error::bad_request("`partition` is missing"))
}

fn from(members: &Map<String, Value>) -> Result<bytes::Bytes> {
    let text = members.get("from").map_or(Some(""), Value::as_str);
    let key = text.and_then(|text| STANDARD.decode(text).ok());
    key.map(bytes::Bytes::from)
        .ok_or_else(|| Error::bad_request("`from` must be a key as base64"))
}

fn flag(members: &Map<String, Value>, name: &str) -> Result<bool> {
    match members.get(name) {
        None => Ok(false),
        Some(Value::Bool(is_set)) => Ok(*is_set),
        Some(_) => Err(Error::bad_request(format!("`{name}` must be true or false"))),
    }
}
