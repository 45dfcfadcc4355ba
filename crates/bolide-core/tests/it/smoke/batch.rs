//! Transactional batches: one transaction, all or nothing.

use bolide_core::{Batch, BatchOperation, BatchResponse, OperationDone, StoredItem};
use bolide_model::ErrorKind;
use bolide_model::document::{Document, Patch};
use serde_json::{Value, json};

use crate::test_container::{TestContainer, key, shown};

fn document(body: &Value) -> Document {
    let mut body = body.clone();
    body["pk"] = "p".into();
    Document::parse(body.to_string().as_bytes()).unwrap()
}

fn create(body: &Value) -> BatchOperation {
    BatchOperation::Create {
        document: document(body),
    }
}

fn read(id: &str) -> BatchOperation {
    BatchOperation::Read {
        id: id.into(),
        if_none_match: None,
    }
}

async fn run(test: &TestContainer, operations: Vec<BatchOperation>) -> BatchResponse {
    let batch = Batch {
        partition_key: key("p"),
        operations,
    };
    let answer = test.account.batch(&test.begin().await, &test.container, batch).await;
    answer.expect("the batch itself is well formed").value
}

fn committed(answer: BatchResponse) -> Vec<OperationDone> {
    match answer {
        BatchResponse::Committed(results) => results.into_iter().map(|result| result.done).collect(),
        BatchResponse::RolledBack { at, error } => panic!("operation {at} was refused: {error}"),
    }
}

fn refused(answer: BatchResponse) -> (usize, ErrorKind) {
    match answer {
        BatchResponse::RolledBack { at, error } => (at, error.kind),
        BatchResponse::Committed(results) => panic!("nothing was refused: {results:?}"),
    }
}

fn item(done: &OperationDone) -> &StoredItem {
    match done {
        OperationDone::Written(written) => &written.item,
        OperationDone::Read(item) => item,
        other => panic!("no item: {other:?}"),
    }
}

#[tokio::test]
async fn operations_see_those_before_them_and_share_one_lsn_and_one_ts() {
    // TTL-208
    let test = TestContainer::with_ttl(-1).await;
    test.create(json!({"id": "old"})).await.unwrap();
    let before = test.container.ranges().ranges[0].lsn;
    let patch = Patch::from_value(&json!([{"op": "incr", "path": "/n", "value": 4}])).unwrap();
    let done = committed(
        run(
            &test,
            vec![
                create(&json!({"id": "a", "n": 1})),
                BatchOperation::Patch {
                    id: "a".into(),
                    patch,
                    if_match: None,
                },
                read("a"),
                BatchOperation::Delete {
                    id: "old".into(),
                    if_match: None,
                },
                create(&json!({"id": "old"})),
            ],
        )
        .await,
    );
    assert_eq!(shown(item(&done[2]))["n"], 5);
    let lsns: Vec<u64> = [0, 1, 4].map(|at: usize| item(&done[at]).lsn().0).to_vec();
    assert_eq!(lsns, [before.0 + 1; 3]);
    assert_ne!(item(&done[0]).etag(), item(&done[1]).etag());
    assert_eq!(test.container.ranges().ranges[0].lsn, before.next());
    assert_eq!(test.count().await, 2);
    test.assert_sound().await;
}

#[tokio::test]
async fn one_refused_operation_takes_everything_back() {
    // TTL-218, TTL-243
    let test = TestContainer::with_ttl(1000).await;
    let kept = test.create(json!({"id": "kept", "n": 1})).await.unwrap();
    let replace = BatchOperation::Replace {
        id: "kept".into(),
        document: document(&json!({"id": "kept", "n": 2})),
        if_match: None,
    };
    let bad = create(&json!({"id": "b", "ttl": 0}));
    for (last, kind) in [
        (create(&json!({"id": "kept"})), ErrorKind::Conflict),
        (read("nobody"), ErrorKind::NotFound),
        (bad, ErrorKind::BadRequest),
    ] {
        let answer = run(&test, vec![replace.clone(), create(&json!({"id": "a"})), last]).await;
        assert_eq!(refused(answer), (2, kind));
    }
    assert_eq!(test.read("kept").await.unwrap().etag(), kept.etag());
    assert!(!test.has("a").await);
    test.assert_sound().await;
}

