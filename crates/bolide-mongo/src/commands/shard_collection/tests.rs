use bolide_core::PurgeMode;
use bson::raw::cstr;
use bson::spec::BinarySubtype;
use bson::{Binary, RawArrayBuf, RawDocument, RawDocumentBuf, rawdoc};

use crate::commands::fixture::log_in::log_in;
use crate::commands::fixture::{self, KEY, Shell, only, without};

/// A collection sharded by `k`.
async fn sharded() -> Shell {
    let shell = Shell::new().await;
    let command = rawdoc! { "shardCollection": "db.c", "key": { "k": "hashed" }, "$db": "admin" };
    let expected = rawdoc! { "_t": "ShardCollectionResponse", "collectionsharded": "db.c" };
    assert_eq!(shell.ok(command).await, expected);
    shell
}

async fn split(shell: &Shell, times: usize) {
    let container = shell.state.account.find_collection("db", "c").expect("the collection");
    for _ in 0..times {
        shell.state.account.split(&container, None).await.expect("a split");
    }
}

async fn assert_verified(shell: &Shell) {
    let container = shell.state.account.find_collection("db", "c").expect("the collection");
    let report = shell.state.account.verify(&container).await.expect("a report");
    assert!(report.is_ok(), "{:?}", report.problems);
}

fn retryable(mut command: RawDocumentBuf, number: i64) -> RawDocumentBuf {
    let id = Binary {
        subtype: BinarySubtype::Uuid,
        bytes: vec![1; 16],
    };
    command.append(cstr!("lsid"), rawdoc! { "id": id });
    command.append(cstr!("txnNumber"), number);
    command
}

fn update(filter: RawDocumentBuf, update: RawDocumentBuf) -> RawDocumentBuf {
    rawdoc! { "update": "c", "updates": [{ "q": filter, "u": update }] }
}

/// The code of the first statement that failed; 0 if none did.
async fn statement_code(shell: &Shell, command: RawDocumentBuf) -> i32 {
    let reply = shell.ok(command).await;
    let Ok(errors) = reply.get_array("writeErrors") else {
        return 0;
    };
    let first = errors.get_document(0).expect("an error");
    first.get_i32("code").expect("a code")
}

async fn found(shell: &Shell, filter: RawDocumentBuf) -> Vec<RawDocumentBuf> {
    let command = rawdoc! { "find": "c", "filter": filter, "sort": { "_id": 1, "k": 1 } };
    shell.first_batch(command).await
}

async fn count(shell: &Shell, filter: RawDocumentBuf) -> i32 {
    let reply = shell.ok(rawdoc! { "count": "c", "query": filter }).await;
    reply.get_i32("n").expect("a number")
}

#[tokio::test]
async fn a_collection_is_sharded_once_by_one_hashed_field() {
    let shell = sharded().await;
    shell.ok(rawdoc! { "create": "unsharded" }).await;
    shell.ok(rawdoc! { "enableSharding": "db", "$db": "admin" }).await;
    let command = |name: &str, key: RawDocumentBuf| rawdoc! { "shardCollection": name, "key": key };
    for (command, expected) in [
        (command("db.c", rawdoc! { "k": "hashed" }), 0),
        (command("db.c", rawdoc! { "x": "hashed" }), 23),
        (command("db.unsharded", rawdoc! { "k": "hashed" }), 48),
        (command("db.d", rawdoc! { "k": 1 }), 2),
        (command("db.d", rawdoc! { "k": "hashed", "x": "hashed" }), 2),
        (command("db.d", rawdoc! {}), 2),
        (command("other.d", rawdoc! { "k": "hashed" }), 13),
        (
            rawdoc! { "shardCollection": "db.d", "key": { "k": "hashed" }, "unique": true },
            72,
        ),
        (
            rawdoc! { "shardCollection": "db.d", "key": { "k": "hashed" }, "collation": { "locale": "de" } },
            2,
        ),
        (
            rawdoc! { "shardCollection": "db.d", "key": { "k": "hashed" }, "foo": 1 },
            40415,
        ),
        (rawdoc! { "shardCollection": "db.d" }, 40414),
    ] {
        assert_eq!(shell.code(command.clone()).await, expected, "{command:?}");
    }
    assert_eq!(shell.first_batch(rawdoc! { "listCollections": 1 }).await.len(), 2);
}

