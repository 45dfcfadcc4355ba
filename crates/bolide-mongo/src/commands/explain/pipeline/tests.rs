use bson::{RawArrayBuf, RawDocument, RawDocumentBuf, rawdoc};

use crate::commands::fixture::{Shell, only};

async fn filled() -> Shell {
    let shell = Shell::new().await;
    let documents: Vec<RawDocumentBuf> = (0..6)
        .map(|number| rawdoc! { "_id": number, "a": number % 3 })
        .collect();
    shell.insert("c", &documents).await;
    shell
}

fn pipeline(stages: &[RawDocumentBuf]) -> RawArrayBuf {
    let mut pipeline = RawArrayBuf::new();
    for stage in stages {
        pipeline.push(stage.clone());
    }
    pipeline
}

fn aggregate(stages: &[RawDocumentBuf]) -> RawDocumentBuf {
    rawdoc! { "aggregate": "c", "pipeline": pipeline(stages), "cursor": {} }
}

async fn explain(shell: &Shell, command: RawDocumentBuf) -> RawDocumentBuf {
    shell
        .ok(rawdoc! { "explain": command, "verbosity": "executionStats" })
        .await
}

fn stages(reply: &RawDocument) -> Vec<RawDocumentBuf> {
    let stages = reply.get_array("stages").expect("stages").into_iter();
    let stages = stages.map(|stage| stage.expect("valid").as_document().expect("a document").to_owned());
    stages.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_that_a_query_could_do_is_shown_as_one() {
    let shell = filled().await;
    let stages = [
        rawdoc! { "$match": { "a": { "$gte": 1 } } },
        rawdoc! { "$match": { "_id": { "$lt": 5 } } },
        rawdoc! { "$sort": { "_id": -1 } },
        rawdoc! { "$skip": 1 },
        rawdoc! { "$limit": 1 },
    ];
    let reply = explain(&shell, aggregate(&stages)).await;
    assert!(reply.get("stages").expect("valid").is_none(), "{reply:?}");
    let planner = reply.get_document("queryPlanner").expect("a planner");
    let plan = rawdoc! {
        "stage": "LIMIT",
        "limitAmount": 1,
        "inputStage": {
            "stage": "SKIP",
            "skipAmount": 1,
            "inputStage": {
                "stage": "FETCH",
                "filter": { "$and": [{ "a": { "$gte": 1 } }, { "_id": { "$lt": 5 } }] },
                "inputStage": {
                    "stage": "IXSCAN",
                    "keyPattern": { "_id": 1 },
                    "indexName": "_id_",
                    "isMultiKey": false,
                    "isUnique": true,
                    "isSparse": false,
                    "isPartial": false,
                    "indexVersion": 2,
                    "direction": "backward",
                    "indexBounds": { "_id": ["(5, -inf.0]"] },
                },
            },
        },
    };
    assert_eq!(planner.get_document("winningPlan").expect("a plan"), &*plan);
    let statistics = reply.get_document("executionStats").expect("statistics");
    let names = ["nReturned", "totalKeysExamined", "totalDocsExamined"];
    let expected = rawdoc! { "nReturned": 1, "totalKeysExamined": 5, "totalDocsExamined": 3 };
    assert_eq!(only(statistics, &names), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_stages_follow_the_cursor_with_what_they_returned() {
    let shell = filled().await;
    let reply = explain(
        &shell,
        aggregate(&[
            rawdoc! { "$match": { "a": { "$gte": 1 } } },
            rawdoc! { "$group": { "_id": "$a", "n": { "$sum": 1 } } },
            rawdoc! { "$match": { "_id": 2 } },
        ]),
    )
    .await;
    let [cursor, group, filter] = &stages(&reply)[..] else {
        panic!("three stages: {reply:?}")
    };
    let query = cursor.get_document("$cursor").expect("a cursor");
    let plan = query
        .get_document("queryPlanner")
        .and_then(|planner| planner.get_document("winningPlan"));
    assert_eq!(only(plan.expect("a plan"), &["stage"]), rawdoc! { "stage": "COLLSCAN" });
    let statistics = query.get_document("executionStats").expect("statistics");
    assert_eq!(
        only(statistics, &["nReturned", "totalDocsExamined"]),
        rawdoc! { "nReturned": 4, "totalDocsExamined": 6 }
    );
    assert_eq!(only(cursor, &["nReturned"]), rawdoc! { "nReturned": 4 });
    let expected = rawdoc! { "$group": { "_id": "$a", "n": { "$sum": 1 } }, "nReturned": 2 };
    assert_eq!(only(group, &["$group", "nReturned"]), expected);
    let expected = rawdoc! { "$match": { "_id": 2 }, "nReturned": 1 };
    assert_eq!(only(filter, &["$match", "nReturned"]), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_by_id_and_a_missing_collection() {
    let shell = filled().await;
    let by_id = aggregate(&[rawdoc! { "$match": { "_id": 3 } }, rawdoc! { "$count": "n" }]);
    let reply = explain(&shell, by_id).await;
    let query = stages(&reply)[0].get_document("$cursor").expect("a cursor").to_owned();
    let statistics = query.get_document("executionStats").expect("statistics");
    let names = ["nReturned", "totalKeysExamined", "totalDocsExamined"];
    let expected = rawdoc! { "nReturned": 1, "totalKeysExamined": 1, "totalDocsExamined": 1 };
    assert_eq!(only(statistics, &names), expected);
    let none = rawdoc! { "aggregate": "none", "pipeline": [], "cursor": {} };
    let reply = explain(&shell, none).await;
    let planner = reply.get_document("queryPlanner").expect("a planner");
    assert_eq!(
        only(planner, &["winningPlan"]),
        rawdoc! { "winningPlan": { "stage": "EOF" } }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_option_of_aggregate_explains_without_statistics() {
    let shell = filled().await;
    let reply = shell
        .ok(rawdoc! { "aggregate": "c", "pipeline": [{ "$match": { "a": 1 } }], "explain": true })
        .await;
    assert!(reply.get("executionStats").expect("valid").is_none(), "{reply:?}");
    let planner = reply.get_document("queryPlanner").expect("a planner");
    assert_eq!(
        only(planner, &["namespace", "parsedQuery"]),
        rawdoc! { "namespace": "db.c", "parsedQuery": { "a": { "$eq": 1 } } }
    );
    let command = reply.get_document("command").expect("the command");
    assert_eq!(
        only(command, &["aggregate", "$db"]),
        rawdoc! { "aggregate": "c", "$db": "db" }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written() {
    let shell = filled().await;
    let out = aggregate(&[rawdoc! { "$match": { "a": 1 } }, rawdoc! { "$out": "made" }]);
    let planned = shell
        .ok(rawdoc! { "explain": out.clone(), "verbosity": "queryPlanner" })
        .await;
    assert_eq!(stages(&planned)[1], rawdoc! { "$out": "made" });
    assert_eq!(
        shell
            .code(rawdoc! { "explain": out, "verbosity": "executionStats" })
            .await,
        20
    );
    assert_eq!(shell.ok(rawdoc! { "count": "made" }).await, rawdoc! { "n": 0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelines_without_a_collection_have_no_cursor() {
    let shell = filled().await;
    let documents = rawdoc! { "$documents": [{ "x": 1 }, { "x": 2 }] };
    let command = rawdoc! { "aggregate": 1, "pipeline": pipeline(&[documents, rawdoc! { "$limit": 1 }]), "cursor": {} };
    let reply = explain(&shell, command).await;
    let counts: Vec<_> = stages(&reply).iter().map(|stage| only(stage, &["nReturned"])).collect();
    assert_eq!(counts, [rawdoc! { "nReturned": 1 }, rawdoc! { "nReturned": 1 }]);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_pipelines_are_refused() {
    let shell = filled().await;
    for (command, expected) in [
        (
            rawdoc! { "aggregate": "c", "pipeline": [{ "$nope": 1 }], "cursor": {} },
            40324,
        ),
        (rawdoc! { "aggregate": "c", "cursor": {} }, 40414),
        (rawdoc! { "aggregate": "c", "pipeline": [], "foo": 1 }, 40415),
        (rawdoc! { "aggregate": "c", "pipeline": [], "explain": true }, 9),
        (rawdoc! { "aggregate": "c", "pipeline": [], "hint": "nope" }, 2),
        (rawdoc! { "aggregate": 1, "pipeline": [] }, 73),
    ] {
        let explain = rawdoc! { "explain": command.clone(), "verbosity": "queryPlanner" };
        assert_eq!(shell.code(explain).await, expected, "{command:?}");
    }
}
