use bolide_core::PurgeMode;
use bson::raw::{RawBsonRef, cstr};
use bson::{RawArrayBuf, RawDocument, RawDocumentBuf, Timestamp, rawdoc};

use crate::commands::fixture::{NOW, Shell, code_of, without};

/// The second in which the clock of the tests starts, in milliseconds.
const SECOND: i64 = NOW.0 - NOW.0 % 1000;

/// A stream whose events are read from its beginning, again and again.
struct Stream {
    /// The collection, or 1 for the database.
    of: bson::RawBson,
    database: &'static str,
    options: RawDocumentBuf,
    begin: RawDocumentBuf,
}

impl Stream {
    /// Opens a stream that begins now.
    async fn open(
        shell: &Shell,
        of: impl Into<bson::RawBson>,
        database: &'static str,
        options: RawDocumentBuf,
    ) -> Stream {
        let mut stream = Stream {
            of: of.into(),
            database,
            options,
            begin: RawDocumentBuf::new(),
        };
        let reply = shell.ok(stream.command(RawDocumentBuf::new())).await;
        let cursor = reply.get_document("cursor").expect("a cursor");
        let token = cursor.get_document("postBatchResumeToken").expect("a token");
        stream.begin = token.to_owned();
        stream
    }

    async fn of_collection(shell: &Shell, name: &str) -> Stream {
        Stream::open(shell, name, "db", RawDocumentBuf::new()).await
    }

    async fn of_database(shell: &Shell) -> Stream {
        Stream::open(shell, 1, "db", RawDocumentBuf::new()).await
    }

    fn command(&self, start: RawDocumentBuf) -> RawDocumentBuf {
        let mut specification = self.options.clone();
        for (name, value) in start.iter().flatten() {
            specification.append(name, value);
        }
        rawdoc! {
            "aggregate": self.of.clone(),
            "pipeline": [{ "$changeStream": specification }],
            "cursor": { "batchSize": 1000 },
            "$db": self.database,
        }
    }

    /// All events until now.
    async fn events(&self, shell: &Shell) -> Vec<RawDocumentBuf> {
        self.events_after(shell, &self.begin).await
    }

    async fn events_after(&self, shell: &Shell, token: &RawDocument) -> Vec<RawDocumentBuf> {
        let start = rawdoc! { "resumeAfter": token.to_owned() };
        shell.first_batch(self.command(start)).await
    }
}

fn types(events: &[RawDocumentBuf]) -> Vec<&str> {
    let name = |event: &'_ RawDocumentBuf| event.get_str("operationType").expect("a type").to_owned();
    events
        .iter()
        .map(|event| match name(event).as_str() {
            "insert" => "insert",
            "update" => "update",
            "replace" => "replace",
            "delete" => "delete",
            "drop" => "drop",
            "rename" => "rename",
            "dropDatabase" => "dropDatabase",
            "invalidate" => "invalidate",
            _ => "other",
        })
        .collect()
}

fn token(event: &RawDocument) -> RawDocumentBuf {
    event.get_document("_id").expect("a token").to_owned()
}

fn wall_time(event: &RawDocument) -> i64 {
    event.get_datetime("wallTime").expect("a time").timestamp_millis()
}

fn key(event: &RawDocument) -> i32 {
    let key = event.get_document("documentKey").expect("a key");
    key.get_i32("_id").expect("a number")
}

async fn update(shell: &Shell, collection: &str, id: i32, update: RawDocumentBuf) {
    let statement = rawdoc! { "q": { "_id": id }, "u": update };
    shell.ok(rawdoc! { "update": collection, "updates": [statement] }).await;
}

async fn delete(shell: &Shell, collection: &str, id: i32) {
    let statement = rawdoc! { "q": { "_id": id }, "limit": 1 };
    shell.ok(rawdoc! { "delete": collection, "deletes": [statement] }).await;
}

async fn create_ttl_index(shell: &Shell, collection: &str, field: &str, seconds: i32) {
    let mut pattern = RawDocumentBuf::new();
    pattern.append(bson::raw::CString::try_from(field.to_owned()).expect("a name"), 1);
    let index = rawdoc! { "key": pattern, "name": "ttl", "expireAfterSeconds": seconds };
    shell
        .ok(rawdoc! { "createIndexes": collection, "indexes": [index] })
        .await;
}

