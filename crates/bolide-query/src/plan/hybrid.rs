//! ORDER BY RANK as a client runs it: statistics from all ranges, then one query per score, then fusion (cosmos-rest §6.11).

use serde_json::{Value as Json, json};

use super::rewrite::{array, call, calls, expr, filtered, object, payload, payload_root};
use super::{DistinctType, Feature, Info, SupportedFeatures, distance_function, info, vector_call};
use crate::aggregate::AggregateKind;
use crate::bind::{Clause, count_value};
use crate::error::{Result, Span};
use crate::memory::Memory;
use crate::number::Number;
use crate::parameters::Parameters;
use crate::schema::{DistanceFunction, Schema};
use crate::text::ast::{
    Call, Count, CountValue, Direction, Expr, ExprKind, Literal, Order, OrderItem, Query, SelectItem, Selection, Window,
};
use crate::text::printer::{expression_text, query_text};
use crate::text::tree_bytes;
use crate::value::Value;

/// Minimum number of candidates that a component query fetches.
const MIN_CANDIDATES: u64 = 120;

const DOCUMENT_COUNT: &str = "{documentdb-formattablehybridsearchquery-totaldocumentcount}";

/// `hybridSearchQueryInfo`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HybridSearch {
    statistics: String,
    components: Vec<Info>,
    weights: Vec<f64>,
    skip: Option<u64>,
    take: Option<u64>,
    requires_statistics: bool,
}

impl HybridSearch {
    /// `hybridSearchQueryInfo` in the service's format.
    pub fn to_json(&self) -> Json {
        json!({
            "globalStatisticsQuery": self.statistics,
            "componentQueryInfos": self.components.iter().map(Info::to_json).collect::<Vec<_>>(),
            "componentWithoutPayloadQueryInfos": [],
            "projectionQueryInfo": null,
            "componentWeights": self.weights,
            "skip": self.skip,
            "take": self.take,
            "requiresGlobalStatistics": self.requires_statistics,
        })
    }
}

/// One score of the ranking.
struct Component {
    score: Expr,
    /// The path and terms of a full-text score.
    full_text: Option<(Expr, Vec<Expr>)>,
    descending: bool,
    /// The component query states the direction.
    explicit: bool,
}

/// Copies of parts of the tree in a component's query, none larger than the tree.
const PARTS_OF_TREE: usize = 4;

/// Memory of a term that is an element of a parameter, in the trees and as text.
const TERM_BYTES: usize = 8 * size_of::<Expr>();

/// Replaces an undefined distance: worse than any other.
const NO_DISTANCE: f64 = 1.79769e308;

impl Component {
    /// Replaces an undefined score.
    fn missing(&self) -> Expr {
        let number = match (&self.full_text, self.descending) {
            (Some(_), _) => Number::Int(-1),
            (None, true) => Number::Float(-NO_DISTANCE),
            (None, false) => Number::Float(NO_DISTANCE),
        };
        expr(ExprKind::Literal(Literal::Number(number)))
    }

    /// Memory of the trees of its statistics.
    fn statistics_bytes(&self) -> usize {
        let Some((path, terms)) = &self.full_text else { return 0 };
        let terms_bytes: usize = terms.iter().map(|term| TERM_BYTES + tree_bytes(term.span)).sum();
        (terms.len() + 1) * tree_bytes(path.span) + terms_bytes
    }
}

/// Plans a ranking. Each component has its own query, which contains all scores, and each term of a full-text score repeats its path, so all of that
/// is counted.
pub(super) fn plan(
    ast: &Query,
    items: &[OrderItem],
    (parameters, schema): (&Parameters, &Schema),
    features: &SupportedFeatures,
    memory: &Memory,
) -> Result<HybridSearch> {
    let (scores, weights) = scores(items, parameters);
    if !weights.is_empty() {
        features.require(Feature::WeightedRankFusion)?;
    }
    let listed = listed_bytes(&scores, parameters);
    memory.take(listed)?;
    let mut components = components(&scores, schema, parameters);
    for (component, _) in components.iter_mut().zip(&weights).filter(|(_, weight)| **weight < 0.0) {
        component.descending = !component.descending;
        component.explicit = true;
    }
    let top = ast
        .top
        .as_ref()
        .map(|top| count_value(top, Clause::Top, parameters))
        .transpose()?;
    let window = ast.window.as_ref();
    let skip = window
        .map(|window| count_value(&window.offset, Clause::Offset, parameters))
        .transpose()?;
    let limit = window
        .map(|window| count_value(&window.limit, Clause::Limit, parameters))
        .transpose()?;
    let take = top.or(limit);
    memory.take(components.iter().map(Component::statistics_bytes).sum())?;
    let mut component_infos = Vec::new();
    for component in &components {
        let made = PARTS_OF_TREE * (tree_bytes(ast.span) + listed);
        memory.take(made)?;
        let info = component_info(ast, component, &components, parameters, skip, take);
        memory.release(made);
        // A second copy as JSON.
        memory.take(2 * info.rewritten_query.len())?;
        component_infos.push(info);
    }
    Ok(HybridSearch {
        statistics: statistics_query(ast, &components),
        components: component_infos,
        // Negative weights have already reversed their components.
        weights: weights.into_iter().map(f64::abs).collect(),
        skip,
        take,
        requires_statistics: components.iter().any(|component| component.full_text.is_some()),
    })
}

