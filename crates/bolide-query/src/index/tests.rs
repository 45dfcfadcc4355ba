//! Conditions and orders against the evaluation, over random items and filters.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::select;

use super::{IndexPath, Interval, is_exact};
use crate::schema::{PartitionKeyKind, Schema};
use crate::value::Item;
use crate::{Environment, Execution, PageLimit, Parameters, Query};

/// JSON texts of values around which rules change. SQL has the same literals, except for signs and for the last ones.
fn primitives() -> Vec<String> {
    let plain = [
        "null",
        "false",
        "true",
        "0",
        "-0.0",
        "1",
        "1.0",
        "-1",
        "1.5",
        "-1.5",
        "2",
        "1e400",
        "-1e400",
        "5e-324",
        "9007199254740991",
        "9007199254740992",
        "9007199254740992.0",
        "9007199254740993",
        "9007199254740994",
        "-9007199254740993",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "9223372036854775809",
        "18446744073709551615",
        r#""""#,
        r#""a""#,
        r#""ab""#,
        r#""b""#,
        r#""a\u0000""#,
        r#""a\u0000b""#,
        r#""\u00e9""#,
        r#""%""#,
        r#""1""#,
        r#""true""#,
        r#""\uD83D\uDE00""#,
    ];
    plain.iter().map(ToString::to_string).chain(long_strings()).collect()
}

/// Strings about as long as a key, and longer.
fn long_strings() -> Vec<String> {
    let ends = [
        (996, ""),
        (997, ""),
        (998, ""),
        (998, "y"),
        (1_200, "a"),
        (1_200, "b"),
        (996, "\\u0000"),
        (997, "\\u0000"),
    ];
    let text = |(count, end)| format!("\"{}{end}\"", "x".repeat(count));
    ends.map(text).to_vec()
}

fn values() -> Vec<String> {
    let containers = [
        "[]",
        "[1]",
        "[\"a\"]",
        "[[1]]",
        "{}",
        "{\"a\":1}",
        "{\"a\":1,\"b\":[1]}",
    ];
    containers.iter().map(ToString::to_string).chain(primitives()).collect()
}

fn value() -> impl Strategy<Value = String> {
    // Few values most of the time, so that filters find something.
    let few = select(vec!["1", "2", "\"a\"", "true", "null"]).prop_map(str::to_owned);
    prop_oneof![4 => select(values()), 4 => few, 1 => select(long_strings())]
}

/// The text of an item; `n` is its number.
pub(super) fn item() -> impl Strategy<Value = String> {
    let list = prop::collection::vec(value(), 0..4).prop_map(|list| format!("[{}]", list.join(",")));
    let nested = value().prop_map(|value| format!("{{\"a\":{value}}}"));
    let members = (
        proptest::option::of(value()),
        proptest::option::of(value()),
        proptest::option::of(prop_oneof![4 => list, 1 => value()]),
        proptest::option::of(prop_oneof![4 => nested, 1 => value()]),
    );
    members.prop_map(|(a, b, l, o)| {
        let members = [("a", a), ("b", b), ("l", l), ("o", o)];
        let members = members
            .iter()
            .filter_map(|(name, value)| Some(format!("\"{name}\":{}", value.as_ref()?)));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    })
}

/// A constant as a literal or a parameter. A parameter has no number beyond the doubles.
pub(super) fn constant() -> impl Strategy<Value = String> {
    let all = values();
    let by_number = (0..all.len()).prop_map(|n| format!("@v{n}"));
    let literals: Vec<String> = all
        .into_iter()
        .chain(["undefined".to_owned(), "SQRT(-1)".to_owned()])
        .collect();
    prop_oneof![
        2 => select(literals),
        2 => by_number,
        1 => select(long_strings()),
        3 => select(vec!["1", "2", "'a'", "true", "null"]).prop_map(str::to_owned),
    ]
}

pub(super) fn parameters() -> Parameters {
    let all = values();
    let named = all.iter().enumerate();
    named.fold(Parameters::none(), |list, (n, json)| {
        list.clone().with_text(format!("@v{n}"), json).unwrap_or(list)
    })
}

fn path() -> impl Strategy<Value = &'static str> {
    select(vec![
        "c.a", "c.b", "c.a", "c['a']", "c.o.a", "c.l", "c.l[0]", "c.l[1]", "elem", "elem.a", "c.n",
    ])
}

