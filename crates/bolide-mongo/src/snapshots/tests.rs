use bson::raw::cstr;
use bson::{DateTime, RawDocument, RawDocumentBuf, Timestamp, rawdoc};

use crate::commands::fixture::{NOW, Shell};
use crate::limits;

/// A read of a snapshot, at a time that another one got.
fn snapshot(mut command: RawDocumentBuf, at: Option<Timestamp>) -> RawDocumentBuf {
    let mut concern = rawdoc! { "level": "snapshot" };
    if let Some(at) = at {
        concern.append(cstr!("atClusterTime"), at);
    }
    command.append(cstr!("readConcern"), concern);
    command
}

fn find() -> RawDocumentBuf {
    rawdoc! { "find": "c" }
}

fn cursor(reply: &RawDocument) -> (Timestamp, Vec<i32>) {
    let cursor = reply.get_document("cursor").expect("a cursor");
    let batch = cursor.get_array("firstBatch").expect("a batch").into_iter();
    let ids = batch.map(|found| found.expect("valid").as_document().expect("a document").get_i32("_id"));
    let at = cursor.get_timestamp("atClusterTime").expect("a time");
    (at, ids.map(|id| id.expect("an id")).collect())
}

async fn read(shell: &Shell, at: Option<Timestamp>) -> (Timestamp, Vec<i32>) {
    cursor(&shell.ok(snapshot(find(), at)).await)
}