#[tokio::test]
async fn a_shard_key_survives_a_restart_and_is_shown() {
    let mut shell = Shell::new().await;
    let create = rawdoc! {
        "customAction": "CreateCollection", "collection": "c", "shardKey": "a.b", "offerThroughput": 18_000,
    };
    shell.ok(create).await;
    shell.restart().await;
    let shown = shell
        .ok(rawdoc! { "customAction": "GetCollection", "collection": "c" })
        .await;
    let expected = rawdoc! { "shardKeyDefinition": { "a.b": "hashed" }, "provisionedThroughput": 18_000 };
    assert_eq!(only(&shown, &["shardKeyDefinition", "provisionedThroughput"]), expected);
    let container = shell.state.account.find_collection("db", "c").expect("the collection");
    assert_eq!(container.ranges().ranges.len(), 3);
    shell.insert("c", &[rawdoc! { "_id": 1, "a": { "b": 1 } }]).await;
    assert_eq!(count(&shell, rawdoc! { "a.b": 1 }).await, 1);
    // As many ranges as the throughput needs.
    let update = rawdoc! { "customAction": "UpdateCollection", "collection": "c", "offerThroughput": 45_000 };
    shell.ok(update).await;
    assert_eq!(container.ranges().ranges.len(), 5);
    assert_eq!(count(&shell, rawdoc! { "a.b": 1 }).await, 1);
    assert_verified(&shell).await;
}

#[tokio::test]
async fn ids_are_unique_for_each_value_of_the_shard_key() {
    let shell = sharded().await;
    let insert = |id: i32, k: bson::RawBson| rawdoc! { "insert": "c", "documents": [{ "_id": id, "k": k }] };
    assert_eq!(statement_code(&shell, insert(1, 1.into())).await, 0);
    assert_eq!(statement_code(&shell, insert(1, 2.into())).await, 0);
    assert_eq!(statement_code(&shell, insert(1, bson::RawBson::Null)).await, 0);
    for same in [bson::RawBson::Int64(1), bson::RawBson::Double(1.0)] {
        assert_eq!(statement_code(&shell, insert(1, same)).await, 11000);
    }
    assert_eq!(
        statement_code(&shell, rawdoc! { "insert": "c", "documents": [{ "_id": 2 }] }).await,
        61
    );
    let array = rawdoc! { "insert": "c", "documents": [{ "_id": 2, "k": [1] }] };
    assert_eq!(statement_code(&shell, array).await, 2);
    assert_eq!(count(&shell, rawdoc! { "_id": 1 }).await, 3);
    assert_eq!(count(&shell, rawdoc! { "_id": 1, "k": 1.0 }).await, 1);
    assert_eq!(count(&shell, rawdoc! { "_id": 1, "k": bson::RawBson::Null }).await, 1);
    assert_eq!(count(&shell, rawdoc! { "_id": 1, "k": 3 }).await, 0);
    assert_verified(&shell).await;
}

