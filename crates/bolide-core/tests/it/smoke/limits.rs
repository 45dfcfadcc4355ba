//! What users' queries and conditions may use up, and what ends them.

use std::sync::Arc;

use bolide_core::{
    AccountOptions, Batch, BatchOperation, BatchResponse, ItemTarget, PatchItem, QueryItems, QueryPage, ReadFeed,
    RequestContext,
};
use bolide_model::document::Patch;
use bolide_model::{ErrorKind, Result};
use serde_json::json;

use crate::test_container::{TestContainer, key, options, shown};

/// Goes through 40,000 rows for each item.
const CROSS_JOIN: &str = "SELECT VALUE COUNT(1) FROM c JOIN a IN c.xs JOIN b IN c.xs WHERE a + b < 0";

/// Takes more work than an item may have.
const WORST_CONDITION: &str = "from c where EXISTS(SELECT VALUE 1 FROM x IN c.xs JOIN y IN c.xs JOIN z IN c.xs JOIN w IN c.xs \
                               WHERE x + y + z + w < 0)";

async fn stage_with_items(options: AccountOptions, count: usize) -> Arc<TestContainer> {
    let test = TestContainer::with_options(json!({}), None, options).await;
    for n in 0..count {
        let xs: Vec<usize> = (0..200).collect();
        test.create(json!({"id": n.to_string(), "pk": "p", "n": n, "xs": xs, "text": "x".repeat(2_000)}))
            .await
            .expect("an item");
    }
    Arc::new(test)
}

async fn run(test: &TestContainer, text: &str) -> Result<QueryPage> {
    let query = QueryItems {
        text: text.to_owned(),
        cross_partition: true,
        ..QueryItems::default()
    };
    let ctx: RequestContext = test.begin().await;
    let answer = test.account.query(&ctx, &test.container, &query).await;
    answer.map(|answer| answer.value).map_err(|refusal| refusal.error)
}

async fn until_running(test: &TestContainer, count: usize) {
    while test.account.running_queries() != count {
        tokio::task::yield_now().await;
    }
}

fn start(test: &Arc<TestContainer>, text: &'static str) -> tokio::task::JoinHandle<Result<QueryPage>> {
    let test = test.clone();
    tokio::spawn(async move { run(&test, text).await })
}

#[tokio::test]
async fn a_query_ends_when_its_request_is_dropped() {
    let test = stage_with_items(options(), 300).await;
    let request = start(&test, CROSS_JOIN);
    until_running(&test, 1).await;
    request.abort();
    until_running(&test, 0).await;
}

#[tokio::test]
async fn closing_ends_queries() {
    let test = stage_with_items(options(), 300).await;
    let request = start(&test, CROSS_JOIN);
    until_running(&test, 1).await;
    test.account.close().await.expect("closed");
    let ended = request.await.expect("no panic").expect_err("it was ended");
    assert_eq!(ended.kind, ErrorKind::Unavailable);
    assert_eq!(test.account.running_queries(), 0);
}

#[tokio::test]
async fn a_query_that_takes_too_long_is_refused() {
    let options = AccountOptions {
        query_time: std::time::Duration::ZERO,
        ..options()
    };
    let test = stage_with_items(options, 3).await;
    let refused = run(&test, CROSS_JOIN).await.expect_err("it has no time");
    assert_eq!(refused.kind, ErrorKind::BadRequest);
    assert!(
        refused.message.contains("longer than a query may"),
        "{}",
        refused.message
    );
}

#[tokio::test]
async fn an_item_that_takes_too_much_work_fails_its_query_only() {
    let test = stage_with_items(options(), 1).await;
    let text = "SELECT VALUE COUNT(1) FROM c JOIN a IN c.xs JOIN b IN c.xs JOIN d IN c.xs JOIN e IN c.xs";
    let refused = run(&test, text).await.expect_err("it is too much");
    assert_eq!(refused.kind, ErrorKind::BadRequest);
    assert!(refused.message.contains("too much work"), "{}", refused.message);
    let page = run(&test, CROSS_JOIN).await.expect("less is not");
    assert_eq!(&page.rows[..], b"0");
}