async fn purge(shell: &Shell, collection: &str) {
    let account = &shell.state.account;
    let container = account.find_collection("db", collection).expect("it exists");
    account
        .purge(&container, PurgeMode::Force, None)
        .await
        .expect("a purge");
}

#[tokio::test]
async fn events_tell_what_happened_to_documents() {
    let shell = Shell::new().await;
    let stream = Stream::of_collection(&shell, "c").await;
    shell.insert("c", &[rawdoc! { "_id": 1, "a": 1, "l": [1, 2, 3] }]).await;
    update(&shell, "c", 1, rawdoc! { "$set": { "a": 2, "d.e": 3 } }).await;
    update(&shell, "c", 1, rawdoc! { "$unset": { "a": 1 } }).await;
    update(&shell, "c", 1, rawdoc! { "$set": { "d.e": 3 } }).await;
    update(&shell, "c", 1, rawdoc! { "b": 1 }).await;
    delete(&shell, "c", 1).await;
    shell.insert("other", &[rawdoc! { "_id": 2 }]).await;

    let events = stream.events(&shell).await;
    assert_eq!(types(&events), ["insert", "update", "update", "replace", "delete"]);
    let rest = |event: &RawDocument| without(event, &["_id", "clusterTime", "operationType"]);
    let wall_time = bson::DateTime::from_millis(NOW.0);
    let expected = [
        rawdoc! {
            "wallTime": wall_time, "fullDocument": { "_id": 1, "a": 1, "l": [1, 2, 3] },
            "ns": { "db": "db", "coll": "c" }, "documentKey": { "_id": 1 },
        },
        rawdoc! {
            "wallTime": wall_time, "ns": { "db": "db", "coll": "c" }, "documentKey": { "_id": 1 },
            "updateDescription": {
                "updatedFields": { "a": 2, "d": { "e": 3 } }, "removedFields": [], "truncatedArrays": [],
            },
        },
        rawdoc! {
            "wallTime": wall_time, "ns": { "db": "db", "coll": "c" }, "documentKey": { "_id": 1 },
            "updateDescription": { "updatedFields": {}, "removedFields": ["a"], "truncatedArrays": [] },
        },
        rawdoc! {
            "wallTime": wall_time, "fullDocument": { "_id": 1, "b": 1 },
            "ns": { "db": "db", "coll": "c" }, "documentKey": { "_id": 1 },
        },
        rawdoc! { "wallTime": wall_time, "ns": { "db": "db", "coll": "c" }, "documentKey": { "_id": 1 } },
    ];
    for (event, expected) in events.iter().zip(expected) {
        assert_eq!(rest(event), expected);
    }
}

#[tokio::test]
async fn a_stream_goes_on_after_any_event() {
    let shell = Shell::new().await;
    let stream = Stream::of_database(&shell).await;
    for id in 0..5 {
        shell
            .insert("c", &[rawdoc! { "_id": id }, rawdoc! { "_id": id + 100 }])
            .await;
        shell.insert("d", &[rawdoc! { "_id": id }]).await;
    }
    let events = stream.events(&shell).await;
    assert_eq!(events.len(), 15);
    let mut data: Vec<String> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        assert_eq!(
            stream.events_after(&shell, &token(event)).await,
            events[at + 1..],
            "{at}"
        );
        data.push(token(event).get_str("_data").expect("a string").to_owned());
    }
    assert!(data.is_sorted(), "{data:?}");
    let time = events[6].get_timestamp("clusterTime").expect("a time");
    let from = events
        .iter()
        .position(|event| event.get_timestamp("clusterTime").ok() == Some(time));
    let start = rawdoc! { "startAtOperationTime": time };
    let since = shell.first_batch(stream.command(start)).await;
    assert_eq!(since, events[from.expect("it is there")..]);
}

