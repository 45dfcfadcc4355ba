//! Whatever the values and the order, a filter keeps the rows from a position on, in the same order.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::schema::{CompositePath, PartitionKeyKind};
use crate::{Environment, PageLimit, Parameters, PathStep, Query, Schema};

/// A row's item, and its sort values.
type Row = (u64, Vec<SortValue>);

fn sort_values() -> impl Strategy<Value = Option<Json>> {
    proptest::option::of(prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        (-2..3_i64).prop_map(Json::from),
        Just(json!(0.5)),
        Just(json!(1.0e300)),
        "[a\"\u{e9}]{0,2}".prop_map(Json::from),
        prop::collection::vec(0..2_i64, 0..3).prop_map(Json::from),
        (0..2_i64).prop_map(|x| json!({"x": x})),
    ])
}

fn schema(descending: [bool; 2]) -> Schema {
    let path = |(name, descending): (&str, bool)| CompositePath {
        path: vec![PathStep::name(name)],
        descending,
    };
    let composite = ["a", "b"].into_iter().zip(descending).map(path).collect();
    let mut schema = Schema::container(vec![vec!["id".into()]], PartitionKeyKind::Hash);
    schema.indexing.as_mut().unwrap().composite.push(composite);
    schema
}

/// The `n` of all rows, in pages of `size`, each of which reads all items again.
fn rows(query: &Query, items: &[Json], size: usize, filter: Option<&Json>) -> Result<Vec<u64>> {
    let filter = filter
        .map(|filter| ResumeFilter::from_json(filter, |rid| rid.parse().ok()))
        .transpose()?
        .map(Arc::new);
    let limit = PageLimit {
        rows: size,
        ..PageLimit::NONE
    };
    let (mut all, mut resume) = (Vec::new(), None::<String>);
    loop {
        let mut page = query.filtered_execution(Environment::default(), limit, resume.as_deref(), filter.clone())?;
        for (rid, item) in items.iter().enumerate() {
            page.push(item.to_string().as_bytes(), rid as u64)?;
        }
        let finished = page.finish(true)?;
        all.extend(
            finished
                .rows
                .iter()
                .map(|row| serde_json::from_slice::<u64>(row).unwrap()),
        );
        resume = finished.resume;
        if resume.is_none() {
            return Ok(all);
        }
        assert!(all.len() <= items.len(), "pages never end");
    }
}

/// The sort values of an item. Under a composite index arrays and objects count as undefined.
fn sorted_by(item: &Json, keys: usize) -> Vec<SortValue> {
    let value = |name: &&str| match item.get(name) {
        Some(Json::Array(_) | Json::Object(_)) if keys > 1 => SortValue::Undefined,
        Some(value) => SortValue::new(&Value::from(value)),
        None => SortValue::Undefined,
    };
    ["a", "b"][..keys].iter().map(value).collect()
}

/// A sort value as clients write it.
fn written(value: &SortValue) -> Json {
    let hashed = |kind: &str, hash: &[u8; 16]| {
        let half = |at: usize| i64::from_le_bytes(hash[at..at + 8].try_into().unwrap());
        json!({"type": kind, "low": half(0), "high": half(8)})
    };
    match value {
        SortValue::Undefined => json!([]),
        SortValue::Null => Json::Null,
        SortValue::Bool(value) => json!(value),
        SortValue::Number(number) => match number.as_i64() {
            Some(whole) => json!(whole),
            None => json!(number.as_f64()),
        },
        SortValue::String(text) => json!(text),
        SortValue::Array(hash) => hashed("array", hash),
        SortValue::Object(hash) => hashed("object", hash),
        SortValue::Cut { .. } => unreachable!("only continuations cut"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_filter_leaves_the_rows_from_its_place_on(
        values in prop::collection::vec((sort_values(), sort_values()), 1..20),
        keys in 1..3_usize,
        descending in any::<[bool; 2]>(),
        at in any::<prop::sample::Index>(),
        size in 1..6_usize,
    ) {
        let items: Vec<Json> = values.into_iter().enumerate().map(|(n, (a, b))| {
            let mut item = json!({"n": n});
            for (name, value) in [("a", a), ("b", b)] {
                if let Some(value) = value { item[name] = value; }
            }
            item
        }).collect();
        let order: Vec<String> = ["c.a", "c.b"][..keys].iter().zip(descending)
            .map(|(path, down)| format!("{path} {}", if down { "DESC" } else { "ASC" }))
            .collect();
        let text = format!("SELECT VALUE c.n FROM c ORDER BY {}", order.join(", "));
        let query = Query::compile(&text, &Parameters::none(), &schema(descending)).unwrap();
        let all: Vec<Row> = rows(&query, &items, 1_000, None).unwrap().into_iter()
            .map(|n| (n, sorted_by(&items[n as usize], keys)))
            .collect();
        let at = at.index(all.len());
        let (rid, values) = &all[at];
        let is_equal = |row: &Row| row.1.iter().zip(values).all(|(a, b)| a.order(b).is_eq());
        let first = all.iter().position(is_equal).unwrap();
        let behind = all.iter().rposition(is_equal).unwrap() + 1;
        let value: Vec<Json> = values.iter().map(written).collect();
        for (filter, from) in [
            (json!({"value": value}), first),
            (json!({"value": value, "exclude": false, "rid": null}), first),
            (json!({"value": value, "rid": rid.to_string()}), at),
            (json!({"value": value, "exclude": true}), behind),
        ] {
            let expected: Vec<u64> = all[from..].iter().map(|(n, _)| *n).collect();
            prop_assert_eq!(rows(&query, &items, size, Some(&filter)).unwrap(), expected, "{} {}", text, filter);
        }
    }
}
