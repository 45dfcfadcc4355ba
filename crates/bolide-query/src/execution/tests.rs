//! Pages: whatever their size, together they contain every row once and in order.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::schema::{CompositePath, PartitionKeyKind};
use crate::{Environment, PageLimit, Parameters, PathStep, Progress, Query, QueryError, Schema};

fn compile(text: &str, schema: &Schema) -> Query {
    Query::compile(text, &Parameters::none(), schema).unwrap()
}

/// Runs all pages as the core does; the items' ids are their positions in the list.
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

/// Earlier, a page that ended inside an item made the next one skip that item's rows twice.
#[test]
fn distinct_values_of_one_item_are_given_once_each_over_pages() {
    let query = compile("SELECT DISTINCT VALUE x FROM c JOIN x IN c.l", &Schema::metadata());
    let items = [
        json!({"id": "1", "l": [1, 2, 3, 4, 5]}),
        json!({"id": "2", "l": [5, 6, 1]}),
    ];
    for rows in 1..7 {
        let found: Vec<Json> = pages(&query, &items, by_rows(rows)).concat();
        assert_eq!(found, [1, 2, 3, 4, 5, 6].map(Json::from), "pages of {rows}");
    }
}

/// Of equal values the first in the order counts, not the first that was found.
#[test]
fn distinct_values_are_at_the_position_of_the_first() {
    let query = compile("SELECT DISTINCT VALUE c.a FROM c ORDER BY c.b", &Schema::metadata());
    let items = [
        json!({"id": "1", "a": 1, "b": 5}),
        json!({"id": "2", "a": 2, "b": 3}),
        json!({"id": "3", "a": 1, "b": 1}),
        json!({"id": "4", "a": 3, "b": 4}),
    ];
    for rows in 1..5 {
        let found: Vec<Json> = pages(&query, &items, by_rows(rows)).concat();
        assert_eq!(found, [1, 2, 3].map(Json::from), "pages of {rows}");
    }
}

