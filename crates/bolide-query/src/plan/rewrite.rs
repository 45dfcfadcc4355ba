//! The query that each range runs instead of the original (cosmos-rest §6.5).

use super::{DistinctType, Info, plain_aggregate};
use crate::aggregate::AggregateKind;
use crate::bind::columns;
use crate::error::Span;
use crate::limits;
use crate::number::Number;
use crate::parameters::Parameters;
use crate::text::ast::{
    Call, Count, CountValue, Expr, ExprKind, Literal, Order, Query, SelectItem, Selection, Source, Window,
};
use crate::text::printer::query_text;

/// A placeholder that clients replace by `true` or by the position to continue from.
const ORDER_FILTER: &str = "{documentdb-formattableorderbyquery-filter}";

/// The text of a plan's `rewrittenQuery`; empty if ranges run the original query.
pub(super) fn rewritten(ast: &Query, info: &Info, parameters: &Parameters) -> String {
    let mut query = ast.clone();
    if !info.order_descending.is_empty() {
        windowed(&mut query, info);
        return order_by(query, parameters);
    }
    if !ast.group_by.is_empty() {
        uncut(&mut query);
        query.order = None;
        query.selection = grouped_selection(ast, parameters);
        return query_text(&query);
    }
    if info.is_aggregate() {
        uncut(&mut query);
        query.selection = aggregate_selection(ast, parameters);
        return query_text(&query);
    }
    if info.distinct != DistinctType::None {
        let cut = query.top.is_some() || query.window.is_some();
        uncut(&mut query);
        return if cut { query_text(&query) } else { String::new() };
    }
    if info.offset.is_some() {
        windowed(&mut query, info);
        return query_text(&query);
    }
    String::new()
}

/// Removes TOP: ranges cannot apply it before the client has merged.
fn uncut(query: &mut Query) {
    query.top = None;
    query.window = None;
}

/// Each range returns as many rows as OFFSET and LIMIT together could need, but no more than the maximum of a query: LINQ's `Skip(1)` is `OFFSET 1
/// LIMIT 2147483647`, and a client's merge cannot count further anyway.
fn windowed(query: &mut Query, info: &Info) {
    if info.distinct != DistinctType::None {
        uncut(query);
    } else if let (Some(offset), Some(limit)) = (info.offset, info.limit) {
        query.window = Some(Window {
            offset: count(0),
            limit: count((offset + limit).min(limits::COUNT)),
        });
    }
}

fn count(value: u64) -> Count {
    Count {
        value: CountValue::Literal(Number::Int(value as i64)),
        span: Span::default(),
    }
}

fn order_by(mut query: Query, parameters: &Parameters) -> String {
    let Some(Order::By(items)) = &query.order else {
        return String::new();
    };
    let keys = array(items.iter().map(|item| object([("item", item.value.clone())])));
    let payload = payload(&query, parameters);
    let mut filter = filtered(query.filter.take());
    if let Selection::Value(value) = &query.selection {
        filter = and(filter, call("IS_DEFINED", value.clone()));
    }
    query.filter = Some(filter);
    let rid = member(payload_root(&query), "_rid");
    query.selection = Selection::List(vec![
        SelectItem {
            value: rid,
            alias: None,
        },
        SelectItem {
            value: keys,
            alias: Some("orderByItems".to_owned()),
        },
        SelectItem {
            value: payload,
            alias: Some("payload".to_owned()),
        },
    ]);
    query_text(&query)
}

/// The filter, combined with the placeholder in its own parentheses.
pub(super) fn filtered(filter: Option<Expr>) -> Expr {
    let placeholder = expr(ExprKind::Name(format!("({ORDER_FILTER})")));
    match filter {
        Some(own) => and(own, placeholder),
        None => placeholder,
    }
}

/// The name of the first input, whose items have `_rid`.
pub(super) fn payload_root(query: &Query) -> Expr {
    let name = query.from.first().and_then(|item| match (&item.alias, &item.source) {
        (Some(alias), _) => Some(alias.clone()),
        (None, Source::Path { name, .. }) => Some(name.clone()),
        _ => None,
    });
    expr(ExprKind::Name(name.unwrap_or_else(|| "c".to_owned())))
}

/// The content of a row, as one expression.
pub(super) fn payload(query: &Query, parameters: &Parameters) -> Expr {
    match &query.selection {
        Selection::Star(_) => payload_root(query),
        Selection::Value(value) => value.clone(),
        Selection::List(items) => named_object(query, items.iter().map(|item| item.value.clone()), parameters),
    }
}

fn named_object(query: &Query, values: impl Iterator<Item = Expr>, parameters: &Parameters) -> Expr {
    let names = columns(&query.selection, parameters);
    expr(ExprKind::Object(names.into_iter().zip(values).collect()))
}