#[tokio::test]
async fn a_transaction_is_told_at_one_time_and_wholly() {
    let shell = Shell::new().await;
    for name in ["c", "d"] {
        shell.insert(name, &[rawdoc! { "_id": 0, "n": 1 }]).await;
    }
    let stream = Stream::of_database(&shell).await;
    let session = bson::Binary {
        subtype: bson::spec::BinarySubtype::Uuid,
        bytes: vec![7; 16],
    };
    let in_transaction = |mut command: RawDocumentBuf, starts: bool| {
        command.append(cstr!("lsid"), rawdoc! { "id": session.clone() });
        command.append(cstr!("txnNumber"), 1_i64);
        command.append(cstr!("autocommit"), false);
        if starts {
            command.append(cstr!("startTransaction"), true);
        }
        command
    };
    let insert = |name: &str, id: i32| rawdoc! { "insert": name, "documents": [{ "_id": id }] };
    let statement = |value: i32| rawdoc! { "q": { "_id": 0 }, "u": { "$set": { "n": value, "m": value } } };
    shell.ok(in_transaction(insert("c", 1), true)).await;
    shell.ok(in_transaction(insert("d", 2), false)).await;
    for value in [5, 6] {
        let update = rawdoc! { "update": "c", "updates": [statement(value)] };
        shell.ok(in_transaction(update, false)).await;
    }
    shell.insert("c", &[rawdoc! { "_id": 3 }]).await;
    assert_eq!(
        stream.events(&shell).await.len(),
        1,
        "nothing is told before the commit"
    );
    let commit = rawdoc! { "commitTransaction": 1, "$db": "admin" };
    shell.ok(in_transaction(commit, false)).await;

    let events = stream.events(&shell).await;
    assert_eq!(types(&events), ["insert", "update", "insert", "insert"]);
    let time = |event: &RawDocument| event.get_timestamp("clusterTime").expect("a time");
    assert!(events[1..].iter().all(|event| time(event) == time(&events[1])));
    let description = events[1].get_document("updateDescription").expect("a description");
    let fields = description.get_document("updatedFields").expect("fields");
    assert_eq!(*fields, *rawdoc! { "n": 6, "m": 6 });
}

#[tokio::test]
async fn streams_tell_what_happens_to_collections() {
    let shell = Shell::new().await;
    shell.insert("c", &[rawdoc! { "_id": 1 }]).await;
    let (stream, of_collection) = (
        Stream::of_database(&shell).await,
        Stream::of_collection(&shell, "c").await,
    );
    shell.insert("c", &[rawdoc! { "_id": 2 }]).await;
    shell
        .ok(rawdoc! { "renameCollection": "db.c", "to": "db.d", "$db": "admin" })
        .await;
    shell.insert("d", &[rawdoc! { "_id": 3 }]).await;
    shell.ok(rawdoc! { "drop": "d" }).await;
    shell.insert("c", &[rawdoc! { "_id": 4 }]).await;
    let events = stream.events(&shell).await;
    assert_eq!(types(&events), ["insert", "rename", "insert", "drop", "insert"]);
    let name = |event: &RawDocument| {
        event
            .get_document("ns")
            .and_then(|ns| ns.get_str("coll"))
            .map(str::to_owned)
    };
    let names: Vec<_> = events.iter().map(|event| name(event).expect("a name")).collect();
    assert_eq!(names, ["c", "c", "d", "d", "c"]);
    let to = events[1].get_document("to").expect("a name");
    assert_eq!(*to, *rawdoc! { "db": "db", "coll": "d" });

    let events = of_collection.events(&shell).await;
    assert_eq!(types(&events), ["insert", "rename", "invalidate"]);
    // Behind the rename there is only that the stream is invalid, and behind that what came later.
    let after = of_collection.events_after(&shell, &token(&events[1])).await;
    assert_eq!(types(&after), ["invalidate"]);
    let resumed = of_collection.command(rawdoc! { "resumeAfter": token(&events[2]) });
    assert_eq!(shell.code(resumed).await, 260);
    let start = rawdoc! { "startAfter": token(&events[2]) };
    let restarted = shell.first_batch(of_collection.command(start)).await;
    assert_eq!((types(&restarted), key(&restarted[0])), (vec!["insert"], 4));

    shell.ok(rawdoc! { "dropDatabase": 1 }).await;
    let events = stream.events(&shell).await;
    assert_eq!(types(&events)[5..], ["drop", "dropDatabase", "invalidate"]);
}