fn comparison() -> impl Strategy<Value = String> {
    select(vec!["=", "!=", "<", "<=", ">", ">="]).prop_map(str::to_owned)
}

fn predicate() -> impl Strategy<Value = String> {
    let list = || prop::collection::vec(constant(), 1..8).prop_map(|list| list.join(", "));
    let test = select(vec![
        "IS_DEFINED",
        "IS_NULL",
        "IS_BOOL",
        "IS_BOOLEAN",
        "IS_NUMBER",
        "IS_STRING",
        "IS_ARRAY",
        "IS_OBJECT",
        "IS_PRIMITIVE",
        "IS_INTEGER",
        "IS_FINITE_NUMBER",
        "IS_DATETIME",
    ]);
    let flag = || select(vec!["", ", false", ", true", ", c.b"]);
    let pattern = select(vec!["a%", "a", "%", "a_", "_b", "[ab]%", "", "a%b", "\\u00e9%", "x%"]);
    let array = select(vec!["c.l", "c.a", "c.o", "c.l[0]"]);
    prop_oneof![
        4 => (path(), comparison(), constant()).prop_map(|(p, op, k)| format!("{p} {op} {k}")),
        2 => (path(), comparison(), constant()).prop_map(|(p, op, k)| format!("{k} {op} {p}")),
        2 => (path(), constant(), constant()).prop_map(|(p, a, b)| format!("({p} BETWEEN {a} AND {b})")),
        1 => (path(), path(), constant()).prop_map(|(p, q, a)| format!("({p} BETWEEN {a} AND {q})")),
        2 => (path(), list()).prop_map(|(p, list)| format!("{p} IN ({list})")),
        1 => (path(), list()).prop_map(|(p, list)| format!("{p} NOT IN ({list})")),
        1 => (path(), constant(), flag()).prop_map(|(p, k, flag)| format!("STARTSWITH({p}, {k}{flag})")),
        1 => (path(), constant(), flag()).prop_map(|(p, k, flag)| format!("STRINGEQUALS({k}, {p}{flag})")),
        1 => (path(), pattern).prop_map(|(p, pattern)| format!("{p} LIKE \"{pattern}\"")),
        2 => (test, path()).prop_map(|(test, p)| format!("{test}({p})")),
        1 => path().prop_map(str::to_owned),
        1 => (path(), path(), comparison()).prop_map(|(p, q, op)| format!("{p} {op} {q}")),
        1 => (array.clone(), constant(), flag()).prop_map(|(l, k, flag)| format!("ARRAY_CONTAINS({l}, {k}{flag})")),
        1 => (path(), list(), flag()).prop_map(|(p, list, flag)| format!("ARRAY_CONTAINS([{list}], {p}{flag})")),
        1 => (array.clone(), list()).prop_map(|(l, list)| format!("ARRAY_CONTAINS_ANY({l}, {list})")),
        1 => (array.clone(), list()).prop_map(|(l, list)| format!("ARRAY_CONTAINS_ALL({l}, {list})")),
        1 => (array.clone(), comparison(), constant())
            .prop_map(|(l, op, k)| format!("EXISTS(SELECT VALUE COUNT(1) FROM e IN {l} WHERE e {op} {k})")),
        1 => (array.clone(), constant(), constant())
            .prop_map(|(l, a, b)| format!("(ARRAY_CONTAINS({l}, {a}) AND ARRAY_CONTAINS({l}, {b}))")),
        1 => (array, comparison(), constant())
            .prop_map(|(l, op, k)| format!("EXISTS(SELECT VALUE e FROM e IN {l} WHERE e {op} {k} AND c.b != 2)")),
    ]
}

pub(super) fn filter() -> impl Strategy<Value = String> {
    let leaf =
        prop_oneof![12 => predicate(), 1 => Just("false".to_owned()), 1 => Just("CONTAINS(c.a, 'a')".to_owned())];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let list = || prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            2 => list().prop_map(|list| format!("({})", list.join(" AND "))),
            2 => list().prop_map(|list| format!("({})", list.join(" OR "))),
            1 => inner.prop_map(|operand| format!("NOT ({operand})")),
        ]
    })
}