#[tokio::test]
async fn queries_beyond_the_memory_of_all_requests_are_throttled_and_later_run() {
    let options = AccountOptions {
        memory_bytes: 512 * 1024,
        ..options()
    };
    let test = stage_with_items(options, 400).await;
    // The size of the groups is that of their keys.
    let groups = "SELECT c.n, c.text, COUNT(1) AS k FROM c GROUP BY c.n, c.text";
    let refused = run(&test, groups).await.expect_err("there is not so much");
    assert!(
        matches!(refused.kind, ErrorKind::Throttled { .. }),
        "{:?}",
        refused.kind
    );
    assert_eq!(test.account.memory().used_bytes(), 0, "all was given back");

    let page = run(&test, "SELECT VALUE c.text FROM c WHERE c.n < 10")
        .await
        .expect("a page");
    let held = test.account.memory().used_bytes();
    assert!(held >= page.rows.len(), "the rows keep their memory: {held}");
    drop(page);
    assert_eq!(test.account.memory().used_bytes(), 0);
}

/// An expression of a megabyte and a half, in two or three thousand characters.
fn large_constants() -> String {
    let constants: Vec<String> = (0..150).map(|n| format!("REPLICATE('{}', 10000)", n % 10)).collect();
    format!("ARRAY_CONTAINS([{}], c.n)", constants.join(", "))
}

#[tokio::test]
async fn what_a_text_is_compiled_to_is_memory_of_all_requests() {
    let options = AccountOptions {
        memory_bytes: 512 * 1024,
        ..options()
    };
    let test = stage_with_items(options, 1).await;
    let (constants, ctx) = (large_constants(), test.begin().await);
    let query = format!("SELECT * FROM c WHERE {constants}");
    let account = &test.account;
    let is_throttled = |kind: &ErrorKind| matches!(kind, ErrorKind::Throttled { .. });

    let refused = run(&test, &query).await.expect_err("there is not so much");
    assert!(is_throttled(&refused.kind), "{refused:?}");
    let refused = account.query_plan(&test.container, &query, &[], "None", None).await;
    assert!(is_throttled(&refused.expect_err("nor for a plan").kind));
    let refused = account.explain_query(&test.container, &query, &[]).await;
    assert!(is_throttled(&refused.expect_err("nor for words").kind));
    let refused = account.query_documents(&ctx, &query, &[], vec![]).await;
    assert!(is_throttled(&refused.expect_err("nor over a list").kind));
    let condition = format!("from c where {constants}");
    let refused = patch_with(&test, &condition).await;
    assert!(is_throttled(&refused.expect_err("nor for a condition")));
    assert_eq!(account.memory().used_bytes(), 0, "all was given back");
    assert!(run(&test, "SELECT * FROM c").await.is_ok());
}

#[tokio::test]
async fn what_is_made_of_many_keys_is_memory_of_all_requests() {
    let options = AccountOptions {
        memory_bytes: 1024 * 1024,
        ..options()
    };
    let test = stage_with_items(options, 1).await;
    let run = async |path: &str| {
        let query = QueryItems {
            text: format!("SELECT VALUE c.n FROM c WHERE ARRAY_CONTAINS(@keys, {path})"),
            parameters: Arc::new(vec![("@keys".to_owned(), (0..2_000).collect())]),
            cross_partition: true,
            ..QueryItems::default()
        };
        let answer = test.account.query(&test.begin().await, &test.container, &query).await;
        answer.map(|_| ()).map_err(|refusal| refusal.error.kind)
    };
    assert_eq!(run("c.n").await, Ok(()), "they are no keys");
    let refused = run("c.pk").await;
    assert!(matches!(refused, Err(ErrorKind::Throttled { .. })), "{refused:?}");
    assert_eq!(test.account.memory().used_bytes(), 0);
}

/// Items of 100 KB, more together than there is memory for.
async fn stage_with_large_items(memory_bytes: usize) -> Arc<TestContainer> {
    let options = AccountOptions {
        memory_bytes,
        ..options()
    };
    let test = TestContainer::with_options(json!({}), None, options).await;
    for n in 0..20 {
        let item = json!({"id": n.to_string(), "pk": format!("k{}", n % 4), "n": n, "text": "x".repeat(100_000)});
        test.create(item).await.expect("an item");
    }
    Arc::new(test)
}

