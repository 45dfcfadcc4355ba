//! Query plans: what client SDKs need to run a query over several ranges (cosmos-sql §22, cosmos-rest §6.4–6.5).

mod explain;
mod features;
mod hybrid;
mod ranges;
mod rewrite;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value as Json, json};

pub use explain::explain;
pub use features::{Feature, SupportedFeatures};
pub use ranges::{KeyEnd, KeyRange, KeyRanges, KeyValue, key_ranges};

use crate::aggregate::AggregateKind;
use crate::bind::{Columns, columns};
use crate::error::{QueryError, Result};
use crate::memory::Memory;
use crate::parameters::Parameters;
use crate::schema::{DistanceFunction, Schema};
use crate::text::ast::{Call, Direction, Expr, ExprKind, Order, Query, Selection};
use crate::text::printer::expression_text;
use crate::value::Value;
use hybrid::HybridSearch;

/// How duplicates are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DistinctType {
    /// Not at all.
    None,
    /// Duplicates are next to each other.
    Ordered,
    /// Duplicates may be anywhere.
    Unordered,
}

impl DistinctType {
    fn name(self) -> &'static str {
        match self {
            DistinctType::None => "None",
            DistinctType::Ordered => "Ordered",
            DistinctType::Unordered => "Unordered",
        }
    }
}

/// What a client needs to know of a query to merge the results of several ranges.
#[derive(Debug, Clone, PartialEq)]
pub struct Info {
    /// How duplicates are removed.
    pub distinct: DistinctType,
    /// TOP.
    pub top: Option<u64>,
    /// OFFSET.
    pub offset: Option<u64>,
    /// LIMIT.
    pub limit: Option<u64>,
    /// Whether each key of ORDER BY is descending.
    pub order_descending: Vec<bool>,
    /// The keys of ORDER BY, as text.
    pub order_by_expressions: Vec<String>,
    /// The keys of GROUP BY, as text.
    pub group_by_expressions: Vec<String>,
    /// The columns of a select list with GROUP BY or aggregates, in order.
    pub group_by_aliases: Vec<String>,
    /// The aggregate of `SELECT VALUE AGG(…)`.
    pub aggregates: Vec<&'static str>,
    /// For each such column its aggregate; `None` for a plain column.
    pub alias_aggregates: Vec<(String, Option<&'static str>)>,
    /// `SELECT VALUE`.
    pub has_select_value: bool,
    /// Sorted by something that no index has in order.
    pub has_non_streaming_order_by: bool,
    /// `COUNT` over a DISTINCT subquery: the alias of the count, empty with VALUE.
    pub dcount_alias: Option<String>,
    /// The query for each range; empty if ranges run the original query.
    pub rewritten_query: String,
}

/// The response to a plan request, before key ranges are mapped to effective partition keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    body: Body,
    /// The key ranges that the query reads.
    pub ranges: KeyRanges,
}

#[derive(Debug, Clone, PartialEq)]
enum Body {
    Query(Box<Info>),
    Hybrid(Box<HybridSearch>),
}

impl Plan {
    /// `queryInfo`; `None` for hybrid search.
    pub fn info(&self) -> Option<&Info> {
        match &self.body {
            Body::Query(info) => Some(info),
            Body::Hybrid(_) => None,
        }
    }

    /// The service's JSON, with ranges that are already mapped, such as `{"min":"","max":"FF","isMinInclusive":true,"isMaxInclusive":false}`. Without
    /// a ranking, its member is null (the Rust SDK's tests).
    pub fn to_json(&self, query_ranges: &[Json]) -> Json {
        let mut out = Map::new();
        out.insert("partitionedQueryExecutionInfoVersion".into(), json!(2));
        match &self.body {
            Body::Query(info) => {
                out.insert("queryInfo".into(), info.to_json());
                out.insert("hybridSearchQueryInfo".into(), Json::Null);
            }
            Body::Hybrid(hybrid) => {
                out.insert("hybridSearchQueryInfo".into(), hybrid.to_json());
            }
        }
        out.insert("queryRanges".into(), Json::Array(query_ranges.to_vec()));
        Json::Object(out)
    }
}

impl Info {
    /// `queryInfo` in the service's format.
    pub fn to_json(&self) -> Json {
        let directions = self
            .order_descending
            .iter()
            .map(|descending| if *descending { "Descending" } else { "Ascending" });
        let aliases: Map<String, Json> = self
            .alias_aggregates
            .iter()
            .map(|(name, kind)| (name.clone(), json!(kind)))
            .collect();
        json!({
            "distinctType": self.distinct.name(),
            "top": self.top,
            "offset": self.offset,
            "limit": self.limit,
            "orderBy": directions.collect::<Vec<_>>(),
            "orderByExpressions": self.order_by_expressions,
            "groupByExpressions": self.group_by_expressions,
            "groupByAliases": self.group_by_aliases,
            "aggregates": self.aggregates,
            "groupByAliasToAggregateType": aliases,
            "rewrittenQuery": self.rewritten_query,
            "hasSelectValue": self.has_select_value,
            "hasNonStreamingOrderBy": self.has_non_streaming_order_by,
            "dCountInfo": self.dcount_alias.as_ref().map(|alias| json!({ "dCountAlias": alias })),
        })
    }
}

