//! Keys of several paths against the evaluation, over random items and filters.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::tests::{constant, filter, item, numbered, parameters, rows};
use super::*;
use crate::execution::Execution;
use crate::path::PathStep;
use crate::schema::{CompositePath as SchemaPath, PartitionKeyKind, Schema};
use crate::{Environment, PageLimit, Query};

fn index(paths: &[(&str, bool)]) -> CompositeIndex {
    let path = |(name, descending): &(&str, bool)| CompositePath {
        path: IndexPath::of_steps(&[PathStep::name(name)]).expect("a path"),
        descending: *descending,
    };
    CompositeIndex::of(paths.iter().map(path).collect()).expect("an index")
}

/// A container with this composite index and no other included paths.
fn schema(paths: &[(&str, bool)]) -> Schema {
    let mut schema = Schema::container(vec![vec!["id".to_owned()]], PartitionKeyKind::Hash);
    let path = |(name, descending): &(&str, bool)| SchemaPath {
        path: vec![PathStep::name(name)],
        descending: *descending,
    };
    let indexing = schema.indexing.as_mut().expect("it has one");
    indexing.composite.push(paths.iter().map(path).collect());
    schema
}

fn key(index: &CompositeIndex, item: &str) -> Vec<u8> {
    index.key(&Item::complete(item.as_bytes()).expect("UTF-8"))
}

/// Reads pages of rows by their entries, in the way of the core: keys that are not wanted any more are left out. Returns the numbers of the rows.
fn read_pages(
    query: &Query,
    order: &CompositeOrder,
    entries: &[(Vec<u8>, usize)],
    items: &[String],
    size: usize,
) -> Vec<usize> {
    let (mut found, mut resume) = (Vec::new(), None::<String>);
    loop {
        let limit = PageLimit {
            rows: size,
            ..PageLimit::NONE
        };
        let mut page = query
            .execution(Environment::default(), limit, resume.as_deref())
            .expect("a page");
        let mut pushed = BTreeSet::new();
        for part in &order.parts {
            let mut read: Vec<&(Vec<u8>, usize)> = entries.iter().filter(|(key, _)| part.keys.contains(key)).collect();
            if order.is_backward {
                read.reverse();
            }
            for (key, number) in read {
                if is_wanted(&page, order, part, key) && pushed.insert(number) {
                    page.push(items[*number].as_bytes(), *number as u64).expect("no error");
                }
            }
        }
        let finished = page.finish(true).expect("it ends");
        let numbers = finished
            .rows
            .iter()
            .map(|row| serde_json::from_slice::<usize>(row).expect("a number"));
        found.extend(numbers);
        resume = finished.resume;
        if resume.is_none() || found.len() > items.len() {
            return found;
        }
    }
}

fn is_wanted(page: &Execution, order: &CompositeOrder, part: &OrderedKeys, key: &[u8]) -> bool {
    let rows = page.wanted_composite_keys(order).expect("a sorted query");
    part.wanted(&rows).is_some_and(|wanted| wanted.contains(key))
}

/// The keys of items, followed by their numbers as in entries.
fn entries(index: &CompositeIndex, items: &[String]) -> Vec<(Vec<u8>, usize)> {
    let entry = |(n, item): (usize, &String)| ([key(index, item), (n as u64).to_be_bytes().to_vec()].concat(), n);
    let mut entries: Vec<_> = items.iter().enumerate().map(entry).collect();
    entries.sort();
    entries
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn entries_in_order_give_the_rows_of_a_scan(
        items in prop::collection::vec(item(), 0..30),
        (mixed, turned, has_third) in any::<(bool, bool, bool)>(),
        (equal, more) in (proptest::option::of(constant()), proptest::option::of(filter())),
        size in 1_usize..6,
    ) {
        let items = numbered(&items);
        let names = [("a", false), ("b", mixed)];
        let longer = [("a", false), ("b", mixed), ("n", false)];
        let index = index(if has_third { &longer } else { &names });
        let by = |descends: bool| if descends != turned { "DESC" } else { "ASC" };
        let more = more.filter(|more| !more.contains("elem")).unwrap_or_else(|| "true".to_owned());
        let text = match &equal {
            Some(equal) => format!("SELECT VALUE c.n FROM c WHERE c.a = {equal} AND {more} ORDER BY c.b {}", by(mixed)),
            None => format!("SELECT VALUE c.n FROM c WHERE {more} ORDER BY c.a {}, c.b {}", by(false), by(mixed)),
        };
        let Ok(query) = Query::compile(&text, &parameters(), &schema(&names)) else {
            return Err(TestCaseError::fail(format!("{text} does not compile")));
        };
        let expected = rows(&query, &items);
        let conditions = query.index_conditions();
        let order = query.composite_order(&index, &conditions);
        // A long string, an array or a value that equals none is not a beginning of keys.
        prop_assert!(order.is_some() || equal.is_some(), "{}", text);
        let entries = entries(&index, &items);
        if let Some(order) = order {
            prop_assert_eq!(read_pages(&query, &order, &entries, &items, size), expected.clone(), "{} by {}", text, size);
        }
        if let Some(intervals) = index.intervals(&conditions) {
            for number in expected {
                let key = key(&index, &items[number]);
                let admits = intervals.iter().any(|interval| interval.contains(&key));
                prop_assert!(admits, "{} leaves out {}", text, items[number]);
            }
        }
    }
}

