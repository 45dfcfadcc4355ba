use bson::{RawDocumentBuf, rawdoc};

use crate::commands::fixture::Shell;

fn rename(from: &str, to: &str) -> RawDocumentBuf {
    rawdoc! { "renameCollection": from, "to": to, "$db": "admin" }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_and_indexes_move() {
    let shell = Shell::new().await;
    shell.insert("a", &[rawdoc! { "_id": 1 }]).await;
    let index = rawdoc! { "key": { "d": 1 }, "name": "d_1", "expireAfterSeconds": 5 };
    shell.ok(rawdoc! { "createIndexes": "a", "indexes": [index] }).await;
    shell.ok(rename("db.a", "db.b")).await;
    assert_eq!(shell.first_batch(rawdoc! { "find": "a" }).await.len(), 0);
    assert_eq!(shell.first_batch(rawdoc! { "find": "b" }).await, [rawdoc! { "_id": 1 }]);
    let indexes = shell.first_batch(rawdoc! { "listIndexes": "b" }).await;
    assert_eq!(indexes[1].get_i32("expireAfterSeconds").expect("seconds"), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_is_replaced_only_on_demand() {
    let shell = Shell::new().await;
    shell.insert("a", &[rawdoc! { "_id": 1 }]).await;
    shell.insert("b", &[rawdoc! { "_id": 2 }]).await;
    assert_eq!(shell.code(rename("db.a", "db.b")).await, 48);
    assert_eq!(shell.first_batch(rawdoc! { "find": "b" }).await, [rawdoc! { "_id": 2 }]);
    let replacing = rawdoc! { "renameCollection": "db.a", "to": "db.b", "dropTarget": true, "$db": "admin" };
    shell.ok(replacing).await;
    assert_eq!(shell.first_batch(rawdoc! { "find": "b" }).await, [rawdoc! { "_id": 1 }]);
}

/// Each of the collections has one document. Whoever reads while one takes the place of the other sees one of them, or is told that the collection was
/// dropped, and never finds nothing.
#[tokio::test(flavor = "multi_thread")]
async fn the_target_is_never_missing() {
    let shell = std::sync::Arc::new(Shell::new().await);
    shell.insert("b", &[rawdoc! { "_id": 0 }]).await;
    let (reading, reader) = (
        std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true)),
        shell.clone(),
    );
    let goes_on = reading.clone();
    let reads = tokio::spawn(async move {
        while goes_on.load(std::sync::atomic::Ordering::Relaxed) {
            let reply = reader.run(rawdoc! { "find": "b" }).await;
            if crate::commands::fixture::code_of(&reply) == 26 {
                continue;
            }
            let cursor = reply.get_document("cursor").expect("a cursor");
            let batch = cursor.get_array("firstBatch").expect("a batch");
            assert_eq!(batch.into_iter().count(), 1, "{reply:?}");
        }
    });
    for id in 1..=30 {
        shell.insert("a", &[rawdoc! { "_id": id }]).await;
        let rename = rawdoc! { "renameCollection": "db.a", "to": "db.b", "dropTarget": true, "$db": "admin" };
        shell.ok(rename).await;
        assert_eq!(
            shell.first_batch(rawdoc! { "find": "b" }).await,
            [rawdoc! { "_id": id }]
        );
    }
    reading.store(false, std::sync::atomic::Ordering::Relaxed);
    reads.await.expect("no panic");
}

#[tokio::test]
async fn bad_names_are_refused() {
    let shell = Shell::new().await;
    shell.ok(rawdoc! { "create": "a" }).await;
    for (command, expected) in [
        (rename("db.none", "db.b"), 26),
        (rename("db.a", "db.a"), 20),
        (rename("db.a", "other.a"), 20),
        (rename("db.a", "db"), 73),
        (rename("db.a", "db."), 73),
        (rename("db.a", "db.$x"), 73),
        (rename("db.a", "db.system.foo"), 73),
        (rawdoc! { "renameCollection": "db.a", "$db": "admin" }, 40414),
        (rawdoc! { "renameCollection": "db.a", "to": "db.b" }, 13),
        (rawdoc! { "renameCollection": 1, "to": "db.b", "$db": "admin" }, 14),
        (rename("db.a", "db.b"), 0),
    ] {
        assert_eq!(shell.code(command.clone()).await, expected, "{command:?}");
    }
}

/// The rows of the catalog are checked when they are read, so a bad name would keep everybody from reading it.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_no_container_can_have_is_refused_and_does_not_damage_the_catalog() {
    let shell = Shell::new().await;
    shell.insert("a", &[rawdoc! { "_id": 1 }]).await;
    for name in ["db.a/b", "db.a?", "db.a#", "db.a\\", "db.a "] {
        assert_eq!(shell.code(rename("db.a", name)).await, 2, "{name}");
        let collection = name.trim_start_matches("db.");
        let out = rawdoc! { "aggregate": "a", "pipeline": [{ "$out": collection }], "cursor": {} };
        assert_eq!(shell.code(out).await, 2, "{name}");
    }
    shell.ok(rawdoc! { "create": "c" }).await;
    let listed = shell
        .first_batch(rawdoc! { "listCollections": 1, "nameOnly": true })
        .await;
    assert_eq!(listed.len(), 2);
    assert_eq!(shell.first_batch(rawdoc! { "find": "a" }).await, [rawdoc! { "_id": 1 }]);
}
