//! Sorts that an index delivers: what is read for them, and when documents are sorted all the same.

use bson::raw::cstr;
use bson::{DateTime, RawDocumentBuf, rawdoc};

use super::{explain, numbers};
use crate::commands::fixture::{NOW, Shell};

const MANY: i32 = 2_000;

/// Many documents, in another order than that of their times: each has one of its own. `user` has ten of 200 values.
async fn large() -> Shell {
    let shell = Shell::new().await;
    for (name, key) in [
        ("ts_1", rawdoc! { "ts": 1 }),
        ("user_1", rawdoc! { "user": 1 }),
        ("kind_1_ts_-1", rawdoc! { "kind": 1, "ts": -1 }),
    ] {
        let index = rawdoc! { "key": key, "name": name };
        shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
    }
    let document = |n: i32| rawdoc! { "_id": n, "ts": n * 7 % MANY, "user": n % 200, "kind": n % 2, "rare": n == 5 };
    let documents: Vec<RawDocumentBuf> = (0..MANY).map(document).collect();
    shell.insert("c", &documents).await;
    shell
}

/// The names of the stages, the last first.
fn stages(plan: &RawDocumentBuf) -> Vec<String> {
    let stage = plan.get_str("stage").expect("a stage").to_owned();
    let mut all = vec![stage];
    if let Ok(input) = plan.get_document("inputStage") {
        all.extend(stages(&input.to_owned()));
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_in_the_order_of_an_index_reads_as_many_documents() {
    let shell = large().await;
    let find = rawdoc! { "find": "c", "sort": { "ts": -1 }, "limit": 20 };
    let (plan, stats) = explain(&shell, find.clone()).await;
    let expected = rawdoc! {
        "stage": "LIMIT",
        "limitAmount": 20,
        "inputStage": {
            "stage": "FETCH",
            "inputStage": {
                "stage": "IXSCAN",
                "keyPattern": { "ts": 1 },
                "indexName": "ts_1",
                "isMultiKey": false,
                "isUnique": false,
                "isSparse": false,
                "isPartial": false,
                "indexVersion": 2,
                "direction": "backward",
                "indexBounds": { "ts": ["[MaxKey, MinKey]"] },
            },
        },
    };
    assert_eq!(plan, expected);
    assert_eq!(numbers(&stats), (20, 20, 20));
    let found = shell.first_batch(find).await;
    let times: Vec<i32> = found
        .iter()
        .map(|document| document.get_i32("ts").expect("a time"))
        .collect();
    assert_eq!(times, (MANY - 20..MANY).rev().collect::<Vec<_>>());
    for (command, expected) in [
        (
            rawdoc! { "find": "c", "sort": { "ts": 1 }, "skip": 10, "limit": 10 },
            (10, 20, 20),
        ),
        (
            rawdoc! { "find": "c", "filter": { "ts": { "$gte": 1_500 } }, "sort": { "ts": 1 }, "limit": 5 },
            (5, 5, 5),
        ),
        (
            rawdoc! { "find": "c", "filter": { "kind": 1 }, "sort": { "ts": 1 }, "limit": 5 },
            (5, 5, 5),
        ),
        (
            rawdoc! { "find": "c", "sort": { "kind": -1, "ts": 1 }, "limit": 5 },
            (5, 5, 5),
        ),
        (rawdoc! { "find": "c", "sort": { "_id": -1 }, "limit": 5 }, (5, 5, 5)),
        (
            rawdoc! { "find": "c", "filter": { "_id": { "$gt": 7 } }, "sort": { "_id": 1 }, "limit": 5 },
            (5, 5, 5),
        ),
        (rawdoc! { "find": "c", "sort": { "ts": 1 } }, (2_000, 2_000, 2_000)),
        (
            rawdoc! { "aggregate": "c", "pipeline": [{ "$match": { "kind": 0 } }, { "$sort": { "ts": -1 } }, { "$limit": 7 }], "cursor": {} },
            (7, 7, 7),
        ),
        (
            rawdoc! { "findAndModify": "c", "sort": { "ts": 1 }, "remove": true },
            (0, 1, 1),
        ),
    ] {
        let (plan, stats) = explain(&shell, command.clone()).await;
        let stages = stages(&plan);
        assert!(
            stages.ends_with(&["FETCH".to_owned(), "IXSCAN".to_owned()]),
            "{command:?}: {stages:?}"
        );
        assert!(!stages.contains(&"SORT".to_owned()), "{command:?}: {stages:?}");
        assert_eq!(numbers(&stats), expected, "{command:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_an_equality_are_merged() {
    let shell = large().await;
    let find = rawdoc! { "find": "c", "filter": { "kind": { "$in": [0, 1] } }, "sort": { "ts": -1 }, "limit": 40 };
    let (plan, stats) = explain(&shell, find.clone()).await;
    assert!(!stages(&plan).contains(&"SORT".to_owned()));
    let (returned, keys, documents) = numbers(&stats);
    assert_eq!((returned, documents), (40, 40));
    assert!(keys <= 80, "{keys}");
    let found = shell.first_batch(find).await;
    let times: Vec<i32> = found
        .iter()
        .map(|document| document.get_i32("ts").expect("a time"))
        .collect();
    assert_eq!(times, (MANY - 40..MANY).rev().collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn few_documents_of_another_index_are_sorted() {
    let shell = large().await;
    let find = rawdoc! { "find": "c", "filter": { "user": 3 }, "sort": { "ts": -1 }, "limit": 20 };
    let (plan, stats) = explain(&shell, find).await;
    assert_eq!(stages(&plan), ["LIMIT", "SORT", "FETCH", "IXSCAN"]);
    assert_eq!(numbers(&stats), (10, 10, 10));
    // A hint says otherwise.
    let find = rawdoc! { "find": "c", "filter": { "user": 3 }, "sort": { "ts": -1 }, "limit": 20, "hint": "ts_1" };
    let (plan, stats) = explain(&shell, find).await;
    assert_eq!(stages(&plan), ["LIMIT", "FETCH", "IXSCAN"]);
    assert_eq!(numbers(&stats), (10, 2_000, 2_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_in_order_is_given_up_where_few_documents_match() {
    let shell = large().await;
    let find = rawdoc! { "find": "c", "filter": { "rare": true }, "sort": { "ts": 1 }, "limit": 2 };
    let explained = shell
        .ok(rawdoc! { "explain": find.clone(), "verbosity": "executionStats" })
        .await;
    let stats = explained.get_document("executionStats").expect("statistics").to_owned();
    let (returned, _, documents) = numbers(&stats);
    assert_eq!(returned, 1);
    // A part of the index, and then the collection.
    assert!((MANY..MANY + 600).contains(&documents), "{documents}");
    let plan = stats.get_document("executionStages").expect("stages").to_owned();
    assert_eq!(stages(&plan), ["LIMIT", "SORT", "COLLSCAN"]);
    let found = shell.first_batch(find).await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].get_i32("_id").expect("an id"), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_without_the_order_sorts() {
    let shell = large().await;
    shell
        .insert("c", &[rawdoc! { "_id": -1, "kind": [1, 2], "ts": 5 }])
        .await;
    let sparse = rawdoc! { "key": { "s": 1 }, "name": "s_1", "sparse": true };
    let hashed = rawdoc! { "key": { "h": "hashed" }, "name": "h" };
    shell
        .ok(rawdoc! { "createIndexes": "c", "indexes": [sparse, hashed] })
        .await;
    for command in [
        // Behind the equality there is a document with an array.
        rawdoc! { "find": "c", "filter": { "kind": 1 }, "sort": { "ts": -1 }, "hint": "kind_1_ts_-1" },
        rawdoc! { "find": "c", "sort": { "s": 1 } },
        rawdoc! { "find": "c", "sort": { "h": 1 } },
        rawdoc! { "find": "c", "sort": { "kind": 1, "ts": 1 } },
        rawdoc! { "find": "c", "sort": { "ts": 1, "user": 1 } },
        rawdoc! { "find": "c", "sort": { "ts": 1 }, "collation": { "locale": "en" } },
    ] {
        let (plan, _) = explain(&shell, command.clone()).await;
        assert!(stages(&plan).contains(&"SORT".to_owned()), "{command:?}: {plan:?}");
    }
    // By the first value of an array.
    let find = rawdoc! { "find": "c", "sort": { "kind": -1, "ts": 1 }, "limit": 2 };
    let (plan, _) = explain(&shell, find.clone()).await;
    assert_eq!(stages(&plan), ["LIMIT", "FETCH", "IXSCAN"]);
    let found = shell.first_batch(find).await;
    assert_eq!(found[0].get_i32("_id").expect("an id"), -1);
    assert_eq!(found[1].get_i32("kind").expect("a kind"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_that_have_ended_count_nowhere() {
    let shell = large().await;
    let index = rawdoc! { "key": { "d": 1 }, "name": "d_1", "expireAfterSeconds": 0 };
    shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
    let late = DateTime::from_millis(NOW.0 + 100_000);
    let ends = DateTime::from_millis(NOW.0 + 1);
    let dated = |n: i32| rawdoc! { "_id": 10_000 + n, "ts": -1 - n, "d": if n < 30 { ends } else { late } };
    let documents: Vec<RawDocumentBuf> = (0..40).map(dated).collect();
    shell.insert("c", &documents).await;
    shell.advance(1);
    let mut find = rawdoc! { "find": "c", "sort": { "ts": 1 }, "skip": 9 };
    find.append(cstr!("limit"), 3);
    let (_, stats) = explain(&shell, find.clone()).await;
    let (returned, keys, documents) = numbers(&stats);
    assert_eq!((returned, documents), (3, 12));
    assert!(keys < 60, "{keys}");
    let found = shell.first_batch(find).await;
    let ids: Vec<i32> = found
        .iter()
        .map(|document| document.get_i32("_id").expect("an id"))
        .collect();
    // The last of those with a date, then the first of the others.
    assert_eq!(ids, [10_030, 0, 1_143]);
    let by_date =
        rawdoc! { "find": "c", "filter": { "d": { "$exists": true }, "ts": { "$lt": 0 } }, "sort": { "d": 1 } };
    assert_eq!(shell.first_batch(by_date).await.len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_come_in_the_order_of_a_hint() {
    let shell = large().await;
    let times = |found: Vec<RawDocumentBuf>| -> Vec<i32> {
        let times = found.iter().map(|document| document.get_i32("ts").expect("a time"));
        times.collect()
    };
    let find = rawdoc! { "find": "c", "filter": { "kind": 1 }, "hint": "ts_1", "limit": 5 };
    assert_eq!(times(shell.first_batch(find).await), [1, 3, 5, 7, 9]);
    let pipeline = [rawdoc! { "$match": { "kind": 1 } }, rawdoc! { "$limit": 3 }];
    let mut stages = bson::RawArrayBuf::new();
    pipeline.into_iter().for_each(|stage| stages.push(stage));
    let aggregate = rawdoc! { "aggregate": "c", "pipeline": stages, "cursor": {}, "hint": { "kind": 1, "ts": -1 } };
    assert_eq!(times(shell.first_batch(aggregate).await), [1_999, 1_997, 1_995]);
    let sorted = rawdoc! { "find": "c", "sort": { "_id": 1 }, "hint": "ts_1", "limit": 3 };
    assert_eq!(times(shell.first_batch(sorted).await), [0, 7, 14]);
}