#[tokio::test]
async fn writes_keep_documents_at_their_places() {
    let shell = sharded().await;
    for n in 0..6 {
        shell.insert("c", &[rawdoc! { "_id": n, "k": n % 3, "v": 0 }]).await;
    }
    split(&shell, 2).await;
    let set = |value: i32| rawdoc! { "$set": { "v": value } };
    // With the shard key, without it, and many at once.
    let reply = shell.ok(update(rawdoc! { "k": 1, "_id": 4 }, set(1))).await;
    assert_eq!(only(&reply, &["n", "nModified"]), rawdoc! { "n": 1, "nModified": 1 });
    shell.ok(update(rawdoc! { "_id": 5 }, set(2))).await;
    let many = rawdoc! { "update": "c", "updates": [{ "q": { "v": 0 }, "u": { "$inc": { "v": 3 } }, "multi": true }] };
    assert_eq!(shell.ok(many).await.get_i32("n").expect("a number"), 4);
    let values: Vec<i32> = found(&shell, rawdoc! {})
        .await
        .iter()
        .map(|d| d.get_i32("v").expect("a value"))
        .collect();
    assert_eq!(values, [3, 3, 3, 3, 1, 2]);
    // The shard key does not change.
    for forbidden in [
        rawdoc! { "$set": { "k": 9 } },
        rawdoc! { "$unset": { "k": 1 } },
        rawdoc! { "x": 1 },
    ] {
        let refused = statement_code(&shell, update(rawdoc! { "_id": 4, "k": 1 }, forbidden.clone())).await;
        assert_eq!(refused, 66, "{forbidden:?}");
    }
    assert_eq!(
        statement_code(
            &shell,
            update(rawdoc! { "_id": 4, "k": 1 }, rawdoc! { "$set": { "k": 1.0 } })
        )
        .await,
        0
    );
    // An upsert has one place.
    let upsert = |q: RawDocumentBuf, u: RawDocumentBuf| rawdoc! { "update": "c", "updates": [{ "q": q, "u": u, "upsert": true }] };
    assert_eq!(statement_code(&shell, upsert(rawdoc! { "_id": 7 }, set(1))).await, 61);
    assert_eq!(
        statement_code(&shell, upsert(rawdoc! { "_id": 7, "k": 7 }, set(1))).await,
        0
    );
    assert_eq!(
        statement_code(
            &shell,
            upsert(rawdoc! { "_id": 8, "k": 8 }, rawdoc! { "_id": 8, "k": 9 })
        )
        .await,
        66
    );
    let modify = rawdoc! { "findAndModify": "c", "query": { "k": 2 }, "sort": { "_id": -1 }, "remove": true };
    let removed = shell.ok(modify).await;
    assert_eq!(
        removed
            .get_document("value")
            .expect("a document")
            .get_i32("_id")
            .expect("an _id"),
        5
    );
    let delete = rawdoc! { "delete": "c", "deletes": [{ "q": { "_id": { "$lt": 3 } }, "limit": 0 }] };
    assert_eq!(shell.ok(delete).await.get_i32("n").expect("a number"), 3);
    assert_eq!(count(&shell, rawdoc! {}).await, 3);
    assert_verified(&shell).await;
}

#[tokio::test]
async fn unique_indexes_begin_with_the_shard_key() {
    let shell = sharded().await;
    let create = |key: RawDocumentBuf| rawdoc! { "createIndexes": "c", "indexes": [{ "key": key, "name": "u", "unique": true }] };
    assert_eq!(shell.code(create(rawdoc! { "v": 1 })).await, 67);
    assert_eq!(shell.code(create(rawdoc! { "v": 1, "k": 1 })).await, 67);
    for n in 0..20 {
        shell.insert("c", &[rawdoc! { "_id": n, "k": n, "v": 1 }]).await;
    }
    split(&shell, 1).await;
    // It is built over all ranges.
    shell.ok(create(rawdoc! { "k": 1, "v": 1 })).await;
    for n in 0..20 {
        let insert = rawdoc! { "insert": "c", "documents": [{ "_id": 100, "k": n, "v": 1 }] };
        assert_eq!(statement_code(&shell, insert).await, 11000);
    }
    assert_verified(&shell).await;
    split(&shell, 1).await;
    assert_verified(&shell).await;
}

