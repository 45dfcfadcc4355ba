use bson::{DateTime, RawBson, RawDocumentBuf, rawdoc};

use crate::commands::fixture::{NOW, Shell, only};

mod indexes;
mod orders;

async fn filled() -> Shell {
    let shell = Shell::new().await;
    let documents: Vec<RawDocumentBuf> = (0..5)
        .map(|number| rawdoc! { "_id": number, "a": number % 2 })
        .collect();
    shell.insert("c", &documents).await;
    shell
}

/// Explains with statistics; returns `winningPlan` and `executionStats`.
async fn explain(shell: &Shell, command: RawDocumentBuf) -> (RawDocumentBuf, RawDocumentBuf) {
    let reply = shell
        .ok(rawdoc! { "explain": command, "verbosity": "executionStats" })
        .await;
    let planner = reply.get_document("queryPlanner").expect("a planner");
    let plan = planner.get_document("winningPlan").expect("a plan");
    let stats = reply.get_document("executionStats").expect("statistics");
    (plan.to_owned(), stats.to_owned())
}

fn numbers(stats: &RawDocumentBuf) -> (i32, i32, i32) {
    let number = |name: &str| stats.get_i32(name).expect("a number");
    (
        number("nReturned"),
        number("totalKeysExamined"),
        number("totalDocsExamined"),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_examines_all_documents_and_a_read_by_id_one() {
    let shell = filled().await;
    for (command, plan, expected) in [
        (
            rawdoc! { "find": "c", "filter": { "a": 1 } },
            rawdoc! { "stage": "COLLSCAN", "filter": { "a": { "$eq": 1 } }, "direction": "forward" },
            (2, 0, 5),
        ),
        (
            rawdoc! { "find": "c", "filter": { "_id": 3 } },
            rawdoc! { "stage": "IDHACK", "keyPattern": { "_id": 1 }, "indexName": "_id_" },
            (1, 1, 1),
        ),
        (
            rawdoc! { "find": "none", "filter": { "a": 1 } },
            rawdoc! { "stage": "EOF" },
            (0, 0, 0),
        ),
        (
            rawdoc! { "find": "c", "skip": 1, "limit": 2 },
            rawdoc! {
                "stage": "LIMIT",
                "limitAmount": 2,
                "inputStage": {
                    "stage": "SKIP",
                    "skipAmount": 1,
                    "inputStage": { "stage": "COLLSCAN", "direction": "forward" },
                },
            },
            (2, 0, 3),
        ),
        (
            rawdoc! { "distinct": "c", "key": "a", "query": { "a": 1, "_id": { "$gt": 1 } } },
            rawdoc! {
                "stage": "COLLSCAN",
                "filter": { "$and": [{ "a": { "$eq": 1 } }, { "_id": { "$gt": 1 } }] },
                "direction": "forward",
            },
            (1, 0, 5),
        ),
    ] {
        let (found, stats) = explain(&shell, command.clone()).await;
        assert_eq!(found, plan, "{command:?}");
        assert_eq!(numbers(&stats), expected, "{command:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_that_have_ended_are_not_examined() {
    let shell = filled().await;
    let index = rawdoc! { "key": { "d": 1 }, "name": "d", "expireAfterSeconds": 0 };
    shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
    let ends = DateTime::from_millis(NOW.0 + 1);
    shell.insert("c", &[rawdoc! { "_id": 9, "d": ends }]).await;
    let (_, stats) = explain(&shell, rawdoc! { "find": "c" }).await;
    assert_eq!(numbers(&stats), (6, 0, 6));
    shell.advance(1);
    let (_, stats) = explain(&shell, rawdoc! { "find": "c" }).await;
    assert_eq!(numbers(&stats), (5, 0, 5));
    let (_, stats) = explain(&shell, rawdoc! { "find": "c", "filter": { "_id": 9 } }).await;
    assert_eq!(numbers(&stats), (0, 0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_are_counted_and_not_carried_out() {
    let shell = filled().await;
    let root = |stats: &RawDocumentBuf, name: &str| {
        let stages = stats.get_document("executionStages").expect("stages");
        stages.get_i32(name).expect(name)
    };
    let (_, stats) = explain(&shell, rawdoc! { "count": "c", "query": { "a": 0 }, "limit": 2 }).await;
    assert_eq!(root(&stats, "nCounted"), 2);
    let delete = rawdoc! { "delete": "c", "deletes": [{ "q": { "a": 0 }, "limit": 0 }] };
    let (plan, stats) = explain(&shell, delete).await;
    assert_eq!(only(&plan, &["stage"]), rawdoc! { "stage": "DELETE" });
    assert_eq!((root(&stats, "nWouldDelete"), numbers(&stats)), (3, (0, 0, 5)));
    let update = rawdoc! { "update": "c", "updates": [{ "q": {}, "u": { "$set": { "a": 1 } }, "multi": true }] };
    let (plan, stats) = explain(&shell, update).await;
    assert_eq!(only(&plan, &["stage"]), rawdoc! { "stage": "UPDATE" });
    assert_eq!((root(&stats, "nMatched"), root(&stats, "nWouldModify")), (5, 3));
    let upsert =
        rawdoc! { "update": "c", "updates": [{ "q": { "_id": 7 }, "u": { "$set": { "a": 1 } }, "upsert": true }] };
    let (_, stats) = explain(&shell, upsert).await;
    assert_eq!((root(&stats, "nMatched"), root(&stats, "nWouldUpsert")), (0, 1));
    let modify = rawdoc! { "findAndModify": "c", "query": { "a": 0 }, "sort": { "a": 1 }, "remove": true };
    let (plan, stats) = explain(&shell, modify).await;
    let sort = plan.get_document("inputStage").expect("an input");
    assert_eq!(only(sort, &["stage"]), rawdoc! { "stage": "SORT" });
    assert_eq!(root(&stats, "nWouldDelete"), 1);
    assert_eq!(
        shell.ok(rawdoc! { "count": "c", "query": { "a": 0 } }).await,
        rawdoc! { "n": 3 }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reply_names_the_command() {
    let shell = filled().await;
    // As clients send it, with fields that may be on any command.
    let find =
        rawdoc! { "find": "c", "filter": {}, "$db": "db", "comment": "x", "$readPreference": { "mode": "primary" } };
    let reply = shell.ok(rawdoc! { "explain": find, "verbosity": "queryPlanner" }).await;
    let expected = rawdoc! {
        "explainVersion": "1",
        "command": { "find": "c", "filter": {}, "comment": "x", "$readPreference": { "mode": "primary" }, "$db": "db" },
        "serverInfo": { "host": "machine", "port": 10255, "version": "7.0.0", "gitVersion": "unknown" },
    };
    let names = ["explainVersion", "executionStats", "command", "serverInfo"];
    assert_eq!(only(&reply, &names), expected);
    let planner = reply.get_document("queryPlanner").expect("a planner");
    let expected = rawdoc! { "namespace": "db.c", "parsedQuery": {}, "rejectedPlans": [] };
    assert_eq!(only(planner, &["namespace", "parsedQuery", "rejectedPlans"]), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_refused() {
    let shell = filled().await;
    let two = rawdoc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }, { "q": {}, "limit": 0 }] };
    for (command, expected) in [
        (RawBson::Document(rawdoc! { "nope": 1 }), 59),
        (RawBson::Document(rawdoc! { "ping": 1 }), 73),
        (RawBson::Document(rawdoc! { "insert": "c", "documents": [{}] }), 20),
        (RawBson::Document(rawdoc! { "find": "c", "foo": 1 }), 40415),
        (RawBson::Document(rawdoc! { "find": "c", "hint": "nope" }), 2),
        (RawBson::Document(rawdoc! { "find": "c", "$db": "other" }), 73),
        (RawBson::Document(two), 16),
        (RawBson::Int32(1), 14),
    ] {
        let mut explain = rawdoc! { "explain": command.clone() };
        explain.append(bson::raw::cstr!("verbosity"), "queryPlanner");
        assert_eq!(shell.code(explain).await, expected, "{command:?}");
    }
    let verbosity = rawdoc! { "explain": { "find": "c" }, "verbosity": "loud" };
    assert_eq!(shell.code(verbosity).await, 2);
}
