//! Keys of several paths: behind equal values, and in the order of all paths of a composite index, a page reads its items only. Expected rows are sorted by the test.

use std::cmp::Ordering;

use bolide_core::{AccountOptions, IndexUse, PurgeMode, QueryItems};
use serde_json::{Value, json};

use super::property_indexes::{page, pages};
use crate::test_container::{START, TestContainer, options, scope_of};

/// A definition with composite indexes, beside the indexes of all paths.
fn composite(indexes: &[&[(&str, bool)]]) -> Value {
    let path = |(path, descends): &(&str, bool)| {
        let order = if *descends { "descending" } else { "ascending" };
        json!({"path": path, "order": order})
    };
    let indexes = indexes.iter().map(|paths| paths.iter().map(path).collect());
    let indexes: Vec<Value> = indexes.collect();
    json!({"defaultTtl": -1, "indexingPolicy": {"includedPaths": [{"path": "/*"}], "compositeIndexes": indexes}})
}

const UP: bool = false;
const DOWN: bool = true;

fn mixed() -> Value {
    composite(&[
        &[("/a", UP), ("/b", UP)],
        &[("/a", DOWN), ("/b", UP)],
        &[("/a", UP), ("/b", UP), ("/c", DOWN)],
        &[("/b", UP), ("/c", UP)],
    ])
}

/// Items in the order of their creation. Every fifth has a life of ten seconds.
fn items() -> Vec<Value> {
    let item = |n: u64| {
        let mut item = json!({"id": n.to_string(), "pk": n.to_string(), "a": n % 3, "c": n % 4, "n": n});
        match n / 3 % 9 {
            0 => {}
            1 => item["b"] = json!([n % 4]),
            2 => item["b"] = json!({"x": n % 2}),
            3 => item["b"] = Value::Null,
            4 => item["b"] = json!(n.is_multiple_of(2)),
            5 => item["b"] = json!(format!("{}{}", "long ".repeat(240), n % 5)),
            6 => item["b"] = json!("te\0xt"),
            _ => item["b"] = json!(n * 7 % 11),
        }
        if n.is_multiple_of(5) {
            item["ttl"] = 10.into();
        }
        item
    };
    (0..400).map(item).collect()
}

fn live() -> Vec<Value> {
    items().into_iter().filter(|item| item.get("ttl").is_none()).collect()
}

async fn filled(definition: Value, items: Vec<Value>, index_use: IndexUse) -> TestContainer {
    let options = AccountOptions { index_use, ..options() };
    let test = TestContainer::with_options(definition, None, options).await;
    for item in items {
        test.create(item).await.unwrap();
    }
    test.at(START + 10);
    test
}

/// Arrays and objects count as undefined.
fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 1,
        Value::Bool(_) => 2,
        Value::Number(_) => 3,
        Value::String(_) => 4,
        Value::Array(_) | Value::Object(_) => 0,
    }
}

fn order(one: Option<&Value>, other: Option<&Value>) -> Ordering {
    let ranks = [one, other].map(|value| value.map_or(0, rank));
    match (one, other) {
        _ if ranks[0] != ranks[1] => ranks[0].cmp(&ranks[1]),
        (Some(Value::Bool(one)), Some(Value::Bool(other))) => one.cmp(other),
        (Some(Value::Number(one)), Some(Value::Number(other))) => {
            one.as_f64().unwrap().total_cmp(&other.as_f64().unwrap())
        }
        (Some(Value::String(one)), Some(Value::String(other))) => one.cmp(other),
        _ => Ordering::Equal,
    }
}

/// Returns the ids of items that pass, sorted; those with equal values in the order of creation, or against it if the first key descends.
fn sorted(items: &[Value], passes: impl Fn(&Value) -> bool, keys: &[(&str, bool)]) -> Vec<Value> {
    let mut items: Vec<(usize, &Value)> = items.iter().enumerate().filter(|(_, item)| passes(item)).collect();
    items.sort_by(|(at, one), (other_at, other)| {
        let turned = |order: Ordering, descends| if descends { order.reverse() } else { order };
        let by_keys = keys
            .iter()
            .map(|(key, descends)| turned(order(one.get(*key), other.get(*key)), *descends));
        let by_creation = turned(at.cmp(other_at), keys[0].1);
        by_keys.fold(Ordering::Equal, Ordering::then).then(by_creation)
    });
    items.into_iter().map(|(_, item)| item["id"].clone()).collect()
}

/// A filter, an order, and the same as the test has them.
type Sort = (
    &'static str,
    &'static str,
    fn(&Value) -> bool,
    &'static [(&'static str, bool)],
);