#[test]
fn each_group_is_returned_once_over_pages() {
    let query = compile("SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g", &Schema::metadata());
    for rows in 1..5 {
        let mut found: Vec<Json> = pages(&query, &numbered(10), by_rows(rows)).concat();
        found.sort_by_key(|row| row["g"].as_u64());
        assert_eq!(
            found,
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
        let found: Vec<Json> = pages(&query, &numbered(10), by_rows(rows)).concat();
        assert_eq!(found, [0, 1].map(Json::from), "pages of {rows}");
    }
}

#[test]
fn distinct_and_offset_over_groups_count_over_all_pages() {
    let query = compile(
        "SELECT DISTINCT VALUE COUNT(1) FROM c GROUP BY c.g OFFSET 1 LIMIT 5",
        &Schema::metadata(),
    );
    for rows in 1..4 {
        let found: Vec<Json> = pages(&query, &numbered(10), by_rows(rows)).concat();
        assert_eq!(found.len(), 1, "pages of {rows}: {found:?}");
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

/// cosmos-sql §13: a client must merge by the values that each range sorted by.
#[test]
fn rewritten_queries_show_arrays_under_a_composite_index_as_they_are_sorted() {
    let items = [
        json!({"n": 1, "a": [1], "b": 1}),
        json!({"n": 2, "a": 1, "b": {"x": 1}}),
        json!({"n": 3, "a": null, "b": 2}),
    ];
    let path = |name: &str| CompositePath {
        path: vec![PathStep::name(name)],
        descending: false,
    };
    let mut schema = Schema::container(vec![vec!["id".into()]], PartitionKeyKind::Hash);
    schema
        .indexing
        .as_mut()
        .unwrap()
        .composite
        .push(vec![path("a"), path("b")]);
    let values = r#"[{"item": c.a}, {"item": c.b}]"#;
    let sorted = [
        json!({"orderByItems": [{}, {"item": 1}], "payload": 1}),
        json!({"orderByItems": [{"item": null}, {"item": 2}], "payload": 3}),
        json!({"orderByItems": [{"item": 1}, {}], "payload": 2}),
    ];
    for text in [
        format!("SELECT {values} AS orderByItems, c.n AS payload FROM c ORDER BY c.a, c.b"),
        format!(r#"SELECT VALUE {{"orderByItems": {values}, "payload": c.n}} FROM c ORDER BY c.a, c.b"#),
    ] {
        assert_eq!(
            pages(&compile(&text, &schema), &items, by_rows(2)).concat(),
            sorted,
            "{text}"
        );
    }
    let single = "SELECT [{\"item\": c.a}] AS orderByItems FROM c WHERE c.n = 1 ORDER BY c.a";
    assert_eq!(
        pages(&compile(single, &schema), &items, by_rows(2)).concat(),
        [json!({"orderByItems": [{"item": [1]}]})]
    );
}

#[test]
fn order_by_takes_as_many_keys_as_a_composite_index_has_paths() {
    let directions = |count: usize| (0..count).map(|n| ["ASC", "DESC"][n % 2]);
    let text = |count: usize| {
        let keys: Vec<String> = directions(count)
            .enumerate()
            .map(|(n, way)| format!("c.k{n} {way}"))
            .collect();
        format!("SELECT VALUE c.n FROM c ORDER BY {}", keys.join(", "))
    };
    // All keys but the last are the same.
    let item = |n: u32| {
        let keys = (0..8).map(|key| (format!("k{key}"), if key == 7 { json!(n) } else { json!(0) }));
        Json::Object(keys.chain([("n".to_owned(), json!(n))]).collect())
    };
    let rows = pages(&compile(&text(8), &Schema::metadata()), &[item(1), item(2)], by_rows(9)).concat();
    assert_eq!(rows, [json!(2), json!(1)], "the eighth descends");

    for (count, schema) in [
        (9, Schema::metadata()),
        (70, Schema::metadata()),
        (9, Schema::container(vec![vec!["id".into()]], PartitionKeyKind::Hash)),
    ] {
        let error = Query::compile(&text(count), &Parameters::none(), &schema).unwrap_err();
        assert!(error.message().contains("at most 8 items"), "{error}");
        assert!(
            matches!(error, QueryError::Compile(_)),
            "a 400 with the place: {error:?}"
        );
    }
}

/// Runs a query over items in one page, with a memory limit.
fn within(state_bytes: usize, text: &str, items: &[Json]) -> Result<usize, QueryError> {
    let mut schema = Schema::container(vec![vec!["id".into()]], PartitionKeyKind::Hash);
    let path = |name: &str| CompositePath {
        path: vec![PathStep::name(name)],
        descending: false,
    };
    let indexing = schema.indexing.as_mut().unwrap();
    indexing.composite.push(vec![path("n"), path("s"), path("id")]);
    indexing.full_text.push(vec![PathStep::name("s")]);
    schema.full_text = crate::schema::FullTextPolicy {
        default_language: Some("en-US".to_owned()),
        paths: vec![(vec![PathStep::name("s")], Some("en-US".to_owned()))],
    };
    let environment = Environment {
        state_bytes,
        ..Environment::default()
    };
    let query = compile(text, &schema);
    let mut page = query.execution(environment, PageLimit::NONE, None)?;
    if query.reads_items() {
        for (at, item) in items.iter().enumerate() {
            page.push(item.to_string().as_bytes(), at as u64 + 1)?;
        }
    }
    page.finish(true).map(|finished| finished.rows.len())
}

#[test]
fn the_memory_of_an_operator_is_limited_and_the_refusal_names_the_limit() {
    let items: Vec<Json> = (0..2_000)
        .map(|n| json!({"id": n.to_string(), "n": n, "s": format!("{n:0100}"), "g": n % 2, "l": [n, n + 1]}))
        .collect();
    for text in [
        "SELECT DISTINCT VALUE c.s FROM c",
        "SELECT DISTINCT VALUE x FROM c JOIN x IN c.l",
        "SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n",
        "SELECT c.s FROM c GROUP BY c.s",
        "SELECT VALUE MAKELIST(c.s) FROM c",
        "SELECT VALUE MAKESET(c.s) FROM c",
        "SELECT c.n, MIN(c.s) AS s FROM c GROUP BY c.n",
        "SELECT VALUE c.s FROM c ORDER BY c.n",
        "SELECT VALUE 1 FROM c ORDER BY c.s",
        "SELECT VALUE 1 FROM c ORDER BY c.n, c.s, c.id",
        "SELECT DISTINCT VALUE c.s FROM c ORDER BY c.n",
        "SELECT TOP 2000 VALUE c.s FROM c ORDER BY RANK FullTextScore(c.s, 'red')",
        "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.s FROM c) d",
        "SELECT VALUE COUNT(1) FROM (SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n) d",
    ] {
        let outcome = within(100_000, text, &items);
        assert_eq!(outcome, Err(QueryError::TooLarge { limit_bytes: 100_000 }), "{text}");
        let message = outcome.unwrap_err().message();
        assert!(message.contains("limit=100000 bytes"), "{message}");
        assert!(within(4_000_000, text, &items).is_ok(), "{text}");
    }
}

#[test]
fn operators_share_one_limit() {
    let items: Vec<Json> = (0..1_000)
        .map(|n| json!({"id": n.to_string(), "n": n, "s": format!("{n:0100}")}))
        .collect();
    let inner = "SELECT DISTINCT c.n, c.s FROM c";
    let nested = format!("SELECT DISTINCT VALUE d.s FROM ({inner}) d ORDER BY d.n");
    assert!(within(300_000, &format!("SELECT VALUE COUNT(1) FROM ({inner}) d"), &items).is_ok());
    assert!(within(300_000, &nested, &items).is_err());
}

#[test]
fn queries_without_memory_use_are_not_limited() {
    let items = numbered(2_000);
    for text in [
        "SELECT * FROM c",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT c.g, SUM(c.n) AS s FROM c GROUP BY c.g",
        "SELECT DISTINCT VALUE c.g FROM c",
        "SELECT TOP 5 VALUE c.n FROM c ORDER BY c.n DESC",
        "SELECT VALUE (SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE x FROM x IN c.l) y) FROM c",
        "SELECT VALUE ARRAY(SELECT x, COUNT(1) AS k FROM x IN c.l GROUP BY x) FROM c",
    ] {
        assert!(within(20_000, text, &items).is_ok(), "{text}");
    }
}

/// A few hundred characters of text can ask for more bytes than exist.
#[test]
fn values_that_grow_by_doubling_are_refused() {
    let many = |what: &str| vec![what; 200].join(", ");
    for (inner, step) in [
        ("'abcdefgh'", format!("CONCAT({})", many("x"))),
        ("[1]", format!("ARRAY_CONCAT({})", many("x"))),
        ("1", format!("[{}]", many("x"))),
        (
            "1",
            "{a: x, b: x, c: [x, x, x, x, x, x, x, x, x, x, x, x, x, x]}".to_owned(),
        ),
        ("'aa'", "REPLACE(x, 'a', CONCAT(x, x, x, x, x, x, x, x))".to_owned()),
        (
            "'a,b'",
            "STRINGJOIN(STRINGSPLIT(CONCAT(x, x, x, x, x), ','), CONCAT(x, x, x, x))".to_owned(),
        ),
        (
            "1",
            "ARRAY(SELECT VALUE x FROM a IN (SELECT VALUE [1,2,3,4,5,6,7,8,9]) JOIN b IN (SELECT VALUE [1,2,3,4,5,6,7,8,9]))".to_owned(),
        ),
    ] {
        let mut text = format!("SELECT VALUE {inner}");
        for _ in 0..8 {
            text = format!("SELECT VALUE {step} FROM x IN (SELECT VALUE [({text})])");
        }
        let outcome = within(1_000_000, &text, &[]);
        assert_eq!(
            outcome,
            Err(QueryError::ValueTooLarge { limit_bytes: 1_000_000 }),
            "{step}"
        );
    }
    let wide = format!(
        "SELECT {} FROM c",
        many("c")
            .split(", ")
            .enumerate()
            .map(|(n, c)| format!("{c} AS a{n}"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    let large = [json!({"id": "1", "s": "x".repeat(10_000)})];
    assert_eq!(
        within(1_000_000, &wide, &large),
        Err(QueryError::ValueTooLarge { limit_bytes: 1_000_000 })
    );
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
        // Arrays and objects as composite keys count as undefined.
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

/// Runs a query over one item in one page, with a limit of rows.
fn within_rows(item_rows: u64, text: &str, item: &Json) -> Result<usize, QueryError> {
    let environment = Environment {
        item_rows,
        ..Environment::default()
    };
    let schema = Schema::container(vec![vec!["id".into()]], PartitionKeyKind::Hash);
    let query = compile(text, &schema);
    let mut page = query.execution(environment, PageLimit::NONE, None)?;
    // Rows of other items do not count.
    for rid in 1..=3 {
        page.push(item.to_string().as_bytes(), rid)?;
    }
    page.finish(true).map(|finished| finished.rows.len())
}

#[test]
fn rows_of_one_item_are_limited_however_they_come_about_and_the_refusal_names_the_limit() {
    // Three arrays of ten make 1,111 rows, intermediate ones included; a fourth makes ten times as many.
    let item = json!({"id": "a", "l": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], "none": []});
    let three = "a IN c.l JOIN b IN c.l JOIN d IN c.l";
    for text in [
        format!("SELECT VALUE 1 FROM c JOIN {three}"),
        format!("SELECT VALUE COUNT(1) FROM c JOIN {three}"),
        format!("SELECT VALUE 1 FROM c JOIN {three} WHERE a = 10"),
        format!("SELECT DISTINCT VALUE a FROM c JOIN {three}"),
        format!("SELECT VALUE 1 FROM c WHERE EXISTS(SELECT VALUE 1 FROM {three} WHERE a > 10)"),
        format!("SELECT VALUE 1 FROM c JOIN {three} JOIN e IN c.none"),
        format!("SELECT VALUE n FROM c JOIN (SELECT VALUE COUNT(1) FROM {three}) n"),
        format!("SELECT VALUE ARRAY(SELECT VALUE a FROM {three}) FROM c"),
    ] {
        assert!(within_rows(10_000, &text, &item).is_ok(), "{text}");
        let larger = text.replacen("a IN c.l", "z IN c.l JOIN a IN c.l", 1);
        let refusal = within_rows(10_000, &larger, &item).unwrap_err();
        assert_eq!(refusal, QueryError::TooManyRows { limit: 10_000 }, "{larger}");
        assert!(refusal.message().contains("limit=10000 rows"), "{}", refusal.message());
    }
}

/// ORDER BY a group key, as in the .NET SDK's tests: over pages of any size the groups come once and in order.
#[test]
fn groups_come_in_the_order_of_a_key() {
    let items: Vec<Json> = (0..200)
        .map(|n| json!({"id": n.to_string(), "t": format!("t{:03}", n % 100), "u": n % 3}))
        .collect();
    let schema = Schema::container(vec![vec!["id".to_owned()]], PartitionKeyKind::Hash);
    let rows = |text: &str, size: usize| {
        let limit = PageLimit {
            rows: size,
            ..PageLimit::NONE
        };
        pages(&compile(text, &schema), &items, limit).concat()
    };
    let text = "SELECT c.t, c.u, COUNT(1) AS n FROM c GROUP BY c.t, c.u ORDER BY c.t DESC, c.u";
    let all = rows(text, 1_000);
    assert_eq!(all.len(), 200);
    assert_eq!((&all[0]["t"], &all[0]["u"]), (&json!("t099"), &json!(0)));
    let order: Vec<_> = all
        .iter()
        .map(|row| (row["t"].as_str().unwrap().to_owned(), row["u"].as_i64().unwrap()))
        .collect();
    assert!(order.is_sorted_by(|a, b| a.0 > b.0 || (a.0 == b.0 && a.1 < b.1)));
    for size in [1, 7, 150] {
        assert_eq!(rows(text, size), all, "{size} a page");
    }
    let cut = "SELECT DISTINCT VALUE c[\"t\"] FROM c GROUP BY c.t, c.u ORDER BY c.t OFFSET 2 LIMIT 3";
    for size in [1, 2, 150] {
        assert_eq!(rows(cut, size), [json!("t002"), json!("t003"), json!("t004")], "{size}");
    }
    let other = "SELECT c.t FROM c GROUP BY c.t ORDER BY c.u";
    let error = Query::compile(other, &Parameters::none(), &schema).unwrap_err();
    assert!(error.message().contains("'c.u'"), "{error}");
}

/// The index has one entry per item: rows that JOIN multiplies or a subquery computes are not in its order.
#[test]
fn rows_of_a_join_cannot_be_sorted_by() {
    let schema = Schema::container(vec![vec!["id".to_owned()]], PartitionKeyKind::Hash);
    let compiled = |text: &str| Query::compile(text, &Parameters::none(), &schema).map(drop);
    for text in [
        "SELECT VALUE c FROM c JOIN (SELECT VALUE SUM(x.n) FROM x IN c.l) AS s ORDER BY s",
        "SELECT VALUE c FROM c JOIN (SELECT VALUE EXISTS(SELECT VALUE x FROM x IN c.l)) AS e ORDER BY e",
        "SELECT VALUE c FROM c JOIN (SELECT VALUE {\"n\": ARRAY_LENGTH(c.l)}) AS s ORDER BY s.n",
        "SELECT VALUE r FROM (SELECT VALUE {\"n\": ARRAY_LENGTH(c.l)} FROM c) AS r ORDER BY r.n",
    ] {
        let error = compiled(text).unwrap_err();
        assert_eq!(error.code(), Some("2206"), "{text}: {error}");
    }
    for text in [
        "SELECT VALUE x FROM c JOIN x IN c.l ORDER BY x.grade",
        "SELECT DISTINCT VALUE p FROM c JOIN (SELECT DISTINCT VALUE x FROM c JOIN x IN c.l) AS p ORDER BY p",
    ] {
        let error = compiled(text).unwrap_err();
        assert_eq!(
            error.message(),
            "Order-by over correlated collections is not supported.",
            "{text}"
        );
    }
    for text in [
        "SELECT VALUE x FROM c JOIN x IN c.l ORDER BY c.grade",
        "SELECT VALUE x FROM x IN c.l ORDER BY x.grade",
        "SELECT VALUE r FROM (SELECT VALUE {\"n\": c.n} FROM c) AS r ORDER BY r.n",
        "SELECT VALUE AVG(x.age) FROM c JOIN x IN c.l ORDER BY x.name",
    ] {
        assert_eq!(compiled(text), Ok(()), "{text}");
    }
}

/// One row needs no order, and so no index.
#[test]
fn an_aggregate_with_several_sort_keys_needs_no_composite_index() {
    let items = [json!({"id": "a", "n": 1}), json!({"id": "b", "n": 4})];
    let schema = Schema::container(vec![vec!["id".to_owned()]], PartitionKeyKind::Hash);
    let query = compile("SELECT VALUE AVG(c.n) FROM c ORDER BY c.a, c.b DESC", &schema);
    assert_eq!(pages(&query, &items, PageLimit::NONE).concat(), [json!(2.5)]);
    let unknown = Query::compile(
        "SELECT VALUE AVG(c.n) FROM c ORDER BY x.a",
        &Parameters::none(),
        &schema,
    );
    assert_eq!(unknown.unwrap_err().code(), Some("SC2001"));
}

/// Earlier, vectors with other dimensions were left out.
#[test]
fn items_without_a_distance_stay_in_the_result() {
    let items = [
        json!({"id": "long", "v": [1, 0, 0]}),
        json!({"id": "far", "v": [0, 1]}),
        json!({"id": "none"}),
        json!({"id": "near", "v": [1, 0]}),
    ];
    let schema = Schema::container(vec![vec!["id".to_owned()]], PartitionKeyKind::Hash);
    let ids = |function: &str| {
        let text = format!(
            "SELECT TOP 10 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1, 0], false, {{\"distanceFunction\": \"{function}\"}})"
        );
        pages(&compile(&text, &schema), &items, PageLimit::NONE).concat()
    };
    for function in ["cosine", "dotproduct"] {
        let found = ids(function);
        assert_eq!(found[..2], ["near", "far"], "{function}");
        assert_eq!(found.len(), 4, "{function}");
    }
    assert_eq!(ids("euclidean")[2..], ["near", "far"]);
}

/// EF Core's `Sum(x => x.Max())` over a collection of collections.
#[test]
fn an_aggregate_over_a_subquery_is_taken_inside_a_subquery_only() {
    let items = [json!({"id": "a", "d": [{"b": [1, 5, 2]}, {"b": [7]}]})];
    let schema = Schema::container(vec![vec!["id".to_owned()]], PartitionKeyKind::Hash);
    let inside = "SELECT VALUE (SELECT VALUE SUM((SELECT VALUE MAX(n) FROM n IN a.b)) FROM a IN c.d) FROM c WHERE IS_DEFINED(c.d)";
    assert_eq!(
        pages(&compile(inside, &schema), &items, PageLimit::NONE).concat(),
        [json!(12)]
    );
    let outside = "SELECT VALUE SUM((SELECT VALUE MAX(n.i) FROM n IN c.d)) FROM c";
    let error = Query::compile(outside, &Parameters::none(), &schema).unwrap_err();
    assert_eq!(error.code(), Some("SC2101"));
}

/// As the .NET SDK's tests expect for a path of a composite index; with `/*` alone the documentation leaves such items out.
#[test]
fn a_path_of_a_composite_index_sorts_items_without_it_too() {
    let items = [
        json!({"id": "a", "n": 2}),
        json!({"id": "b"}),
        json!({"id": "c", "n": null}),
    ];
    let mut schema = Schema::container(vec![vec!["id".to_owned()]], PartitionKeyKind::Hash);
    let ids = |schema: &Schema, order: &str| {
        let query = compile(&format!("SELECT VALUE c.id FROM c ORDER BY c.{order}"), schema);
        pages(&query, &items, PageLimit::NONE).concat()
    };
    assert_eq!(ids(&schema, "n"), ["c", "a"]);
    let named = |name: &str| CompositePath {
        path: vec![PathStep::name(name)],
        descending: false,
    };
    schema.indexing.as_mut().unwrap().composite = vec![vec![named("m"), named("n")]];
    assert_eq!(ids(&schema, "n"), ["b", "c", "a"]);
    assert_eq!(ids(&schema, "n DESC"), ["a", "c", "b"]);
}

/// Orders that the .NET SDK's tests of ranking expect: numbers with commas are one word, digits are words, and a negative weight reverses its
/// component without breaking ties of other rows.
#[test]
fn rankings_are_those_of_the_sdks_tests() {
    let items = [
        json!({"id": "49", "x": "Perry Greeley Holden (October 13, 1865 \u{2013} October 8, 1959) was the first professor of agronomy in the United States."}),
        json!({"id": "51", "x": "Jefferson Township is a township in Berks County, Pennsylvania, United States. The population was 1,977 at the 2010 census."}),
        json!({"id": "24", "x": "Thomas Ward Osborn (March 9, 1833 \u{2013} December 18, 1898) was a Union Army officer and United States Senator representing Florida."}),
        json!({"id": "75", "x": "Vonda Ward (born March 16, 1973, Macedonia, Ohio, United States) is an American female boxer who was also a well known NCAA basketball player."}),
        json!({"id": "54", "x": "Fletcher is a village in Miami County, Ohio, United States. The population was 473 at the 2010 census.  It is part of the Dayton Metropolitan Statistical Area."}),
        json!({"id": "2", "t": "John", "x": "A kingdom that was united."}),
        json!({"id": "57", "x": "John is nobody."}),
    ];
    let schema = Schema::container(vec![vec!["id".to_owned()]], PartitionKeyKind::Hash);
    let ids = |rank: &str| {
        let text = format!("SELECT VALUE c.id FROM c ORDER BY RANK {rank}");
        pages(&compile(&text, &schema), &items, PageLimit::NONE).concat()
    };
    assert_eq!(
        ids("FullTextScore(c.x, 'United States')"),
        ["51", "49", "54", "75", "24", "2", "57"]
    );
    let weighted = |weight: f64| {
        ids(&format!(
            "RRF(FullTextScore(c.t, 'John'), FullTextScore(c.x, 'United States'), [{weight}, {weight}])"
        ))
    };
    assert_eq!(weighted(1.0), ["51", "49", "54", "75", "2", "24", "57"]);
    assert_eq!(weighted(-1.0), ["57", "24", "2", "75", "54", "49", "51"]);
}