#[tokio::test]
async fn a_ghost_is_absent_to_a_batch_and_gives_way_to_its_creates() {
    let test = TestContainer::with_ttl(10).await;
    test.create(json!({"id": "a"})).await.unwrap();
    test.at(109);
    assert_eq!(
        refused(run(&test, vec![create(&json!({"id": "a"}))]).await),
        (0, ErrorKind::Conflict)
    );
    test.at(110);
    assert_eq!(refused(run(&test, vec![read("a")]).await), (0, ErrorKind::NotFound));
    let done = committed(run(&test, vec![create(&json!({"id": "a"})), read("a")]).await);
    assert_eq!(item(&done[1]).last_modified().0, 110);
    assert_eq!(test.purge().await, 0, "the batch has removed the ghost");
    test.assert_sound().await;
}

#[tokio::test]
async fn what_a_batch_needs_is_read_at_once() {
    // Whatever is found missing has the whole batch decided again, in the partition's worker.
    const READS: u64 = 5;
    let test = TestContainer::with(json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}})).await;
    let creates = |from: u32| {
        (0..100)
            .map(|n| create(&json!({"id": format!("i{}", from + n), "u": from + n})))
            .collect()
    };
    test.begin().await;
    test.engine.traffic();
    committed(run(&test, creates(0)).await);
    assert!(test.engine.traffic().reads <= READS);

    let patch = Patch::from_value(&json!([{"op": "incr", "path": "/n", "value": 1}])).unwrap();
    let patches = (0..100).map(|n| BatchOperation::Patch {
        id: format!("i{n}"),
        patch: patch.clone(),
        if_match: None,
    });
    committed(run(&test, patches.collect()).await);
    let traffic = test.engine.traffic();
    assert!(traffic.reads <= READS, "{traffic:?}");
}

/// So many items of 1.9 MB.
async fn stage_with_large_items(count: usize) -> TestContainer {
    let test = TestContainer::with(json!({})).await;
    for n in 0..count {
        let item = json!({"id": format!("i{n}"), "text": "x".repeat(1_900_000)});
        test.create(item).await.expect("an item");
    }
    test
}

#[tokio::test]
async fn a_batch_that_will_be_refused_does_not_read_all_that_it_names() {
    // 8 MiB are read ahead.
    const READ_BYTES: usize = 11_000_000;
    let test = stage_with_large_items(20).await;
    test.begin().await;
    test.engine.value_bytes();
    let reads = || (0..20).map(|n| read(&format!("i{n}"))).collect();
    // All of them together are too large, and the last one says so.
    assert_eq!(refused(run(&test, reads()).await), (19, ErrorKind::TooLarge));
    let read_bytes = test.engine.value_bytes();
    assert!(read_bytes <= READ_BYTES, "{read_bytes} bytes");

    // Side by side, too.
    let many = futures_util::future::join_all((0..10).map(|_| run(&test, reads()))).await;
    for answer in many {
        assert_eq!(refused(answer), (19, ErrorKind::TooLarge));
    }
    let read_bytes = test.engine.value_bytes();
    assert!(read_bytes <= 10 * READ_BYTES, "{read_bytes} bytes");
    test.assert_sound().await;
}

#[tokio::test]
async fn a_batch_of_large_items_is_read_in_few_steps() {
    // The batch is decided anew after each.
    const ITEMS: usize = 30;
    const READS: u64 = 12;
    let test = stage_with_large_items(ITEMS).await;
    test.begin().await;
    test.engine.traffic();
    let deletes = (0..ITEMS).map(|n| BatchOperation::Delete {
        id: format!("i{n}"),
        if_match: None,
    });
    committed(run(&test, deletes.collect()).await);
    let traffic = test.engine.traffic();
    assert!(traffic.reads <= READS, "{traffic:?}");
    assert_eq!(test.count().await, 0);
    test.assert_sound().await;
}

#[tokio::test]
async fn a_batch_touches_only_so_many_bytes_of_stored_items() {
    let test = stage_with_large_items(40).await;
    let deletes = |count: usize| {
        let delete = |n| BatchOperation::Delete {
            id: format!("i{n}"),
            if_match: None,
        };
        (0..count).map(delete).collect()
    };
    let (at, kind) = refused(run(&test, deletes(40)).await);
    assert_eq!(kind, ErrorKind::TooLarge);
    assert!((30..40).contains(&at), "refused at {at}");
    assert_eq!(test.count().await, 40, "nothing was deleted");
    committed(run(&test, deletes(20)).await);
    assert_eq!(test.count().await, 20);
    test.assert_sound().await;
}