/// The score calls, and the weights if RRF has them. The binder has checked their form.
fn scores<'e>(items: &'e [OrderItem], parameters: &Parameters) -> (Vec<&'e Expr>, Vec<f64>) {
    let Some(item) = items.first() else {
        return (Vec::new(), Vec::new());
    };
    let args = match &item.value.kind {
        ExprKind::Call(call) if call.name.eq_ignore_ascii_case("RRF") => &call.args,
        _ => return (vec![&item.value], Vec::new()),
    };
    match args.split_last() {
        Some((last, scores)) if !matches!(last.kind, ExprKind::Call(_)) => {
            (scores.iter().collect(), numbers(last, parameters))
        }
        _ => (args.iter().collect(), Vec::new()),
    }
}

fn numbers(expr: &Expr, parameters: &Parameters) -> Vec<f64> {
    match &expr.kind {
        ExprKind::Array(items) => items
            .iter()
            .filter_map(|item| match &item.kind {
                ExprKind::Literal(Literal::Number(number)) => Some(number.as_f64()),
                ExprKind::Parameter(name) => parameters.get(name).and_then(Value::as_f64),
                _ => None,
            })
            .collect(),
        ExprKind::Parameter(name) => {
            let list = parameters.get(name).and_then(Value::elements).unwrap_or_default();
            list.iter().filter_map(Value::as_f64).collect()
        }
        _ => Vec::new(),
    }
}

fn components(scores: &[&Expr], schema: &Schema, parameters: &Parameters) -> Vec<Component> {
    let mut full_texts = 0;
    let mut component = |score: &&Expr| match (&score.kind, vector_call(score)) {
        (_, Some(vector)) => Component {
            score: calls("_VectorScore", vector.args.clone()),
            full_text: None,
            descending: distance_function(vector, schema, parameters) != DistanceFunction::Euclidean,
            explicit: false,
        },
        (ExprKind::Call(call), None) => {
            let component = full_text(call, full_texts, parameters);
            full_texts += 1;
            component
        }
        _ => Component {
            score: (*score).clone(),
            full_text: None,
            descending: true,
            explicit: true,
        },
    };
    scores.iter().map(&mut component).collect()
}

/// The terms of a score one by one: an argument may be a list of terms, each of which is counted separately.
fn single_terms(args: &[Expr], parameters: &Parameters) -> Vec<Expr> {
    let mut terms = Vec::new();
    for arg in args {
        match &arg.kind {
            ExprKind::Array(items) => terms.extend(items.iter().cloned()),
            ExprKind::Parameter(name) => match parameters.get(name).and_then(Value::elements) {
                Some(list) => terms.extend((0..list.len()).map(|at| element(arg, at))),
                None => terms.push(arg.clone()),
            },
            _ => terms.push(arg.clone()),
        }
    }
    terms
}

fn element(list: &Expr, at: usize) -> Expr {
    Expr {
        span: list.span,
        ..expr(ExprKind::Index {
            base: Box::new(list.clone()),
            index: Box::new(expr(ExprKind::Literal(Literal::Number(Number::Int(at as i64))))),
        })
    }
}

/// Memory of the terms that are listed in parameters, and so are not in the tree.
fn listed_bytes(scores: &[&Expr], parameters: &Parameters) -> usize {
    let bytes = |arg: &Expr| match &arg.kind {
        ExprKind::Parameter(name) => {
            let list = parameters.get(name).and_then(Value::elements);
            list.map_or(0, |list| list.len() * (TERM_BYTES + tree_bytes(arg.span)))
        }
        _ => 0,
    };
    let of_score = |score: &&Expr| match &score.kind {
        ExprKind::Call(call) => call.args.iter().map(bytes).sum(),
        _ => 0,
    };
    scores.iter().map(of_score).sum()
}

