//! Runs a query over several ranges as SDKs do: if the gateway does not return the result itself, the query is planned, sent to each range, and merged.
//!
//!   query ─▶ gateway ─ rows ─────────────────────────────────────────────▶ done
//!                └──── 400/1004 ─▶ plan ─▶ rows of each range ─▶ order | aggregate ─▶ distinct ─▶ offset, limit ─▶ done
//!                                     └──▶ statistics, scores of each range ─▶ fusion ─▶ done
//!
//! The rules for the order of values, for aggregates and for fusion are also in `bolide-query`, and are written here again on purpose: this is the
//! client's side, as SDKs have it in their own languages. If the code was shared with the server, a mistake in it would pass every case.

mod aggregate;
mod hybrid;
mod order;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::compare::{EXACT, same};
use super::container::{Container, Outcome, Range};
use super::sql::everywhere;
use crate::Result;

/// The placeholder for the condition of a later page; the first page has none.
const ORDER_FILTER: &str = "{documentdb-formattableorderbyquery-filter}";

/// `queryInfo` of a plan.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct QueryInfo {
    distinct_type: String,
    top: Option<usize>,
    offset: Option<usize>,
    limit: Option<usize>,
    order_by: Vec<String>,
    group_by_expressions: Vec<String>,
    group_by_aliases: Vec<String>,
    aggregates: Vec<String>,
    group_by_alias_to_aggregate_type: Map<String, Value>,
    rewritten_query: String,
    has_select_value: bool,
    has_non_streaming_order_by: bool,
    #[serde(rename = "dCountInfo")]
    count_distinct: Option<CountDistinct>,
}

/// The result of a query over several ranges.
pub struct Merged {
    pub outcome: Outcome,
    /// TOP or LIMIT cut an order that depends on the ranges, so the remaining rows are not determined.
    pub is_cut_anywhere: bool,
}

#[derive(Debug, Deserialize)]
struct CountDistinct {
    #[serde(rename = "dCountAlias")]
    alias: String,
}

/// Runs a query to its end.
///
/// # Errors
/// If the server's responses cannot be merged: no plan where one is needed, or rows of another shape or order than the plan says.
pub fn query(container: &Container<'_>, body: &Value, page_size: i32) -> Result<Merged> {
    let response = match container.query(body, page_size, &[everywhere()])? {
        Outcome::Refused(response) => response,
        rows @ Outcome::Rows(_) => return Ok(Merged::of(rows)),
    };
    if response.header("x-ms-substatus") != Some("1004") {
        return Ok(Merged::of(Outcome::Refused(response)));
    }
    let refusal = response.json()?;
    let info = refusal["additionalErrorInfo"]
        .as_str()
        .ok_or("a refusal without its plan")?;
    let planned = container.plan(body, None)?;
    if !planned.succeeded() {
        return Ok(Merged::of(Outcome::Refused(planned)));
    }
    let plan = planned.json()?;
    if serde_json::from_str::<Value>(info)? != plan {
        return Err(format!("the plan of the refusal differs: {info} and {plan}").into());
    }
    let over = Ranges {
        container,
        body,
        page_size,
        list: overlapping(container.ranges()?, &plan["queryRanges"])?,
    };
    if let Some(hybrid) = plan.get("hybridSearchQueryInfo").filter(|info| !info.is_null()) {
        return hybrid::search(&over, hybrid).map(Merged::of);
    }
    let info = QueryInfo::deserialize(&plan["queryInfo"])?;
    let outcome = match over.query(&info.rewritten_query)? {
        Ok(rows) => Outcome::Rows(merged(&info, rows)?),
        Err(refused) => refused,
    };
    let is_cut = info.top.is_some() || info.limit.is_some();
    Ok(Merged {
        outcome,
        is_cut_anywhere: is_cut && info.order_by.is_empty(),
    })
}

impl Merged {
    /// A result whose rows are determined.
    pub fn of(outcome: Outcome) -> Self {
        Self {
            outcome,
            is_cut_anywhere: false,
        }
    }
}

/// The ranges that a query reads.
struct Ranges<'a> {
    container: &'a Container<'a>,
    body: &'a Value,
    page_size: i32,
    list: Vec<Range>,
}

impl Ranges<'_> {
    /// The rows of each range for a rewritten query, or for the original one if that is empty. If any range refuses, that is the result.
    fn query(&self, rewritten: &str) -> Result<std::result::Result<Vec<Vec<Value>>, Outcome>> {
        let mut body = self.body.clone();
        if !rewritten.is_empty() {
            body["query"] = json!(rewritten.replace(ORDER_FILTER, "true"));
        }
        let mut rows = Vec::with_capacity(self.list.len());
        for range in &self.list {
            let target = ("x-ms-documentdb-partitionkeyrangeid", range.id.clone());
            match self.container.query(&body, self.page_size, &[everywhere(), target])? {
                Outcome::Rows(of_range) => rows.push(of_range),
                refused @ Outcome::Refused(_) => return Ok(Err(refused)),
            }
        }
        Ok(Ok(rows))
    }
}

/// The partition key ranges that overlap a plan's ranges.
fn overlapping(ranges: Vec<Range>, wanted: &Value) -> Result<Vec<Range>> {
    let wanted = wanted.as_array().ok_or("a plan without ranges")?;
    let text = |range: &Value, name: &str| range[name].as_str().unwrap_or_default().to_owned();
    let touches = |range: &Range| {
        wanted.iter().any(|wanted| {
            let (min, max) = (text(wanted, "min"), text(wanted, "max"));
            let ends_after = max > range.min || (max == range.min && wanted["isMaxInclusive"] == json!(true));
            min < range.max && ends_after
        })
    };
    Ok(ranges.into_iter().filter(touches).collect())
}

/// The rows of all ranges as one result.
fn merged(info: &QueryInfo, ranges: Vec<Vec<Value>>) -> Result<Vec<Value>> {
    let has_aggregates = !info.aggregates.is_empty() || !info.group_by_aliases.is_empty();
    let mut rows = if has_aggregates || !info.group_by_expressions.is_empty() {
        aggregate::merged(info, ranges)?
    } else if info.order_by.is_empty() {
        ranges.into_iter().flatten().collect()
    } else {
        order::merged(info, ranges)?
    };
    if info.distinct_type != "None" {
        rows = distinct(rows);
    }
    if let Some(CountDistinct { alias }) = &info.count_distinct {
        let count = json!(distinct(rows).len());
        rows = vec![if info.has_select_value {
            count
        } else {
            json!({ alias: count })
        }];
    }
    let limit = info.top.or(info.limit).unwrap_or(usize::MAX);
    Ok(rows.into_iter().skip(info.offset.unwrap_or(0)).take(limit).collect())
}

fn distinct(rows: Vec<Value>) -> Vec<Value> {
    let mut kept: Vec<Value> = Vec::new();
    for row in rows {
        if !kept.iter().any(|known| same(known, &row, EXACT)) {
            kept.push(row);
        }
    }
    kept
}
