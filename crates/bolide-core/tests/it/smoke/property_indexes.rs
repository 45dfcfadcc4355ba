//! Property indexes: they find what a scan finds, no ghosts included, and their entries come and go with their items.

use bolide_core::{AccountOptions, IndexUse, PurgeMode, QueryItems, QueryMetrics};
use bolide_model::time::Monotonic;
use serde_json::{Value, json};

use crate::test_container::{START, TestContainer, options};

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
    assert_rows(&test, "SELECT VALUE c.v FROM c WHERE c.v = 7", &["7"], 1).await;
    assert_rows(
        &test,
        "SELECT VALUE c.v FROM c WHERE c.v >= 17.5 AND c.v < 19 AND c.name != 'n18'",
        &[],
        1,
    )
    .await;
    assert_rows(
        &test,
        "SELECT VALUE c.v FROM c WHERE c.v IN (1, 3, 'x')",
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
        "SELECT TOP 2 VALUE c.v FROM c WHERE c.v < 10 ORDER BY c.v DESC",
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
    assert_rows(&test, "SELECT VALUE c.v FROM c WHERE c.v = 7", &[], 0).await;
    assert_rows(&test, "SELECT VALUE c.v FROM c WHERE c.v > 18", &["100", "19"], 2).await;
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
    let text = "SELECT VALUE c.id FROM c WHERE c.v = 1";
    test.at(START + 9);
    assert_eq!(rows(&test, text).await.0.len(), 6);
    test.at(START + 10);
    assert_rows(&test, text, &["\"4\"", "\"5\""], 2).await;
    assert_rows(&test, "SELECT VALUE COUNT(1) FROM c WHERE c.v = 1", &["2"], 2).await;
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
    for n in 0..500 {
        test.create(json!({"id": n.to_string(), "pk": n.to_string(), "v": n}))
            .await
            .unwrap();
    }
    let text = "SELECT VALUE c.id FROM c WHERE c.v = 7";
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
    for n in 0..500 {
        test.create(json!({"id": n.to_string(), "pk": n.to_string(), "v": n}))
            .await
            .unwrap();
    }
    test.define(naming(&["/v/?"])).await.unwrap();
    test.account.end().await;
    let test = test.reopen_with(always()).await;
    wait_until_read(&test, "SELECT VALUE c.id FROM c WHERE c.v = 7", 1).await;
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
    let options = AccountOptions {
        monotonic: Monotonic::manual(),
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
}