/// Plans a query. The memory for a plan of about the size of the query's tree was counted before; further memory is taken from `memory`.
///
/// # Errors
/// Compositions of aggregates; features that the client does not support. As [`Memory::take`].
pub fn plan(
    ast: &Query,
    parameters: &Parameters,
    schema: &Schema,
    ranges: KeyRanges,
    features: &SupportedFeatures,
    memory: &Memory,
) -> Result<Plan> {
    if let Some(Order::Rank(items)) = &ast.order {
        features.require(Feature::HybridSearch)?;
        let hybrid = hybrid::plan(ast, items, (parameters, schema), features, memory)?;
        return Ok(Plan {
            body: Body::Hybrid(Box::new(hybrid)),
            ranges,
        });
    }
    check_compositions(ast)?;
    let mut info = info(ast, parameters);
    if features.has(Feature::DCount) {
        rewrite::count_distinct(ast, &mut info);
    }
    order_by_vector(ast, schema, parameters, &mut info);
    if info.is_single_partition(&ranges) {
        // For one partition, the server applies OFFSET and LIMIT.
        info.offset = None;
        info.limit = None;
    }
    features.check(&info, ast)?;
    if info.dcount_alias.is_none() {
        info.rewritten_query = rewrite::rewritten(ast, &info, parameters);
    }
    Ok(Plan {
        body: Body::Query(Box::new(info)),
        ranges,
    })
}

/// Whether clients can merge the results of several ranges for an aggregate over a subquery that groups or removes duplicates: each range groups only
/// its own rows.
///
/// # Errors
/// A count of distinct values if the client does not support it; all other such aggregates.
pub fn check_merge_of_subquery(ast: &Query, features: &SupportedFeatures) -> Result<()> {
    if rewrite::distinct_count(ast).is_some() {
        return features.require(Feature::DCount);
    }
    Err(QueryError::refused(
        "An aggregate over a subquery with DISTINCT, GROUP BY or aggregates cannot be merged over several partition key ranges. Run it \
         with a partition key.",
    ))
}

impl Info {
    fn has_merge_of_values(&self) -> bool {
        self.distinct != DistinctType::None || self.is_aggregate() || !self.group_by_expressions.is_empty()
    }

    /// Whether there are aggregates, with or without GROUP BY.
    fn is_aggregate(&self) -> bool {
        !self.aggregates.is_empty() || self.alias_aggregates.iter().any(|(_, kind)| kind.is_some())
    }

    fn is_single_partition(&self, ranges: &KeyRanges) -> bool {
        ranges.is_single_key() && !self.has_merge_of_values()
    }
}

/// The part of a plan that does not depend on ranges or features.
pub fn info(ast: &Query, parameters: &Parameters) -> Info {
    let mut info = Info {
        distinct: DistinctType::None,
        top: None,
        offset: None,
        limit: None,
        order_descending: Vec::new(),
        order_by_expressions: Vec::new(),
        group_by_expressions: ast.group_by.iter().map(expression_text).collect(),
        group_by_aliases: Vec::new(),
        aggregates: Vec::new(),
        alias_aggregates: Vec::new(),
        has_select_value: matches!(ast.selection, Selection::Value(_)),
        has_non_streaming_order_by: false,
        dcount_alias: None,
        rewritten_query: String::new(),
    };
    if ast.distinct {
        info.distinct = distinct_type(ast);
    }
    if ast.from.is_empty() {
        // One row that reads no items: nothing else to merge.
        return info;
    }
    counts(ast, parameters, &mut info);
    aggregates(ast, parameters, &mut info);
    // Clients do not keep the order of groups when they merge them.
    if !info.is_aggregate() && ast.group_by.is_empty() {
        order(ast, &mut info);
    }
    info
}

fn counts(ast: &Query, parameters: &Parameters, info: &mut Info) {
    use crate::bind::{Clause, count_value};
    // The binder has already checked these.
    let value = |count, clause| count_value(count, clause, parameters).ok();
    info.top = ast.top.as_ref().and_then(|top| value(top, Clause::Top));
    info.offset = ast
        .window
        .as_ref()
        .and_then(|window| value(&window.offset, Clause::Offset));
    info.limit = ast
        .window
        .as_ref()
        .and_then(|window| value(&window.limit, Clause::Limit));
}