fn grouped_selection(ast: &Query, parameters: &Parameters) -> Selection {
    let keys = array(ast.group_by.iter().map(|key| object([("item", key.clone())])));
    let payload = match &ast.selection {
        Selection::Value(value) => match plain_aggregate(value) {
            Some((kind, argument)) => array([partial(kind, argument, value)]),
            None => value.clone(),
        },
        _ => payload_with_partials(ast, parameters),
    };
    Selection::List(vec![
        SelectItem {
            value: keys,
            alias: Some("groupByItems".to_owned()),
        },
        SelectItem {
            value: payload,
            alias: Some("payload".to_owned()),
        },
    ])
}

fn aggregate_selection(ast: &Query, parameters: &Parameters) -> Selection {
    if let Selection::Value(value) = &ast.selection
        && let Some((kind, argument)) = plain_aggregate(value)
    {
        return Selection::Value(array([partial(kind, argument, value)]));
    }
    let payload = payload_with_partials(ast, parameters);
    Selection::List(vec![SelectItem {
        value: payload,
        alias: Some("payload".to_owned()),
    }])
}

fn payload_with_partials(ast: &Query, parameters: &Parameters) -> Expr {
    let Selection::List(items) = &ast.selection else {
        return payload(ast, parameters);
    };
    let values = items.iter().map(|item| match plain_aggregate(&item.value) {
        Some((kind, argument)) => partial(kind, argument, &item.value),
        None => item.value.clone(),
    });
    named_object(ast, values, parameters)
}

/// The partial result of one range for an aggregate.
fn partial(kind: AggregateKind, argument: &Expr, whole: &Expr) -> Expr {
    let sub = |name: &str| call(name, argument.clone());
    match kind {
        AggregateKind::Average => object([("item", object([("sum", sub("SUM")), ("count", sub("COUNT"))]))]),
        AggregateKind::Min => object([
            ("item", whole.clone()),
            ("item2", object([("min", sub("MIN")), ("count", sub("COUNT"))])),
        ]),
        AggregateKind::Max => object([
            ("item", whole.clone()),
            ("item2", object([("max", sub("MAX")), ("count", sub("COUNT"))])),
        ]),
        _ => object([("item", whole.clone())]),
    }
}

/// `SELECT [VALUE] COUNT(1) FROM (SELECT DISTINCT …)`: ranges return distinct values and the client counts them.
pub(super) fn count_distinct(ast: &Query, info: &mut Info) {
    let Some((alias, inner)) = distinct_count(ast) else {
        return;
    };
    info.dcount_alias = Some(alias);
    info.distinct = DistinctType::Unordered;
    info.aggregates.clear();
    info.alias_aggregates.clear();
    info.group_by_aliases.clear();
    info.rewritten_query = query_text(inner);
}

/// The alias and the subquery of such a count.
pub(super) fn distinct_count(ast: &Query) -> Option<(String, &Query)> {
    let [from] = ast.from.as_slice() else { return None };
    let Source::Subquery(inner) = &from.source else {
        return None;
    };
    // It counts all rows, not only those where something is defined.
    let is_row = |argument: &Expr| match &argument.kind {
        ExprKind::Literal(literal) => *literal != Literal::Undefined,
        ExprKind::Name(name) => from.alias.as_ref() == Some(name),
        _ => false,
    };
    let counted =
        |value: &Expr| matches!(plain_aggregate(value), Some((AggregateKind::Count, argument)) if is_row(argument));
    let alias = match &ast.selection {
        Selection::Value(value) if counted(value) => String::new(),
        Selection::List(items) if items.len() == 1 && counted(&items[0].value) => {
            columns(&ast.selection, &Parameters::none()).swap_remove(0)
        }
        _ => return None,
    };
    let plain = ast.filter.is_none() && ast.group_by.is_empty() && ast.order.is_none() && inner.group_by.is_empty();
    (inner.distinct && plain && !from.iterate).then_some((alias, &**inner))
}

pub(super) fn expr(kind: ExprKind) -> Expr {
    Expr {
        kind,
        span: Span::default(),
        height: 1,
    }
}

pub(super) fn array(items: impl IntoIterator<Item = Expr>) -> Expr {
    expr(ExprKind::Array(items.into_iter().collect()))
}

pub(super) fn object<const N: usize>(members: [(&str, Expr); N]) -> Expr {
    expr(ExprKind::Object(
        members
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    ))
}

pub(super) fn call(name: &str, argument: Expr) -> Expr {
    calls(name, vec![argument])
}

pub(super) fn calls(name: &str, args: Vec<Expr>) -> Expr {
    expr(ExprKind::Call(Call {
        name: name.to_owned(),
        name_span: Span::default(),
        udf: false,
        args,
    }))
}

fn member(base: Expr, name: &str) -> Expr {
    expr(ExprKind::Member {
        base: Box::new(base),
        name: name.to_owned(),
        bracket: false,
    })
}

fn and(left: Expr, right: Expr) -> Expr {
    expr(ExprKind::And(vec![left, right]))
}
