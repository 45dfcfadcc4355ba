//! Property indexes: they find what a scan finds, no ghosts included, and their entries come and go with their items.

use std::time::Duration;

use bolide_core::{AccountOptions, IndexUse, PurgeMode, QueryItems, QueryMetrics};
use bolide_model::time::Monotonic;
use serde_json::{Value, json};

use crate::test_container::{START, TestContainer, key, options, scope_of};

fn always() -> AccountOptions {
    AccountOptions {
        index_use: IndexUse::Always,
        ..options()
    }
}

/// A definition whose policy names these paths.
fn naming(paths: &[&str]) -> Value {
    let named = paths.iter().map(|path| json!({"path": path}));
    json!({"defaultTtl": -1, "indexingPolicy": {"includedPaths": named.chain([json!({"path": "/*"})]).collect::<Vec<_>>()}})
}

async fn indexed(paths: &[&str]) -> TestContainer {
    TestContainer::with_options(naming(paths), None, always()).await
}

/// Creates items whose `v` is their number.
async fn create_numbered(test: &TestContainer, items: usize) {
    for n in 0..items {
        let item = json!({"id": n.to_string(), "pk": n.to_string(), "v": n});
        test.create(item).await.unwrap();
    }
}

/// Returns the rows of all pages, in any order, and the metrics of the first page.
async fn rows(test: &TestContainer, text: &str) -> (Vec<String>, QueryMetrics) {
    let mut query = QueryItems {
        text: text.to_owned(),
        cross_partition: true,
        max_items: Some(3),
        ..QueryItems::default()
    };
    let (mut rows, mut metrics) = (Vec::new(), None);
    loop {
        let ctx = test.begin().await;
        let page = test.account.query(&ctx, &test.container, &query).await.unwrap().value;
        let page_rows: Vec<Value> = serde_json::from_slice(&[b"[", &page.rows[..], b"]"].concat()).unwrap();
        rows.extend(page_rows.iter().map(Value::to_string));
        metrics.get_or_insert(page.metrics);
        query.continuation = page.continuation;
        if query.continuation.is_none() {
            rows.sort_unstable();
            return (rows, metrics.unwrap());
        }
    }
}

/// Asserts what a query returns, and how many items its first page read.
async fn assert_rows(test: &TestContainer, text: &str, expected: &[&str], read: u64) {
    let (rows, metrics) = rows(test, text).await;
    assert_eq!(
        (rows, metrics.retrieved_items),
        (expected.iter().map(ToString::to_string).collect(), read),
        "{text}"
    );
}

