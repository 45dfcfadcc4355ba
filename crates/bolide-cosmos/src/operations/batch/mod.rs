//! Transactional batch and bulk (cosmos-rest §5.8, §5.9).
//!
//! A batch is atomic: one transaction of the core. Bulk is not: its operations are carried out one after the other, independently. Both come as JSON,
//! or from .NET as rows, and the response has the same format.

mod from_wire;
mod to_wire;

use std::sync::Arc;

use bolide_core::{
    Batch, BatchOperation, BatchResponse, ChargedResult, Container, Cost, CreateItem, DeleteItem, ItemRead, ItemTarget,
    OperationDone, OperationResult, PatchItem, ReadItem, Refusal, ReplaceItem, Response, UpsertItem,
};
use bolide_model::partition_key::PartitionKey;
use bolide_model::{RequestUnits, Result};
use http::StatusCode;

use super::items;
use crate::request::Call;
use crate::session::SessionToken;
use crate::wire::{Reply, headers, scope};
use from_wire::Sent;
use to_wire::Results;

pub(super) async fn run(call: &Call<'_>, container: &Arc<Container>) -> ChargedResult<Reply> {
    items::refuse_triggers(call.headers())?;
    let mut sent = call.decoded(|| from_wire::operations(call.body)).await?;
    for sent in &mut sent {
        sent.check(|document| items::check_id(call.headers(), document));
    }
    if headers::flag(call.headers(), &headers::BATCH_ATOMIC) {
        atomic(call, container, sent).await
    } else {
        bulk(call, container, sent).await
    }
}

async fn atomic(call: &Call<'_>, container: &Arc<Container>, sent: Vec<Sent>) -> ChargedResult<Reply> {
    let partition_key = scope::one_key(call.headers(), container)?;
    let reads = |sent: &Sent| matches!(sent.operation, Ok(BatchOperation::Read { .. }));
    if sent.iter().any(reads) {
        // Read before anything is written: the position of a range only increases.
        let position = call.account().position(container, &partition_key).await?;
        SessionToken::of(call.headers())?.check(&[position])?;
    }
    let mut results = Results::new(call, &sent);
    let operations = sent
        .into_iter()
        .map(|sent| sent.operation.unwrap_or_else(|error| BatchOperation::Invalid { error }));
    let batch = Batch {
        partition_key,
        operations: operations.collect(),
        answers_written: results.answers_written(),
    };
    let Response { value, cost } = call.account().batch(&call.ctx, container, batch).await?;
    let status = match value {
        BatchResponse::Committed(done) => {
            for result in &done {
                results.done(result);
            }
            let is_spared = |result: &OperationResult| matches!(result.done, OperationDone::NotModified { .. });
            if done.iter().any(is_spared) {
                StatusCode::MULTI_STATUS
            } else {
                StatusCode::OK
            }
        }
        BatchResponse::RolledBack { at, error } => {
            results.rolled_back(at, error);
            StatusCode::MULTI_STATUS
        }
    };
    Ok(Response {
        value: results.into_reply(status),
        cost,
    })
}

async fn bulk(call: &Call<'_>, container: &Arc<Container>, sent: Vec<Sent>) -> ChargedResult<Reply> {
    let goes_on = headers::flag(call.headers(), &headers::BATCH_CONTINUE_ON_ERROR);
    let mut results = Results::new(call, &sent);
    let mut cost = Cost::default();
    for sent in sent {
        if results.has_failed() && !goes_on {
            results.failed_dependency();
            continue;
        }
        if results.is_full() {
            results.too_large();
            continue;
        }
        // Results may be large, and an operation may have nothing to wait for.
        tokio::task::yield_now().await;
        match one(call, container, sent).await {
            Ok(response) => {
                add_cost(&mut cost, response.cost);
                results.done(&response.value);
            }
            Err(refusal) => {
                results.refused(refusal.error, refusal.cost.charge);
                add_cost(&mut cost, refusal.cost);
            }
        }
    }
    let status = if results.has_failed() {
        StatusCode::MULTI_STATUS
    } else {
        StatusCode::OK
    };
    Ok(Response {
        value: results.into_reply(status),
        cost,
    })
}