#[tokio::test]
async fn images_are_told_if_the_collection_keeps_them() {
    let shell = Shell::new().await;
    shell
        .ok(rawdoc! { "create": "c", "changeStreamPreAndPostImages": { "enabled": true } })
        .await;
    let options = rawdoc! { "fullDocument": "required", "fullDocumentBeforeChange": "required" };
    let stream = Stream::open(&shell, "c", "db", options).await;
    let wished = rawdoc! { "fullDocument": "whenAvailable", "fullDocumentBeforeChange": "whenAvailable" };
    let wishing = Stream::open(&shell, "c", "db", wished).await;
    shell.insert("c", &[rawdoc! { "_id": 1, "a": 1 }]).await;
    update(&shell, "c", 1, rawdoc! { "$set": { "a": 2 } }).await;
    delete(&shell, "c", 1).await;
    let events = stream.events(&shell).await;
    let image = |event: &RawDocument, name: &str| event.get_document(name).map(ToOwned::to_owned).ok();
    assert!(image(&events[0], "fullDocumentBeforeChange").is_none());
    assert_eq!(image(&events[1], "fullDocument"), Some(rawdoc! { "_id": 1, "a": 2 }));
    assert_eq!(
        image(&events[1], "fullDocumentBeforeChange"),
        Some(rawdoc! { "_id": 1, "a": 1 })
    );
    assert_eq!(
        image(&events[2], "fullDocumentBeforeChange"),
        Some(rawdoc! { "_id": 1, "a": 2 })
    );

    shell
        .ok(rawdoc! { "collMod": "c", "changeStreamPreAndPostImages": { "enabled": false } })
        .await;
    shell.insert("c", &[rawdoc! { "_id": 2 }]).await;
    delete(&shell, "c", 2).await;
    let events = wishing.events(&shell).await;
    let before = events[4].get("fullDocumentBeforeChange").expect("valid");
    assert_eq!(before, Some(RawBsonRef::Null));
    let again = stream.command(rawdoc! { "resumeAfter": stream.begin.clone() });
    assert_eq!(shell.code(again).await, 47);
}

#[tokio::test]
async fn a_wrong_specification_is_refused() {
    let shell = Shell::new().await;
    shell.insert("c", &[rawdoc! { "_id": 0 }]).await;
    let token = Stream::of_collection(&shell, "c").await.begin;
    let at = Timestamp { time: 1, increment: 1 };
    let two = rawdoc! { "resumeAfter": token.clone(), "startAtOperationTime": at };
    let both = rawdoc! { "resumeAfter": token.clone(), "startAfter": token.clone() };
    let cases = [
        (rawdoc! { "fullDocument": "all" }, 2),
        (rawdoc! { "fullDocumentBeforeChange": "default" }, 2),
        (rawdoc! { "unknown": 1 }, 40415),
        (rawdoc! { "resumeAfter": {} }, 260),
        (rawdoc! { "resumeAfter": { "_data": "01" } }, 260),
        (rawdoc! { "resumeAfter": 1 }, 14),
        (two, 40674),
        (both, 50865),
        (rawdoc! { "allChangesForCluster": true }, 72),
        (rawdoc! { "startAtOperationTime": at }, 286),
    ];
    shell.insert("c", &[rawdoc! { "_id": 1 }]).await;
    for (specification, code) in cases {
        let text = format!("{specification:?}");
        let stage = rawdoc! { "$changeStream": specification };
        let command = rawdoc! { "aggregate": "c", "pipeline": [stage], "cursor": {} };
        assert_eq!(shell.code(command).await, code, "{text}");
    }
    for (stage, code) in [
        (rawdoc! { "$count": "n" }, 20),
        (rawdoc! { "$group": { "_id": 1 } }, 20),
    ] {
        let command = rawdoc! { "aggregate": "c", "pipeline": [{ "$changeStream": {} }, stage], "cursor": {} };
        assert_eq!(shell.code(command).await, code);
    }
    for (database, collection) in [("admin", "c"), ("db", "system.views"), ("local", "c")] {
        let pipeline =
            rawdoc! { "aggregate": collection, "pipeline": [{ "$changeStream": {} }], "cursor": {}, "$db": database };
        assert_eq!(shell.code(pipeline).await, 73, "{database}.{collection}");
    }
}

#[tokio::test]
async fn an_event_without_its_token_ends_the_stream() {
    let shell = Shell::new().await;
    let begin = Stream::of_collection(&shell, "c").await.begin;
    shell.insert("c", &[rawdoc! { "_id": 1 }]).await;
    let mut pipeline = RawArrayBuf::new();
    pipeline.push(rawdoc! { "$changeStream": { "resumeAfter": begin } });
    pipeline.push(rawdoc! { "$project": { "_id": 0 } });
    let reply = shell
        .run(rawdoc! { "aggregate": "c", "pipeline": pipeline, "cursor": {} })
        .await;
    assert_eq!(code_of(&reply), 280);
    let labels = reply.get_array("errorLabels").expect("labels");
    let label = labels.get(0).expect("valid");
    assert_eq!(label, Some(RawBsonRef::String("NonResumableChangeStreamError")));
}

