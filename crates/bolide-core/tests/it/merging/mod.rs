//! Sorted queries over one range and over several, with a new iterator for every page, resumed in each of the ways that clients resume: the
//! rows are the same (cosmos-rest §6.1).

mod client;
mod order;
mod rewriting;
mod sdk_texts;

use bolide_core::{QueryItems, ScanScope};
use bolide_model::ErrorKind;
use bolide_model::rid::ItemRid;
use serde_json::{Value, json};

use crate::test_container::TestContainer;
use client::{Plan, Resume, Row};
use order::HASHED;

const ITEMS: usize = 48;

/// `ORDER BY` lists, each with whether its order is total. `c.m` has values of every type and none, `c.primitive` no arrays and objects.
const ORDERS: [(&str, bool); 14] = [
    ("c.n", true),
    ("c.n DESC", true),
    ("c.s", true),
    ("c.s DESC", true),
    ("c.g", false),
    ("c.g DESC", false),
    ("c.g, c.n DESC", true),
    ("c.g DESC, c.n", true),
    ("c.m, c.n", true),
    ("c.m DESC, c.n DESC", true),
    ("c.primitive, c.n", true),
    ("c.primitive DESC, c.n DESC", true),
    ("c.primitive", false),
    ("c.primitive DESC", false),
];

/// What comes around them, with `ORDER` in the place of the list.
const SHAPES: [&str; 3] = [
    "SELECT * FROM c ORDER BY ORDER",
    "SELECT TOP 25 c.id, c.n FROM c WHERE c.n >= 5 ORDER BY ORDER",
    "SELECT VALUE c.id FROM c ORDER BY ORDER OFFSET 7 LIMIT 30",
];

/// More: rows of one item in several places, and values that only `resumeFilter` can name.
const JOINS: [&str; 3] = [
    "SELECT c.id, t FROM c JOIN t IN c.tags ORDER BY c.n",
    "SELECT c.id, t FROM c JOIN t IN c.tags ORDER BY c.g DESC",
    "SELECT VALUE t FROM c JOIN t IN c.tags ORDER BY c.g",
];
const MIXED: [&str; 2] = ["SELECT * FROM c ORDER BY c.m", "SELECT c.id FROM c ORDER BY c.m DESC"];

fn queries() -> Vec<String> {
    let shaped = SHAPES.iter().flat_map(|shape| {
        ORDERS
            .iter()
            .map(|(order, _)| shape.replace("ORDER BY ORDER", &format!("ORDER BY {order}")))
    });
    shaped
        .chain([JOINS.as_slice(), &MIXED].concat().into_iter().map(str::to_owned))
        .collect()
}

/// A value of each type, and none; each several times.
fn mixed(n: usize) -> Option<Value> {
    let hashed = |at: usize| serde_json::from_str(HASHED[at].0).ok();
    match n % 14 {
        0 => None,
        1 => Some(Value::Null),
        2 => Some(json!(false)),
        3 => Some(json!(true)),
        4 => Some(json!(-3)),
        5 => Some(json!(2.5)),
        6 => Some(json!("")),
        7 => Some(json!("b\"é")),
        other => hashed(other - 8),
    }
}

async fn filled() -> TestContainer {
    let composite = |first: [&str; 2], second: [&str; 2]| json!([{"path": first[0], "order": first[1]}, {"path": second[0], "order": second[1]}]);
    let test = TestContainer::with(json!({"indexingPolicy": {
        "includedPaths": [{"path": "/*"}, {"path": "/m/?"}, {"path": "/primitive/?"}],
        "compositeIndexes": [
            composite(["/g", "ascending"], ["/n", "descending"]),
            composite(["/m", "ascending"], ["/n", "ascending"]),
            composite(["/primitive", "ascending"], ["/n", "ascending"]),
        ],
    }}))
    .await;
    for n in 0..ITEMS {
        let mut item = json!({
            "id": format!("i{n:02}"),
            "pk": format!("p{}", n * 7 % ITEMS),
            "n": n * 11 % ITEMS,
            "g": n % 3,
            "s": format!("{}{:02}", "é".repeat(n % 4), n * 5 % ITEMS),
            "tags": [n, n + 100],
        });
        if let Some(value) = mixed(n * 3) {
            item["m"] = value.clone();
            if !value.is_array() && !value.is_object() {
                item["primitive"] = value;
            }
        }
        test.create(item).await.unwrap();
    }
    test
}

/// The `ORDER BY` list of a query.
fn order_of(text: &str) -> &str {
    let order = text.split("ORDER BY ").nth(1).unwrap();
    order.split(" OFFSET").next().unwrap()
}

/// All rows of a text over the whole container, in pages of one iterator each.
async fn direct(test: &TestContainer, text: &str, size: usize) -> Vec<Value> {
    let mut query = QueryItems {
        text: text.to_owned(),
        cross_partition: true,
        max_items: Some(size),
        ..QueryItems::default()
    };
    let mut all = Vec::new();
    loop {
        let ctx = test.begin().await;
        let page = test.account.query(&ctx, &test.container, &query).await;
        let page = page.unwrap_or_else(|refusal| panic!("{text}: {refusal:?}")).value;
        let rows: Vec<Value> = serde_json::from_slice(&[b"[", &page.rows[..], b"]"].concat()).unwrap();
        all.extend(rows);
        query.continuation = page.continuation;
        if query.continuation.is_none() {
            return all;
        }
        assert!(all.len() <= 3 * ITEMS, "{text}: pages never end");
    }
}