/// Carries out one operation of a bulk request.
async fn one(call: &Call<'_>, container: &Arc<Container>, sent: Sent) -> ChargedResult<OperationResult> {
    let (account, ctx) = (call.account(), &call.ctx);
    let operation = sent.operation?;
    let given = own_key(call, container, sent.partition_key?)?;
    let key = |key| scope::key_or_none(key, container);
    let written = |response: Response<bolide_core::ItemWritten>| finish(response, OperationDone::Written);
    Ok(match operation {
        BatchOperation::Create { document } => {
            let create = CreateItem {
                document,
                partition_key: given,
            };
            written(account.create_item(ctx, container, create).await?)
        }
        BatchOperation::Upsert { document, if_match } => {
            let upsert = UpsertItem {
                document,
                partition_key: given,
                if_match,
            };
            written(account.upsert_item(ctx, container, upsert).await?)
        }
        BatchOperation::Replace { id, document, if_match } => {
            let replace = ReplaceItem {
                target: ItemTarget::Id(id),
                partition_key: key(given)?,
                document,
                if_match,
            };
            written(account.replace_item(ctx, container, replace).await?)
        }
        BatchOperation::Patch { id, patch, if_match } => {
            let patch = PatchItem {
                target: ItemTarget::Id(id),
                partition_key: key(given)?,
                patch,
                if_match,
            };
            written(account.patch_item(ctx, container, patch).await?)
        }
        BatchOperation::Delete { id, if_match } => {
            let delete = DeleteItem {
                target: ItemTarget::Id(id),
                partition_key: key(given)?,
                if_match,
            };
            let response = account.delete_item(ctx, container, delete).await?;
            finish(response, |()| OperationDone::Deleted)
        }
        BatchOperation::Read { id, if_none_match } => {
            let read = ReadItem {
                target: ItemTarget::Id(id),
                partition_key: key(given)?,
                if_none_match,
            };
            read_one(call, container, &read).await?
        }
        BatchOperation::Invalid { error } => return Err(error.into()),
    })
}

/// The partition key of one operation of a bulk request. The key in the header, which was checked with the head, is not used here.
fn own_key(call: &Call<'_>, container: &Container, sent: Option<PartitionKey>) -> Result<Option<PartitionKey>> {
    let key = sent.and_then(|key| container.properties().partition_key.meant_by(key));
    call.sender.check_key(key.as_ref())?;
    Ok(key)
}

async fn read_one(call: &Call<'_>, container: &Arc<Container>, read: &ReadItem) -> ChargedResult<OperationResult> {
    let read = call.account().read_item(&call.ctx, container, read).await?;
    let session = SessionToken::of(call.headers())?;
    session.check(&read.cost.touched).map_err(|error| Refusal {
        error,
        cost: read.cost.clone(),
    })?;
    Ok(finish(read, |read| match read {
        ItemRead::Found(item) => OperationDone::Read(item),
        ItemRead::NotModified { etag } => OperationDone::NotModified { etag },
    }))
}

fn finish<T>(response: Response<T>, done: impl FnOnce(T) -> OperationDone) -> Response<OperationResult> {
    let result = OperationResult {
        done: done(response.value),
        charge: response.cost.charge,
    };
    Response {
        value: result,
        cost: response.cost,
    }
}

/// Adds the cost of one more operation; for a range the newest position counts.
fn add_cost(cost: &mut Cost, more: Cost) {
    cost.charge = RequestUnits(cost.charge.0 + more.charge.0);
    for position in more.touched {
        match cost.touched.iter_mut().find(|known| known.range == position.range) {
            Some(known) => {
                known.lsn = known.lsn.max(position.lsn);
                known.charge += position.charge;
            }
            None => cost.touched.push(position),
        }
    }
}

/// The number of operations in a body that can be decoded.
#[cfg(test)]
pub(crate) fn decodable(body: &bytes::Bytes) -> usize {
    let sent = from_wire::operations(body).expect("a batch");
    sent.iter().filter(|sent| sent.operation.is_ok()).count()
}
