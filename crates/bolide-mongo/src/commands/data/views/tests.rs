use bson::{RawDocumentBuf, rawdoc};

use crate::commands::fixture::{Shell, only};

/// A shell with a collection, a view on it, and a view on that.
async fn shell() -> Shell {
    let shell = Shell::new().await;
    let documents = [
        rawdoc! { "_id": 1, "a": 5, "t": ["x", "y"] },
        rawdoc! { "_id": 2, "a": 6, "t": ["x"] },
        rawdoc! { "_id": 3, "a": 7, "t": ["z"] },
    ];
    shell.insert("c", &documents).await;
    let stages = [
        rawdoc! { "$match": { "a": { "$gt": 5 } } },
        rawdoc! { "$set": { "b": { "$add": ["$a", 1] } } },
    ];
    shell.ok(view("v", "c", &stages)).await;
    shell.ok(view("w", "v", &[rawdoc! { "$project": { "b": 1 } }])).await;
    shell
}

fn view(name: &str, on: &str, stages: &[RawDocumentBuf]) -> RawDocumentBuf {
    let mut pipeline = bson::RawArrayBuf::new();
    for stage in stages {
        pipeline.push(stage.clone());
    }
    rawdoc! { "create": name, "viewOn": on, "pipeline": pipeline }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_go_through_the_pipelines() {
    let shell = shell().await;
    let all = vec![rawdoc! { "_id": 2, "b": 7 }, rawdoc! { "_id": 3, "b": 8 }];
    assert_eq!(shell.first_batch(rawdoc! { "find": "w" }).await, all);
    let find = rawdoc! { "find": "v", "filter": { "b": 8 }, "projection": { "_id": 0, "a": 1 } };
    assert_eq!(shell.first_batch(find).await, [rawdoc! { "a": 7 }]);
    let find = rawdoc! { "find": "w", "sort": { "b": -1 }, "skip": 1, "limit": 1 };
    assert_eq!(shell.first_batch(find).await, [rawdoc! { "_id": 2, "b": 7 }]);
    assert_eq!(shell.ok(rawdoc! { "count": "w" }).await, rawdoc! { "n": 2 });
    let count = rawdoc! { "count": "w", "query": { "b": { "$gt": 7 } } };
    assert_eq!(shell.ok(count).await, rawdoc! { "n": 1 });
    let count = rawdoc! { "count": "w", "query": { "b": 100 } };
    assert_eq!(shell.ok(count).await, rawdoc! { "n": 0 });
    let distinct = rawdoc! { "distinct": "v", "key": "t", "query": { "a": 6 } };
    assert_eq!(shell.ok(distinct).await, rawdoc! { "values": ["x"] });
    let aggregate =
        rawdoc! { "aggregate": "w", "pipeline": [{ "$group": { "_id": 1, "s": { "$sum": "$b" } } }], "cursor": {} };
    assert_eq!(shell.first_batch(aggregate).await, [rawdoc! { "_id": 1, "s": 15 }]);
    let lookup = rawdoc! { "$lookup": { "from": "w", "localField": "_id", "foreignField": "_id", "as": "found" } };
    let aggregate = rawdoc! { "aggregate": "c", "pipeline": [{ "$match": { "_id": 2 } }, lookup], "cursor": {} };
    let expected = rawdoc! { "_id": 2, "a": 6, "t": ["x"], "found": [{ "_id": 2, "b": 7 }] };
    assert_eq!(shell.first_batch(aggregate).await, [expected]);
    // A view on nothing is empty.
    shell.ok(view("n", "missing", &[])).await;
    assert_eq!(shell.ok(rawdoc! { "count": "n" }).await, rawdoc! { "n": 0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn views_are_listed_changed_and_dropped() {
    let shell = shell().await;
    let listed = shell
        .first_batch(rawdoc! { "listCollections": 1, "filter": { "name": "w" } })
        .await;
    let expected = rawdoc! {
        "name": "w",
        "type": "view",
        "options": { "viewOn": "v", "pipeline": [{ "$project": { "b": 1 } }] },
        "info": { "readOnly": true },
    };
    assert_eq!(listed, [expected]);
    // The same again is created already; another is not.
    shell.ok(view("w", "v", &[rawdoc! { "$project": { "b": 1 } }])).await;
    assert_eq!(shell.code(view("w", "c", &[])).await, 48);
    let change = rawdoc! { "collMod": "w", "viewOn": "c", "pipeline": [{ "$project": { "a": 1 } }] };
    shell.ok(change).await;
    let find = rawdoc! { "find": "w", "filter": { "_id": 1 } };
    assert_eq!(shell.first_batch(find).await, [rawdoc! { "_id": 1, "a": 5 }]);
    assert_eq!(
        shell
            .code(rawdoc! { "collMod": "c", "viewOn": "v", "pipeline": [] })
            .await,
        72
    );
    assert_eq!(
        shell.code(rawdoc! { "collMod": "w", "validator": { "a": 1 } }).await,
        72
    );
    let statistics = shell.ok(rawdoc! { "dbStats": 1 }).await;
    let expected = rawdoc! { "collections": 1_i64, "views": 2_i64, "objects": 3_i64 };
    assert_eq!(only(&statistics, &["collections", "views", "objects"]), expected);
    shell.ok(rawdoc! { "drop": "w" }).await;
    assert_eq!(shell.ok(rawdoc! { "count": "w" }).await, rawdoc! { "n": 0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_writes_a_view() {
    let shell = shell().await;
    for command in [
        rawdoc! { "insert": "v", "documents": [{ "_id": 9 }] },
        rawdoc! { "update": "v", "updates": [{ "q": {}, "u": { "$set": { "a": 1 } } }] },
        rawdoc! { "delete": "v", "deletes": [{ "q": {}, "limit": 0 }] },
        rawdoc! { "findAndModify": "v", "remove": true },
        rawdoc! { "createIndexes": "v", "indexes": [{ "key": { "a": 1 }, "name": "a" }] },
        rawdoc! { "listIndexes": "v" },
        rawdoc! { "validate": "v" },
        rawdoc! { "collStats": "v" },
        rawdoc! { "aggregate": "c", "pipeline": [{ "$out": "v" }], "cursor": {} },
        rawdoc! { "aggregate": "c", "pipeline": [{ "$merge": "v" }], "cursor": {} },
        rawdoc! { "renameCollection": "db.v", "to": "db.x", "$db": "admin" },
    ] {
        let text = format!("{command:?}");
        assert_eq!(shell.code(command).await, 166, "{text}");
    }
    assert_eq!(shell.ok(rawdoc! { "count": "c" }).await, rawdoc! { "n": 3 });
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_definitions_are_refused() {
    let shell = shell().await;
    assert_eq!(shell.code(rawdoc! { "create": "x", "pipeline": [] }).await, 2);
    assert_eq!(shell.code(view("x", "", &[])).await, 2);
    assert_eq!(
        shell
            .code(rawdoc! { "create": "x", "viewOn": "c", "capped": true, "size": 1 })
            .await,
        72
    );
    assert_eq!(shell.code(view("x", "c", &[rawdoc! { "$out": "y" }])).await, 167);
    assert_eq!(shell.code(view("x", "c", &[rawdoc! { "$unknown": 1 }])).await, 40324);
    assert_eq!(shell.code(view("x", "x", &[])).await, 5);
    // v reads c, w reads v.
    let cycle = rawdoc! { "collMod": "v", "viewOn": "w", "pipeline": [] };
    assert_eq!(shell.code(cycle).await, 5);
    let other_collation = rawdoc! { "find": "v", "collation": { "locale": "fr" } };
    assert_eq!(shell.code(other_collation).await, 167);
    assert_eq!(shell.code(rawdoc! { "find": "v", "returnKey": true }).await, 168);
}

#[tokio::test(flavor = "multi_thread")]
async fn views_stand_on_twenty_views_at_most() {
    let shell = Shell::new().await;
    shell.insert("v0", &[rawdoc! { "_id": 1 }]).await;
    for number in 1..=20 {
        let (name, on) = (format!("v{number}"), format!("v{}", number - 1));
        shell.ok(view(&name, &on, &[])).await;
    }
    assert_eq!(shell.ok(rawdoc! { "count": "v20" }).await, rawdoc! { "n": 1 });
    assert_eq!(shell.code(view("v21", "v20", &[])).await, 165);
    // A view that reads itself in a stage is refused when it is read.
    let lookup = rawdoc! { "$lookup": { "from": "s", "as": "s", "pipeline": [] } };
    shell.ok(view("s", "v0", &[lookup])).await;
    assert_eq!(shell.code(rawdoc! { "find": "s" }).await, 165);
}