#[tokio::test]
async fn transactions_and_snapshots_are_refused() {
    let shell = sharded().await;
    shell.insert("c", &[rawdoc! { "_id": 1, "k": 1 }]).await;
    for with_unsharded in [false, true] {
        if with_unsharded {
            shell.ok(rawdoc! { "create": "unsharded" }).await;
        }
        let commands = [
            rawdoc! { "find": "c" },
            rawdoc! { "insert": "c", "documents": [{ "_id": 2, "k": 1 }] },
            update(rawdoc! { "_id": 1, "k": 1 }, rawdoc! { "$set": { "v": 1 } }),
            rawdoc! { "delete": "c", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }] },
            rawdoc! { "aggregate": "c", "pipeline": [], "cursor": {} },
        ];
        for (at, command) in (1_i64..).zip(commands) {
            let mut command = retryable(command, at + 10 * i64::from(with_unsharded));
            command.append(cstr!("startTransaction"), true);
            command.append(cstr!("autocommit"), false);
            assert_eq!(shell.code(command.clone()).await, 263, "{command:?}");
        }
        let snapshot = rawdoc! { "find": "c", "readConcern": { "level": "snapshot" } };
        assert_eq!(shell.code(snapshot).await, 263);
    }
    assert_eq!(count(&shell, rawdoc! {}).await, 1);
}

#[tokio::test]
async fn a_retryable_write_is_found_again_after_a_split() {
    let shell = sharded().await;
    for n in 0..40 {
        shell.insert("c", &[rawdoc! { "_id": n, "k": n, "v": 0 }]).await;
    }
    let mut documents = RawArrayBuf::new();
    for n in 100..110 {
        documents.push(rawdoc! { "_id": n, "k": n });
    }
    let insert = || retryable(rawdoc! { "insert": "c", "documents": documents.clone() }, 1);
    let increment = |n: i32| update(rawdoc! { "_id": n, "k": n }, rawdoc! { "$inc": { "v": 1 } });
    let modify = || {
        let command =
            rawdoc! { "findAndModify": "c", "query": { "k": 7 }, "update": { "$inc": { "v": 1 } }, "new": true };
        retryable(command, 50)
    };
    assert_eq!(shell.ok(insert()).await.get_i32("n").expect("a number"), 10);
    for n in 0..40 {
        shell.ok(retryable(increment(n), i64::from(n) + 2)).await;
    }
    let modified = shell.ok(modify()).await;
    split(&shell, 3).await;
    let again = shell.ok(modify()).await;
    assert_eq!(only(&again, &["value"]), only(&modified, &["value"]));
    assert_eq!(count(&shell, rawdoc! { "v": 1 }).await, 39);
    assert_eq!(count(&shell, rawdoc! { "v": 2 }).await, 1);
    // Without the shard key nobody could say where the first attempt was recorded.
    let blind = retryable(update(rawdoc! { "_id": 1 }, rawdoc! { "$inc": { "v": 1 } }), 51);
    assert_eq!(statement_code(&shell, blind).await, 61);
    assert_verified(&shell).await;
}

#[tokio::test]
async fn an_insert_is_not_repeated_by_a_retry_after_a_split() {
    let shell = sharded().await;
    let mut documents = RawArrayBuf::new();
    for n in 0..10 {
        documents.push(rawdoc! { "_id": n, "k": n });
    }
    let insert = || retryable(rawdoc! { "insert": "c", "documents": documents.clone() }, 1);
    shell.ok(insert()).await;
    split(&shell, 2).await;
    let retried = shell.ok(insert()).await;
    assert_eq!(retried.get_i32("n").expect("a number"), 10);
    assert!(retried.get_array("writeErrors").is_err(), "{retried:?}");
    assert_eq!(count(&shell, rawdoc! {}).await, 10);
}

/// All answers about a collection at one time.
async fn answers(shell: &Shell) -> Vec<RawDocumentBuf> {
    let mut answers = found(shell, rawdoc! {}).await;
    for k in 0..7 {
        answers.extend(found(shell, rawdoc! { "k": k }).await);
        answers.extend(found(shell, rawdoc! { "k": k, "_id": k + 7 }).await);
    }
    answers.push(rawdoc! { "n": count(shell, rawdoc! {}).await });
    let group = rawdoc! { "$group": { "_id": "$k", "n": { "$sum": 1 } } };
    let pipeline = rawdoc! { "aggregate": "c", "pipeline": [group, { "$sort": { "_id": 1 } }], "cursor": {} };
    answers.extend(shell.first_batch(pipeline).await);
    answers
}