const SEVERAL_KEYS: [Sort; 10] = [
    ("true", "c.a, c.b", |_| true, &[("a", UP), ("b", UP)]),
    ("true", "c.a DESC, c.b DESC", |_| true, &[("a", DOWN), ("b", DOWN)]),
    ("true", "c.a, c.b DESC", |_| true, &[("a", UP), ("b", DOWN)]),
    ("true", "c.a DESC, c.b", |_| true, &[("a", DOWN), ("b", UP)]),
    (
        "true",
        "c.a, c.b, c.c DESC",
        |_| true,
        &[("a", UP), ("b", UP), ("c", DOWN)],
    ),
    (
        "true",
        "c.a DESC, c.b DESC, c.c",
        |_| true,
        &[("a", DOWN), ("b", DOWN), ("c", UP)],
    ),
    (
        "c.a = 1",
        "c.a, c.b DESC",
        |item| item["a"] == 1,
        &[("a", UP), ("b", DOWN)],
    ),
    (
        "c.a = 2 AND c.c != 1",
        "c.b, c.c",
        |item| item["a"] == 2 && item["c"] != 1,
        &[("b", UP), ("c", UP)],
    ),
    (
        "c.a > 0 AND c.n % 2 = 0",
        "c.a, c.b",
        |item| item["a"] != 0 && item["n"].as_u64().is_some_and(|n| n.is_multiple_of(2)),
        &[("a", UP), ("b", UP)],
    ),
    (
        "c.b >= 3",
        "c.b DESC, c.c DESC",
        |item| item["b"].as_u64().is_some_and(|b| b >= 3),
        &[("b", DOWN), ("c", DOWN)],
    ),
];

/// The same for sorts by one path, for values that are no arrays and no objects.
const ONE_KEY: [Sort; 7] = [
    ("c.a = 1", "c.b", |item| item["a"] == 1, &[("b", UP)]),
    ("c.a = 1", "c.b DESC", |item| item["a"] == 1, &[("b", DOWN)]),
    (
        "c.a = 0 AND c.b >= 3",
        "c.b",
        |item| item["a"] == 0 && item["b"].as_u64().is_some_and(|b| b >= 3),
        &[("b", UP)],
    ),
    (
        "c.a = 0 AND c.b != 'te\\u0000xt'",
        "c.b DESC",
        |item| item["a"] == 0 && item.get("b").is_some_and(|b| b != "te\0xt"),
        &[("b", DOWN)],
    ),
    (
        "c.a = 2 AND IS_DEFINED(c.b)",
        "c.b",
        |item| item["a"] == 2 && item.get("b").is_some(),
        &[("b", UP)],
    ),
    (
        "c.a = 1 AND c.b = 'te\\u0000xt'",
        "c.c DESC",
        |item| item["a"] == 1 && item["b"] == "te\0xt",
        &[("c", DOWN)],
    ),
    (
        "c.a = 1 AND c.b = null AND c.c < 3",
        "c.c",
        |item| item["a"] == 1 && item["b"] == Value::Null && item.get("b").is_some() && item["c"] != 3,
        &[("c", UP)],
    ),
];

fn is_plain(items: &[Value], id: &Value) -> bool {
    let item = items.iter().find(|item| item["id"] == *id).expect("an item");
    !item.get("b").is_some_and(|b| b.is_array() || b.is_object())
}

#[tokio::test]
async fn rows_come_in_the_order_of_all_sort_paths() {
    // TTL-244, TTL-247: some of the items are ghosts.
    let live = live();
    let without = filled(mixed(), items(), IndexUse::Never).await;
    for index_use in [IndexUse::Always, IndexUse::AlwaysInOrder] {
        let with = filled(mixed(), items(), index_use).await;
        for (filter, by, passes, keys) in SEVERAL_KEYS.into_iter().chain(ONE_KEY) {
            for (begin, end) in [
                ("", ""),
                ("TOP 40 ", ""),
                ("", " OFFSET 11 LIMIT 20"),
                ("", " OFFSET 70 LIMIT 9"),
            ] {
                let text = format!("SELECT {begin}VALUE c.id FROM c WHERE {filter} ORDER BY {by}{end}");
                let expected = sorted(&live, passes, keys);
                let of_scan = pages(&without, &text, 1_000).await.0;
                assert!(!expected.is_empty(), "{text}");
                if keys.len() > 1 {
                    let all = expected.len();
                    let part = match (begin, end) {
                        ("", "") => 0..all,
                        ("", " OFFSET 70 LIMIT 9") => 70.min(all)..79.min(all),
                        ("", _) => 11.min(all)..31.min(all),
                        _ => 0..40.min(all),
                    };
                    assert_eq!(of_scan, expected[part], "{text}");
                } else if (begin, end) == ("", "") {
                    let plain = |ids: &[Value]| -> Vec<Value> {
                        ids.iter().filter(|id| is_plain(&live, id)).cloned().collect()
                    };
                    assert_eq!(plain(&of_scan), plain(&expected), "{text}");
                    assert_eq!(of_scan.len(), expected.len(), "{text}");
                }
                for size in [3, 1_000] {
                    assert_eq!(
                        pages(&with, &text, size).await.0,
                        of_scan,
                        "{text} in pages of {size}, {index_use:?}"
                    );
                }
            }
        }
        with.assert_sound().await;
    }
}

