//! Pages: whatever their size, together they hold every row once and in order.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::schema::{CompositePath, PartitionKeyKind};
use crate::{Environment, PageLimit, Parameters, PathStep, Progress, Query, QueryError, Schema};

fn compile(text: &str, schema: &Schema) -> Query {
    Query::compile(text, &Parameters::none(), schema).unwrap()
}

/// Runs all pages as the core does; the items' indexes are their positions.
fn pages(query: &Query, items: &[Json], limit: PageLimit) -> Vec<Vec<Json>> {
    let mut out = Vec::new();
    let mut resume: Option<String> = None;
    let mut position = 0;
    loop {
        let mut page = query
            .execution(Environment::default(), limit, resume.as_deref())
            .unwrap();
        let mut end = true;
        let start = match query.rescans() {
            true if query.replays() => {
                for (at, item) in items.iter().enumerate().take(position) {
                    let text = item.to_string();
                    page.replay(&crate::Item::complete(text.as_bytes()).unwrap(), at as u64)
                        .unwrap();
                }
                position
            }
            true => 0,
            false => position,
        };
        for (at, item) in items.iter().enumerate().skip(start) {
            match page.push(item.to_string().as_bytes(), at as u64).unwrap() {
                Progress::Continue => continue,
                Progress::PageFull => position = at,
                Progress::Done => {}
            }
            end = false;
            break;
        }
        let finished = page.finish(end).unwrap();
        out.push(
            finished
                .rows
                .iter()
                .map(|row| serde_json::from_slice(row).unwrap())
                .collect(),
        );
        match finished.resume {
            Some(text) => resume = Some(text),
            None => return out,
        }
        assert!(out.len() < 10_000, "pages never end");
    }
}

fn numbered(count: usize) -> Vec<Json> {
    (0..count)
        .map(|n| json!({"id": n.to_string(), "n": n, "g": n % 3, "l": [n, n + 100]}))
        .collect()
}

fn by_rows(rows: usize) -> PageLimit {
    PageLimit {
        rows,
        bytes: usize::MAX,
    }
}

#[test]
fn pages_are_full_and_none_is_empty_at_the_end() {
    let query = compile("SELECT VALUE c.n FROM c", &Schema::metadata());
    let sizes: Vec<usize> = pages(&query, &numbered(20), by_rows(7)).iter().map(Vec::len).collect();
    assert_eq!(sizes, [7, 7, 6]);
    let sizes: Vec<usize> = pages(&query, &numbered(14), by_rows(7)).iter().map(Vec::len).collect();
    assert_eq!(sizes, [7, 7]);
}

#[test]
fn a_page_may_end_inside_the_rows_of_one_item() {
    let query = compile("SELECT VALUE x FROM c JOIN x IN c.l", &Schema::metadata());
    let rows: Vec<Json> = pages(&query, &numbered(4), by_rows(3)).concat();
    assert_eq!(rows, [0, 100, 1, 101, 2, 102, 3, 103].map(Json::from));
}

/// A page that ended inside an item made the next one pass over that item's rows twice.
#[test]
fn distinct_values_of_one_item_are_given_once_each_over_pages() {
    let query = compile("SELECT DISTINCT VALUE x FROM c JOIN x IN c.l", &Schema::metadata());
    let items = [
        json!({"id": "1", "l": [1, 2, 3, 4, 5]}),
        json!({"id": "2", "l": [5, 6, 1]}),
    ];
    for rows in 1..7 {
        let given: Vec<Json> = pages(&query, &items, by_rows(rows)).concat();
        assert_eq!(given, [1, 2, 3, 4, 5, 6].map(Json::from), "pages of {rows}");
    }
}

/// Of equal values the one that comes first in the order counts, not the one that was found first.
#[test]
fn distinct_values_stand_where_the_first_of_them_stands() {
    let query = compile("SELECT DISTINCT VALUE c.a FROM c ORDER BY c.b", &Schema::metadata());
    let items = [
        json!({"id": "1", "a": 1, "b": 5}),
        json!({"id": "2", "a": 2, "b": 3}),
        json!({"id": "3", "a": 1, "b": 1}),
        json!({"id": "4", "a": 3, "b": 4}),
    ];
    for rows in 1..5 {
        let given: Vec<Json> = pages(&query, &items, by_rows(rows)).concat();
        assert_eq!(given, [1, 2, 3].map(Json::from), "pages of {rows}");
    }
}