fn full_text(score: &Call, number: usize, parameters: &Parameters) -> Component {
    let path = score.args[0].clone();
    let terms = single_terms(&score.args[1..], parameters);
    let placeholder = |text: String| expr(ExprKind::Name(text));
    let args = vec![
        path.clone(),
        array(terms.iter().cloned()),
        placeholder(DOCUMENT_COUNT.to_owned()),
        placeholder(format!(
            "{{documentdb-formattablehybridsearchquery-totalwordcount-{number}}}"
        )),
        placeholder(format!(
            "{{documentdb-formattablehybridsearchquery-hitcountsarray-{number}}}"
        )),
    ];
    Component {
        score: calls("_FullTextScore", args),
        full_text: Some((path, terms)),
        descending: true,
        explicit: true,
    }
}

fn statistics_query(ast: &Query, components: &[Component]) -> String {
    let texts = components.iter().filter_map(|component| component.full_text.as_ref());
    let statistics = texts.map(|(path, terms)| {
        let hits = terms.iter().map(|term| {
            let contains = calls("FullTextContains", vec![path.clone(), term.clone()]);
            call(AggregateKind::CountIf.name(), contains)
        });
        let words = call("SUM", call("_FullTextWordCount", path.clone()));
        object([("totalWordCount", words), ("hitCounts", array(hits))])
    });
    let one = expr(ExprKind::Literal(Literal::Number(Number::Int(1))));
    let list = vec![
        SelectItem {
            value: call("COUNT", one),
            alias: Some("documentCount".to_owned()),
        },
        SelectItem {
            value: array(statistics),
            alias: Some("fullTextStatistics".to_owned()),
        },
    ];
    let mut query = ast.clone();
    query.distinct = false;
    query.top = None;
    query.window = None;
    query.filter = None;
    query.order = None;
    query.selection = Selection::List(list);
    query_text(&query)
}

/// Twice the number of wanted rows, at least 120; the service computes this in 32 bits.
fn candidates(skip: Option<u64>, take: Option<u64>) -> u64 {
    let wanted = skip.unwrap_or(0) + take.unwrap_or(0);
    u64::from((2 * wanted).max(MIN_CANDIDATES) as u32)
}

fn component_info(
    ast: &Query,
    component: &Component,
    all: &[Component],
    parameters: &Parameters,
    skip: Option<u64>,
    take: Option<u64>,
) -> Info {
    let wanted = candidates(skip, take);
    // Without TOP and LIMIT all rows are wanted, as the .NET SDK's tests of undefined texts show.
    let (with_top, with_limit) = (ast.top.is_some(), ast.window.is_some());
    let count = |value: u64| Count {
        value: CountValue::Literal(Number::Int(value as i64)),
        span: Span::default(),
    };
    let query = Query {
        filter: Some(filtered(ast.filter.clone())),
        selection: component_selection(ast, component, all, parameters),
        order: Some(component_order(component)),
        top: with_top.then(|| count(wanted)),
        window: with_limit.then(|| Window {
            offset: count(0),
            limit: count(wanted),
        }),
        ..ast.clone()
    };
    Info {
        distinct: DistinctType::None,
        top: with_top.then_some(wanted),
        offset: with_limit.then_some(0),
        limit: with_limit.then_some(wanted),
        order_descending: vec![component.descending],
        order_by_expressions: vec![expression_text(&component.score)],
        has_select_value: false,
        has_non_streaming_order_by: true,
        rewritten_query: query_text(&query),
        ..info(
            &Query {
                order: None,
                top: None,
                window: None,
                ..ast.clone()
            },
            parameters,
        )
    }
}

/// The item's resource id, this score, and the row with all scores.
fn component_selection(ast: &Query, component: &Component, all: &[Component], parameters: &Parameters) -> Selection {
    let scores = all
        .iter()
        .map(|component| expr(ExprKind::Coalesce(vec![component.score.clone(), component.missing()])));
    let row = object([
        ("payload", payload(ast, parameters)),
        ("componentScores", array(scores)),
    ]);
    let item = |value, alias: Option<&str>| SelectItem {
        value,
        alias: alias.map(str::to_owned),
    };
    let rid = ExprKind::Member {
        base: Box::new(payload_root(ast)),
        name: "_rid".to_owned(),
        bracket: false,
    };
    Selection::List(vec![
        item(expr(rid), None),
        item(
            array([object([("item", component.score.clone())])]),
            Some("orderByItems"),
        ),
        item(row, Some("payload")),
    ])
}

fn component_order(component: &Component) -> Order {
    let direction = match component.descending {
        true => Direction::Descending,
        false => Direction::Ascending,
    };
    Order::By(vec![OrderItem {
        value: component.score.clone(),
        direction: component.explicit.then_some(direction),
    }])
}