#[tokio::test]
async fn a_document_that_ends_is_deleted_at_its_end_whether_it_is_purged_or_not() {
    for is_purged in [false, true] {
        let shell = Shell::new().await;
        create_ttl_index(&shell, "c", "_ts", 10).await;
        let stream = Stream::of_collection(&shell, "c").await;
        shell
            .insert("c", &[rawdoc! { "_id": 1 }, rawdoc! { "_id": 2, "ttl": 20 }])
            .await;
        shell.advance(SECOND + 10_000 - 1 - NOW.0);
        assert_eq!(types(&stream.events(&shell).await), ["insert", "insert"]);
        shell.advance(1);
        if is_purged {
            purge(&shell, "c").await;
        }
        let events = stream.events(&shell).await;
        assert_eq!(types(&events), ["insert", "insert", "delete"]);
        assert_eq!((key(&events[2]), wall_time(&events[2])), (1, SECOND + 10_000));
        // Nobody looks for a while, and the purge is late.
        shell.advance(100_000);
        purge(&shell, "c").await;
        let events = stream.events(&shell).await;
        assert_eq!(types(&events), ["insert", "insert", "delete", "delete"]);
        assert_eq!((key(&events[3]), wall_time(&events[3])), (2, SECOND + 20_000));
        assert_eq!(events, stream.events(&shell).await);
    }
}

#[tokio::test]
async fn a_document_over_one_that_has_ended_comes_after_its_end() {
    for is_purged in [false, true] {
        let shell = Shell::new().await;
        create_ttl_index(&shell, "c", "_ts", 10).await;
        let stream = Stream::of_database(&shell).await;
        shell.insert("c", &[rawdoc! { "_id": 1 }]).await;
        shell.advance(15_000);
        shell.insert("d", &[rawdoc! { "_id": 2 }]).await;
        if is_purged {
            purge(&shell, "c").await;
        }
        shell.advance(5_000);
        shell.insert("c", &[rawdoc! { "_id": 1, "again": true }]).await;
        let events = stream.events(&shell).await;
        assert_eq!(types(&events), ["insert", "delete", "insert", "insert"]);
        let times: Vec<i64> = events.iter().map(|event| wall_time(event)).collect();
        assert_eq!(times, [NOW.0, SECOND + 10_000, NOW.0 + 15_000, NOW.0 + 20_000]);
    }
}

#[tokio::test]
async fn a_date_ends_a_document_to_the_millisecond_and_once() {
    let shell = Shell::new().await;
    create_ttl_index(&shell, "c", "at", 0).await;
    let stream = Stream::of_collection(&shell, "c").await;
    let at = |millis: i64| bson::DateTime::from_millis(NOW.0 + millis);
    shell
        .insert(
            "c",
            &[rawdoc! { "_id": 1, "at": at(500) }, rawdoc! { "_id": 2, "at": at(-1) }],
        )
        .await;
    let events = stream.events(&shell).await;
    assert_eq!(types(&events), ["insert", "insert", "delete"]);
    assert_eq!(key(&events[2]), 2);
    shell.advance(700);
    // Its date lies behind that of the first document, whose end was told.
    stream.events(&shell).await;
    shell.insert("c", &[rawdoc! { "_id": 3, "at": at(100) }]).await;
    shell.advance(700);
    purge(&shell, "c").await;
    let events = stream.events(&shell).await;
    assert_eq!(
        types(&events),
        ["insert", "insert", "delete", "delete", "insert", "delete"]
    );
    let ends: Vec<_> = events
        .iter()
        .map(|event| (key(event), wall_time(event) - NOW.0))
        .collect();
    assert_eq!(ends, [(1, 0), (2, 0), (2, 0), (1, 500), (3, 700), (3, 700)]);
}