fn ends(events: &[RawDocumentBuf]) -> Vec<RawDocumentBuf> {
    let mut keys: Vec<RawDocumentBuf> = events
        .iter()
        .map(|event| only(event, &["operationType", "documentKey"]))
        .collect();
    keys.sort_by_key(|key| format!("{key:?}"));
    keys
}

/// Reads all events behind a token.
async fn events(shell: &Shell, token: &RawDocument) -> Vec<RawDocumentBuf> {
    let stream = rawdoc! { "$changeStream": { "resumeAfter": token.to_owned() } };
    shell
        .first_batch(rawdoc! { "aggregate": "c", "pipeline": [stream], "cursor": { "batchSize": 1000 } })
        .await
}

async fn token(shell: &Shell) -> RawDocumentBuf {
    let command = rawdoc! { "aggregate": "c", "pipeline": [{ "$changeStream": {} }], "cursor": {} };
    let reply = shell.ok(command).await;
    let cursor = reply.get_document("cursor").expect("a cursor");
    cursor.get_document("postBatchResumeToken").expect("a token").to_owned()
}

#[tokio::test]
async fn splits_change_no_answer_before_or_after_deadlines() {
    let (split_often, never_split) = (sharded().await, sharded().await);
    let shells = [&split_often, &never_split];
    let mut tokens = Vec::new();
    for shell in shells {
        let index = rawdoc! { "key": { "at": 1 }, "name": "at", "expireAfterSeconds": 10 };
        shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
        tokens.push(token(shell).await);
        for n in 0..70 {
            let at = bson::DateTime::from_millis(shell.now() + 1_000 * i64::from(n % 5));
            shell.insert("c", &[rawdoc! { "_id": n, "k": n % 7, "at": at }]).await;
        }
        shell
            .ok(update(rawdoc! { "_id": 3 }, rawdoc! { "$unset": { "at": 1 } }))
            .await;
        shell
            .ok(rawdoc! { "delete": "c", "deletes": [{ "q": { "_id": 4 }, "limit": 1 }] })
            .await;
    }
    split(&split_often, 2).await;
    // Exactly at a deadline, between, and behind all of them; with ghosts that a purge has removed and that it has not.
    for (at, step) in [0, 9_999, 1, 2_000, 5_000].into_iter().enumerate() {
        shells.iter().for_each(|shell| shell.advance(step));
        assert_eq!(answers(&split_often).await, answers(&never_split).await, "step {at}");
        let [one, other] = [
            events(&split_often, &tokens[0]).await,
            events(&never_split, &tokens[1]).await,
        ];
        assert_eq!(ends(&one), ends(&other), "step {at}");
        if at == 1 || at == 3 {
            split(&split_often, 1).await;
        }
        if at == 2 {
            for shell in shells {
                let container = shell.state.account.find_collection("db", "c").expect("the collection");
                let purged = shell.state.account.purge(&container, PurgeMode::Force, None).await;
                assert_eq!(purged.expect("a purge"), 14);
            }
        }
        assert_verified(&split_often).await;
        assert_eq!(answers(&split_often).await, answers(&never_split).await, "step {at}");
    }
    let all = events(&split_often, &tokens[0]).await;
    let count_of = |kind: &str| {
        all.iter()
            .filter(|event| event.get_str("operationType").ok() == Some(kind))
            .count()
    };
    assert_eq!(
        [count_of("insert"), count_of("update"), count_of("delete")],
        [70, 1, 69]
    );
    let first = all
        .first()
        .expect("an event")
        .get_document("documentKey")
        .expect("a key")
        .to_owned();
    assert_eq!(first, rawdoc! { "k": 0, "_id": 0 });
}