#[tokio::test]
async fn a_query_reads_less_at_once_where_memory_is_short() {
    let test = stage_with_large_items(1024 * 1024).await;
    let in_keys = "SELECT VALUE c.n FROM c WHERE c.pk IN ('k0', 'k1', 'k2', 'k3') ORDER BY c.n";
    let all: Vec<String> = (0..20).map(|n| n.to_string()).collect();
    for text in ["SELECT VALUE c.n FROM c ORDER BY c.n", in_keys] {
        let page = run(&test, text).await.expect("a page");
        assert_eq!(page.rows, all.join(","), "{text}");
    }
    assert_eq!(test.account.memory().used_bytes(), 0, "all was given back");
}

#[tokio::test]
async fn the_items_that_a_query_has_read_are_memory_of_all_requests() {
    let test = stage_with_large_items(1024 * 1024).await;
    let memory = test.account.memory();
    let _others = memory.try_take(memory.longest_share()).expect("nobody else takes any");
    let refused = run(&test, "SELECT VALUE COUNT(1) FROM c")
        .await
        .expect_err("no room for an item");
    assert!(matches!(refused.kind, ErrorKind::Throttled { .. }), "{refused}");
    // What is left is kept for small items.
    test.create(json!({"id": "small", "pk": "small"}))
        .await
        .expect("an item");
    let count = run(&test, "SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'small'").await;
    assert_eq!(count.expect("a page").rows, "1");
}

fn patch(condition: &str) -> Patch {
    let text = json!({"condition": condition, "operations": [{"op": "set", "path": "/v", "value": 1}]});
    Patch::parse(text.to_string().as_bytes()).expect("a patch")
}

async fn patch_with(test: &TestContainer, condition: &str) -> Result<(), ErrorKind> {
    let patch = PatchItem {
        target: ItemTarget::Id("0".to_owned()),
        partition_key: key("p"),
        patch: patch(condition),
        if_match: None,
    };
    let ctx = test.begin().await;
    let done = test.account.patch_item(&ctx, &test.container, patch).await;
    done.map(|_| ()).map_err(|refusal| refusal.error.kind)
}

#[tokio::test]
async fn others_write_while_an_expensive_condition_is_judged() {
    let test = stage_with_items(options(), 1).await;
    let request = tokio::spawn({
        let test = test.clone();
        async move { patch_with(&test, WORST_CONDITION).await }
    });
    // It is judged on a thread for queries, not by the partition's worker.
    until_running(&test, 1).await;
    test.create(json!({"id": "other", "pk": "p"}))
        .await
        .expect("the partition is free");
    assert_eq!(request.await.expect("no panic"), Err(ErrorKind::BadRequest));
}

#[tokio::test]
async fn expensive_conditions_are_judged_like_cheap_ones() {
    let test = stage_with_items(options(), 1).await;
    let expensive = |condition: &str| {
        format!("from c where EXISTS(SELECT VALUE 1 FROM x IN c.xs JOIN y IN c.xs WHERE x + y >= 398) AND {condition}")
    };
    assert_eq!(patch_with(&test, &expensive("c.n = 0")).await, Ok(()));
    assert_eq!(
        patch_with(&test, "from c where c.v = 1").await,
        Ok(()),
        "it was patched"
    );
    assert_eq!(
        patch_with(&test, &expensive("c.n = 1")).await,
        Err(ErrorKind::PatchConditionFailed)
    );
}

#[tokio::test]
async fn expensive_conditions_of_a_batch_are_judged_before_it() {
    let test = stage_with_items(options(), 2).await;
    let condition = "from c where EXISTS(SELECT VALUE 1 FROM x IN c.xs JOIN y IN c.xs WHERE x + y >= 398)";
    let operation = |id: &str| BatchOperation::Patch {
        id: id.to_owned(),
        patch: patch(condition),
        if_match: None,
    };
    let batch = Batch {
        partition_key: key("p"),
        operations: vec![operation("0"), operation("1")],
    };
    let ctx = test.begin().await;
    let done = test.account.batch(&ctx, &test.container, batch).await;
    let answer = done.map_err(|refusal| refusal.error).expect("an answer").value;
    assert!(matches!(answer, BatchResponse::Committed(_)), "{answer:?}");
}

