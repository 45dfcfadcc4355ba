//! Scans on several threads: they return what a scan on one thread returns, page by page, and cost the same.

use std::time::Duration;

use bolide_core::{AccountOptions, Cost, IndexUse, QueryItems, QueryPage, Response};
use serde_json::{Value, json};

use crate::test_container::{TestContainer, options};

/// More than two reads of a scan return, so that helpers read some of them.
const ITEMS: u64 = 2_500;

const QUERIES: [&str; 14] = [
    "SELECT VALUE c.id FROM c",
    "SELECT VALUE c.id FROM c WHERE c.n % 50 = 0",
    "SELECT * FROM c WHERE c.name = 'name 7' OR CONTAINS(c.name, '99')",
    "SELECT VALUE c.id FROM c WHERE c.id LIKE '%7'",
    "SELECT VALUE t FROM c JOIN t IN c.tags WHERE t = 'tag 3' AND c.n < 300",
    "SELECT c.n, COUNT(1) AS items FROM c WHERE c.n < 20 GROUP BY c.n",
    "SELECT VALUE COUNT(1) FROM c WHERE c.n >= 100 AND c.n < 200",
    "SELECT VALUE SUM(c.n) FROM c",
    "SELECT TOP 30 VALUE c.n FROM c WHERE c.n > 1200",
    "SELECT VALUE c.n FROM c WHERE c.n % 3 = 0 ORDER BY c.n DESC OFFSET 10 LIMIT 90",
    "SELECT DISTINCT VALUE c.n % 5 FROM c WHERE c.n > 40",
    "SELECT VALUE c.id FROM c WHERE EXISTS (SELECT VALUE t FROM t IN c.tags WHERE t = 'tag 1') AND c.n < 500",
    "SELECT VALUE c.id FROM c WHERE c._ts > 30",
    "SELECT VALUE c.missing FROM c WHERE c.missing",
];

/// Items of many partition keys, every third of which lives for ten seconds. No page ends because of the time it takes.
async fn filled(more: Value) -> TestContainer {
    let options = AccountOptions {
        query_page_time: Duration::from_secs(1_000),
        ..options()
    };
    let test = TestContainer::with_options(more, None, options).await;
    test.at(20);
    for n in 0..ITEMS {
        let tags = [format!("tag {}", n % 7), format!("tag {}", n % 4)];
        let mut item =
            json!({"id": format!("i{n}"), "pk": format!("p{n}"), "n": n, "name": format!("name {n}"), "tags": tags});
        if n % 3 == 0 {
            item["ttl"] = 10.into();
        }
        if n == ITEMS / 2 {
            test.at(40);
        }
        test.create(item).await.unwrap();
    }
    test
}

fn query(text: &str, index_use: IndexUse, size: usize) -> QueryItems {
    QueryItems {
        text: text.to_owned(),
        cross_partition: true,
        merges_ranges: true,
        max_items: Some(size),
        index_use: Some(index_use),
        ..QueryItems::default()
    }
}

async fn page(test: &TestContainer, query: &QueryItems) -> Response<QueryPage> {
    let ctx = test.begin().await;
    let page = test.account.query(&ctx, &test.container, query).await;
    page.unwrap_or_else(|refusal| panic!("{}: {:?}", query.text, refusal.error))
}

/// Compares all pages of the queries; returns the number of rows.
async fn compare(test: &TestContainer, size: usize) -> usize {
    let mut rows = 0;
    for text in QUERIES {
        let mut alone = query(text, IndexUse::Never, size);
        loop {
            let helped = QueryItems {
                index_use: Some(IndexUse::ParallelScan),
                ..alone.clone()
            };
            let (expected, found) = (page(test, &alone).await, page(test, &helped).await);
            assert_eq!(found.value.rows, expected.value.rows, "{text}");
            assert_eq!(found.value.continuation, expected.value.continuation, "{text}");
            let read = |page: &QueryPage| (page.metrics.retrieved_items, page.metrics.retrieved_bytes);
            assert_eq!(read(&found.value), read(&expected.value), "{text}");
            let charges = |cost: &Cost| {
                cost.touched
                    .iter()
                    .map(|position| (position.range, position.charge))
                    .collect()
            };
            let (charged, expected): (Vec<_>, Vec<_>) = (charges(&found.cost), charges(&expected.cost));
            assert_eq!(charged, expected, "{text}");
            rows += found.value.count;
            alone.continuation = found.value.continuation;
            if alone.continuation.is_none() {
                break;
            }
        }
    }
    rows
}

#[tokio::test]
async fn every_page_has_the_same_rows_continuation_and_cost() {
    // TTL-210, TTL-211: the items that have expired are ghosts until the purge.
    let test = filled(json!({"defaultTtl": -1})).await;
    for second in [45, 55] {
        test.at(second);
        for size in [40, 1_000] {
            let rows = compare(&test, size).await;
            assert!(rows > 2_000, "{rows} rows at second {second}");
        }
    }
    test.account.split(&test.container, None).await.unwrap();
    compare(&test, 1_000).await;
}

#[tokio::test]
async fn helpers_read_at_the_same_time_and_end_with_the_request() {
    let test = filled(json!({})).await;
    let scan = query("SELECT VALUE c.id FROM c WHERE c.n < 0", IndexUse::ParallelScan, 100);
    test.engine.hold_scans();
    let (account, container, ctx) = (test.account.clone(), test.container.clone(), test.begin().await);
    let asked = tokio::spawn(async move { account.query(&ctx, &container, &scan).await });
    until(|| test.engine.held_scans() == 1).await;
    // The first read is made alone.
    test.engine.let_through(1);
    until(|| test.engine.held_scans() == 3).await;
    assert_eq!(test.account.running_queries(), 3);
    asked.abort();
    test.engine.release_scans();
    until(|| test.account.running_queries() == 0).await;
}

#[tokio::test]
async fn what_helpers_cannot_keep_in_memory_is_read_without_them() {
    let options = AccountOptions {
        memory_bytes: 6 * 1024 * 1024,
        ..options()
    };
    let test = TestContainer::with_options(json!({}), None, options).await;
    let text = "x".repeat(20_000);
    for n in 0..600 {
        test.create(json!({"id": format!("i{n}"), "pk": format!("p{n}"), "text": text, "n": n}))
            .await
            .unwrap();
    }
    let sum = query(
        "SELECT VALUE SUM(c.n) FROM c WHERE LENGTH(c.text) > 5",
        IndexUse::ParallelScan,
        100,
    );
    let asked = (0..4).map(|_| page(&test, &sum));
    for page in futures_util::future::join_all(asked).await {
        assert_eq!(page.value.rows, "179700");
    }
}

async fn until(happened: impl Fn() -> bool) {
    while !happened() {
        tokio::task::yield_now().await;
    }
}
