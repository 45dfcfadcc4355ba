//! Collections and indexes that transactions create.

use bson::raw::cstr;
use bson::{RawDocumentBuf, rawdoc};

use super::{is_transient_conflict, within};
use crate::commands::fixture::Shell;

async fn commit(shell: &Shell, session: u8) -> RawDocumentBuf {
    let commit = rawdoc! { "commitTransaction": 1, "$db": "admin" };
    shell.run(within(session, commit, false)).await
}

async fn abort(shell: &Shell, session: u8) {
    let abort = rawdoc! { "abortTransaction": 1, "$db": "admin" };
    shell.ok(within(session, abort, false)).await;
}

fn insert(collection: &str, id: i32) -> RawDocumentBuf {
    rawdoc! { "insert": collection, "documents": [{ "_id": id }] }
}

fn create_index(collection: &str, field: &str, is_unique: bool) -> RawDocumentBuf {
    let mut key = RawDocumentBuf::new();
    key.append(<&bson::raw::CStr>::try_from(field).expect("a name"), 1);
    let index = rawdoc! { "key": key, "name": field, "unique": is_unique };
    rawdoc! { "createIndexes": collection, "indexes": [index] }
}

async fn names(shell: &Shell) -> Vec<String> {
    let listed = shell.first_batch(rawdoc! { "listCollections": 1 }).await;
    let name = |collection: &RawDocumentBuf| collection.get_str("name").expect("a name").to_owned();
    let mut names: Vec<String> = listed.iter().map(name).collect();
    names.sort();
    names
}

async fn databases(shell: &Shell) -> usize {
    let listed = shell.ok(rawdoc! { "listDatabases": 1, "$db": "admin" }).await;
    listed.get_array("databases").expect("a list").into_iter().count()
}

async fn found(shell: &Shell, collection: &str) -> Vec<RawDocumentBuf> {
    shell.first_batch(rawdoc! { "find": collection }).await
}

async fn found_within(shell: &Shell, session: u8, collection: &str) -> usize {
    let find = within(session, rawdoc! { "find": collection }, false);
    shell.first_batch(find).await.len()
}