fn order(ast: &Query, info: &mut Info) {
    let Some(Order::By(items)) = &ast.order else { return };
    info.order_descending = items
        .iter()
        .map(|item| item.direction == Some(Direction::Descending))
        .collect();
    info.order_by_expressions = items.iter().map(|item| expression_text(&item.value)).collect();
}

fn order_by_vector(ast: &Query, schema: &Schema, parameters: &Parameters, info: &mut Info) {
    let Some(Order::By(items)) = &ast.order else { return };
    let Some(call) = items.first().and_then(|item| vector_call(&item.value)) else {
        return;
    };
    info.has_non_streaming_order_by = true;
    info.order_descending = vec![distance_function(call, schema, parameters) != DistanceFunction::Euclidean];
}

fn vector_call(expr: &Expr) -> Option<&Call> {
    match &expr.kind {
        ExprKind::Call(call) if call.name.eq_ignore_ascii_case("VectorDistance") => Some(call),
        _ => None,
    }
}

/// As the binder chooses it: options, then the policy of the path, then cosine.
fn distance_function(call: &Call, schema: &Schema, parameters: &Parameters) -> DistanceFunction {
    let option = match call.args.get(3).map(|arg| &arg.kind) {
        Some(ExprKind::Object(members)) => members
            .iter()
            .find(|(name, _)| name == "distanceFunction")
            .map(|(_, value)| value),
        _ => None,
    };
    let named = option.and_then(|value| match &value.kind {
        ExprKind::Literal(crate::text::ast::Literal::String(name)) => Some(name.as_str()),
        ExprKind::Parameter(name) => parameters.get(name).and_then(Value::as_str),
        _ => None,
    });
    let of_path = || {
        let path = call.args.iter().find_map(property_path)?;
        schema
            .vectors
            .iter()
            .find(|vector| vector.path == path)
            .map(|vector| vector.function)
    };
    named
        .and_then(DistanceFunction::parse)
        .or_else(of_path)
        .unwrap_or_default()
}

/// The property names after the first name of `c.a.b`.
fn property_path(expr: &Expr) -> Option<Vec<crate::path::PathStep>> {
    match &expr.kind {
        ExprKind::Name(_) => Some(Vec::new()),
        ExprKind::Member { base, name, .. } => {
            let mut path = property_path(base)?;
            path.push(crate::path::PathStep::name(name));
            Some(path)
        }
        _ => None,
    }
}

/// `Ordered` only if duplicates are certainly next to each other.
fn distinct_type(ast: &Query) -> DistinctType {
    match (&ast.selection, &ast.order) {
        (Selection::Value(value), Some(Order::By(items))) if matches!(items.as_slice(), [item] if item.value == *value) => {
            DistinctType::Ordered
        }
        _ => DistinctType::Unordered,
    }
}

fn aggregates(ast: &Query, parameters: &Parameters, info: &mut Info) {
    match &ast.selection {
        Selection::Star(_) => {}
        Selection::Value(value) => info
            .aggregates
            .extend(plain_aggregate(value).map(|(kind, _)| kind.plan_name())),
        Selection::List(items) => {
            let kinds = items
                .iter()
                .map(|item| plain_aggregate(&item.value).map(|(kind, _)| kind.plan_name()));
            let named: Vec<_> = column_names(ast, parameters).into_iter().zip(kinds).collect();
            if !ast.group_by.is_empty() || named.iter().any(|(_, kind)| kind.is_some()) {
                info.group_by_aliases = named.iter().map(|(name, _)| name.clone()).collect();
                info.alias_aggregates = named;
            }
        }
    }
}

fn column_names(ast: &Query, parameters: &Parameters) -> Columns {
    columns(&ast.selection, parameters)
}

/// The aggregate that an expression is, with its argument; `None` for other expressions.
fn plain_aggregate(expr: &Expr) -> Option<(AggregateKind, &Expr)> {
    let ExprKind::Call(call) = &expr.kind else { return None };
    Some((crate::bind::aggregate_of(call)?, call.args.first()?))
}

/// The client merges aggregates, but not expressions over them.
fn check_compositions(ast: &Query) -> Result<()> {
    let values: Vec<&Expr> = match &ast.selection {
        Selection::Star(_) => Vec::new(),
        Selection::Value(value) => vec![value],
        Selection::List(items) => items.iter().map(|item| &item.value).collect(),
    };
    let composed = |expr: &&Expr| plain_aggregate(expr).is_none() && crate::bind::contains_aggregate(expr);
    if !ast.from.is_empty() && values.iter().any(composed) {
        return Err(QueryError::refused(
            "Compositions of aggregates and other expressions are not allowed.",
        ));
    }
    Ok(())
}
