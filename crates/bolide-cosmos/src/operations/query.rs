//! Queries over items, and their plans (cosmos-rest §6).

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bolide_core::{ChargedResult, Container, Cost, IndexUse, QueryItems, QueryMetrics, QueryPage, Response, ScanScope};
use bolide_model::{Error, ErrorKind, Result};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::data_plane::map;
use super::{feeds, index_metrics};
use crate::request::Call;
use crate::wire::{Reply, body, headers, percent, scope};

pub(super) async fn run(call: &Call<'_>, container: &Arc<Container>) -> ChargedResult<Reply> {
    let body::Query {
        text,
        parameters,
        resume_filter,
    } = call.decoded(|| body::sent_query(call.headers(), call.body)).await?;
    let cross_partition = headers::flag(call.headers(), &headers::CROSS_PARTITION);
    let mut scope = scope::scope(call.headers(), container)?;
    if scope == ScanScope::default() && !cross_partition && headers::knows_no_system_key(call.headers()) {
        // These clients assume that no item has a key, and so that no query crosses partitions.
        scope.partition_key = container.properties().partition_key.key_of_none();
    }
    let query = QueryItems {
        text,
        parameters: Arc::new(parameters),
        scope,
        cross_partition,
        max_items: scope::max_items(call.headers())?,
        continuation: feeds::continuation(call.headers())?,
        resume_filter,
        continuation_limit_kb: continuation_limit(call.headers())?,
        merges_ranges: false,
        is_by_sdk: call.headers().contains_key(&headers::SDK_CAPABILITIES),
        index_use: index_use(call)?,
        reports_usage: [&headers::POPULATE_INDEX_METRICS_V2, &headers::POPULATE_QUERY_ADVICE]
            .into_iter()
            .any(|name| headers::flag(call.headers(), name)),
    };
    let response = call.account().query(&call.ctx, container, &query).await?;
    Ok(map(response, |page| reply(call.headers(), container, page)))
}

pub(super) async fn plan(call: &Call<'_>, container: &Arc<Container>) -> ChargedResult<Reply> {
    let query = call.decoded(|| body::sent_query(call.headers(), call.body)).await?;
    let features = headers::text(call.headers(), &headers::QUERY_FEATURES)?.unwrap_or_default();
    let partition_key = scope::partition_key(call.headers(), container)?;
    let plan = call.account().query_plan(
        container,
        &query.text,
        &query.parameters,
        features,
        partition_key.as_ref(),
    );
    let plan = plan.await?;
    Ok(Response {
        value: Reply::json(StatusCode::OK, plan),
        cost: Cost::default(),
    })
}

/// How a test demands that indexes are used.
///
/// # Errors
/// `Forbidden` unless the server lets tests do that; `BadRequest` for an unknown word.
fn index_use(call: &Call<'_>) -> Result<Option<IndexUse>> {
    let Some(word) = headers::text(call.headers(), &headers::INDEX_USE)? else {
        return Ok(None);
    };
    if !call.state.options.faults_enabled {
        let message = "a query can only say how it uses indexes when the server was started with --enable-faults";
        return Err(Error::new(ErrorKind::Forbidden, message));
    }
    match word {
        "never" => Ok(Some(IndexUse::Never)),
        "parallel" => Ok(Some(IndexUse::ParallelScan)),
        "always" => Ok(Some(IndexUse::Always)),
        "order" => Ok(Some(IndexUse::AlwaysInOrder)),
        _ => Err(Error::bad_request(format!(
            "`{}` must be `never`, `parallel`, `always` or `order`. value=`{word}`",
            headers::INDEX_USE
        ))),
    }
}

/// The smallest time that the header can show, in milliseconds.
const MIN_MS: f64 = 0.01;

fn continuation_limit(headers: &HeaderMap) -> Result<Option<u32>> {
    let limit = headers::integer(headers, &headers::CONTINUATION_LIMIT_KB)?;
    let positive = |kilobytes: i64| u32::try_from(kilobytes).ok().filter(|kilobytes| *kilobytes > 0);
    let limit = limit.map(|kilobytes| positive(kilobytes).ok_or(kilobytes)).transpose();
    limit.map_err(|kilobytes| {
        Error::bad_request(format!(
            "The continuation token limit specified is not large enough. kilobytes={kilobytes}"
        ))
    })
}

fn reply(sent: &HeaderMap, container: &Container, page: QueryPage) -> Reply {
    let mut reply = feeds::documents(container, &page.rows, page.count, page.continuation);
    if headers::flag(sent, &headers::POPULATE_QUERY_METRICS) {
        reply.text(&headers::QUERY_METRICS, metrics_header(&page.metrics));
    }
    if headers::flag(sent, &headers::POPULATE_INDEX_METRICS) {
        reply.text(
            &headers::INDEX_UTILIZATION,
            STANDARD.encode(
                index_metrics::served(&container.properties(), page.key_components, page.index.as_deref()).to_string(),
            ),
        );
    }
    // The second version is percent-encoded, and sent only once per query.
    let is_first = !sent.contains_key(&headers::CONTINUATION);
    let Some(usage) = page.usage else { return reply };
    if headers::flag(sent, &headers::POPULATE_INDEX_METRICS_V2) && is_first {
        reply.text(
            &headers::INDEX_UTILIZATION,
            percent::encode(&index_metrics::of_text(&usage).to_string()),
        );
    }
    if headers::flag(sent, &headers::POPULATE_QUERY_ADVICE) {
        let advice: Vec<Value> = usage.advice.iter().map(|id| json!({"Id": id, "Params": []})).collect();
        reply.text(
            &headers::QUERY_ADVICE,
            percent::encode(&Value::from(advice).to_string()),
        );
    }
    reply
}

/// Metrics of an execution in the service's format: `key=value` joined by `;`, no blanks (cosmos-rest §6.8).
///
/// Values that are not measured separately are zero: planning is part of compiling. Only the logical plan has the least time that there is, because tests of the Java
/// SDK want more than zero. Loading is the part of the run time spent reading items. Without
/// work a time is zero: clients' tests check that.
fn metrics_header(metrics: &QueryMetrics) -> String {
    let (compile, run) = (metrics.compile_ms.max(MIN_MS), metrics.run_ms.max(2.0 * MIN_MS));
    let (total, load) = (compile + MIN_MS + run, metrics.load_ms.clamp(MIN_MS, run));
    // The share of the loaded items that were returned; 1 if none was loaded.
    let utilization = match metrics.retrieved_items {
        0 => 1.0,
        retrieved => (metrics.output_rows as f64 / retrieved as f64).min(1.0),
    };
    format!(
        "totalExecutionTimeInMs={total:.2};queryCompileTimeInMs={compile:.2};queryLogicalPlanBuildTimeInMs={MIN_MS:.2};\
         queryPhysicalPlanBuildTimeInMs=0.00;queryOptimizationTimeInMs=0.00;VMExecutionTimeInMs={run:.2};\
         indexLookupTimeInMs=0.00;instructionCount=0;documentLoadTimeInMs={load:.2};systemFunctionExecuteTimeInMs=0.00;\
         userFunctionExecuteTimeInMs=0.00;retrievedDocumentCount={};retrievedDocumentSize={};outputDocumentCount={};\
         outputDocumentSize={};writeOutputTimeInMs=0.00;indexUtilizationRatio={utilization:.2}",
        metrics.retrieved_items, metrics.retrieved_bytes, metrics.output_rows, metrics.output_bytes,
    )
}

#[cfg(test)]
mod tests;
