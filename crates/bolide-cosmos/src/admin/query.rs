//! `…/query`: a page of a query over all ranges of a container, merged here, or what the query would do.
//!
//! Clients of Cosmos DB merge the results of several ranges by themselves; people and scripts should not have to.

use std::sync::Arc;

use bolide_core::{Container, QueryItems, Scope};
use bolide_model::partition_key::PartitionKey;
use bolide_model::{Error, Result};
use serde_json::{Value, json};

use super::Admin;
use crate::wire::body;

pub(super) async fn answer(admin: &Admin<'_>, container: &Arc<Container>) -> Result<Value> {
    let members = admin.members()?;
    let body::Query { text, parameters } = body::query(admin.body)?;
    let account = &admin.service.account;
    if members.get("explain").and_then(Value::as_bool) == Some(true) {
        return Ok(json!({"plan": account.explain_query(container, &text, &parameters).await?}));
    }
    let query = QueryItems {
        text,
        parameters,
        scope: Scope {
            partition_key: partition_key(members.get("partitionKey"))?,
            ..Scope::default()
        },
        cross_partition: true,
        continuation: continuation(members.get("continuation"))?,
        merges_ranges: true,
        ..QueryItems::default()
    };
    let ctx = account.begin().await?;
    let page = account.query(&ctx, container, &query).await;
    let page = page.map_err(|refusal| refusal.error)?.value;
    let rows: Value = serde_json::from_slice(&[b"[", &page.rows[..], b"]"].concat())
        .map_err(|error| Error::internal(format!("rows are no JSON: {error}")))?;
    Ok(json!({"rows": rows, "continuation": page.continuation}))
}

fn partition_key(value: Option<&Value>) -> Result<Option<PartitionKey>> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(value @ Value::Array(_)) => PartitionKey::from_header(&value.to_string()).map(Some),
        Some(_) => Err(Error::bad_request("`partitionKey` must be an array")),
    }
}

fn continuation(value: Option<&Value>) -> Result<Option<String>> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(Error::bad_request("`continuation` must be a string")),
    }
}