proptest! {
    #[test]
    fn a_key_of_single_values_gives_an_item_with_that_key(text in item(), turned: bool) {
        let index = index(&[("a", false), ("b", turned)]);
        let own = key(&index, &text);
        let made = [index.item_with_key(&own), index.item_with_key_and_id(&own, "i\"d")];
        let members: serde_json::Value = serde_json::from_str(&text.replace("e400", "e300")).expect("JSON");
        let is_plain = |name: &str| members.get(name).is_some_and(|value| !value.is_array() && !value.is_object());
        let has_own_key = is_plain("a") && is_plain("b") && own.len() < KEY_BYTES;
        for (made, id) in made.iter().zip([None, Some("i\"d")]) {
            // A key of just the maximal length may be a cut one.
            prop_assert!(made.is_some() == has_own_key || own.len() == KEY_BYTES, "{}", text);
            let Some(made) = made else { continue };
            let made = std::str::from_utf8(made).expect("UTF-8");
            prop_assert_eq!(key(&index, made), own.clone(), "{} from {}", made, text);
            let parsed: serde_json::Value = serde_json::from_str(&made.replace("e400", "e300")).expect("JSON");
            prop_assert_eq!(parsed.get("id").and_then(|own| own.as_str()), id);
        }
    }
}

#[test]
fn paths_below_one_property_have_no_items() {
    let path = |text: &str| CompositePath {
        path: IndexPath::parse(text).expect("a path"),
        descending: false,
    };
    let index = |paths: &[&str]| CompositeIndex::of(paths.iter().map(|text| path(text)).collect()).expect("an index");
    assert!(index(&["/o/a", "/p/a"]).has_items());
    assert!(!index(&["/o/a", "/p/a", "/o/b"]).has_items());
}

#[test]
fn conditions_are_intervals_behind_equal_values() {
    let index = index(&[("a", false), ("b", true)]);
    let number_of = |filter: &str| {
        let text = format!("SELECT * FROM c WHERE {filter}");
        let query = Query::compile(&text, &parameters(), &schema(&[("a", false), ("b", true)])).expect("a query");
        index
            .intervals(&query.index_conditions())
            .map(|intervals| intervals.len())
    };
    assert_eq!(number_of("c.a = 1 AND c.b > 5"), Some(1));
    assert_eq!(number_of("c.a IN (1, 2, 3) AND c.b > 5"), Some(3));
    assert_eq!(number_of("c.a IN (1, 2, 3) AND c.b IN (4, 5)"), Some(6));
    assert_eq!(
        number_of("c.a = 1 AND c.b != 5"),
        Some(3),
        "below, above, and arrays and objects"
    );
    // An index on one path does the same.
    assert_eq!(number_of("c.a = 1"), None);
    assert_eq!(number_of("c.b = 1"), None);
    assert_eq!(number_of("c.a > 1 AND c.b = 1"), None);
}

#[test]
fn the_size_of_the_intervals_is_bounded() {
    let index = index(&[("a", false), ("b", false), ("c", false)]);
    let list = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let text = format!(
        "SELECT * FROM c WHERE c.a IN ({0}) AND c.b IN ({0}) AND c.c > 1",
        list(900)
    );
    let query = Query::compile(&text, &parameters(), &Schema::metadata()).expect("a query");
    assert_eq!(index.intervals(&query.index_conditions()), None);
    let text = format!(
        "SELECT * FROM c WHERE c.a IN ({0}) AND c.b IN ({0}) AND c.c IN ({0})",
        list(30)
    );
    let query = Query::compile(&text, &parameters(), &Schema::metadata()).expect("a query");
    let intervals = index.intervals(&query.index_conditions());
    assert_eq!(
        intervals.map(|intervals| intervals.len()),
        Some(900),
        "those of the first two paths"
    );
}