/// The commands that create `new`, with the number of documents that they insert.
fn creations() -> [(RawDocumentBuf, usize); 5] {
    let upsert = rawdoc! { "q": { "_id": 1 }, "u": { "$set": { "n": 1 } }, "upsert": true };
    [
        (rawdoc! { "create": "new" }, 0),
        (insert("new", 1), 1),
        (rawdoc! { "update": "new", "updates": [upsert] }, 1),
        (
            rawdoc! { "findAndModify": "new", "query": { "_id": 1 }, "update": { "n": 1 }, "upsert": true },
            1,
        ),
        (create_index("new", "a", false), 0),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_transaction_creates_is_seen_by_it_alone_until_it_commits() {
    for (command, documents) in creations() {
        for has_database in [true, false] {
            let mut shell = Shell::new().await;
            if has_database {
                shell.insert("old", &[rawdoc! { "_id": 1 }]).await;
            }
            let before = (names(&shell).await, databases(&shell).await);
            shell.ok(within(1, command.clone(), true)).await;
            assert_eq!(found_within(&shell, 1, "new").await, documents, "{command:?}");
            shell.ok(within(1, insert("new", 2), false)).await;
            assert_eq!(found_within(&shell, 1, "new").await, documents + 1, "{command:?}");
            assert_eq!((names(&shell).await, databases(&shell).await), before, "{command:?}");
            assert_eq!(found(&shell, "new").await.len(), 0, "{command:?}");

            shell
                .ok(within(1, rawdoc! { "commitTransaction": 1, "$db": "admin" }, false))
                .await;
            for is_restarted in [false, true] {
                if is_restarted {
                    shell.restart().await;
                }
                assert!(names(&shell).await.contains(&"new".to_owned()), "{command:?}");
                assert_eq!(found(&shell, "new").await.len(), documents + 1, "{command:?}");
            }
            shell.insert("new", &[rawdoc! { "_id": 3 }]).await;
            shell.insert("further", &[rawdoc! { "_id": 3 }]).await;
            assert_eq!(found(&shell, "new").await.len(), documents + 2, "{command:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_aborted_transaction_leaves_no_collection_and_no_database() {
    for (command, _) in creations() {
        let mut shell = Shell::new().await;
        shell.ok(within(1, command.clone(), true)).await;
        abort(&shell, 1).await;
        for is_restarted in [false, true] {
            if is_restarted {
                shell.restart().await;
            }
            assert_eq!(names(&shell).await.len(), 0, "{command:?}");
            assert_eq!(databases(&shell).await, 0, "{command:?}");
            assert_eq!(shell.state.account.list_databases().len(), 0, "{command:?}");
        }
        // Everything is free.
        shell.insert("new", &[rawdoc! { "_id": 1 }]).await;
        assert_eq!(found(&shell, "new").await.len(), 1, "{command:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_command_and_a_restart_leave_no_collection() {
    let mut shell = Shell::new().await;
    shell.ok(within(1, insert("new", 1), true)).await;
    assert_eq!(shell.code(within(1, rawdoc! { "create": "new" }, false)).await, 48);
    assert_eq!(names(&shell).await.len(), 0);
    shell.ok(within(2, insert("new", 1), true)).await;
    shell.restart().await;
    assert_eq!(names(&shell).await.len(), 0);
    let reply = commit(&shell, 2).await;
    assert_eq!(reply.get_i32("code").ok(), Some(251), "{reply:?}");
    assert_eq!(names(&shell).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_that_create_a_collection_the_second_is_a_write_conflict() {
    for has_database in [true, false] {
        for is_second_in_transaction in [true, false] {
            let shell = Shell::new().await;
            if has_database {
                shell.insert("old", &[rawdoc! { "_id": 1 }]).await;
            }
            shell.ok(within(1, insert("old", 2), true)).await;
            shell.ok(within(1, insert("new", 1), false)).await;
            match is_second_in_transaction {
                true => {
                    shell.ok(within(2, insert("new", 2), true)).await;
                    let reply = commit(&shell, 2).await;
                    assert_eq!(reply.get_f64("ok").ok(), Some(1.0), "{reply:?}");
                }
                false => shell.insert("new", &[rawdoc! { "_id": 2 }]).await,
            }
            assert_eq!(found_within(&shell, 1, "new").await, 1);
            let reply = commit(&shell, 1).await;
            assert!(is_transient_conflict(&reply), "{reply:?}");
            assert_eq!(found(&shell, "new").await, [rawdoc! { "_id": 2 }]);
            let others = if has_database { 1 } else { 0 };
            assert_eq!(found(&shell, "old").await.len(), others);
            shell.insert("old", &[rawdoc! { "_id": 2 }]).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn indexes_are_created_only_on_collections_of_the_transaction_without_documents() {
    let shell = Shell::new().await;
    shell.ok(rawdoc! { "create": "old" }).await;
    let refused = |reply: RawDocumentBuf, which: &str| {
        assert_eq!(reply.get_i32("code").ok(), Some(263), "{reply:?}");
        let text = reply.get_str("errmsg").expect("a text").to_owned();
        let expected = format!("Cannot create new indexes on {which} in a multi-document transaction.");
        assert_eq!(text, expected);
    };
    let reply = shell.run(within(1, create_index("old", "a", false), true)).await;
    refused(reply, "existing collection db.old");

    shell.ok(within(2, rawdoc! { "create": "new" }, true)).await;
    let reply = shell.ok(within(2, create_index("new", "a", false), false)).await;
    assert_eq!(reply.get_i32("numIndexesAfter").ok(), Some(2));
    assert_eq!(reply.get_bool("createdCollectionAutomatically").ok(), Some(false));
    shell.ok(within(2, insert("new", 1), false)).await;
    // It exists already.
    shell.ok(within(2, create_index("new", "a", false), false)).await;
    let reply = shell.run(within(2, create_index("new", "b", false), false)).await;
    refused(reply, "non-empty collection db.new");
    assert_eq!(names(&shell).await, ["old"]);

    shell.ok(within(3, create_index("new", "a", false), true)).await;
    shell.ok(within(3, insert("new", 1), false)).await;
    let delete = rawdoc! { "delete": "new", "deletes": [{ "q": {}, "limit": 0 }] };
    shell.ok(within(3, delete, false)).await;
    shell.ok(within(3, create_index("new", "b", true), false)).await;
    for id in [1, 2] {
        let insert = rawdoc! { "insert": "new", "documents": [{ "_id": id, "b": id }] };
        shell.ok(within(3, insert, false)).await;
    }
    shell
        .ok(within(3, rawdoc! { "commitTransaction": 1, "$db": "admin" }, false))
        .await;
    let listed = shell.first_batch(rawdoc! { "listIndexes": "new" }).await;
    let listed: Vec<&str> = listed
        .iter()
        .map(|index| index.get_str("name").expect("a name"))
        .collect();
    assert_eq!(listed, ["_id_", "a", "b"]);
    let duplicate = rawdoc! { "insert": "new", "documents": [{ "_id": 3, "b": 2 }] };
    let reply = shell.run(duplicate).await;
    let errors = reply.get_array("writeErrors").expect("an error");
    assert_eq!(
        errors.get_document(0).expect("an error").get_i32("code").ok(),
        Some(11000)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unique_index_of_a_transaction_holds_within_it() {
    let shell = Shell::new().await;
    shell.ok(within(1, create_index("new", "a", true), true)).await;
    let insert = |id: i32| rawdoc! { "insert": "new", "documents": [{ "_id": id, "a": 1 }] };
    shell.ok(within(1, insert(1), false)).await;
    let reply = shell.run(within(1, insert(2), false)).await;
    let errors = reply.get_array("writeErrors").expect("an error");
    assert_eq!(
        errors.get_document(0).expect("an error").get_i32("code").ok(),
        Some(11000)
    );
    assert_eq!(names(&shell).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_to_live_of_a_new_collection_is_in_force_when_it_is_committed() {
    let shell = Shell::new().await;
    for (name, field) in [("by_date", "at"), ("by_time", "_ts")] {
        let mut key = RawDocumentBuf::new();
        key.append(<&bson::raw::CStr>::try_from(field).expect("a name"), 1);
        let index = rawdoc! { "key": key, "name": "ttl", "expireAfterSeconds": 10 };
        let command = rawdoc! { "createIndexes": name, "indexes": [index] };
        shell.ok(within(1, command, name == "by_date")).await;
        let at = bson::DateTime::from_millis(shell.now());
        let insert = rawdoc! { "insert": name, "documents": [{ "_id": 1, "at": at }] };
        shell.ok(within(1, insert, false)).await;
    }
    shell
        .ok(within(1, rawdoc! { "commitTransaction": 1, "$db": "admin" }, false))
        .await;
    for name in ["by_date", "by_time"] {
        assert_eq!(found(&shell, name).await.len(), 1, "{name}");
    }
    shell.advance(12_000);
    for name in ["by_date", "by_time"] {
        assert_eq!(found(&shell, name).await.len(), 0, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_of_old_and_new_collections_are_committed_together() {
    let mut shell = Shell::new().await;
    shell.insert("old", &[rawdoc! { "_id": 1 }]).await;
    shell.ok(within(1, insert("old", 2), true)).await;
    for name in ["a", "b"] {
        shell.ok(within(1, insert(name, 1), false)).await;
    }
    assert_eq!(found(&shell, "old").await.len(), 1);
    shell
        .ok(within(1, rawdoc! { "commitTransaction": 1, "$db": "admin" }, false))
        .await;
    assert_eq!(names(&shell).await, ["a", "b", "old"]);
    shell.restart().await;
    // The record of the session tells that it was committed.
    shell
        .ok(within(1, rawdoc! { "commitTransaction": 1, "$db": "admin" }, false))
        .await;
    for (name, documents) in [("old", 2), ("a", 1), ("b", 1)] {
        assert_eq!(found(&shell, name).await.len(), documents, "{name}");
    }
    // They are in one home: further transactions use all of them.
    shell.ok(within(2, insert("old", 3), true)).await;
    shell.ok(within(2, insert("b", 3), false)).await;
    shell
        .ok(within(2, rawdoc! { "commitTransaction": 1, "$db": "admin" }, false))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_creates_nothing_in_another_database() {
    for has_database in [true, false] {
        let shell = Shell::new().await;
        let mut other = insert("new", 1);
        other.append(cstr!("$db"), "other");
        if has_database {
            shell.ok(other.clone()).await;
        }
        other = rawdoc! { "create": "more", "$db": "other" };
        shell.ok(within(1, insert("new", 1), true)).await;
        assert_eq!(shell.code(within(1, other, false)).await, 263);
        assert_eq!(names(&shell).await.len(), 0);
        assert_eq!(databases(&shell).await, usize::from(has_database));
    }
}

/// A stream of all that happens in the database.
struct Stream {
    cursor: RawDocumentBuf,
}

impl Stream {
    async fn open(shell: &Shell) -> Stream {
        let mut stream = Stream {
            cursor: RawDocumentBuf::new(),
        };
        stream.aggregate(shell, rawdoc! { "showExpandedEvents": true }).await;
        stream
    }

    async fn aggregate(&mut self, shell: &Shell, stage: RawDocumentBuf) {
        let pipeline = rawdoc! { "$changeStream": stage };
        let command = rawdoc! { "aggregate": 1, "pipeline": [pipeline], "cursor": { "batchSize": 1000 } };
        let reply = shell.ok(command).await;
        self.cursor = reply.get_document("cursor").expect("a cursor").to_owned();
    }

    /// The types of the next events, with the `_id` of documents. A stream does not wait for commits that have just been made, so it is read until there
    /// are as many events as expected.
    async fn events(&mut self, shell: &Shell, expected: usize) -> Vec<(String, Option<i32>)> {
        let mut events = Vec::new();
        for _ in 0..100_000 {
            if events.len() >= expected {
                break;
            }
            let token = self.cursor.get_document("postBatchResumeToken").expect("a token");
            let stage = rawdoc! { "showExpandedEvents": true, "resumeAfter": token.to_owned() };
            self.aggregate(shell, stage).await;
            for event in self.cursor.get_array("firstBatch").expect("a batch") {
                let event = event.expect("valid").as_document().expect("an event");
                let key = event.get_document("documentKey").ok();
                let id = key.map(|key| key.get_i32("_id").expect("a number"));
                events.push((event.get_str("operationType").expect("a type").to_owned(), id));
            }
            tokio::task::yield_now().await;
        }
        events
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn change_streams_tell_what_was_inserted_into_a_collection_of_a_transaction() {
    for is_stream_first in [true, false] {
        let shell = Shell::new().await;
        shell.insert("old", &[rawdoc! { "_id": 1 }]).await;
        let mut opened = None;
        if is_stream_first {
            opened = Some(Stream::open(&shell).await);
        }
        shell.ok(within(1, create_index("new", "a", false), true)).await;
        for field in ["b", "c", "d", "e"] {
            shell.ok(within(1, create_index("new", field, false), false)).await;
        }
        shell.ok(within(1, insert("new", 7), false)).await;
        let mut stream = match opened {
            Some(opened) => opened,
            None => Stream::open(&shell).await,
        };
        let commit = rawdoc! { "commitTransaction": 1, "$db": "admin" };
        shell.ok(within(1, commit, false)).await;
        let mut events = stream.events(&shell, 7).await;
        events.sort();
        let mut expected = vec![("create".to_owned(), None)];
        expected.extend(vec![("createIndexes".to_owned(), None); 5]);
        expected.push(("insert".to_owned(), Some(7)));
        assert_eq!(events, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_ends_without_its_client_leaves_no_collection() {
    let session = |id: u8| bson::Binary {
        subtype: bson::spec::BinarySubtype::Uuid,
        bytes: vec![id; 16],
    };
    let shell = Shell::new().await;
    shell.ok(within(1, insert("late", 1), true)).await;
    assert!(shell.state.monotonic().advance(std::time::Duration::from_secs(61)));
    shell.state.expire();
    let reply = commit(&shell, 1).await;
    assert_eq!(reply.get_i32("code").ok(), Some(251), "{reply:?}");

    shell.ok(within(2, insert("ended", 1), true)).await;
    shell
        .ok(rawdoc! { "endSessions": [{ "id": session(2) }], "$db": "admin" })
        .await;
    let reply = commit(&shell, 2).await;
    assert_eq!(reply.get_i32("code").ok(), Some(251), "{reply:?}");

    shell.ok(within(3, insert("replaced", 1), true)).await;
    let mut next = rawdoc! { "find": "replaced", "txnNumber": 2_i64, "autocommit": false, "startTransaction": true };
    next.append(cstr!("lsid"), rawdoc! { "id": session(3) });
    assert_eq!(shell.first_batch(next).await.len(), 0);
    assert_eq!(names(&shell).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_sees_a_document_of_a_transaction_finds_its_collection() {
    let shell = std::sync::Arc::new(Shell::new().await);
    shell.ok(rawdoc! { "create": "old" }).await;
    let writer = shell.clone();
    let writes = tokio::spawn(async move {
        for session in 0..100 {
            let name = format!("new{session}");
            writer.ok(within(session, insert("old", session.into()), true)).await;
            writer.ok(within(session, insert(&name, 1), false)).await;
            let commit = rawdoc! { "commitTransaction": 1, "$db": "admin" };
            writer.ok(within(session, commit, false)).await;
        }
    });
    let mut seen = 0;
    while seen < 100 {
        seen = found(&shell, "old").await.len();
        if seen > 0 {
            let name = format!("new{}", seen - 1);
            assert_eq!(found(&shell, &name).await.len(), 1, "{name}");
        }
        tokio::task::yield_now().await;
    }
    writes.await.expect("no panic");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_change_stream_that_is_read_meanwhile_misses_no_document_of_a_new_collection() {
    let shell = std::sync::Arc::new(Shell::new().await);
    shell.ok(rawdoc! { "create": "old" }).await;
    let mut stream = Stream::open(&shell).await;
    let writer = shell.clone();
    let writes = tokio::spawn(async move {
        for session in 0..100 {
            let name = format!("new{session}");
            writer.ok(within(session, insert(&name, session.into()), true)).await;
            let commit = rawdoc! { "commitTransaction": 1, "$db": "admin" };
            writer.ok(within(session, commit, false)).await;
        }
    });
    let events = stream.events(&shell, 200).await;
    writes.await.expect("no panic");
    let inserted: Vec<i32> = events.iter().filter_map(|(_, id)| *id).collect();
    assert_eq!(inserted, (0..100).collect::<Vec<_>>());
    assert_eq!(events.len(), 200);
}