/// Items with their numbers, as `n`.
pub(super) fn numbered(items: &[String]) -> Vec<String> {
    let text = |(n, item): (usize, &String)| match item.as_str() {
        "{}" => format!("{{\"n\":{n}}}"),
        item => format!("{{\"n\":{n},{}", &item[1..]),
    };
    items.iter().enumerate().map(text).collect()
}

/// The numbers of the items in the rows, in order.
pub(super) fn rows(query: &Query, items: &[String]) -> Vec<usize> {
    let page = query.execution(Environment::default(), PageLimit::NONE, None);
    let mut page = page.expect("a page");
    for (rid, item) in items.iter().enumerate() {
        page.push(item.as_bytes(), rid as u64).expect("no error");
    }
    let finished = page.finish(true).expect("it ends");
    let numbers = finished
        .rows
        .iter()
        .map(|row| serde_json::from_slice(row).expect("a number"));
    numbers.collect()
}

/// Sorted, not empty, without overlaps, and no key is apart from what follows it.
fn is_well_formed(intervals: &[Interval], keys: &[Vec<u8>]) -> bool {
    let not_empty = |own: &Interval| own.to.as_ref().is_none_or(|to| own.from < *to);
    let apart = |pair: &[Interval]| pair[0].to.as_ref().is_some_and(|to| *to <= pair[1].from);
    let stays = |own: &Interval, key: &Vec<u8>| {
        let with = |more: u8| [key.as_slice(), &[more; 9]].concat();
        own.contains(key) == own.contains(&with(0)) && own.contains(key) == own.contains(&with(0xFF))
    };
    intervals.iter().all(not_empty)
        && intervals.windows(2).all(apart)
        && intervals.iter().all(|own| keys.iter().all(|key| stays(own, key)))
}