#[test]
fn groups_come_once_each_over_pages_whatever_their_number() {
    let query = compile("SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g", &Schema::metadata());
    for rows in 1..5 {
        let mut given: Vec<Json> = pages(&query, &numbered(10), by_rows(rows)).concat();
        given.sort_by_key(|row| row["g"].as_u64());
        assert_eq!(
            given,
            [
                json!({"g": 0, "n": 4}),
                json!({"g": 1, "n": 3}),
                json!({"g": 2, "n": 3})
            ]
        );
    }
}

#[test]
fn the_groups_that_top_takes_are_the_same_for_all_sizes_of_pages() {
    let query = compile("SELECT TOP 2 VALUE c.g FROM c GROUP BY c.g", &Schema::metadata());
    for rows in 1..4 {
        let given: Vec<Json> = pages(&query, &numbered(10), by_rows(rows)).concat();
        assert_eq!(given, [0, 1].map(Json::from), "pages of {rows}");
    }
}

#[test]
fn distinct_and_offset_over_groups_count_over_all_pages() {
    let query = compile(
        "SELECT DISTINCT VALUE COUNT(1) FROM c GROUP BY c.g OFFSET 1 LIMIT 5",
        &Schema::metadata(),
    );
    for rows in 1..4 {
        let given: Vec<Json> = pages(&query, &numbered(10), by_rows(rows)).concat();
        assert_eq!(given.len(), 1, "pages of {rows}: {given:?}");
    }
}

#[test]
fn a_page_stops_at_its_bytes_but_holds_at_least_one_row() {
    let query = compile("SELECT VALUE c.id FROM c", &Schema::metadata());
    let items = [json!({"id": "x".repeat(50)}), json!({"id": "y"}), json!({"id": "z"})];
    let sizes: Vec<usize> = pages(&query, &items, PageLimit { rows: 100, bytes: 8 })
        .iter()
        .map(Vec::len)
        .collect();
    assert_eq!(sizes, [1, 2]);
}

#[test]
fn offset_and_limit_count_over_all_pages() {
    let query = compile("SELECT VALUE c.n FROM c OFFSET 3 LIMIT 5", &Schema::metadata());
    assert_eq!(
        pages(&query, &numbered(20), by_rows(2)).concat(),
        [3, 4, 5, 6, 7].map(Json::from)
    );
}