#[tokio::test]
async fn an_open_stream_and_an_open_cursor_go_on_over_a_split() {
    let shell = sharded().await;
    let mut expected = Vec::new();
    for n in 0..300 {
        shell.insert("c", &[rawdoc! { "_id": n, "k": n }]).await;
        expected.push(n);
    }
    let stream = shell
        .ok(rawdoc! { "aggregate": "c", "pipeline": [{ "$changeStream": {} }], "cursor": {} })
        .await;
    let stream = stream
        .get_document("cursor")
        .expect("a cursor")
        .get_i64("id")
        .expect("an id");
    let reply = shell.ok(rawdoc! { "find": "c", "batchSize": 50 }).await;
    let cursor = reply.get_document("cursor").expect("a cursor");
    let (id, mut ids) = (cursor.get_i64("id").expect("an id"), ids(cursor, "firstBatch"));
    split(&shell, 3).await;
    for n in 300..320 {
        shell.insert("c", &[rawdoc! { "_id": n, "k": n }]).await;
    }
    let told = shell
        .ok(rawdoc! { "getMore": stream, "collection": "c", "batchSize": 1000 })
        .await;
    let told = told
        .get_document("cursor")
        .expect("a cursor")
        .get_array("nextBatch")
        .expect("a batch");
    assert_eq!(told.into_iter().count(), 20);
    let reply = shell
        .ok(rawdoc! { "getMore": id, "collection": "c", "batchSize": 1000 })
        .await;
    ids.extend(self::ids(reply.get_document("cursor").expect("a cursor"), "nextBatch"));
    ids.retain(|id| *id < 300);
    ids.sort_unstable();
    assert_eq!(ids, expected);
}

fn ids(cursor: &RawDocument, batch: &str) -> Vec<i32> {
    let batch = cursor.get_array(batch).expect("a batch");
    let id = |document: bson::RawBsonRef<'_>| {
        document
            .as_document()
            .expect("a document")
            .get_i32("_id")
            .expect("an _id")
    };
    batch.into_iter().map(|document| id(document.expect("valid"))).collect()
}

#[tokio::test]
async fn merge_finds_documents_by_their_shard_key_and_out_is_refused() {
    let shell = sharded().await;
    shell
        .insert(
            "c",
            &[
                rawdoc! { "_id": 1, "k": 1, "v": 1 },
                rawdoc! { "_id": 1, "k": 2, "v": 1 },
            ],
        )
        .await;
    shell
        .insert(
            "from",
            &[
                rawdoc! { "_id": 1, "k": 2, "v": 5 },
                rawdoc! { "_id": 3, "k": 3, "v": 5 },
            ],
        )
        .await;
    let aggregate = |stage: RawDocumentBuf| rawdoc! { "aggregate": "from", "pipeline": [stage], "cursor": {} };
    shell.ok(aggregate(rawdoc! { "$merge": "c" })).await;
    let all = found(&shell, rawdoc! {}).await;
    let expected = [
        rawdoc! { "_id": 1, "k": 1, "v": 1 },
        rawdoc! { "_id": 1, "k": 2, "v": 5 },
        rawdoc! { "_id": 3, "k": 3, "v": 5 },
    ];
    assert_eq!(all, expected);
    assert_eq!(shell.code(aggregate(rawdoc! { "$out": "c" })).await, 28769);
}