fn keys(path: &IndexPath, item: &str) -> Vec<Vec<u8>> {
    path.keys(&Item::complete(item.as_bytes()).expect("UTF-8"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn every_item_with_a_row_has_a_key_that_each_condition_admits(
        filter in filter(),
        items in prop::collection::vec(item(), 1..12),
    ) {
        let items = numbered(&items);
        let join = if filter.contains("elem") { " JOIN elem IN c.l" } else { "" };
        let text = format!("SELECT VALUE c.n FROM c{join} WHERE {filter}");
        let Ok(query) = Query::compile(&text, &parameters(), &Schema::metadata()) else {
            return Err(TestCaseError::fail(format!("{text} does not compile")));
        };
        let found: BTreeSet<usize> = rows(&query, &items).into_iter().collect();
        for condition in query.index_conditions() {
            for (n, item) in items.iter().enumerate() {
                let keys = keys(&condition.path, item);
                prop_assert!(is_well_formed(&condition.intervals, &keys), "{}: {:?}", text, condition);
                if found.contains(&n) {
                    prop_assert!(condition.admits(&keys), "{} leaves out {} by {:?}", text, item, condition);
                }
            }
        }
    }

    #[test]
    fn keys_come_in_the_order_of_sorted_rows(items in prop::collection::vec(item(), 0..25), descending: bool) {
        let items = numbered(&items);
        let direction = if descending { "DESC" } else { "ASC" };
        let text = format!("SELECT VALUE c.n FROM c ORDER BY c.a {direction}");
        let schema = Schema::container(vec![vec!["id".to_owned()]], PartitionKeyKind::Hash);
        let query = Query::compile(&text, &Parameters::none(), &schema).expect("a query");
        let order = query.index_order().expect("one path");
        prop_assert_eq!((order.path.to_string(), order.descending), ("/a/?".to_owned(), descending));
        let mut entries: Vec<(Vec<u8>, usize)> = items
            .iter()
            .enumerate()
            .flat_map(|(n, item)| keys(&order.path, item).into_iter().map(move |key| (key, n)))
            .collect();
        entries.sort();
        if descending {
            entries.reverse();
        }
        let sorted = rows(&query, &items);
        let key_of = |n: &usize| keys(&order.path, &items[*n]).remove(0);
        let keys: Vec<Vec<u8>> = sorted.iter().map(key_of).collect();
        prop_assert_eq!(&keys, &entries.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>());
        for ((n, key), (_, expected)) in sorted.iter().zip(&keys).zip(&entries) {
            prop_assert!(n == expected || !is_exact(key), "{} and {} have the key {:?}", n, expected, key);
        }
    }

    #[test]
    fn keys_alone_give_what_the_items_give(
        text in select(covered()),
        filter in proptest::option::of(covered_filter()),
        items in prop::collection::vec(item(), 0..25),
    ) {
        let items = numbered(&items);
        let filter = filter.map_or_else(String::new, |filter| format!(" WHERE {filter}"));
        let text = text.replace("{filter}", &filter);
        let schema = Schema::container(vec![vec!["id".to_owned()]], PartitionKeyKind::Hash);
        let query = Query::compile(&text, &parameters(), &schema).expect("a query");
        let Some(path) = query.covering_path() else {
            // Without a filter, or with one that is constant, nothing is read.
            prop_assert!(text.contains("COUNT(1) FROM c"), "{} reads more", text);
            return Ok(());
        };
        prop_assert_eq!(path.to_string(), "/a/?");
        let conditions = query.index_conditions();
        let admits = |keys: &[Vec<u8>]| conditions.iter().all(|condition| condition.path != path || condition.admits(keys));
        let (mut covered, mut runs) = (Vec::new(), BTreeMap::<Vec<u8>, (usize, u64)>::new());
        for (number, item) in items.iter().enumerate() {
            let mut keys = keys(&path, item);
            if keys.is_empty() {
                keys.push(super::KEY_OF_UNDEFINED.to_vec());
            }
            if admits(&keys) {
                covered.push(path.item_with_key(&keys[0]));
                runs.entry(keys.remove(0)).or_insert((number, 0)).1 += 1;
            }
        }
        let Some(covered) = covered.into_iter().collect::<Option<Vec<_>>>() else {
            // An array, an object or a long string.
            return Ok(());
        };
        let covered: Vec<String> = covered.into_iter().map(|item| String::from_utf8(item).expect("JSON")).collect();
        prop_assert_eq!(texts(&query, &covered), texts(&query, &items), "{}", text);
        if query.counts_condition() {
            let admitted = runs.values().map(|(_, times)| *times).sum();
            let mut page = query.execution(Environment::default(), PageLimit::NONE, None).expect("a page");
            page.push_counted(admitted);
            prop_assert_eq!(rows_of(page), texts(&query, &items), "{}", text);
        }
        if query.counts_runs() {
            let mut runs: Vec<_> = runs.into_iter().collect();
            runs.sort_by_key(|(_, (first, _))| *first);
            let mut page = query.execution(Environment::default(), PageLimit::NONE, None).expect("a page");
            for (key, (first, times)) in &runs {
                let item = path.item_with_key(key).expect("an item");
                page.push_covered_run(&item, *times, *first as u64).expect("no error");
            }
            prop_assert_eq!(rows_of(page), texts(&query, &items), "{}", text);
        }
    }

    #[test]
    fn keys_and_ids_give_the_rows_that_the_items_give(
        text in select(rows_of_key_and_id()),
        filter in proptest::option::of(covered_filter()),
        items in prop::collection::vec(item(), 0..25),
        ids in prop::collection::vec("[a\u{e9}\u{1F600}/\"\\\\\u{1}\u{7f} ]{1,6}", 25),
    ) {
        let with_id = |(item, id): (&String, &String)| {
            let members = item.strip_prefix('{').expect("an object");
            let comma = if members == "}" { "" } else { "," };
            format!("{{\"id\":{}{comma}{members}", serde_json::Value::from(id.as_str()))
        };
        let items: Vec<String> = items.iter().zip(&ids).map(with_id).collect();
        let filter = filter.map_or_else(String::new, |filter| format!(" WHERE {filter}"));
        let text = text.replace("{filter}", &filter);
        let schema = Schema::container(vec![vec!["id".to_owned()]], PartitionKeyKind::Hash);
        let query = Query::compile(&text, &parameters(), &schema).expect("a query");
        let path = IndexPath::parse("/a/?").expect("a path");
        prop_assert!(query.covers_rows(&path), "{}", text);
        let conditions = query.index_conditions();
        let admits = |keys: &[Vec<u8>]| conditions.iter().all(|condition| condition.path != path || condition.admits(keys));
        let mut page = query.execution(Environment::default(), PageLimit::NONE, None).expect("a page");
        for (number, (item, id)) in items.iter().zip(&ids).enumerate() {
            let mut keys = keys(&path, item);
            if keys.is_empty() {
                keys.push(super::KEY_OF_UNDEFINED.to_vec());
            }
            if !admits(&keys) {
                continue;
            }
            let Some(covered) = path.item_with_key_and_id(&keys[0], id) else {
                // An array, an object or a long string.
                return Ok(());
            };
            page.push_covered_row(&covered, 1, number as u64).expect("no error");
        }
        prop_assert_eq!(rows_of(page), texts(&query, &items), "{}", text);
    }
}

/// Queries whose rows are made of `c.a` and `c.id` only.
fn rows_of_key_and_id() -> Vec<&'static str> {
    vec![
        "SELECT VALUE c.id FROM c{filter}",
        "SELECT c.id, c.a FROM c{filter}",
        "SELECT VALUE c.a FROM c{filter}",
        "SELECT VALUE {k: c.a, l: LENGTH(c.id)} FROM c{filter}",
        "SELECT VALUE [c.a, UPPER(c.id), c.id = c.a] FROM c{filter}",
        "SELECT TOP 3 c.id, c.a FROM c{filter} ORDER BY c.a",
        "SELECT c.id, c.a FROM c{filter} ORDER BY c.a DESC OFFSET 1 LIMIT 4",
        "SELECT VALUE c.id FROM c{filter} ORDER BY c.id",
    ]
}

/// Queries that read only `c.a`.
fn covered() -> Vec<&'static str> {
    vec![
        "SELECT VALUE COUNT(1) FROM c{filter}",
        "SELECT COUNT(1) AS n, COUNT(c.a) AS a, MIN(c.a) AS low, MAX(c.a) AS high FROM c{filter}",
        "SELECT VALUE SUM(c.a) FROM c{filter}",
        "SELECT VALUE AVG(c.a) FROM c{filter}",
        "SELECT c.a, COUNT(1) AS n FROM c{filter} GROUP BY c.a",
        "SELECT VALUE {k: c.a, n: COUNT(1)} FROM c{filter} GROUP BY c.a",
        "SELECT COUNT(1) AS n, LENGTH(c.a) AS l FROM c{filter} GROUP BY LENGTH(c.a)",
        "SELECT DISTINCT VALUE c.a FROM c{filter} GROUP BY c.a",
        "SELECT DISTINCT VALUE c.a FROM c{filter}",
        "SELECT DISTINCT TOP 3 LENGTH(c.a) AS l FROM c{filter}",
    ]
}

