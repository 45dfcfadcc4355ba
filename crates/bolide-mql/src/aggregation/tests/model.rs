//! Random pipelines of `$match`, `$group`, `$sort`, `$skip` and `$limit` against an evaluator that knows only documents of two fields with
//! small whole numbers, written from the reference.

use proptest::prelude::*;

use super::run;
use crate::value::testing::documents;

/// A document `{a, b}`; `None` is a missing field.
type Row = (Option<i32>, Option<i32>);

#[derive(Debug, Clone)]
enum Step {
    /// `{a: {$gte: n}}`
    AtLeast(i32),
    /// `{b: n}`; `None` is null, which matches missing fields.
    Equals(Option<i32>),
    /// The orders of `a` and `b`, true for descending.
    Sort(bool, bool),
    Skip(usize),
    Limit(usize),
    /// Groups by `a`; `b` becomes the sum, and `a` the key.
    Group,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (-3..3).prop_map(Step::AtLeast),
        proptest::option::of(-2..2).prop_map(Step::Equals),
        any::<(bool, bool)>().prop_map(|(a, b)| Step::Sort(a, b)),
        (0usize..4).prop_map(Step::Skip),
        (1usize..8).prop_map(Step::Limit),
        Just(Step::Group),
    ];
    proptest::collection::vec(step, 0..6)
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let value = || proptest::option::weighted(0.8, -3..3);
    proptest::collection::vec((value(), value()), 0..20)
}

fn stage(step: &Step) -> String {
    let direction = |is_descending: bool| if is_descending { -1 } else { 1 };
    match step {
        Step::AtLeast(least) => format!(r#"{{"$match": {{"a": {{"$gte": {least}}}}}}}"#),
        Step::Equals(Some(value)) => format!(r#"{{"$match": {{"b": {value}}}}}"#),
        Step::Equals(None) => r#"{"$match": {"b": null}}"#.to_owned(),
        Step::Sort(a, b) => format!(r#"{{"$sort": {{"a": {}, "b": {}}}}}"#, direction(*a), direction(*b)),
        Step::Skip(count) => format!(r#"{{"$skip": {count}}}"#),
        Step::Limit(count) => format!(r#"{{"$limit": {count}}}"#),
        Step::Group => {
            r#"{"$group": {"_id": "$a", "b": {"$sum": "$b"}}}, {"$project": {"_id": 0, "a": "$_id", "b": 1}}"#
                .to_owned()
        }
    }
}

fn apply(step: &Step, mut rows: Vec<Row>) -> Vec<Row> {
    match step {
        Step::AtLeast(least) => rows.retain(|(a, _)| a.is_some_and(|a| a >= *least)),
        Step::Equals(value) => rows.retain(|(_, b)| b == value),
        // `None`, null and missing, is below all numbers, as in MongoDB.
        Step::Sort(a, b) => rows.sort_by(|x, y| {
            let of_a = if *a { y.0.cmp(&x.0) } else { x.0.cmp(&y.0) };
            let of_b = if *b { y.1.cmp(&x.1) } else { x.1.cmp(&y.1) };
            of_a.then(of_b)
        }),
        Step::Skip(count) => {
            rows.drain(..(*count).min(rows.len()));
        }
        Step::Limit(count) => rows.truncate(*count),
        Step::Group => {
            let mut groups: Vec<Row> = Vec::new();
            for (a, b) in rows {
                let b = b.unwrap_or(0);
                match groups.iter_mut().find(|(key, _)| *key == a) {
                    Some((_, sum)) => *sum = sum.map(|sum| sum + b),
                    None => groups.push((a, Some(b))),
                }
            }
            rows = groups;
        }
    }
    rows
}

fn json(rows: &[Row]) -> String {
    let field = |name: &str, value: Option<i32>| value.map(|value| format!(r#""{name}": {value}"#));
    let row = |(a, b): &Row| {
        let fields: Vec<String> = [field("a", *a), field("b", *b)].into_iter().flatten().collect();
        format!("{{{}}}", fields.join(","))
    };
    format!("[{}]", rows.iter().map(row).collect::<Vec<_>>().join(","))
}

/// Reads rows; null is as missing.
fn read(documents: &[bson::RawDocumentBuf]) -> Vec<Row> {
    let value = |document: &bson::RawDocumentBuf, name: &str| document.get_i32(name).ok();
    documents
        .iter()
        .map(|document| (value(document, "a"), value(document, "b")))
        .collect()
}

proptest! {
    #[test]
    fn random_pipelines_agree_with_the_model(steps in steps(), rows in rows()) {
        let pipeline = format!("[{}]", steps.iter().map(stage).collect::<Vec<_>>().join(","));
        let input = json(&rows);
        prop_assert_eq!(read(&documents(&input)), rows.clone());
        let expected = steps.iter().fold(rows, |rows, step| apply(step, rows));
        let found = run(&pipeline, &input).unwrap();
        prop_assert_eq!(read(&found), expected, "{}", pipeline);
    }
}