#[tokio::test]
async fn a_stream_tells_each_insert_once_while_ranges_are_split() {
    const DOCUMENTS: i32 = 400;
    let shell = sharded().await;
    let token = token(&shell).await;
    let writes = async {
        for n in 0..DOCUMENTS {
            shell.insert("c", &[rawdoc! { "_id": n, "k": n % 50 }]).await;
        }
    };
    let splits = async {
        for _ in 0..6 {
            split(&shell, 1).await;
        }
    };
    let reads = async {
        let stream = rawdoc! { "$changeStream": { "resumeAfter": token.clone() } };
        let command = rawdoc! { "aggregate": "c", "pipeline": [stream], "cursor": { "batchSize": 3 } };
        let reply = shell.ok(command).await;
        let cursor = reply.get_document("cursor").expect("a cursor");
        let (id, mut told) = (cursor.get_i64("id").expect("an id"), keys(cursor, "firstBatch"));
        while told.len() < usize::try_from(DOCUMENTS).expect("small") {
            let more = rawdoc! { "getMore": id, "collection": "c", "batchSize": 7, "maxTimeMS": 1 };
            told.extend(keys(
                shell.ok(more).await.get_document("cursor").expect("a cursor"),
                "nextBatch",
            ));
            tokio::task::yield_now().await;
        }
        told
    };
    let ((), (), told) = tokio::join!(writes, splits, reads);
    assert_eq!(told, (0..DOCUMENTS).collect::<Vec<_>>());
    let again: Vec<i32> = events(&shell, &token).await.iter().map(|event| id_of(event)).collect();
    assert_eq!(again, told);
    assert_eq!(count(&shell, rawdoc! {}).await, DOCUMENTS);
    assert_verified(&shell).await;
}

fn id_of(event: &RawDocument) -> i32 {
    let key = event.get_document("documentKey").expect("a key");
    key.get_i32("_id").expect("an _id")
}

fn keys(cursor: &RawDocument, batch: &str) -> Vec<i32> {
    let batch = cursor.get_array(batch).expect("a batch");
    let events = batch.into_iter().map(|event| event.expect("valid"));
    events
        .map(|event| id_of(event.as_document().expect("a document")))
        .collect()
}

/// A command whose reply does not depend on where documents are: it names them by `_id`, by the shard key, or all of them.
fn random_command(random: &mut fastrand::Rng, now: i64) -> RawDocumentBuf {
    let id = random.i32(0..24);
    let (k, at) = (id % 5, bson::DateTime::from_millis(now - 10_000 + random.i64(0..8_000)));
    let one = match random.bool() {
        true => rawdoc! { "_id": id, "k": k },
        false => rawdoc! { "_id": id },
    };
    let changes = match random.u8(..4) {
        0 => rawdoc! { "$set": { "at": at } },
        1 => rawdoc! { "$unset": { "at": 1 } },
        2 => rawdoc! { "$set": { "u": random.i32(0..6) } },
        _ => rawdoc! { "$inc": { "v": 1 } },
    };
    match random.u8(..12) {
        0..3 => rawdoc! { "insert": "c", "documents": [{ "_id": id, "k": k, "u": id, "v": 0, "at": at }] },
        3 => {
            let mut documents = RawArrayBuf::new();
            for _ in 0..random.u8(1..6) {
                let id = random.i32(0..24);
                documents.push(rawdoc! { "_id": id, "k": id % 5, "u": 100 + id, "v": 0 });
            }
            rawdoc! { "insert": "c", "documents": documents, "ordered": random.bool() }
        }
        4..6 => update(one, changes),
        6 => rawdoc! { "update": "c", "updates": [{ "q": { "k": k }, "u": { "$inc": { "v": 1 } }, "multi": true }] },
        7 => {
            rawdoc! { "update": "c", "updates": [{ "q": { "v": { "$gt": 1 } }, "u": { "$set": { "v": 0 } }, "multi": true }] }
        }
        8 => rawdoc! { "update": "c", "updates": [{ "q": { "_id": id, "k": k }, "u": changes, "upsert": true }] },
        9 => rawdoc! { "findAndModify": "c", "query": one, "update": changes, "new": random.bool() },
        10 => rawdoc! { "findAndModify": "c", "query": { "k": k }, "sort": { "v": -1, "_id": 1 }, "remove": true },
        _ => rawdoc! { "delete": "c", "deletes": [{ "q": one, "limit": random.i32(0..2) }] },
    }
}

