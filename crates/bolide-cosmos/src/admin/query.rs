//! `…/query`: a page of a query over all ranges of a container, merged here, or an explanation of the query.
//!
//! Clients of Cosmos DB merge the results of several ranges themselves; people and scripts should not have to.

use std::sync::Arc;

use bolide_core::{Container, QueryItems, QueryMetrics, QueryUsage, ScanScope};
use bolide_model::partition_key::PartitionKey;
use bolide_model::{Error, Result};
use http::StatusCode;
use serde_json::{Value, json};

use super::{Admin, ok};
use crate::operations::index_metrics;
use crate::wire::{Reply, body};

pub(super) async fn answer(admin: &Admin<'_>, container: &Arc<Container>) -> Result<Reply> {
    let members = admin.members()?;
    let decoding = &admin.state.decoding;
    let query = decoding.run(admin.body, || body::query(admin.body)).await?;
    let body::Query { text, parameters, .. } = query.without_resume_filter()?;
    let account = &admin.state.account;
    if members.get("explain").and_then(Value::as_bool) == Some(true) {
        let plan = account.explain_query(container, &text, &parameters).await?;
        return Ok(ok(&json!({ "plan": plan })));
    }
    let has_metrics = members.get("metrics").and_then(Value::as_bool) == Some(true);
    let query = QueryItems {
        text,
        parameters: Arc::new(parameters),
        scope: ScanScope {
            partition_key: partition_key(members.get("partitionKey"))?
                .and_then(|key| container.properties().partition_key.meant_by(key)),
            ..ScanScope::default()
        },
        cross_partition: true,
        continuation: continuation(members.get("continuation"))?,
        merges_ranges: true,
        reports_usage: has_metrics,
        ..QueryItems::default()
    };
    let ctx = account.begin_admin().await?;
    let page = account.query(&ctx, container, &query).await;
    let page = page.map_err(|refusal| refusal.error)?;
    let (charge, page) = (page.cost.charge, page.value);
    // Rows are already JSON text, and would need many times the memory as values.
    let continuation = Value::from(page.continuation).to_string();
    let metrics = match has_metrics {
        true => format!(r#","metrics":{}"#, metrics_of(&page.metrics, page.usage.as_ref())),
        false => String::new(),
    };
    let body = [
        b"{\"rows\":[",
        &page.rows[..],
        b"],\"continuation\":",
        continuation.as_bytes(),
        metrics.as_bytes(),
        b"}",
    ];
    let mut reply = Reply::json(StatusCode::OK, body.concat());
    reply.charge = charge;
    Ok(reply)
}

/// What the page has cost in work, and which paths of the query have an index.
fn metrics_of(metrics: &QueryMetrics, usage: Option<&QueryUsage>) -> Value {
    json!({
        "retrievedItems": metrics.retrieved_items,
        "retrievedBytes": metrics.retrieved_bytes,
        "outputRows": metrics.output_rows,
        "outputBytes": metrics.output_bytes,
        "compileMs": metrics.compile_ms,
        "runMs": metrics.run_ms,
        "loadMs": metrics.load_ms,
        "indexes": usage.map(index_metrics::of_text),
    })
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