/// Two thousand items: four tenants, each with as many moments as items.
fn moments() -> Vec<Value> {
    let item = |n: u64| {
        let at = n * 7_919 % 2_003;
        json!({"id": n.to_string(), "pk": n.to_string(), "tenant": format!("t{}", n % 4), "at": at, "same": 1})
    };
    (0..2_000).map(item).collect()
}

/// Asserts that each of some pages has the next of the expected rows, and reads so many items at most.
async fn assert_reads(test: &TestContainer, text: &str, expected: &[Value], (pages, most): (usize, u64)) {
    let (mut rows, mut from) = (Vec::new(), None);
    for number in 0..pages {
        let (found, read, next) = page(test, text, 20, from).await;
        assert!(read <= most, "{text}: page {number} read {read}");
        rows.extend(found);
        from = next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(rows, expected[..rows.len()], "{text}");
    assert!(rows.len() == expected.len() || rows.len() == 20 * pages, "{text}");
}

#[tokio::test]
async fn a_page_behind_an_equal_value_reads_its_items() {
    let definition = composite(&[&[("/tenant", UP), ("/at", UP)]]);
    let test = filled(definition, moments(), IndexUse::WhereFaster).await;
    for (by, descends) in [("c.at", UP), ("c.at DESC", DOWN)] {
        let text = format!("SELECT VALUE c.pk FROM c WHERE c.tenant = 't2' ORDER BY {by}");
        let expected = sorted(&moments(), |item| item["tenant"] == "t2", &[("at", descends)]);
        assert_reads(&test, &text, &expected, (4, 40)).await;
    }
}

#[tokio::test]
async fn a_page_in_the_order_of_all_paths_reads_its_items_however_many_values_are_equal() {
    let definition = composite(&[
        &[("/same", UP), ("/at", DOWN)],
        &[("/tenant", UP), ("/same", UP)],
        &[("/at", DOWN), ("/tenant", UP)],
    ]);
    let test = filled(definition, moments(), IndexUse::WhereFaster).await;
    let orders: [(&str, &[(&str, bool)]); 6] = [
        ("c.same, c.at DESC", &[("same", UP), ("at", DOWN)]),
        ("c.same DESC, c.at", &[("same", DOWN), ("at", UP)]),
        ("c.tenant, c.same", &[("tenant", UP), ("same", UP)]),
        ("c.tenant DESC, c.same DESC", &[("tenant", DOWN), ("same", DOWN)]),
        ("c.at DESC, c.tenant", &[("at", DOWN), ("tenant", UP)]),
        ("c.at, c.tenant DESC", &[("at", UP), ("tenant", DOWN)]),
    ];
    for (by, keys) in orders {
        let expected = sorted(&moments(), |_| true, keys);
        assert_reads(
            &test,
            &format!("SELECT VALUE c.pk FROM c ORDER BY {by}"),
            &expected,
            (6, 40),
        )
        .await;
        let top = format!("SELECT TOP 30 VALUE c.pk FROM c ORDER BY {by}");
        assert_reads(&test, &top, &expected[..30], (6, 40)).await;
        let offset = format!("SELECT VALUE c.pk FROM c ORDER BY {by} OFFSET 10 LIMIT 50");
        assert_reads(&test, &offset, &expected[10..60], (6, 50)).await;
    }
}

#[tokio::test]
async fn conditions_on_the_paths_of_an_index_are_one_interval() {
    let definition = composite(&[
        &[("/tenant", UP), ("/at", DOWN)],
        &[("/same", UP), ("/tenant", UP), ("/at", UP)],
    ]);
    let test = filled(definition, moments(), IndexUse::WhereFaster).await;
    let is_at = |item: &Value, low: u64, high: u64| (low..high).contains(&item["at"].as_u64().unwrap());
    type Case<'c> = (&'c str, &'c dyn Fn(&Value) -> bool);
    let cases: [Case<'_>; 5] = [
        ("c.tenant = 't1' AND c.at >= 100 AND c.at < 130", &|item| {
            item["tenant"] == "t1" && is_at(item, 100, 130)
        }),
        ("c.tenant = 't1' AND c.at > 1990", &|item| {
            item["tenant"] == "t1" && is_at(item, 1991, 9_999)
        }),
        ("c.tenant IN ('t0', 't3') AND c.at < 20", &|item| {
            (item["tenant"] == "t0" || item["tenant"] == "t3") && is_at(item, 0, 20)
        }),
        ("c.same = 1 AND c.tenant = 't2' AND c.at BETWEEN 7 AND 50", &|item| {
            item["tenant"] == "t2" && is_at(item, 7, 51)
        }),
        ("c.tenant = 't2' AND c.at = 'none'", &|_| false),
    ];
    for (filter, passes) in cases {
        let expected = moments().into_iter().filter(|item| passes(item)).count();
        let (rows, read, _) = page(&test, &format!("SELECT VALUE c.id FROM c WHERE {filter}"), 1_000, None).await;
        assert_eq!((rows.len(), read), (expected, expected as u64), "{filter}");
    }
}

/// Returns the rows and the number of items read by the first page inside a partition key, in a container of many items.
async fn page_of_key(test: &TestContainer, pk: &str, text: &str, size: usize) -> (Vec<Value>, u64, Option<String>) {
    let query = QueryItems {
        text: text.to_owned(),
        scope: scope_of(pk),
        max_items: Some(size),
        ..QueryItems::default()
    };
    let ctx = test.begin().await;
    let page = test.account.query(&ctx, &test.container, &query).await.unwrap().value;
    let rows = serde_json::from_slice(&[b"[", &page.rows[..], b"]"].concat()).unwrap();
    (rows, page.metrics.retrieved_items, page.index)
}

#[tokio::test]
async fn inside_a_partition_key_an_index_that_begins_with_it_gives_the_order() {
    let keyed = moments().into_iter().enumerate().map(|(n, mut item)| {
        item["pk"] = json!(if n % 5 < 3 { "large" } else { "small" });
        item
    });
    let items: Vec<Value> = keyed.collect();
    let definition = composite(&[&[("/pk", UP), ("/at", UP)], &[("/same", UP), ("/at", UP)]]);
    let test = filled(definition, items.clone(), IndexUse::WhereFaster).await;
    for (text, descends) in [
        ("SELECT VALUE c.id FROM c ORDER BY c.at", UP),
        ("SELECT VALUE c.id FROM c WHERE c.pk = 'large' ORDER BY c.at DESC", DOWN),
    ] {
        let expected = sorted(&items, |item| item["pk"] == "large", &[("at", descends)]);
        let (rows, read, index) = page_of_key(&test, "large", text, 20).await;
        assert_eq!(
            (&rows[..], index.as_deref()),
            (&expected[..20], Some("/pk ASC, /at ASC")),
            "{text}"
        );
        assert!(read <= 40, "{text}: {read}");
    }
    // The keys of the other index are those of all partition keys.
    let (_, _, index) = page_of_key(&test, "large", "SELECT VALUE c.id FROM c ORDER BY c.same, c.at", 20).await;
    assert_eq!(index, None);
    let (rows, read, _) = page_of_key(&test, "large", "SELECT VALUE c.id FROM c WHERE c.at < 40", 1_000).await;
    let expected = items
        .iter()
        .filter(|item| item["pk"] == "large" && item["at"].as_u64() < Some(40));
    assert_eq!((rows.len(), read), (expected.clone().count(), expected.count() as u64));
}

#[tokio::test]
async fn ranges_are_merged_in_the_order_of_all_paths() {
    let definition = composite(&[&[("/tenant", UP), ("/at", DOWN)]]);
    let test = filled(definition, moments(), IndexUse::WhereFaster).await;
    for _ in 0..2 {
        test.account.split(&test.container, None).await.unwrap();
    }
    let expected = sorted(&moments(), |_| true, &[("tenant", UP), ("at", DOWN)]);
    let mut query = QueryItems {
        text: "SELECT VALUE c.id FROM c ORDER BY c.tenant, c.at DESC".to_owned(),
        cross_partition: true,
        merges_ranges: true,
        max_items: Some(20),
        ..QueryItems::default()
    };
    let mut rows: Vec<Value> = Vec::new();
    for _ in 0..4 {
        let ctx = test.begin().await;
        let page = test.account.query(&ctx, &test.container, &query).await.unwrap().value;
        rows.extend(serde_json::from_slice::<Vec<Value>>(&[b"[", &page.rows[..], b"]"].concat()).unwrap());
        // A page needs 21 rows of the first range, and a few of each other one.
        assert!(page.metrics.retrieved_items <= 120, "{:?}", page.metrics);
        query.continuation = page.continuation;
    }
    assert_eq!(rows, expected[..80]);
    test.assert_sound().await;
}

#[tokio::test]
async fn an_index_that_a_policy_adds_is_built_and_its_entries_go_with_it() {
    // TTL-254, TTL-267: ghosts are among the items, and are purged.
    let keys: &[&[(&str, bool)]] = &[&[("/tenant", UP), ("/at", UP)]];
    let mut items = moments();
    items.iter_mut().step_by(9).for_each(|item| item["ttl"] = 10.into());
    let live: Vec<Value> = items.iter().filter(|item| item.get("ttl").is_none()).cloned().collect();
    let expected = sorted(&live, |item| item["tenant"] == "t1", &[("at", DOWN)]);
    let test = filled(composite(&[]), items, IndexUse::WhereFaster).await;
    let text = "SELECT VALUE c.id FROM c WHERE c.tenant = 't1' ORDER BY c.at DESC";
    for _ in 0..2 {
        test.define(composite(keys)).await.unwrap();
        let mut read = u64::MAX;
        for _ in 0..10_000 {
            let (rows, now_read, _) = page(&test, text, 20, None).await;
            assert_eq!(rows, expected[..20]);
            read = now_read;
            if read <= 40 {
                break;
            }
            tokio::task::yield_now().await;
        }
        assert!(read <= 40, "the index is never used: {read}");
        test.assert_sound().await;
        test.define(composite(&[])).await.unwrap();
        assert_eq!(page(&test, text, 20, None).await.0, expected[..20]);
    }
    test.define(composite(keys)).await.unwrap();
    test.account
        .purge(&test.container, PurgeMode::Force, None)
        .await
        .unwrap();
    assert_eq!(pages(&test, text, 200).await.0, expected);
    test.assert_sound().await;
    test.account.end().await;
    let test = test.reopen_with(options()).await;
    assert_eq!(pages(&test, text, 200).await.0, expected);
    test.assert_sound().await;
}

#[tokio::test]
async fn rows_of_the_paths_and_the_id_need_no_items_nor_do_rows_that_are_skipped() {
    // TTL-244: of the ghosts, no rows are made, and none are skipped.
    let definition = composite(&[&[("/tenant", UP), ("/at", DOWN)]]);
    let mut items = moments();
    items.iter_mut().step_by(9).for_each(|item| item["ttl"] = 10.into());
    let live: Vec<Value> = items.iter().filter(|item| item.get("ttl").is_none()).cloned().collect();
    let test = filled(definition.clone(), items.clone(), IndexUse::WhereFaster).await;
    let without = filled(definition, items, IndexUse::Never).await;
    let ids = sorted(&live, |item| item["tenant"] == "t2", &[("at", DOWN)]);
    let all = sorted(&live, |_| true, &[("tenant", UP), ("at", DOWN)]);
    let offset = "SELECT c.pk FROM c ORDER BY c.tenant, c.at DESC OFFSET 700 LIMIT 20";
    let (rows, read, _) = page(&test, offset, 100, None).await;
    let found: Vec<Value> = rows.iter().map(|row| row["pk"].clone()).collect();
    assert_eq!(found, all[700..720]);
    assert!(read <= 60, "{read}");
    let covered = "SELECT c.id, c.at, c.tenant FROM c WHERE c.tenant = 't2' ORDER BY c.at DESC";
    let (rows, _, _) = page(&test, covered, 50, None).await;
    let found: Vec<Value> = rows.iter().map(|row| row["id"].clone()).collect();
    assert_eq!(found, ids[..50]);
    for text in [
        covered,
        "SELECT VALUE [c.id, c.at] FROM c WHERE c.at > 5 ORDER BY c.tenant DESC, c.at",
        "SELECT c.id, c.at FROM c WHERE c.at = 77 ORDER BY c.tenant, c.at DESC",
        "SELECT c.id FROM c WHERE c.tenant = 't1' AND c.at > 100 AND c.at % 2 = 0 ORDER BY c.at OFFSET 80 LIMIT 60",
        "SELECT c.id FROM c ORDER BY c.tenant, c.at DESC OFFSET 300 LIMIT 60",
    ] {
        for size in [7, 1_000] {
            assert_eq!(
                pages(&test, text, size).await.0,
                pages(&without, text, size).await.0,
                "{text} by {size}"
            );
        }
    }
    test.assert_sound().await;
}
