//! Which indexes queries read, and what that spares.

use bson::{DateTime, RawDocumentBuf, rawdoc};

use super::{explain, numbers};
use crate::commands::fixture::{NOW, Shell};

/// Many documents: `n` is a number of its own, `two` is one of two.
async fn large() -> Shell {
    let shell = Shell::new().await;
    let document = |n: i32| rawdoc! { "_id": n, "n": n, "two": n % 2, "s": format!("s{}", n % 300) };
    let documents: Vec<RawDocumentBuf> = (0..3_000).map(document).collect();
    shell.insert("c", &documents).await;
    for (name, key) in [
        ("n_1", rawdoc! { "n": 1 }),
        ("two_1", rawdoc! { "two": 1 }),
        ("s_1_n_-1", rawdoc! { "s": 1, "n": -1 }),
    ] {
        let index = rawdoc! { "key": key, "name": name };
        shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
    }
    shell
}

/// The stage that reads the collection or its indexes.
fn leaf(plan: &RawDocumentBuf) -> RawDocumentBuf {
    match plan.get_document("inputStage") {
        Ok(input) => leaf(&input.to_owned()),
        Err(_) => plan.clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_reads_the_keys_that_it_needs() {
    let shell = large().await;
    let find = rawdoc! { "find": "c", "filter": { "n": { "$gt": 10, "$lte": 13 } } };
    let (plan, stats) = explain(&shell, find).await;
    let expected = rawdoc! {
        "stage": "FETCH",
        "filter": { "n": { "$gt": 10, "$lte": 13 } },
        "inputStage": {
            "stage": "IXSCAN",
            "keyPattern": { "n": 1 },
            "indexName": "n_1",
            "isMultiKey": false,
            "isUnique": false,
            "isSparse": false,
            "isPartial": false,
            "indexVersion": 2,
            "direction": "forward",
            "indexBounds": { "n": ["(10, 13]"] },
        },
    };
    assert_eq!(plan, expected);
    assert_eq!(numbers(&stats), (3, 3, 3));
    let fetch = stats.get_document("executionStages").expect("stages");
    assert_eq!(fetch.get_i32("docsExamined").expect("a number"), 3);
    let scan = fetch.get_document("inputStage").expect("its input");
    assert_eq!(scan.get_i32("keysExamined").expect("a number"), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_reads_by_the_most_selective_index() {
    let shell = large().await;
    let filter = || rawdoc! { "s": "s7", "n": { "$gte": 1_000 }, "two": 1 };
    for command in [
        rawdoc! { "find": "c", "filter": filter() },
        rawdoc! { "count": "c", "query": filter() },
        rawdoc! { "distinct": "c", "key": "n", "query": filter() },
        rawdoc! { "delete": "c", "deletes": [{ "q": filter(), "limit": 0 }] },
        rawdoc! { "update": "c", "updates": [{ "q": filter(), "u": { "$set": { "x": 1 } }, "multi": true }] },
        rawdoc! { "findAndModify": "c", "query": filter(), "remove": true },
        rawdoc! { "aggregate": "c", "pipeline": [{ "$match": filter() }], "cursor": {} },
    ] {
        let (plan, stats) = explain(&shell, command.clone()).await;
        assert_eq!(
            leaf(&plan).get_str("indexName").expect("a name"),
            "s_1_n_-1",
            "{command:?}"
        );
        let bounds = rawdoc! { "s": ["[\"s7\", \"s7\"]"], "n": ["[inf.0, 1000]"] };
        assert_eq!(
            leaf(&plan).get_document("indexBounds").expect("bounds"),
            &*bounds,
            "{command:?}"
        );
        // 1207, 1507, 1807, 2107, 2407 and 2707.
        assert_eq!(stats.get_i32("totalKeysExamined").expect("a number"), 6, "{command:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_an_index_spares_little_the_collection_is_scanned() {
    let shell = large().await;
    let half = || rawdoc! { "find": "c", "filter": { "two": 1 } };
    let (plan, stats) = explain(&shell, half()).await;
    assert_eq!(plan.get_str("stage").expect("a stage"), "COLLSCAN");
    assert_eq!(numbers(&stats), (1_500, 0, 3_000));
    for (hint, expected) in [
        (rawdoc! { "two": 1 }, ("IXSCAN", (1_500, 1_500, 1_500))),
        (rawdoc! { "$natural": 1 }, ("COLLSCAN", (1_500, 0, 3_000))),
        // An index that does not bound the query is read as a whole.
        (rawdoc! { "n": 1 }, ("IXSCAN", (1_500, 3_000, 3_000))),
    ] {
        let mut command = half();
        command.append(bson::raw::cstr!("hint"), hint);
        let (plan, stats) = explain(&shell, command).await;
        assert_eq!(
            (leaf(&plan).get_str("stage").expect("a stage"), numbers(&stats)),
            expected
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_branch_of_an_or_has_its_index() {
    let shell = large().await;
    let branches = |last: RawDocumentBuf| rawdoc! { "find": "c", "filter": { "$or": [{ "n": 5 }, last] } };
    let (plan, stats) = explain(&shell, branches(rawdoc! { "s": "s9" })).await;
    let or = leaf(&plan);
    assert_eq!(or.get_str("stage").expect("a stage"), "OR");
    let inputs = or.get_array("inputStages").expect("inputs");
    let names = inputs.into_iter().map(|input| input.expect("valid"));
    let names = names.map(|input| {
        input
            .as_document()
            .expect("a stage")
            .get_str("indexName")
            .expect("a name")
            .to_owned()
    });
    assert_eq!(names.collect::<Vec<_>>(), ["n_1", "s_1_n_-1"]);
    assert_eq!(numbers(&stats), (11, 11, 11));
    let (plan, _) = explain(&shell, branches(rawdoc! { "x": 1 })).await;
    assert_eq!(plan.get_str("stage").expect("a stage"), "COLLSCAN");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hidden_index_is_not_read_and_one_that_is_not_hidden_again_is() {
    let shell = large().await;
    let find = || rawdoc! { "find": "c", "filter": { "n": 5 } };
    for (is_hidden, expected) in [(true, "COLLSCAN"), (false, "IXSCAN")] {
        let index = rawdoc! { "name": "n_1", "hidden": is_hidden };
        shell.ok(rawdoc! { "collMod": "c", "index": index }).await;
        let (plan, _) = explain(&shell, find()).await;
        assert_eq!(leaf(&plan).get_str("stage").expect("a stage"), expected);
    }
    shell
        .ok(rawdoc! { "renameCollection": "db.c", "to": "db.d", "$db": "admin" })
        .await;
    let (plan, _) = explain(&shell, rawdoc! { "find": "d", "filter": { "n": 5 } }).await;
    assert_eq!(leaf(&plan).get_str("stage").expect("a stage"), "IXSCAN");
    shell.ok(rawdoc! { "dropIndexes": "d", "index": "n_1" }).await;
    let (plan, _) = explain(&shell, rawdoc! { "find": "d", "filter": { "n": 5 } }).await;
    assert_eq!(leaf(&plan).get_str("stage").expect("a stage"), "COLLSCAN");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hint_of_an_index_that_leaves_documents_out_does_not_find_them() {
    let shell = Shell::new().await;
    let index = rawdoc! { "key": { "a": 1 }, "name": "a_1", "sparse": true };
    shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
    shell
        .insert("c", &[rawdoc! { "_id": 1, "a": 1 }, rawdoc! { "_id": 2 }])
        .await;
    for (hint, expected) in [(rawdoc! { "a": 1 }, 1), (rawdoc! { "$natural": 1 }, 2)] {
        let count = rawdoc! { "count": "c", "query": {}, "hint": hint };
        assert_eq!(shell.ok(count).await, rawdoc! { "n": expected });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_that_have_ended_are_not_found_by_the_index_of_their_date() {
    let shell = Shell::new().await;
    let index = rawdoc! { "key": { "d": 1 }, "name": "d_1", "expireAfterSeconds": 0 };
    shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
    let ends = |id: i32, after: i64| rawdoc! { "_id": id, "d": DateTime::from_millis(NOW.0 + after) };
    shell.insert("c", &[ends(1, 1), ends(2, 2), ends(3, 3)]).await;
    let find = || rawdoc! { "find": "c", "filter": { "d": { "$lte": DateTime::from_millis(NOW.0 + 2) } } };
    for expected in [2, 1, 0, 0] {
        let (plan, stats) = explain(&shell, find()).await;
        assert_eq!(leaf(&plan).get_str("stage").expect("a stage"), "IXSCAN");
        let (returned, _, examined) = numbers(&stats);
        assert_eq!((returned, examined), (expected, expected));
        shell.advance(1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arrays_make_an_index_multikey() {
    let shell = Shell::new().await;
    let index = rawdoc! { "key": { "a": 1 }, "name": "a_1" };
    shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
    let find = || rawdoc! { "find": "c", "filter": { "a": { "$gt": 1, "$lt": 5 } } };
    shell.insert("c", &[rawdoc! { "_id": 1, "a": 3 }]).await;
    for (is_multikey, bounds) in [(false, "(1, 5)"), (true, "(1, inf.0]")] {
        let (plan, _) = explain(&shell, find()).await;
        assert_eq!(leaf(&plan).get_bool("isMultiKey").expect("a boolean"), is_multikey);
        let expected = rawdoc! { "a": [bounds] };
        assert_eq!(leaf(&plan).get_document("indexBounds").expect("bounds"), &*expected);
        shell.insert("c", &[rawdoc! { "_id": 2, "a": [0, 9] }]).await;
    }
    let batch = shell.first_batch(find()).await;
    assert_eq!(batch, [rawdoc! { "_id": 1, "a": 3 }, rawdoc! { "_id": 2, "a": [0, 9] }]);
}

/// How often reads have used an index.
async fn uses(shell: &Shell, collection: &str, name: &str) -> i64 {
    let stages = [rawdoc! { "$indexStats": {} }, rawdoc! { "$match": { "name": name } }];
    let mut pipeline = bson::RawArrayBuf::new();
    stages.into_iter().for_each(|stage| pipeline.push(stage));
    let found = shell
        .first_batch(rawdoc! { "aggregate": collection, "pipeline": pipeline, "cursor": {} })
        .await;
    let accesses = found[0].get_document("accesses").expect("uses");
    accesses.get_i64("ops").expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_with_a_large_collection_looks_values_up() {
    let shell = large().await;
    let n = |id: i32, n: i32| rawdoc! { "_id": id, "n": n };
    shell.insert("l", &[n(1, 5), n(2, 2_999), n(3, 9_999)]).await;
    let index = rawdoc! { "key": { "n": 1 }, "name": "n_1" };
    shell.ok(rawdoc! { "createIndexes": "l", "indexes": [index] }).await;
    for (local, foreign, expected) in [("l", "c", 3), ("c", "l", 0)] {
        let lookup = rawdoc! { "from": foreign, "localField": "n", "foreignField": "n", "as": "found" };
        let mut pipeline = bson::RawArrayBuf::new();
        pipeline.push(rawdoc! { "$lookup": lookup });
        pipeline.push(rawdoc! { "$match": { "found": { "$ne": [] } } });
        pipeline.push(rawdoc! { "$project": { "n": 1, "_id": 0 } });
        let joined = shell
            .first_batch(rawdoc! { "aggregate": local, "pipeline": pipeline, "cursor": {} })
            .await;
        assert_eq!(joined, [rawdoc! { "n": 5 }, rawdoc! { "n": 2_999 }]);
        assert_eq!(uses(&shell, foreign, "n_1").await, expected, "{foreign}");
    }
}