fn covered_filter() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => (comparison(), constant()).prop_map(|(op, k)| format!("c.a {op} {k}")),
        1 => (constant(), constant()).prop_map(|(a, b)| format!("(c.a BETWEEN {a} AND {b})")),
        1 => prop::collection::vec(constant(), 1..5).prop_map(|list| format!("c.a IN ({})", list.join(", "))),
        1 => select(vec!["IS_DEFINED(c.a)", "NOT IS_DEFINED(c.a)", "IS_NUMBER(c.a)", "IS_STRING(c.a)", "IS_INTEGER(c.a)"])
            .prop_map(str::to_owned),
        1 => select(vec!["c.a LIKE 'a%'", "CONTAINS(c.a, 'b')", "c.a", "NOT c.a", "c.a % 2 = 0", "c.a != 1"])
            .prop_map(str::to_owned),
    ]
}

/// The rows as texts.
fn texts(query: &Query, items: &[String]) -> Vec<String> {
    let page = query.execution(Environment::default(), PageLimit::NONE, None);
    let mut page = page.expect("a page");
    for (rid, item) in items.iter().enumerate() {
        page.push(item.as_bytes(), rid as u64).expect("no error");
    }
    rows_of(page)
}

fn rows_of(page: Execution) -> Vec<String> {
    let finished = page.finish(true).expect("it ends");
    finished
        .rows
        .iter()
        .map(|row| String::from_utf8_lossy(row).into_owned())
        .collect()
}