#[tokio::test]
async fn the_patches_of_a_batch_write_only_so_much() {
    let test = TestContainer::with(json!({})).await;
    let text = "x".repeat(1_900_000);
    test.create(json!({"id": "0", "pk": "p", "text": text}))
        .await
        .expect("an item");
    let set = json!({"operations": [{"op": "set", "path": "/v", "value": 1}]});
    let operation = || BatchOperation::Patch {
        id: "0".to_owned(),
        patch: Patch::parse(set.to_string().as_bytes()).expect("a patch"),
        if_match: None,
    };
    let batch = Batch {
        partition_key: key("p"),
        operations: (0..20).map(|_| operation()).collect(),
    };
    let ctx = test.begin().await;
    let done = test.account.batch(&ctx, &test.container, batch).await;
    match done.map_err(|refusal| refusal.error).expect("an answer").value {
        BatchResponse::RolledBack { at, error } => assert_eq!((at, error.kind), (2, ErrorKind::TooLarge)),
        committed @ BatchResponse::Committed(_) => panic!("{committed:?}"),
    }
}

#[tokio::test]
async fn a_change_of_the_container_does_not_wait_for_long_queries() {
    let test = stage_with_items(options(), 2_000).await;
    let request = start(&test, CROSS_JOIN);
    until_running(&test, 1).await;
    test.define(json!({"defaultTtl": 60})).await.expect("a change");
    let ended = request.await.expect("no panic").map(drop).map_err(|error| error.kind);
    assert!(matches!(ended, Err(ErrorKind::Throttled { .. })), "{ended:?}");
    let later = run(&test, "SELECT VALUE COUNT(1) FROM c").await.expect("an answer");
    assert_eq!(later.rows, "2000");
}

#[tokio::test]
async fn large_items_are_patched_outside_of_the_worker() {
    let test = TestContainer::with(json!({})).await;
    let text = "x".repeat(300_000);
    for id in ["large", "small"] {
        let text = if id == "large" { &text } else { "" };
        test.create(json!({"id": id, "text": text})).await.expect("an item");
    }
    let add = json!([{"op": "add", "path": "/n", "value": 1}]);
    let patched = test.patch("large", add.clone(), None).await.expect("patched");
    assert_eq!(shown(&patched)["n"], 1);

    test.account.end_queries().await;
    assert!(test.patch("small", add.clone(), None).await.is_ok());
    let refused = test.patch("large", add, None).await.map(drop);
    assert_eq!(refused, Err(ErrorKind::Unavailable), "it takes a thread for queries");
}

#[tokio::test]
async fn a_page_of_a_feed_ends_where_there_is_no_memory_for_more() {
    const KIB: usize = 1024;
    let short = AccountOptions {
        memory_bytes: 1024 * KIB,
        ..options()
    };
    let test = TestContainer::with_options(json!({}), None, short).await;
    for n in 0..10 {
        let item = json!({"id": n.to_string(), "text": "x".repeat(100 * KIB)});
        test.create(item).await.expect("an item");
    }
    let (items, continuation) = test.list(100, None).await;
    assert!((1..10).contains(&items.len()), "{} items", items.len());
    let (rest, _) = test.list(100, continuation).await;
    assert!(!rest.is_empty(), "the next page goes on");

    let memory = test.account.memory();
    let others = memory.try_take(memory.longest_share()).expect("all of it");
    let ctx = test.begin().await;
    let refused = test
        .account
        .read_feed(&ctx, &test.container, &ReadFeed::default())
        .await;
    let kind = refused.expect_err("not even its first item").error.kind;
    assert!(matches!(kind, ErrorKind::Throttled { .. }), "{kind:?}");
    drop(others);
    assert_eq!(memory.used_bytes(), 0, "all was given back");
}
