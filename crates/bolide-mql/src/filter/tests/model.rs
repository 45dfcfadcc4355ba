//! Filters against a naive evaluator, written from the reference on trees of values.

use std::cmp::Ordering;

use bson::{Bson, Document, RawDocumentBuf, doc};
use proptest::prelude::*;

use crate::filter::Filter;

/// The brackets of the types that occur here.
pub(crate) fn bracket(value: &Bson) -> u8 {
    match value {
        Bson::Null => 0,
        Bson::Int32(_) | Bson::Int64(_) | Bson::Double(_) => 1,
        Bson::String(_) => 2,
        Bson::Document(_) => 3,
        Bson::Array(_) => 4,
        Bson::Boolean(_) => 5,
        Bson::DateTime(_) => 6,
        _ => unreachable!("not generated"),
    }
}

fn number(value: &Bson) -> f64 {
    match value {
        Bson::Int32(value) => f64::from(*value),
        Bson::Int64(value) => *value as f64,
        Bson::Double(value) => *value,
        _ => unreachable!("not a number"),
    }
}

/// The order of two values; those of different brackets are ordered by these.
pub(crate) fn order(a: &Bson, b: &Bson) -> Ordering {
    match (a, b) {
        (Bson::String(a), Bson::String(b)) => a.cmp(b),
        (Bson::Boolean(a), Bson::Boolean(b)) => a.cmp(b),
        (Bson::DateTime(a), Bson::DateTime(b)) => a.cmp(b),
        (Bson::Document(a), Bson::Document(b)) => {
            for ((a_name, a), (b_name, b)) in a.iter().zip(b) {
                let found = bracket(a)
                    .cmp(&bracket(b))
                    .then(a_name.cmp(b_name))
                    .then_with(|| order(a, b));
                if found.is_ne() {
                    return found;
                }
            }
            a.len().cmp(&b.len())
        }
        (Bson::Array(a), Bson::Array(b)) => {
            for (a, b) in a.iter().zip(b) {
                let found = bracket(a).cmp(&bracket(b)).then_with(|| order(a, b));
                if found.is_ne() {
                    return found;
                }
            }
            a.len().cmp(&b.len())
        }
        _ if bracket(a) == 1 && bracket(b) == 1 => number(a).total_cmp(&number(b)),
        _ => bracket(a).cmp(&bracket(b)),
    }
}

/// A value found by a path, and whether an array there is to be opened.
type Found = (Option<Bson>, bool);

fn find(value: &Bson, path: &[&str], found: &mut Vec<Found>) {
    let Some((first, rest)) = path.split_first() else {
        found.push((Some(value.clone()), true));
        return;
    };
    match value {
        Bson::Document(fields) => match fields.get(first) {
            Some(value) => find(value, rest, found),
            None => found.push((None, true)),
        },
        Bson::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                if matches!(element, Bson::Document(_)) {
                    find(element, path, found);
                }
                if index.to_string() == *first {
                    match element {
                        element if rest.is_empty() => found.push((Some(element.clone()), false)),
                        Bson::Document(_) | Bson::Array(_) => find(element, rest, found),
                        _ => {}
                    }
                }
            }
        }
        _ => found.push((None, true)),
    }
}

fn places(document: &Document, path: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let path: Vec<_> = path.split('.').collect();
    find(&Bson::Document(document.clone()), &path, &mut found);
    found
}