async fn filled() -> Shell {
    let shell = Shell::new().await;
    shell.insert("c", &[rawdoc! { "_id": 1 }, rawdoc! { "_id": 2 }]).await;
    // Into another second than that of the collection's definition.
    shell.advance(1_000);
    shell
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_that_name_a_snapshot_see_the_same() {
    let shell = filled().await;
    let (first, found) = read(&shell, None).await;
    assert_eq!(found, [1, 2]);
    // In the same millisecond.
    shell.insert("c", &[rawdoc! { "_id": 3 }]).await;
    let (second, found) = read(&shell, None).await;
    assert_eq!(found, [1, 2, 3]);
    assert!(second > first);
    let delete = rawdoc! { "delete": "c", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }] };
    shell.ok(delete).await;
    for (at, expected) in [(first, vec![1, 2]), (second, vec![1, 2, 3])] {
        assert_eq!(read(&shell, Some(at)).await, (at, expected.clone()));
        let pipeline = rawdoc! { "aggregate": "c", "pipeline": [{ "$match": {} }], "cursor": {} };
        assert_eq!(
            cursor(&shell.ok(snapshot(pipeline, Some(at))).await),
            (at, expected.clone())
        );
        let distinct = rawdoc! { "distinct": "c", "key": "_id" };
        let reply = shell.ok(snapshot(distinct, Some(at))).await;
        let values = reply.get_array("values").expect("values").into_iter();
        let values: Vec<_> = values
            .map(|value| value.expect("valid").as_i32().expect("an id"))
            .collect();
        assert_eq!(
            (reply.get_timestamp("atClusterTime").expect("a time"), values),
            (at, expected)
        );
    }
    assert_eq!(shell.ok(rawdoc! { "count": "c" }).await, rawdoc! { "n": 2 });
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_judged_at_the_time_of_the_snapshot() {
    let shell = filled().await;
    let index = rawdoc! { "key": { "d": 1 }, "name": "d", "expireAfterSeconds": 0 };
    shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
    let ends = DateTime::from_millis(NOW.0 + 1_010);
    shell.insert("c", &[rawdoc! { "_id": 3, "d": ends }]).await;
    let (at, found) = read(&shell, None).await;
    assert_eq!(found, [1, 2, 3]);
    shell.advance(10);
    assert_eq!(read(&shell, None).await.1, [1, 2]);
    assert_eq!(read(&shell, Some(at)).await.1, [1, 2, 3]);
    // Whether it is still stored or not: this write removes it.
    shell.insert("c", &[rawdoc! { "_id": 3 }]).await;
    assert_eq!(read(&shell, Some(at)).await.1, [1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_goes_on_in_its_snapshot() {
    let shell = filled().await;
    let mut command = snapshot(find(), None);
    command.append(cstr!("batchSize"), 1);
    let reply = shell.ok(command).await;
    let id = reply
        .get_document("cursor")
        .and_then(|cursor| cursor.get_i64("id"))
        .expect("an id");
    let delete = rawdoc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] };
    shell.ok(delete).await;
    let reply = shell.ok(rawdoc! { "getMore": id, "collection": "c" }).await;
    let batch = reply
        .get_document("cursor")
        .and_then(|cursor| cursor.get_array("nextBatch"));
    assert_eq!(batch.expect("a batch").into_iter().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_that_no_read_got_is_served_while_nothing_was_written_since() {
    let shell = filled().await;
    let written = shell
        .run(rawdoc! { "ping": 1 })
        .await
        .get_timestamp("operationTime")
        .expect("a time");
    shell.advance(5_000);
    assert_eq!(read(&shell, Some(written)).await, (written, vec![1, 2]));
    let later = Timestamp {
        time: written.time + 2,
        increment: 1,
    };
    shell.insert("c", &[rawdoc! { "_id": 3 }]).await;
    assert_eq!(shell.code(snapshot(find(), Some(later))).await, 239);
    // This one is kept since it was read.
    assert_eq!(read(&shell, Some(written)).await.1, [1, 2]);
    let future = Timestamp {
        time: written.time + 60,
        increment: 1,
    };
    assert_eq!(shell.code(snapshot(find(), Some(future))).await, 72);
    let null = Timestamp { time: 0, increment: 0 };
    assert_eq!(shell.code(snapshot(find(), Some(null))).await, 72);
    let shell = filled().await;
    let ancient = Timestamp { time: 1, increment: 1 };
    // The collection did not exist then.
    assert_eq!(shell.code(snapshot(find(), Some(ancient))).await, 246);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_of_other_definitions_is_not_available() {
    for change in [
        rawdoc! { "drop": "c" },
        rawdoc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }] },
        rawdoc! { "renameCollection": "db.c", "to": "db.d", "$db": "admin" },
    ] {
        let shell = filled().await;
        shell.insert("other", &[rawdoc! { "_id": 1 }]).await;
        // It enters only the other collection.
        let first = snapshot(rawdoc! { "find": "other" }, None);
        let (at, _) = cursor(&shell.ok(first).await);
        shell.ok(change.clone()).await;
        assert_eq!(shell.code(snapshot(find(), Some(at))).await, 246, "{change:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_ends_after_a_minute() {
    let shell = filled().await;
    let (at, _) = read(&shell, None).await;
    let minute = i64::try_from(limits::SNAPSHOT.as_millis()).expect("short");
    shell.advance(minute - 1);
    assert_eq!(read(&shell, Some(at)).await.1, [1, 2]);
    shell.advance(1);
    assert_eq!(shell.code(snapshot(find(), Some(at))).await, 239);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_ends_when_there_are_too_many() {
    let shell = filled().await;
    let (first, _) = read(&shell, None).await;
    shell.insert("c", &[rawdoc! { "_id": 3 }]).await;
    let (second, _) = read(&shell, None).await;
    for _ in 0..limits::SNAPSHOTS - 1 {
        read(&shell, None).await;
    }
    shell.advance(1);
    shell.insert("c", &[rawdoc! { "_id": 4 }]).await;
    assert_eq!(shell.code(snapshot(find(), Some(first))).await, 239);
    assert_eq!(read(&shell, Some(second)).await.1, [1, 2, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_reads_of_documents_have_snapshots() {
    let shell = filled().await;
    for command in [
        rawdoc! { "insert": "c", "documents": [{ "_id": 9 }] },
        rawdoc! { "update": "c", "updates": [{ "q": {}, "u": { "$set": { "a": 1 } } }] },
        rawdoc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] },
        rawdoc! { "findAndModify": "c", "remove": true },
        rawdoc! { "count": "c" },
        rawdoc! { "listCollections": 1 },
        rawdoc! { "listIndexes": "c" },
        rawdoc! { "listDatabases": 1, "$db": "admin" },
    ] {
        assert_eq!(shell.code(snapshot(command.clone(), None)).await, 72, "{command:?}");
    }
    assert_eq!(read(&shell, None).await.1, [1, 2]);
    let none = snapshot(rawdoc! { "find": "none", "$db": "empty" }, None);
    assert_eq!(cursor(&shell.ok(none).await).1, Vec::<i32>::new());
}