/// `_id` determines the shard key here, and the unique index begins with it, so an unsharded collection must answer everything alike.
#[tokio::test]
async fn a_sharded_collection_answers_like_an_unsharded_one() {
    for seed in 0..25 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (one, other) = (sharded().await, Shell::new().await);
        for shell in [&one, &other] {
            let unique = rawdoc! { "key": { "k": 1, "u": 1 }, "name": "u", "unique": true };
            let ends = rawdoc! { "key": { "at": 1 }, "name": "at", "expireAfterSeconds": 10 };
            shell
                .ok(rawdoc! { "createIndexes": "c", "indexes": [unique, ends] })
                .await;
        }
        for step in 0..120 {
            match random.u8(..20) {
                0 if step % 3 == 0 => split(&one, 1).await,
                1..4 => {
                    let ms = random.i64(1..3_000);
                    [&one, &other].iter().for_each(|shell| shell.advance(ms));
                }
                4 => {
                    let container = one.state.account.find_collection("db", "c").expect("the collection");
                    one.state
                        .account
                        .purge(&container, PurgeMode::Force, None)
                        .await
                        .expect("a purge");
                }
                _ => {
                    let command = random_command(&mut random, one.now());
                    let (reply, expected) = (one.run(command.clone()).await, other.run(command.clone()).await);
                    let [reply, expected] =
                        [reply, expected].map(|reply| without(&reply, &["$clusterTime", "operationTime"]));
                    assert_eq!(reply, expected, "seed {seed}, step {step}: {command:?}");
                }
            }
            if step % 10 == 0 {
                let (all, expected) = (found(&one, rawdoc! {}).await, found(&other, rawdoc! {}).await);
                assert_eq!(all, expected, "seed {seed}, step {step}");
            }
        }
        assert_verified(&one).await;
    }
}

#[tokio::test]
async fn a_stream_that_is_behind_sees_what_happened_in_all_ranges_before_a_drop() {
    let shell = sharded().await;
    let token = token(&shell).await;
    for n in 0..10 {
        shell.insert("c", &[rawdoc! { "_id": n, "k": n }]).await;
    }
    split(&shell, 2).await;
    shell.ok(rawdoc! { "drop": "c" }).await;
    let told = events(&shell, &token).await;
    let kinds: Vec<&str> = told
        .iter()
        .map(|event| event.get_str("operationType").expect("a kind"))
        .collect();
    assert_eq!(kinds[..10], ["insert"; 10]);
    assert_eq!(kinds[10..], ["drop", "invalidate"]);
    let keys: Vec<RawDocumentBuf> = told[..10].iter().map(|event| only(event, &["documentKey"])).collect();
    let expected: Vec<RawDocumentBuf> = (0..10)
        .map(|n| rawdoc! { "documentKey": { "k": n, "_id": n } })
        .collect();
    assert_eq!(keys, expected);
}

#[tokio::test]
async fn who_shards_needs_rights_on_the_database_of_the_collection() {
    let state = fixture::state(fixture::options()).await;
    let administrator = fixture::authenticated(&state, KEY);
    for (name, database) in [("ada", "admin"), ("bob", "db")] {
        let create = rawdoc! {
            "createUser": name, "pwd": "secret", "roles": [{ "role": "dbAdmin", "db": database }], "$db": "db",
        };
        assert_eq!(fixture::code(&state, &administrator, create).await, 0);
    }
    let (ada, bob) = (fixture::client(), fixture::client());
    assert_eq!(log_in(&state, &ada, "db", "ada", "secret").await, 0);
    assert_eq!(log_in(&state, &bob, "db", "bob", "secret").await, 0);
    let shard = |on: &str| rawdoc! { "shardCollection": "db.c", "key": { "k": "hashed" }, "$db": on };
    assert_eq!(fixture::code(&state, &ada, shard("admin")).await, 13);
    assert_eq!(fixture::code(&state, &ada, shard("db")).await, 13);
    assert_eq!(fixture::code(&state, &bob, shard("admin")).await, 13);
    assert_eq!(fixture::code(&state, &bob, shard("db")).await, 0);
    assert_eq!(fixture::code(&state, &administrator, shard("admin")).await, 0);
}