/// Whether a predicate holds for one value that is not opened.
fn holds(operator: &str, operand: &Bson, value: Option<&Bson>) -> bool {
    let null_matches = *operand == Bson::Null && value.is_none_or(|value| *value == Bson::Null);
    let compares = |accepts: fn(Ordering) -> bool| match value {
        Some(value) if *operand != Bson::Null => bracket(value) == bracket(operand) && accepts(order(value, operand)),
        _ => null_matches && accepts(Ordering::Equal),
    };
    match operator {
        "$eq" => compares(Ordering::is_eq),
        "$gt" => compares(Ordering::is_gt),
        "$gte" => compares(Ordering::is_ge),
        "$lt" => compares(Ordering::is_lt),
        "$lte" => compares(Ordering::is_le),
        "$ne" => !holds("$eq", operand, value),
        "$nin" => !holds("$in", operand, value),
        "$mod" => {
            let of = operand.as_array().unwrap();
            let (divisor, remainder) = (number(&of[0]), number(&of[1]));
            // Towards zero, as whole numbers.
            value.is_some_and(|value| bracket(value) == 1 && number(value).trunc() % divisor == remainder)
        }
        "$type" => value.is_some_and(|value| {
            let name = match value {
                Bson::Null => "null",
                Bson::Int32(_) => "int",
                Bson::Int64(_) => "long",
                Bson::Double(_) => "double",
                Bson::String(_) => "string",
                Bson::Document(_) => "object",
                Bson::Array(_) => "array",
                Bson::Boolean(_) => "bool",
                _ => "date",
            };
            let asked = operand.as_str().unwrap();
            asked == name || (asked == "number" && bracket(value) == 1)
        }),
        // The patterns here are beginnings without special characters.
        "$regex" => {
            let beginning = operand.as_str().unwrap().trim_start_matches('^');
            matches!(value, Some(Bson::String(text)) if text.starts_with(beginning))
        }
        "$in" => operand.as_array().unwrap().iter().any(|item| holds("$eq", item, value)),
        "$exists" => value.is_some() == operand.as_bool().unwrap(),
        "$not" => !operand
            .as_document()
            .unwrap()
            .iter()
            .all(|(operator, operand)| holds(operator, operand, value)),
        "$size" => matches!(value, Some(Bson::Array(items)) if items.len() == operand.as_i32().unwrap() as usize),
        "$all" => {
            let items = operand.as_array().unwrap();
            !items.is_empty() && items.iter().all(|item| holds("$eq", item, value))
        }
        "$elemMatch" => {
            let Some(Bson::Array(elements)) = value else {
                return false;
            };
            let conditions = operand.as_document().unwrap();
            elements.iter().any(|element| match conditions.keys().next() {
                Some(first) if first.starts_with('$') => conditions
                    .iter()
                    .all(|(operator, operand)| holds(operator, operand, Some(element))),
                _ => as_document(element).is_some_and(|element| matches(conditions, &element)),
            })
        }
        _ => unreachable!("not generated"),
    }
}

/// An array inside an array is a document whose names are the indexes.
fn as_document(element: &Bson) -> Option<Document> {
    match element {
        Bson::Document(element) => Some(element.clone()),
        Bson::Array(elements) => {
            let fields = elements.iter().enumerate();
            Some(
                fields
                    .map(|(index, value)| (index.to_string(), value.clone()))
                    .collect(),
            )
        }
        _ => None,
    }
}

fn on_path(document: &Document, path: &str, operator: &str, operand: &Bson) -> bool {
    match operator {
        "$ne" => !on_path(document, path, "$eq", operand),
        "$nin" => !on_path(document, path, "$in", operand),
        "$not" => {
            let mut conditions = operand.as_document().unwrap().iter();
            !conditions.all(|(operator, operand)| on_path(document, path, operator, operand))
        }
        "$exists" if !operand.as_bool().unwrap() => !on_path(document, path, "$exists", &Bson::Boolean(true)),
        "$all" => {
            let items = operand.as_array().unwrap();
            !items.is_empty() && items.iter().all(|item| on_path(document, path, "$eq", item))
        }
        _ => places(document, path).iter().any(|(value, opened)| {
            let is_on_whole = matches!(operator, "$size" | "$elemMatch");
            let elements = match value {
                Some(Bson::Array(elements)) if *opened && !is_on_whole => elements.as_slice(),
                _ => &[],
            };
            elements.iter().any(|element| holds(operator, operand, Some(element)))
                || holds(operator, operand, value.as_ref())
        }),
    }
}

pub(crate) fn matches(filter: &Document, document: &Document) -> bool {
    let branch = |branch: &Bson| matches(branch.as_document().unwrap(), document);
    filter.iter().all(|(name, condition)| match (name.as_str(), condition) {
        ("$and", Bson::Array(branches)) => branches.iter().all(branch),
        ("$or", Bson::Array(branches)) => branches.iter().any(branch),
        ("$nor", Bson::Array(branches)) => !branches.iter().any(branch),
        (path, Bson::Document(operators)) if operators.keys().next().is_some_and(|name| name.starts_with('$')) => {
            operators
                .iter()
                .all(|(operator, operand)| on_path(document, path, operator, operand))
        }
        (path, value) => on_path(document, path, "$eq", value),
    })
}