#[test]
fn top_is_done_without_another_item() {
    let query = compile("SELECT TOP 1 VALUE c.n FROM c", &Schema::metadata());
    let mut page = query.execution(Environment::default(), by_rows(10), None).unwrap();
    assert_eq!(page.push(br#"{"n":1}"#, 0).unwrap(), Progress::Done);
    let none = compile("SELECT TOP 0 * FROM c", &Schema::metadata());
    assert!(
        none.execution(Environment::default(), by_rows(10), None)
            .unwrap()
            .is_done()
    );
}

#[test]
fn queries_without_from_run_once() {
    let query = compile("SELECT VALUE COUNT(1)", &Schema::metadata());
    assert!(!query.reads_items() && !query.needs_merge());
    assert_eq!(pages(&query, &numbered(5), by_rows(10)), [[json!(1)]]);
}

#[test]
fn groups_and_distinct_values_page_without_repeats() {
    for (text, expected) in [
        (
            "SELECT VALUE c.g FROM c GROUP BY c.g",
            vec![json!(0), json!(1), json!(2)],
        ),
        ("SELECT DISTINCT VALUE c.g FROM c", vec![json!(0), json!(1), json!(2)]),
        (
            "SELECT DISTINCT VALUE c.g FROM c OFFSET 1 LIMIT 5",
            vec![json!(1), json!(2)],
        ),
        (
            "SELECT VALUE g.k FROM (SELECT c.g AS k, COUNT(1) AS n FROM c GROUP BY c.g) g WHERE g.n > 3",
            vec![json!(0)],
        ),
        (
            "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.g FROM c) d",
            vec![json!(3)],
        ),
    ] {
        let query = compile(text, &Schema::metadata());
        assert!(query.needs_merge(), "{text}");
        for rows in [1, 2, 10] {
            assert_eq!(
                pages(&query, &numbered(10), by_rows(rows)).concat(),
                expected,
                "{text} by {rows}"
            );
        }
    }
}

#[test]
fn long_sort_values_do_not_make_long_continuations() {
    let items: Vec<Json> = (0..5)
        .map(|n| json!({"s": format!("{}{n}", "x".repeat(5000)), "n": n}))
        .collect();
    let query = compile("SELECT VALUE c.n FROM c ORDER BY c.s DESC", &Schema::metadata());
    let mut page = query.execution(Environment::default(), by_rows(2), None).unwrap();
    for (at, item) in items.iter().enumerate() {
        page.push(item.to_string().as_bytes(), at as u64).unwrap();
    }
    assert!(page.finish(true).unwrap().resume.unwrap().len() < 1000);
    assert_eq!(
        pages(&query, &items, by_rows(2)).concat(),
        [4, 3, 2, 1, 0].map(Json::from)
    );
}

#[test]
fn foreign_continuations_are_refused() {
    let query = compile("SELECT VALUE c.n FROM c ORDER BY c.n", &Schema::metadata());
    let other = compile("SELECT VALUE c.n FROM c ORDER BY c.g", &Schema::metadata());
    let mut page = query.execution(Environment::default(), by_rows(1), None).unwrap();
    page.push(br#"{"n":1}"#, 0).unwrap();
    page.push(br#"{"n":2}"#, 1).unwrap();
    let resume = page.finish(true).unwrap().resume.unwrap();
    assert!(
        resume.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)),
        "{resume}"
    );
    for text in [resume.as_str(), "", "1", "garbage", "1.00000000.0.0.o"] {
        let outcome = other.execution(Environment::default(), by_rows(1), Some(text));
        assert!(matches!(outcome, Err(QueryError::BadContinuation(_))), "{text}");
    }
    let truncated = &resume[..resume.rfind('.').unwrap()];
    assert!(
        query
            .execution(Environment::default(), by_rows(1), Some(truncated))
            .is_err()
    );
}

#[test]
fn ties_follow_the_resource_id_in_the_direction_of_the_first_key() {
    let items: Vec<Json> = (0..3).map(|n| json!({"k": 1, "n": n})).collect();
    let ascending = compile("SELECT VALUE c.n FROM c ORDER BY c.k", &Schema::metadata());
    let descending = compile("SELECT VALUE c.n FROM c ORDER BY c.k DESC", &Schema::metadata());
    assert_eq!(
        pages(&ascending, &items, by_rows(1)).concat(),
        [0, 1, 2].map(Json::from)
    );
    assert_eq!(
        pages(&descending, &items, by_rows(1)).concat(),
        [2, 1, 0].map(Json::from)
    );
}

#[test]
fn undefined_keys_come_first_where_the_path_is_indexed_by_name() {
    let items = [json!({"n": 0, "k": 1}), json!({"n": 1})];
    let mut schema = Schema::container(vec![vec!["id".into()]], PartitionKeyKind::Hash);
    let query = |schema: &Schema| {
        pages(
            &compile("SELECT VALUE c.n FROM c ORDER BY c.k", schema),
            &items,
            by_rows(9),
        )
        .concat()
    };
    assert_eq!(query(&schema), [json!(0)]);
    schema
        .indexing
        .as_mut()
        .unwrap()
        .included
        .push(crate::schema::IndexedPath::parse("/k/?"));
    assert_eq!(query(&schema), [json!(1), json!(0)]);
}

fn sort_value() -> impl Strategy<Value = Option<Json>> {
    proptest::option::of(prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        (-2..3_i64).prop_map(Json::from),
        "[ab]{0,1}".prop_map(Json::from),
        Just(json!([1])),
        Just(json!({"x": 1})),
    ])
}

/// The order of kinds, and of values within a kind.
fn rank(value: &Option<Json>) -> (u8, f64, String) {
    match value {
        None => (0, 0.0, String::new()),
        Some(Json::Null) => (1, 0.0, String::new()),
        Some(Json::Bool(b)) => (2, f64::from(u8::from(*b)), String::new()),
        Some(Json::Number(n)) => (3, n.as_f64().unwrap(), String::new()),
        Some(Json::String(s)) => (4, 0.0, s.clone()),
        Some(Json::Array(_)) => (5, 0.0, String::new()),
        Some(Json::Object(_)) => (6, 0.0, String::new()),
    }
}

proptest! {
    #[test]
    fn sorted_pages_hold_every_row_once_and_in_order(
        keys in prop::collection::vec((sort_value(), sort_value()), 0..30),
        rows in 1..8_usize,
        (first_down, second_down) in (any::<bool>(), any::<bool>()),
        offset in 0..5_usize,
    ) {
        let items: Vec<Json> = keys.iter().enumerate().map(|(n, (a, b))| {
            let mut item = json!({ "n": n });
            if let Some(a) = a { item["a"] = a.clone(); }
            if let Some(b) = b { item["b"] = b.clone(); }
            item
        }).collect();
        let path = |name: &str, descending| CompositePath { path: vec![PathStep::name(name)], descending };
        let mut schema = Schema::container(vec![vec!["id".into()]], PartitionKeyKind::Hash);
        schema.indexing.as_mut().unwrap().composite.push(vec![path("a", first_down), path("b", second_down)]);
        let direction = |down| if down { "DESC" } else { "ASC" };
        let text = format!(
            "SELECT VALUE c.n FROM c ORDER BY c.a {}, c.b {} OFFSET {offset} LIMIT 1000",
            direction(first_down), direction(second_down)
        );
        // Composite keys that are arrays or objects count as undefined.
        let key = |value: &Option<Json>| rank(&value.clone().filter(|v| !v.is_array() && !v.is_object()));
        let mut expected: Vec<usize> = (0..keys.len()).collect();
        expected.sort_by(|x, y| {
            let flip = |order: std::cmp::Ordering, down: bool| if down { order.reverse() } else { order };
            let of = |n: &usize| (key(&keys[*n].0), key(&keys[*n].1));
            flip(of(x).0.partial_cmp(&of(y).0).unwrap(), first_down)
                .then(flip(of(x).1.partial_cmp(&of(y).1).unwrap(), second_down))
                .then(flip(x.cmp(y), first_down))
        });
        let expected: Vec<Json> = expected.into_iter().skip(offset).map(Json::from).collect();
        let query = compile(&text, &schema);
        prop_assert_eq!(pages(&query, &items, by_rows(rows)).concat(), expected);
    }

    #[test]
    fn any_page_size_gives_the_same_rows(count in 0..25_usize, rows in 1..9_usize, query in prop::sample::select(vec![
        "SELECT VALUE [c.n, x] FROM c JOIN x IN c.l WHERE x != 3",
        "SELECT DISTINCT c.g FROM c",
        "SELECT c.g, COUNT(1) AS n, SUM(c.n) AS s FROM c GROUP BY c.g",
        "SELECT VALUE x FROM c JOIN x IN c.l ORDER BY c.g DESC",
        "SELECT DISTINCT VALUE c.g FROM c ORDER BY c.g DESC",
        "SELECT TOP 11 VALUE x FROM x IN c.l",
        "SELECT VALUE c.n FROM c WHERE c.g = 1 OFFSET 2 LIMIT 3",
    ])) {
        let query = compile(query, &Schema::metadata());
        let items = numbered(count);
        let whole = pages(&query, &items, PageLimit::NONE);
        prop_assert_eq!(pages(&query, &items, by_rows(rows)).concat(), whole.concat());
    }
}
