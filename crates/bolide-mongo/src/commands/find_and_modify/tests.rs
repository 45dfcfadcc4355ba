use bson::raw::cstr;
use bson::{Binary, DateTime, RawBson, RawDocumentBuf, rawdoc};

use crate::commands::fixture::{NOW, Shell, only};

async fn shell() -> Shell {
    let shell = Shell::new().await;
    let documents = [
        rawdoc! { "_id": 1, "a": 3, "l": [{ "k": 1, "v": 1 }, { "k": 2, "v": 2 }] },
        rawdoc! { "_id": 2, "a": 1, "l": [] },
        rawdoc! { "_id": 3, "a": 2 },
    ];
    shell.insert("c", &documents).await;
    shell
}

/// `{findAndModify: "c"}` with more arguments.
fn command(arguments: &RawDocumentBuf) -> RawDocumentBuf {
    let mut command = rawdoc! { "findAndModify": "c" };
    for field in arguments {
        let (name, value) = field.expect("valid");
        command.append(name, value);
    }
    command
}

fn lsid(byte: u8) -> RawDocumentBuf {
    let id = Binary {
        subtype: bson::spec::BinarySubtype::Uuid,
        bytes: vec![byte; 16],
    };
    rawdoc! { "id": id }
}

/// Source: mongo.md §6; each on the documents of the beginning.
#[tokio::test(flavor = "multi_thread")]
async fn one_document_is_changed_and_returned() {
    let updated = rawdoc! { "n": 1, "updatedExisting": true };
    let cases = [
        (
            rawdoc! { "query": { "_id": 2 }, "update": { "$set": { "a": 9 } } },
            updated.clone(),
            RawBson::from(rawdoc! { "_id": 2, "a": 1, "l": [] }),
        ),
        (
            rawdoc! { "query": { "_id": 2 }, "update": { "$set": { "a": 9 } }, "new": true },
            updated.clone(),
            rawdoc! { "_id": 2, "a": 9, "l": [] }.into(),
        ),
        (
            rawdoc! { "query": {}, "sort": { "a": 1 }, "update": { "x": 1 }, "new": true },
            updated.clone(),
            rawdoc! { "_id": 2, "x": 1 }.into(),
        ),
        (
            rawdoc! { "query": { "a": { "$gt": 1 } }, "sort": { "a": 1 }, "update": [{ "$set": { "b": { "$add": ["$a", "$$v"] } } }],
            "let": { "v": 5 }, "new": true, "fields": { "b": 1 } },
            updated.clone(),
            rawdoc! { "_id": 3, "b": 7 }.into(),
        ),
        (
            rawdoc! { "sort": { "$natural": -1 }, "remove": true },
            rawdoc! { "n": 1 },
            rawdoc! { "_id": 3, "a": 2 }.into(),
        ),
        (
            rawdoc! { "sort": { "a": -1 }, "remove": true, "fields": { "a": 1, "_id": 0 } },
            rawdoc! { "n": 1 },
            rawdoc! { "a": 3 }.into(),
        ),
        (
            rawdoc! { "query": { "l.k": 2 }, "update": { "$set": { "l.$.v": 7 } }, "fields": { "_id": 0, "l.$": 1 } },
            updated.clone(),
            rawdoc! { "l": [{ "k": 2, "v": 2 }] }.into(),
        ),
        (
            rawdoc! { "query": { "_id": 1 }, "update": { "$set": { "l.$[e].v": 7 } }, "arrayFilters": [{ "e.k": 1 }], "new": true,
            "fields": { "l.v": 1, "_id": 0 } },
            updated,
            rawdoc! { "l": [{ "v": 7 }, { "v": 2 }] }.into(),
        ),
        (
            rawdoc! { "query": { "_id": 9 }, "update": { "$set": { "a": 9 } } },
            rawdoc! { "n": 0, "updatedExisting": false },
            RawBson::Null,
        ),
        (
            rawdoc! { "query": { "_id": 9 }, "remove": true },
            rawdoc! { "n": 0 },
            RawBson::Null,
        ),
        (
            rawdoc! { "query": { "_id": 9 }, "update": { "$set": { "a": 9 } }, "upsert": true },
            rawdoc! { "n": 1, "updatedExisting": false, "upserted": 9 },
            RawBson::Null,
        ),
        (
            rawdoc! { "query": { "_id": 9 }, "update": { "$inc": { "a": 9 } }, "upsert": true, "new": true },
            rawdoc! { "n": 1, "updatedExisting": false, "upserted": 9 },
            rawdoc! { "_id": 9, "a": 9 }.into(),
        ),
    ];
    for (arguments, last, value) in cases {
        let shell = shell().await;
        let reply = shell.ok(command(&arguments)).await;
        let expected = rawdoc! { "lastErrorObject": last, "value": value };
        assert_eq!(reply, expected, "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_arguments_are_refused_and_change_nothing() {
    let shell = shell().await;
    let set = rawdoc! { "$set": { "a": 1 } };
    let cases = [
        (rawdoc! {}, 9),
        (rawdoc! { "remove": true, "update": set.clone() }, 9),
        (rawdoc! { "remove": true, "upsert": true }, 9),
        (rawdoc! { "remove": true, "new": true }, 9),
        (rawdoc! { "update": set.clone(), "query": { "$nonsense": 1 } }, 2),
        (rawdoc! { "update": { "$nonsense": 1 } }, 9),
        (rawdoc! { "update": set.clone(), "sort": { "a": 5 } }, 15975),
        (rawdoc! { "update": set.clone(), "fields": { "a": 1, "b": 0 } }, 31254),
        (
            rawdoc! { "update": set.clone(), "new": true, "query": { "l": 1 }, "fields": { "l.$": 1 } },
            2,
        ),
        (
            rawdoc! { "update": set.clone(), "fields": { "s": { "$meta": "sortKey" } } },
            2,
        ),
        (rawdoc! { "update": set.clone(), "nonsense": 1 }, 40415),
    ];
    for (arguments, expected) in cases {
        for collection in ["c", "missing"] {
            let mut sent = rawdoc! { "findAndModify": collection };
            for field in &arguments {
                let (name, value) = field.expect("valid");
                sent.append(name, value);
            }
            assert_eq!(shell.code(sent).await, expected, "{collection} {arguments:?}");
        }
    }
    assert!(shell.state.account.find_collection("db", "missing").is_none());
    // A projection that fails on the document: it is not removed.
    let divides = rawdoc! { "query": { "_id": 3 }, "remove": true, "fields": { "x": { "$divide": [1, 0] } } };
    assert_eq!(shell.code(command(&divides)).await, 2);
    assert_eq!(shell.ok(rawdoc! { "count": "c" }).await, rawdoc! { "n": 3 });
}

/// Source: mongo.md §6: a top-level error with `keyPattern` and `keyValue`.
#[tokio::test(flavor = "multi_thread")]
async fn a_taken_key_is_an_error_of_the_command() {
    let shell = shell().await;
    let index = rawdoc! { "key": { "a": 1 }, "name": "a_1", "unique": true };
    shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
    let taken = rawdoc! { "query": { "_id": 1 }, "update": { "$set": { "a": 2 } } };
    let reply = shell.run(command(&taken)).await;
    let expected = rawdoc! {
        "ok": 0.0,
        "code": 11000,
        "codeName": "DuplicateKey",
        "errmsg": "Plan executor error during findAndModify :: caused by :: E11000 duplicate key error collection: db.c index: a_1 dup key: { a: 2 }",
        "keyPattern": { "a": 1 },
        "keyValue": { "a": 2 },
    };
    let names = ["ok", "code", "codeName", "errmsg", "keyPattern", "keyValue"];
    assert_eq!(only(&reply, &names), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_returns_the_stored_reply() {
    let shell = shell().await;
    let send = |number: i64, arguments: RawDocumentBuf| {
        let mut command = command(&arguments);
        command.append(cstr!("lsid"), lsid(1));
        command.append(cstr!("txnNumber"), number);
        command
    };
    let increment =
        rawdoc! { "query": { "a": { "$lt": 3 } }, "sort": { "a": 1 }, "update": { "$inc": { "a": 10 } }, "new": true };
    let first = shell.ok(send(1, increment.clone())).await;
    assert_eq!(
        first,
        rawdoc! { "lastErrorObject": { "n": 1, "updatedExisting": true }, "value": { "_id": 2, "a": 11, "l": [] } }
    );
    assert_eq!(shell.ok(send(1, increment.clone())).await, first);
    let second = shell.ok(send(2, increment.clone())).await;
    let expected = rawdoc! { "lastErrorObject": { "n": 1, "updatedExisting": true }, "value": { "_id": 3, "a": 12 } };
    assert_eq!(second, expected);
    assert_eq!(shell.code(send(1, increment)).await, 225);
    let remove = rawdoc! { "query": { "_id": 1 }, "remove": true, "fields": { "a": 1 } };
    let removed = rawdoc! { "lastErrorObject": { "n": 1 }, "value": { "_id": 1, "a": 3 } };
    assert_eq!(shell.ok(send(3, remove.clone())).await, removed);
    assert_eq!(shell.ok(send(3, remove)).await, removed);
}

/// Source: mongo.md §18.5: the sort skips the dead, and an upsert over a dead match inserts.
#[tokio::test(flavor = "multi_thread")]
async fn the_dead_are_not_found() {
    let shell = Shell::new().await;
    let index = rawdoc! { "key": { "d": 1 }, "name": "d", "expireAfterSeconds": 0 };
    shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
    let date = |ms: i64| DateTime::from_millis(NOW.0 + ms);
    let documents = [
        rawdoc! { "_id": 1, "a": 1, "d": date(1000) },
        rawdoc! { "_id": 2, "a": 2, "d": date(3000) },
        rawdoc! { "_id": 3, "a": 3, "d": date(5000) },
    ];
    shell.insert("c", &documents).await;
    let first = rawdoc! { "query": {}, "sort": { "a": 1 }, "update": { "$set": { "x": 1 } }, "fields": { "_id": 1 } };
    let value = async |arguments: &RawDocumentBuf| {
        let reply = shell.ok(command(arguments)).await;
        reply.get("value").expect("valid").map(RawBson::from)
    };
    let id = |id: i32| Some(RawBson::from(rawdoc! { "_id": id }));
    shell.advance(999);
    assert_eq!(value(&first).await, id(1));
    shell.advance(1);
    assert_eq!(value(&first).await, id(2));
    let upsert = rawdoc! { "query": { "_id": 1 }, "update": { "$set": { "new": true } }, "upsert": true, "new": true };
    assert_eq!(value(&upsert).await, Some(rawdoc! { "_id": 1, "new": true }.into()));
    shell.advance(4000);
    assert_eq!(value(&first).await, id(1));
    let by_id = rawdoc! { "query": { "_id": 3 }, "remove": true };
    assert_eq!(value(&by_id).await, Some(RawBson::Null));
}

/// Every one of many clients gets a document of its own from a queue.
#[tokio::test(flavor = "multi_thread")]
async fn clients_share_a_queue() {
    let shell = std::sync::Arc::new(Shell::new().await);
    let documents: Vec<RawDocumentBuf> = (0..20_i32).map(|id| rawdoc! { "_id": id, "p": -id }).collect();
    shell.insert("c", &documents).await;
    let take =
        rawdoc! { "query": { "taken": { "$ne": true } }, "sort": { "p": 1 }, "update": { "$set": { "taken": true } } };
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..25 {
        let (shell, take) = (shell.clone(), take.clone());
        clients.spawn(async move {
            let reply = shell.ok(command(&take)).await;
            match reply.get("value") {
                Ok(Some(bson::RawBsonRef::Document(value))) => value.get_i32("_id").ok(),
                _ => None,
            }
        });
    }
    let mut taken: Vec<Option<i32>> = clients.join_all().await;
    taken.sort_unstable();
    let expected: Vec<Option<i32>> = std::iter::repeat_n(None, 5).chain((0..20).map(Some)).collect();
    assert_eq!(taken, expected);
}