/// Waits until a query reads this many items: the index that it profits from is built, or gone.
async fn wait_until_read(test: &TestContainer, text: &str, read: u64) {
    for _ in 0..10_000 {
        if rows(test, text).await.1.retrieved_items == read {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{text} never read {read} items");
}

#[tokio::test]
async fn a_query_reads_only_the_items_that_an_index_finds() {
    let test = indexed(&["/v/?", "/tags/[]/?"]).await;
    for n in 0..20 {
        let item =
            json!({"id": n.to_string(), "pk": n.to_string(), "v": n, "name": format!("n{n}"), "tags": [n % 2, "all"]});
        test.create(item).await.unwrap();
    }
    assert_rows(&test, "SELECT VALUE c.v FROM c WHERE c.v = 7 AND c.pk != ''", &["7"], 1).await;
    assert_rows(
        &test,
        "SELECT VALUE c.v FROM c WHERE c.v >= 17.5 AND c.v < 19 AND c.name != 'n18'",
        &[],
        1,
    )
    .await;
    assert_rows(
        &test,
        "SELECT VALUE c.v FROM c WHERE c.v IN (1, 3, 'x') AND c.pk != ''",
        &["1", "3"],
        2,
    )
    .await;
    assert_rows(
        &test,
        "SELECT VALUE COUNT(1) FROM c WHERE ARRAY_CONTAINS(c.tags, 1)",
        &["10"],
        10,
    )
    .await;
    assert_rows(&test, "SELECT VALUE c.v FROM c WHERE c.name = 'n7'", &["7"], 20).await;
    assert_rows(
        &test,
        "SELECT TOP 2 VALUE c.v FROM c WHERE c.v < 10 AND c.pk != '' ORDER BY c.v DESC",
        &["8", "9"],
        10,
    )
    .await;
    test.replace("7", json!({"id": "7", "pk": "7", "v": 100}), None)
        .await
        .ok();
    test.upsert(json!({"id": "7", "pk": "7", "v": 100}), None)
        .await
        .unwrap();
    assert_rows(&test, "SELECT VALUE c.v FROM c WHERE c.v = 7 AND c.pk != ''", &[], 0).await;
    assert_rows(
        &test,
        "SELECT VALUE c.v FROM c WHERE c.v > 18 AND c.pk != ''",
        &["100", "19"],
        2,
    )
    .await;
    test.assert_sound().await;
}

#[tokio::test]
async fn an_index_shows_no_ghosts_and_the_purge_removes_their_entries() {
    // TTL-244, TTL-254, TTL-267
    let test = indexed(&["/v/?"]).await;
    for n in 0..6 {
        let item = json!({"id": n.to_string(), "pk": n.to_string(), "v": 1, "ttl": if n < 4 { 10 } else { 100 }});
        test.create(item).await.unwrap();
    }
    let text = "SELECT VALUE c.id FROM c WHERE c.v = 1 AND c.pk != ''";
    test.at(START + 9);
    assert_eq!(rows(&test, text).await.0.len(), 6);
    test.at(START + 10);
    assert_rows(&test, text, &["\"4\"", "\"5\""], 2).await;
    assert_rows(&test, "SELECT VALUE COUNT(1) FROM c WHERE c.v = 1", &["2"], 0).await;
    assert_eq!(
        test.account
            .purge(&test.container, PurgeMode::Force, None)
            .await
            .unwrap(),
        4
    );
    assert_rows(&test, text, &["\"4\"", "\"5\""], 2).await;
    test.assert_sound().await;
}

#[tokio::test]
async fn an_index_that_a_policy_adds_is_built_and_one_that_it_drops_is_removed() {
    let test = indexed(&[]).await;
    create_numbered(&test, 500).await;
    let text = "SELECT VALUE c.id FROM c WHERE c.v = 7 AND c.pk != ''";
    assert_eq!(rows(&test, text).await.1.retrieved_items, 500);
    test.define(naming(&["/v/?"])).await.unwrap();
    wait_until_read(&test, text, 1).await;
    test.assert_sound().await;
    test.define(naming(&["/w/?"])).await.unwrap();
    wait_until_read(&test, text, 500).await;
    // An index on the same path has another id, and the entries of the first one are gone.
    test.define(naming(&["/v/?"])).await.unwrap();
    wait_until_read(&test, text, 1).await;
    test.assert_sound().await;
}

#[tokio::test]
async fn a_build_that_a_stop_interrupts_is_finished_after_the_start() {
    let test = indexed(&[]).await;
    create_numbered(&test, 500).await;
    test.define(naming(&["/v/?"])).await.unwrap();
    test.account.end().await;
    let test = test.reopen_with(always()).await;
    wait_until_read(&test, "SELECT VALUE c.id FROM c WHERE c.v = 7 AND c.pk != ''", 1).await;
    test.assert_sound().await;
}

#[tokio::test]
async fn a_split_carries_indexes() {
    let test = indexed(&["/v/?"]).await;
    for n in 0..50 {
        test.create(json!({"id": n.to_string(), "pk": n.to_string(), "v": n % 5}))
            .await
            .unwrap();
    }
    test.account.split(&test.container, None).await.unwrap();
    let (rows, metrics) = rows(&test, "SELECT VALUE c.v FROM c WHERE c.v = 3").await;
    assert_eq!(rows.len(), 10);
    assert!(metrics.retrieved_items <= 10, "{metrics:?}");
    test.assert_sound().await;
}

#[tokio::test]
async fn a_path_on_which_queries_read_much_in_vain_gets_an_index() {
    let monotonic = Monotonic::manual();
    let options = AccountOptions {
        monotonic: monotonic.clone(),
        ..options()
    };
    let test = TestContainer::with_options(json!({}), None, options).await;
    for n in 0..2_500 {
        test.create(json!({"id": n.to_string(), "pk": n.to_string(), "v": n, "w": n}))
            .await
            .unwrap();
    }
    let text = "SELECT VALUE c.id FROM c WHERE c.w >= 0 AND c.v = 7";
    for _ in 0..8 {
        assert_eq!(rows(&test, text).await.1.retrieved_items, 2_500);
    }
    wait_until_read(&test, text, 1).await;
    test.assert_sound().await;
    // Nobody uses it for more than a day; the builder looks once in an hour.
    for _ in 0..26 {
        tokio::task::yield_now().await;
        monotonic.advance(Duration::from_secs(3_600));
    }
    wait_until_read(&test, text, 2_500).await;
    test.assert_sound().await;
}

/// Returns the rows and the number of items read by the only page of a query inside a partition key.
async fn rows_of_key(test: &TestContainer, pk: &str, text: &str) -> (Vec<Value>, u64) {
    let query = QueryItems {
        text: text.to_owned(),
        scope: scope_of(pk),
        max_items: Some(1_000),
        ..QueryItems::default()
    };
    let ctx = test.begin().await;
    let page = test.account.query(&ctx, &test.container, &query).await.unwrap().value;
    assert_eq!(page.continuation, None);
    let rows = serde_json::from_slice(&[b"[", &page.rows[..], b"]"].concat()).unwrap();
    (rows, page.metrics.retrieved_items)
}

#[tokio::test]
async fn inside_a_large_partition_key_an_index_is_used_too() {
    let test = TestContainer::with(naming(&["/v/?"])).await;
    for n in 0..1_200 {
        test.create(json!({"id": n.to_string(), "pk": "large", "v": n % 400}))
            .await
            .unwrap();
    }
    for n in 0..20 {
        test.create(json!({"id": n.to_string(), "pk": "small", "v": 7}))
            .await
            .unwrap();
    }
    let text = "SELECT VALUE c.id FROM c WHERE c.v = 7";
    assert_eq!(
        rows_of_key(&test, "large", text).await,
        (["7", "407", "807"].map(Value::from).to_vec(), 3)
    );
    // A scan holds these in one read, and shows them in the order of their creation.
    let (found, read) = rows_of_key(&test, "small", text).await;
    assert_eq!((found.first(), found.len(), read), (Some(&json!("0")), 20, 20));
    assert_eq!(
        rows_of_key(&test, "large", "SELECT VALUE COUNT(1) FROM c WHERE c.v < 2").await,
        (vec![json!(6)], 6)
    );
}

#[tokio::test]
async fn an_item_with_very_many_values_is_found_too() {
    let test = indexed(&["/tags/[]/?"]).await;
    let many: Vec<i32> = (0..2_000).collect();
    test.create(json!({"id": "many", "pk": "m", "tags": many}))
        .await
        .unwrap();
    test.create(json!({"id": "one", "pk": "o", "tags": [1_999]}))
        .await
        .unwrap();
    test.create(json!({"id": "none", "pk": "n", "tags": []})).await.unwrap();
    let text = "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.tags, 1999)";
    assert_rows(&test, text, &["\"many\"", "\"one\""], 2).await;
    // It is read for each value, and judged by its content.
    assert_rows(
        &test,
        "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.tags, 2000)",
        &[],
        1,
    )
    .await;
    test.assert_sound().await;
    test.replace("many", json!({"id": "many", "pk": "m", "tags": [7]}), None)
        .await
        .ok();
    test.upsert(json!({"id": "many", "pk": "m", "tags": [7]}), None)
        .await
        .unwrap();
    assert_rows(&test, text, &["\"one\""], 1).await;
    test.assert_sound().await;
}

#[tokio::test]
async fn an_automatic_index_gives_way_to_one_that_the_policy_names() {
    let test = TestContainer::with_options(json!({}), None, always()).await;
    create_numbered(&test, 2_500).await;
    test.create(json!({"id": "without", "pk": "x"})).await.unwrap();
    for _ in 0..8 {
        rows(&test, "SELECT VALUE c.id FROM c WHERE c.v = 7 AND c.pk != ''").await;
    }
    wait_until_read(&test, "SELECT VALUE c.id FROM c WHERE c.v = 7 AND c.pk != ''", 1).await;
    let sorted = "SELECT VALUE c.id FROM c ORDER BY c.v";
    assert_eq!(
        page(&test, sorted, 1, None).await.0,
        [json!("0")],
        "without the items that have no value"
    );
    let mut named = naming(&["/v/?"]);
    named.as_object_mut().unwrap().remove("defaultTtl");
    test.define(named).await.unwrap();
    for _ in 0..10_000 {
        let (found, read, _) = page(&test, sorted, 1, None).await;
        assert_eq!(found, [json!("without")], "it has a row first now");
        if read < 100 {
            return test.assert_sound().await;
        }
        tokio::task::yield_now().await;
    }
    panic!("the index of the policy is never used");
}

/// Queries with the values of [`many_values`].
const QUERIES: [&str; 23] = [
    "SELECT VALUE c.id FROM c ORDER BY c.v",
    "SELECT VALUE c.id FROM c ORDER BY c.v DESC",
    "SELECT VALUE c.id FROM c WHERE c.v > 20 AND c.n != 5 ORDER BY c.v",
    "SELECT VALUE c.id FROM c WHERE c.v >= 20 ORDER BY c.v DESC OFFSET 5 LIMIT 40",
    "SELECT TOP 30 VALUE c.id FROM c WHERE c.n < 100 ORDER BY c.v",
    "SELECT VALUE c.id FROM c WHERE c.v < 30",
    "SELECT VALUE c.id FROM c WHERE STARTSWITH(c.v, 'te')",
    "SELECT DISTINCT VALUE c.v FROM c WHERE c.v < 10",
    "SELECT c.v, COUNT(1) AS n FROM c WHERE c.v IN (1, 2, 3, 'text', null, true) GROUP BY c.v",
    "SELECT VALUE COUNT(1) FROM c WHERE IS_NUMBER(c.v)",
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT c.v, COUNT(1) AS n FROM c GROUP BY c.v",
    "SELECT c.v, COUNT(1) AS n FROM c WHERE IS_NUMBER(c.v) GROUP BY c.v",
    "SELECT MIN(c.v) AS low, MAX(c.v) AS high, SUM(c.v) AS sum, COUNT(1) AS n FROM c WHERE c.v > 3",
    "SELECT VALUE AVG(c.v) FROM c WHERE c.v BETWEEN 1 AND 20",
    "SELECT MAX(c.v) AS high, COUNT(1) AS n FROM c",
    "SELECT VALUE c.id FROM c ORDER BY c.v OFFSET 70 LIMIT 20",
    "SELECT VALUE c.id FROM c ORDER BY c.v OFFSET 150 LIMIT 100",
    "SELECT c.id, c.missing FROM c WHERE c.v != 5 ORDER BY c.v DESC OFFSET 66 LIMIT 80",
    "SELECT VALUE c.missing FROM c ORDER BY c.v OFFSET 66 LIMIT 80",
    "SELECT VALUE c.id FROM c WHERE c.v > 3 AND c.v % 2 = 0 ORDER BY c.v OFFSET 20 LIMIT 20",
    "SELECT c.id, c.v FROM c WHERE c.v >= 3 ORDER BY c.v DESC",
    "SELECT VALUE [c.v, c.id, LENGTH(c.id)] FROM c WHERE c.v IN (1, 2, 3, 'text', null, true)",
];

/// Items with values of all types at `v`, many of them equal; some of the items are ghosts.
async fn many_values(options: AccountOptions) -> TestContainer {
    many_values_in(naming(&["/v/?"]), options).await
}

/// The same in a container of this definition.
pub(super) async fn many_values_in(definition: Value, options: AccountOptions) -> TestContainer {
    let test = TestContainer::with_options(definition, None, options).await;
    for n in 0..200 {
        let value = match n % 20 {
            0 => json!("text"),
            1 => json!(format!("{}{n}", "long ".repeat(300))),
            2 => json!([n]),
            3 => json!({"n": n}),
            4 => Value::Null,
            5 => json!(n % 40 == 5),
            _ => json!(n * 7 % 41),
        };
        let mut item = json!({"id": n.to_string(), "pk": n.to_string(), "v": value, "n": n});
        if n % 7 == 0 {
            item["ttl"] = 10.into();
        }
        test.create(item).await.unwrap();
    }
    test.create(json!({"id": "without", "pk": "x", "n": 1})).await.unwrap();
    test.at(START + 10);
    test
}

pub(super) async fn page(
    test: &TestContainer,
    text: &str,
    size: usize,
    from: Option<String>,
) -> (Vec<Value>, u64, Option<String>) {
    let query = QueryItems {
        text: text.to_owned(),
        cross_partition: true,
        max_items: Some(size),
        continuation: from,
        ..QueryItems::default()
    };
    let ctx = test.begin().await;
    let page = test.account.query(&ctx, &test.container, &query).await.unwrap().value;
    let rows = serde_json::from_slice(&[b"[", &page.rows[..], b"]"].concat()).unwrap();
    (rows, page.metrics.retrieved_items, page.continuation)
}

/// Returns the rows of all pages in order, and the number of items that each page read.
pub(super) async fn pages(test: &TestContainer, text: &str, size: usize) -> (Vec<Value>, Vec<u64>) {
    let (mut rows, mut read, mut from) = (Vec::new(), Vec::new(), None);
    loop {
        let (page_rows, page_read, next) = page(test, text, size, from).await;
        rows.extend(page_rows);
        read.push(page_read);
        match next {
            Some(next) => from = Some(next),
            None => return (rows, read),
        }
    }
}

#[tokio::test]
async fn with_an_index_and_without_a_query_has_the_same_rows_in_the_same_order() {
    let never = AccountOptions {
        index_use: IndexUse::Never,
        ..options()
    };
    let without = many_values(never).await;
    for index_use in [IndexUse::Always, IndexUse::AlwaysInOrder] {
        let with = many_values(AccountOptions { index_use, ..options() }).await;
        for text in QUERIES {
            for size in [1, 7, 1_000] {
                let (found, expected) = (pages(&with, text, size).await.0, pages(&without, text, size).await.0);
                assert_eq!(found, expected, "{text} in pages of {size}, {index_use:?}");
            }
            let is_empty = pages(&with, text, 7).await.0.is_empty();
            assert_eq!(is_empty, text.contains("VALUE c.missing"), "{text}");
        }
        with.assert_sound().await;
    }
}

#[tokio::test]
async fn a_page_of_a_sorted_query_reads_only_its_items_whatever_its_number() {
    let test = many_values(always()).await;
    for text in &QUERIES[..2] {
        let (rows, read) = pages(&test, text, 7).await;
        assert!(rows.len() > 150, "{text}");
        // A page needs one row more, reads some in reserve, and all items with the key of its last row: there are ten arrays.
        let most = read.iter().max().unwrap();
        assert!(*most <= 8 + 16 + 10, "{text}: {read:?}");
    }
}

#[tokio::test]
async fn a_request_that_demands_the_order_of_an_index_gets_it_although_a_condition_is_served_too() {
    let test = indexed(&["/v/?"]).await;
    create_numbered(&test, 100).await;
    let mut query = QueryItems {
        text: "SELECT TOP 1 VALUE c.v FROM c WHERE c.v >= 10 AND c.pk != '' ORDER BY c.v".to_owned(),
        cross_partition: true,
        ..QueryItems::default()
    };
    // 90 items pass the condition; in the order, a page of one row reads it and some in reserve.
    for (index_use, least, most) in [
        (None, 90, 90),
        (Some(IndexUse::AlwaysInOrder), 1, 30),
        (Some(IndexUse::Never), 100, 100),
    ] {
        query.index_use = index_use;
        let ctx = test.begin().await;
        let page = test.account.query(&ctx, &test.container, &query).await.unwrap().value;
        let read = page.metrics.retrieved_items;
        assert_eq!(page.rows, "10");
        assert!((least..=most).contains(&read), "{index_use:?} read {read}");
    }
}

#[tokio::test]
async fn a_page_in_the_order_of_its_condition_reads_what_it_returns() {
    let test = TestContainer::with_options(naming(&["/v/?"]), None, options()).await;
    create_numbered(&test, 1_200).await;
    // More than two items pass each condition; eight are read at once, and one row more than a page needs tells whether others follow.
    for (text, expected, most) in [
        (
            "SELECT TOP 2 VALUE c.pk FROM c WHERE c.v < 200 ORDER BY c.v DESC",
            r#""199","198""#,
            8,
        ),
        (
            "SELECT TOP 20 VALUE c.pk FROM c WHERE c.v >= 1100 ORDER BY c.v",
            r#""1100","1101""#,
            21,
        ),
    ] {
        let query = QueryItems {
            text: text.to_owned(),
            cross_partition: true,
            ..QueryItems::default()
        };
        let ctx = test.begin().await;
        let page = test.account.query(&ctx, &test.container, &query).await.unwrap().value;
        assert!(page.rows.starts_with(expected.as_bytes()), "{text}: {:?}", page.rows);
        assert!(page.metrics.retrieved_items <= most, "{text}: {:?}", page.metrics);
        assert_eq!(page.index.as_deref(), Some("/v/?"), "{text}");
    }
}

#[tokio::test]
async fn rows_of_values_and_ids_come_without_items_and_without_ghosts() {
    // TTL-244, TTL-247, TTL-254: entries of ghosts of both classes, before and after the purge.
    let mut definition = naming(&["/v/?"]);
    definition["defaultTtl"] = 100.into();
    let test = TestContainer::with_options(definition, None, options()).await;
    for n in 0..1_200 {
        let mut item = json!({"id": n.to_string(), "pk": n.to_string(), "v": n});
        match n % 20 {
            0 => item["ttl"] = 50.into(),
            1 => {}
            _ => item["ttl"] = 1_000.into(),
        }
        test.create(item).await.unwrap();
    }
    let range = "SELECT VALUE c.id FROM c WHERE c.v >= 600 AND c.v < 660";
    let top = "SELECT TOP 30 c.v, c.id FROM c WHERE c.v >= 600 ORDER BY c.v";
    for (at, remainders) in [(49, 0..20), (50, 1..20), (99, 1..20), (100, 2..20)] {
        test.at(START + at);
        for purged in [false, true] {
            if purged {
                let purge = test.account.purge(&test.container, PurgeMode::Force, None);
                purge.await.unwrap();
            }
            let live = (600..1_200).filter(|n| remainders.contains(&(n % 20)));
            let mut ids: Vec<Value> = live
                .clone()
                .take_while(|n| *n < 660)
                .map(|n| n.to_string().into())
                .collect();
            let (mut found, read) = pages(&test, range, 25).await;
            found.sort_unstable_by_key(Value::to_string);
            ids.sort_unstable_by_key(Value::to_string);
            assert_eq!(found, ids, "{at} {purged}");
            // A few items of the last page may be read one by one.
            assert!(
                read.iter().all(|read| *read < 16) && read[0] == 0,
                "{at} {purged}: {read:?}"
            );
            let expected: Vec<Value> = live.take(30).map(|n| json!({"v": n, "id": n.to_string()})).collect();
            assert_eq!(pages(&test, top, 100).await, (expected, vec![0]), "{at} {purged}");
        }
    }
    test.assert_sound().await;
}

#[tokio::test]
async fn many_entries_are_grouped_and_counted_at_one_version() {
    // TTL-244, TTL-247: more entries than one read has, ghosts among them.
    let test = TestContainer::with_options(naming(&["/v/?"]), None, options()).await;
    for n in 0..4_500 {
        let v = match n * 37 % 9 {
            0 => json!(null),
            1 => json!(format!("text {}", n % 4)),
            2 => json!(n),
            few => json!(few),
        };
        let ttl = if n % 10 == 0 { 10 } else { 1_000 };
        test.create(json!({"id": n.to_string(), "pk": (n % 700).to_string(), "v": v, "ttl": ttl}))
            .await
            .unwrap();
    }
    test.at(START + 10);
    for text in [
        "SELECT c.v, COUNT(1) AS n FROM c WHERE c.v < 9 GROUP BY c.v",
        "SELECT IS_STRING(c.v) AS t, COUNT(1) AS n, MIN(c.v) AS low, MAX(c.v) AS high, COUNTIF(c.v = 3) AS three FROM c GROUP BY IS_STRING(c.v)",
        "SELECT COUNT(1) AS n, COUNTIF(c.v > 5) AS many, MAX(c.v) AS high FROM c",
        "SELECT DISTINCT VALUE c.v FROM c WHERE NOT (c.v >= 9)",
        "SELECT DISTINCT TOP 4 VALUE c.v FROM c WHERE c.v < 9",
        "SELECT DISTINCT VALUE {low: c.v < 5} FROM c WHERE c.v != 4",
        "SELECT VALUE SUM(c.v) FROM c WHERE c.v < 9",
    ] {
        for size in [2, 1_000] {
            let mut answers = Vec::new();
            for index_use in [IndexUse::Always, IndexUse::WhereFaster, IndexUse::Never] {
                let mut query = QueryItems {
                    text: text.to_owned(),
                    cross_partition: true,
                    max_items: Some(size),
                    index_use: Some(index_use),
                    ..QueryItems::default()
                };
                let (mut rows, mut read) = (Vec::<Value>::new(), Vec::new());
                loop {
                    let ctx = test.begin().await;
                    let page = test.account.query(&ctx, &test.container, &query).await.unwrap().value;
                    rows.extend(serde_json::from_slice::<Vec<Value>>(&[b"[", &page.rows[..], b"]"].concat()).unwrap());
                    read.push(page.metrics.retrieved_items);
                    query.continuation = page.continuation;
                    if query.continuation.is_none() {
                        break;
                    }
                }
                // Pages of distinct values go on behind an item.
                if index_use != IndexUse::Never && !(text.contains("DISTINCT") && size == 2) {
                    assert!(read.iter().all(|read| *read == 0), "{text}: {read:?}");
                }
                answers.push(rows);
            }
            assert!(!answers[2].is_empty(), "{text}");
            assert_eq!(answers[0], answers[2], "{text} in pages of {size}");
            assert_eq!(answers[1], answers[2], "{text} in pages of {size}");
        }
    }
    test.assert_sound().await;
}

#[tokio::test]
async fn a_plan_may_change_between_two_pages() {
    let mut test = many_values(always()).await;
    for text in QUERIES {
        let (mut expected, _) = pages(&test, text, 1_000).await;
        let (mut rows, mut from) = (Vec::new(), None);
        let plans = [IndexUse::Always, IndexUse::Never, IndexUse::AlwaysInOrder];
        for index_use in plans.into_iter().cycle() {
            test.account.end().await;
            let options = AccountOptions { index_use, ..options() };
            test = test.reopen_with(options).await;
            let (page_rows, _, next) = page(&test, text, 9, from).await;
            rows.extend(page_rows);
            from = next;
            if from.is_none() {
                break;
            }
        }
        if text.contains("GROUP BY") {
            // Groups over several pages have an order of their own.
            rows.sort_unstable_by_key(Value::to_string);
            expected.sort_unstable_by_key(Value::to_string);
        }
        assert_eq!(rows, expected, "{text}");
    }
}

#[tokio::test]
async fn entries_and_counters_answer_without_items_and_without_ghosts() {
    // TTL-244, TTL-247, TTL-254, TTL-267: ghosts of both classes, before and after the purge.
    let mut definition = naming(&["/v/?"]);
    definition["defaultTtl"] = 100.into();
    let test = TestContainer::with_options(definition, None, always()).await;
    for n in 0..30 {
        let mut item = json!({"id": n.to_string(), "pk": n.to_string(), "v": n % 3});
        if n % 2 == 0 {
            item["ttl"] = json!(if n < 20 { 10 } else { 1_000 });
        }
        test.create(item).await.unwrap();
    }
    // From which second on there are how many items with each value.
    for (second, total, counts) in [
        (0, 30, [10, 10, 10]),
        (9, 30, [10, 10, 10]),
        (10, 20, [6, 7, 7]),
        (99, 20, [6, 7, 7]),
        (100, 5, [1, 2, 2]),
        (999, 5, [1, 2, 2]),
        (1_000, 0, [0, 0, 0]),
    ] {
        test.at(START + second);
        let counted = |(v, n): (usize, &usize)| (*n > 0).then(|| format!("{{\"n\":{n},\"v\":{v}}}"));
        let mut groups: Vec<String> = counts.iter().enumerate().filter_map(counted).collect();
        groups.sort();
        let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
        for _ in ["ghosts", "purged"] {
            let total = total.to_string();
            assert_rows(&test, "SELECT VALUE COUNT(1) FROM c", &[&total], 0).await;
            let ones = counts[1].to_string();
            assert_rows(&test, "SELECT VALUE COUNT(1) FROM c WHERE c.v = 1", &[&ones], 0).await;
            let highest: &[&str] = if counts[1] == 0 { &[] } else { &["1"] };
            assert_rows(&test, "SELECT VALUE MAX(c.v) FROM c WHERE c.v < 2", highest, 0).await;
            assert_rows(&test, "SELECT COUNT(1) AS n, c.v FROM c GROUP BY c.v", &groups, 0).await;
            test.purge().await;
        }
    }
    test.assert_sound().await;
}

#[tokio::test]
async fn where_entries_do_not_tell_items_are_read() {
    let test = indexed(&["/v/?"]).await;
    create_numbered(&test, 10).await;
    let (all, few) = (
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT VALUE COUNT(1) FROM c WHERE c.v < 4",
    );
    assert_rows(&test, all, &["10"], 0).await;
    let ctx = test.begin().await;
    test.account
        .delete_all_of_key(&ctx, &test.container, &key("3"))
        .await
        .unwrap();
    // The deleted key may hide its items until they are removed.
    assert_eq!(rows(&test, all).await.0, ["9"]);
    assert_eq!(rows(&test, few).await.0, ["3"]);
    test.purge().await;
    assert_rows(&test, all, &["9"], 0).await;
    assert_rows(&test, few, &["3"], 0).await;
    test.create(json!({"id": "list", "pk": "x", "v": [1]})).await.unwrap();
    // All arrays have one key, so that the item is needed.
    assert_rows(&test, "SELECT VALUE COUNT(1) FROM c WHERE c.v != 1", &["9"], 9).await;
    test.assert_sound().await;
}

#[tokio::test]
async fn a_deep_offset_reads_only_the_items_of_its_page() {
    let test = indexed(&["/v/?"]).await;
    for n in 0..600 {
        let mut item = json!({"id": n.to_string(), "pk": n.to_string(), "v": n / 3});
        if n % 2 == 0 {
            item["ttl"] = 10.into();
        }
        test.create(item).await.unwrap();
    }
    test.at(START + 10);
    // An entry without its item costs a twentieth of an item.
    let count = QueryItems {
        text: "SELECT VALUE COUNT(1) FROM c WHERE c.v < 100".to_owned(),
        cross_partition: true,
        ..QueryItems::default()
    };
    let ctx = test.begin().await;
    let counted = test.account.query(&ctx, &test.container, &count).await.unwrap();
    assert_eq!(&counted.value.rows[..], b"150");
    assert_eq!(counted.cost.charge.0, 2.45, "2.3 and 150 entries of live items");
    // The odd numbers are left.
    for (text, first) in [
        ("SELECT VALUE c.id FROM c ORDER BY c.v OFFSET 200 LIMIT 2", 401),
        (
            "SELECT VALUE c.id FROM c WHERE c.v >= 100 ORDER BY c.v OFFSET 100 LIMIT 2",
            501,
        ),
    ] {
        let (rows, read, _) = page(&test, text, 10, None).await;
        assert_eq!(
            rows,
            [json!(first.to_string()), json!((first + 2).to_string())],
            "{text}"
        );
        // One row more tells whether others follow; some are in reserve, and half of these are ghosts.
        assert!((3..=3 + 16).contains(&read), "{text}: {read}");
    }
}