pub(crate) fn any_value() -> impl Strategy<Value = Bson> {
    let leaf = prop_oneof![
        Just(Bson::Null),
        (0_i32..3).prop_map(Bson::Int32),
        (0_i32..6).prop_map(|half| Bson::Double(f64::from(half) / 2.0)),
        "[ab]{0,1}".prop_map(Bson::String),
        (-3_i64..3).prop_map(Bson::Int64),
        any::<bool>().prop_map(Bson::Boolean),
        (0_i64..3).prop_map(|at| Bson::DateTime(bson::DateTime::from_millis(at))),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Bson::Array),
            any_fields(inner).prop_map(Bson::Document),
        ]
    })
}

pub(crate) fn any_fields(value: impl Strategy<Value = Bson>) -> impl Strategy<Value = Document> {
    prop::collection::vec(("[ab0]", value), 0..3).prop_map(|fields| fields.into_iter().collect())
}

fn any_operators() -> BoxedStrategy<Document> {
    let comparison = (
        prop::sample::select(vec!["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]),
        any_value(),
    )
        .prop_map(|(operator, operand)| doc! {operator: operand});
    let list = (
        prop::sample::select(vec!["$in", "$nin", "$all"]),
        prop::collection::vec(any_value(), 0..3),
    )
        .prop_map(|(operator, items)| doc! {operator: items});
    let leaf = prop_oneof![
        4 => comparison,
        2 => list,
        1 => any::<bool>().prop_map(|exists| doc! {"$exists": exists}),
        1 => (0_i32..3).prop_map(|size| doc! {"$size": size}),
        1 => ((1_i32..3), (-1_i32..2)).prop_map(|(divisor, remainder)| doc! {"$mod": [divisor, remainder]}),
        1 => prop::sample::select(vec!["null", "int", "long", "double", "number", "string", "object", "array", "bool", "date"])
            .prop_map(|name| doc! {"$type": name}),
        1 => "\\^[ab]?".prop_map(|pattern| doc! {"$regex": pattern}),
    ];
    let nested = leaf.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|operators| doc! {"$not": operators}),
            inner.clone().prop_map(|operators| doc! {"$elemMatch": operators}),
            (path(), inner).prop_map(|(path, operators)| doc! {"$elemMatch": {path: operators}}),
        ]
    });
    prop::collection::vec(nested, 1..3)
        .prop_map(|all| all.into_iter().flatten().collect())
        .boxed()
}

fn path() -> impl Strategy<Value = String> {
    "[ab](\\.[ab0]){0,2}"
}

pub(crate) fn any_filter() -> impl Strategy<Value = Document> {
    let field = prop_oneof![
        any_operators().prop_map(Bson::Document),
        any_value().prop_filter("operators are the other case", |value| !matches!(
            value,
            Bson::Document(_)
        )),
    ];
    let leaf = prop::collection::vec((path(), field), 0..3).prop_map(|fields| fields.into_iter().collect::<Document>());
    leaf.prop_recursive(2, 6, 2, |inner| {
        let branches = prop::collection::vec(inner, 1..3);
        (prop::sample::select(vec!["$and", "$or", "$nor"]), branches)
            .prop_map(|(operator, branches)| doc! {operator: branches})
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn filters_match_as_the_naive_evaluator_does(filter in any_filter(), documents in prop::collection::vec(any_fields(any_value()), 1..6)) {
        let raw = RawDocumentBuf::try_from(&filter).unwrap();
        let parsed = Filter::parse(&raw).unwrap();
        for document in documents {
            let raw = RawDocumentBuf::try_from(&document).unwrap();
            let found = parsed.matches(&raw, &super::context()).unwrap();
            prop_assert_eq!(found, matches(&filter, &document), "{} {}", filter, document);
        }
    }
}