#[test]
fn a_query_that_reads_more_is_not_covered() {
    let path = |text: &str| {
        let schema = Schema::container(vec![vec!["id".to_owned()]], PartitionKeyKind::Hash);
        let query = Query::compile(text, &Parameters::none(), &schema).expect("a query");
        (query.covering_path().map(|path| path.to_string()), query.counts_items())
    };
    for more in [
        "SELECT VALUE COUNT(c) FROM c",
        "SELECT VALUE COUNT(1) FROM c WHERE c.a = 1 AND c.b = 1",
        "SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a, c.b",
        "SELECT c.a, MAX(c.b) AS n FROM c GROUP BY c.a",
        "SELECT VALUE COUNT(1) FROM c JOIN e IN c.a",
        "SELECT VALUE COUNT(1) FROM e IN c.a",
        "SELECT VALUE COUNT(1) FROM c WHERE EXISTS(SELECT VALUE e FROM e IN c.a)",
        "SELECT VALUE COUNT(1) FROM c WHERE c.a[0] = 1",
        "SELECT VALUE COUNT(1) FROM c WHERE DOCUMENTID(c) > 1 AND c.a = 1",
        "SELECT VALUE COUNT(1) FROM c WHERE udf.f(c.a)",
        "SELECT VALUE c.a FROM c",
        "SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a",
        "SELECT TOP 3 VALUE c.a FROM c ORDER BY c.a",
    ] {
        assert_eq!(path(more), (None, false), "{more}");
    }
    let counts_condition = |filter: &str| {
        let schema = Schema::container(vec![vec!["id".to_owned()]], PartitionKeyKind::Hash);
        let text = format!("SELECT VALUE COUNT(1) FROM c WHERE {filter}");
        Query::compile(&text, &Parameters::none(), &schema)
            .expect("a query")
            .counts_condition()
    };
    for exact in [
        "c.a = 'x'",
        "5 < c.a",
        "c.a >= 1 AND c.a < 9 AND c.a BETWEEN 2 AND 3",
        "c.o.a = null",
    ] {
        assert!(counts_condition(exact), "{exact}");
    }
    let long = format!("c.a > '{}'", "x".repeat(2_000));
    for other in [
        "c.a = {}",
        "c.a != 1",
        "c.a = 1 OR c.a = 2",
        "c.a = 1 AND c.b = 1",
        "c.a > 1 AND c.a % 2 = 0",
        "c.a[0] = 1",
        "c.a > c.b",
        &long,
    ] {
        assert!(!counts_condition(other), "{other}");
    }
    for more in [
        "SELECT * FROM c WHERE c.a = 1",
        "SELECT c.id, c.b FROM c WHERE c.a = 1",
        "SELECT c.id FROM c WHERE c.a = 1 AND c.b = 1",
        "SELECT c.id FROM c WHERE c.a = 1 ORDER BY c.b",
        "SELECT DISTINCT c.id FROM c WHERE c.a = 1",
        "SELECT c.id FROM c WHERE c.a[0] = 1",
        "SELECT c.id FROM c WHERE ARRAY_CONTAINS(c.a, 1) AND c._ts > 0",
        "SELECT c.id FROM c JOIN e IN c.a WHERE c.a = 1",
        "SELECT c.id, (SELECT VALUE COUNT(1) FROM e IN c.a) AS n FROM c",
        "SELECT c.id, c.a, COUNT(1) AS n FROM c GROUP BY c.id, c.a",
        "SELECT TOP 3 c.id FROM c ORDER BY RANK FullTextScore(c.a, 'x')",
    ] {
        let schema = Schema::container(vec![vec!["id".to_owned()]], PartitionKeyKind::Hash);
        let query = Query::compile(more, &Parameters::none(), &schema).expect("a query");
        assert!(!query.covers_rows(&IndexPath::parse("/a/?").expect("a path")), "{more}");
    }
    assert_eq!(
        path("SELECT VALUE SUM(c.o.a) FROM c WHERE c.o.a > 1"),
        (Some("/o/a/?".to_owned()), false)
    );
    assert_eq!(path("SELECT COUNT(1) AS a, COUNT('x') AS b FROM c"), (None, true));
    assert_eq!(path("SELECT VALUE COUNT(undefined) FROM c"), (None, false));
    assert_eq!(path("SELECT VALUE SUM(1) FROM c"), (None, false));
    assert_eq!(path("SELECT VALUE COUNT(1) FROM c WHERE true"), (None, false));
}