#[tokio::test]
async fn a_change_of_the_rule_neither_hides_nor_repeats_an_end() {
    for is_purged in [false, true] {
        let shell = Shell::new().await;
        create_ttl_index(&shell, "c", "_ts", 10).await;
        let stream = Stream::of_collection(&shell, "c").await;
        shell.insert("c", &[rawdoc! { "_id": 1 }]).await;
        shell.advance(12_000);
        shell.insert("c", &[rawdoc! { "_id": 2 }]).await;
        if is_purged {
            purge(&shell, "c").await;
        }
        let modify =
            |seconds: i32| rawdoc! { "collMod": "c", "index": { "name": "ttl", "expireAfterSeconds": seconds } };
        shell.ok(modify(100)).await;
        shell.advance(20_000);
        shell.ok(modify(10)).await;
        let events = stream.events(&shell).await;
        assert_eq!(types(&events), ["insert", "delete", "insert", "delete"]);
        let ends: Vec<_> = events
            .iter()
            .map(|event| (key(event), wall_time(event) - SECOND))
            .collect();
        // The second one was there until the rule was changed back.
        assert_eq!((ends[1], ends[3]), ((1, 10_000), (2, 32_250)));
    }
}

#[tokio::test]
async fn ends_are_told_once_across_a_restart() {
    let shell = Shell::new().await;
    create_ttl_index(&shell, "c", "_ts", 10).await;
    let stream = Stream::of_collection(&shell, "c").await;
    shell.insert("c", &[rawdoc! { "_id": 1 }]).await;
    shell.advance(11_000);
    let before = stream.events(&shell).await;
    shell.insert("c", &[rawdoc! { "_id": 2 }]).await;
    let shell = shell.reopened().await;
    shell.advance(11_000);
    let events = stream.events(&shell).await;
    assert_eq!(types(&events), ["insert", "delete", "insert", "delete"]);
    assert_eq!(events[..2], before[..]);
    let after = stream.events_after(&shell, &token(&before[1])).await;
    assert_eq!(after, events[2..]);
}

#[tokio::test]
async fn a_stream_that_waits_is_woken_by_a_commit() {
    let shell = Shell::new().await;
    let open = rawdoc! { "aggregate": "c", "pipeline": [{ "$changeStream": {} }], "cursor": {} };
    let reply = shell.ok(open).await;
    let id = reply
        .get_document("cursor")
        .and_then(|cursor| cursor.get_i64("id"))
        .expect("a cursor");
    // The clock for timeouts stands still, so nothing but the commit ends the wait.
    let get_more = || rawdoc! { "getMore": id, "collection": "c", "maxTimeMS": 1_000_000 };
    let (reply, ()) = tokio::join!(shell.ok(get_more()), async {
        tokio::task::yield_now().await;
        shell.insert("c", &[rawdoc! { "_id": 1 }]).await;
    });
    let batch = reply
        .get_document("cursor")
        .and_then(|cursor| cursor.get_array("nextBatch"))
        .expect("a batch");
    assert_eq!(batch.into_iter().count(), 1);
    let (reply, killed) = tokio::join!(shell.run(get_more()), async {
        tokio::task::yield_now().await;
        shell.ok(rawdoc! { "killCursors": "c", "cursors": [id] }).await
    });
    assert_eq!(code_of(&reply), 237);
    let killed = killed.get_array("cursorsKilled").expect("ids");
    assert_eq!(killed.into_iter().count(), 1);
}

#[tokio::test]
async fn errors_of_a_waiting_stream_tell_whether_it_can_be_resumed() {
    let shell = Shell::new().await;
    let error = rawdoc! { "errorCode": 6 };
    let named = rawdoc! { "errorCode": 6, "failCommands": ["getMore"] };
    for (point, data, has_label) in [
        ("failGetMoreAfterCursorCheckout", error, true),
        ("failCommand", named, false),
    ] {
        let open = rawdoc! { "aggregate": "c", "pipeline": [{ "$changeStream": {} }], "cursor": {} };
        let reply = shell.ok(open).await;
        let id = reply
            .get_document("cursor")
            .and_then(|cursor| cursor.get_i64("id"))
            .expect("a cursor");
        let fail = rawdoc! { "configureFailPoint": point, "mode": { "times": 1 }, "data": data, "$db": "admin" };
        shell.ok(fail).await;
        let reply = shell.run(rawdoc! { "getMore": id, "collection": "c" }).await;
        assert_eq!(code_of(&reply), 6);
        let labels = reply
            .get_array("errorLabels")
            .map(|labels| labels.get(0).ok().flatten().is_some());
        assert_eq!(labels.unwrap_or(false), has_label, "{point}");
    }
}