/// All rows, merged by a client that goes on with a new iterator after every page. A range is split behind the third page.
async fn merged(test: &TestContainer, text: &str, size: usize, resume: Resume, splits: bool) -> Vec<Row> {
    let plan = Plan::of(test, text).await;
    let mut all = Vec::new();
    let mut token = None;
    for number in 1.. {
        let (rows, next) = client::page(test, &plan, size, resume, token).await;
        all.extend(rows);
        token = next;
        if token.is_none() {
            return all;
        }
        assert!(number <= 3 * ITEMS, "{text} by {size}, {resume:?}: pages never end");
        if splits && number == 3 {
            test.account.split(&test.container, None).await.unwrap();
        }
    }
    all
}

/// Whether rows are those of one range: the same sort values in the same order, and among equal ones the same rows in any.
fn check(rows: &[Row], all: &[Row], expected: &[Value], is_total: bool, what: &str) {
    let payloads: Vec<&Value> = rows.iter().map(|row| &row.payload).collect();
    assert_eq!(payloads.len(), expected.len(), "{what}");
    let mut left: Vec<&Row> = all.iter().collect();
    for (row, expected) in rows.iter().zip(expected) {
        let at = left.iter().position(|other| **other == *row);
        left.remove(at.unwrap_or_else(|| panic!("{what}: twice, or never there: {row:?}")));
        let same = all.iter().find(|other| other.payload == *expected).unwrap();
        assert_eq!(row.values, same.values, "{what}");
    }
    if is_total {
        assert_eq!(payloads, expected.iter().collect::<Vec<_>>(), "{what}");
    }
}

async fn compare(splits: bool) {
    for text in queries() {
        // Of equal values in another child of a split, a client does not know which it has given out.
        let is_total = ORDERS.contains(&(order_of(&text), true));
        if splits && !is_total {
            continue;
        }
        let test = filled().await;
        let expected = direct(&test, &text, 1_000).await;
        for size in [1, 2, 7] {
            assert_eq!(
                direct(&test, &text, size).await,
                expected,
                "{text} by {size} on one range"
            );
        }
        let uncut = text.replace("TOP 25 ", "").replace(" OFFSET 7 LIMIT 30", "");
        let all = merged(&test, &uncut, 1_000, Resume::Filter, false).await;
        for _ in 0..2 {
            test.account.split(&test.container, None).await.unwrap();
        }
        for resume in Resume::ALL {
            // No filter compares arrays or objects.
            if resume == Resume::Rewriting && order_of(&text).contains("c.m") {
                continue;
            }
            for size in [1, 2, 7] {
                let rows = merged(&test, &text, size, resume, splits).await;
                check(
                    &rows,
                    &all,
                    &expected,
                    is_total,
                    &format!("{text}; by {size}, {resume:?}"),
                );
            }
        }
    }
}

#[tokio::test]
async fn rows_of_several_ranges_are_those_of_one() {
    compare(false).await;
}

#[tokio::test]
async fn rows_are_the_same_when_a_range_splits_between_pages() {
    compare(true).await;
}

#[tokio::test]
async fn a_resume_filter_that_does_not_fit_is_refused() {
    let test = filled().await;
    let of_another = ItemRid::new(bolide_model::rid::ContainerRid::parse("AAAAAIAAAAA=").unwrap(), 1).to_string();
    for (order, filter) in [
        ("ORDER BY c.n", json!([])),
        ("ORDER BY c.n", json!({})),
        ("ORDER BY c.n", json!({"value": []})),
        ("ORDER BY c.n", json!({"value": [1, 2]})),
        ("ORDER BY c.n", json!({"value": [[1]]})),
        ("ORDER BY c.n", json!({"value": [{"type": "array", "low": 1}]})),
        (
            "ORDER BY c.n",
            json!({"value": [{"type": "text", "low": 1, "high": 1}]}),
        ),
        ("ORDER BY c.n", json!({"value": [1], "rid": "no rid"})),
        ("ORDER BY c.n", json!({"value": [1], "rid": of_another})),
        ("ORDER BY c.n", json!({"value": [1], "exclude": 1})),
        ("ORDER BY c.n", json!({"value": [1], "later": true})),
        ("", json!({"value": [1]})),
    ] {
        let query = QueryItems {
            text: format!("SELECT * FROM c {order}"),
            cross_partition: true,
            resume_filter: Some(filter),
            scope: ScanScope::default(),
            ..QueryItems::default()
        };
        let ctx = test.begin().await;
        let refusal = test.account.query(&ctx, &test.container, &query).await;
        let kind = refusal.expect_err("a refusal").error.kind;
        assert!(matches!(kind, ErrorKind::QuerySyntax { .. }), "{query:?}: {kind:?}");
    }
}
