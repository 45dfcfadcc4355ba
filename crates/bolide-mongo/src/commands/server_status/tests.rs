use bolide_core::PurgeMode;
use bson::{DateTime, rawdoc};

use crate::commands::fixture::{NOW, Shell};

#[tokio::test(flavor = "multi_thread")]
async fn operations_and_purged_documents_are_counted() {
    let shell = Shell::new().await;
    let index = rawdoc! { "key": { "d": 1 }, "name": "d", "expireAfterSeconds": 0 };
    shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
    let dead = |id: i32| rawdoc! { "_id": id, "d": DateTime::from_millis(NOW.0 + 1) };
    shell.insert("c", &[dead(1), dead(2), rawdoc! { "_id": 3 }]).await;
    let statement = rawdoc! { "q": {}, "u": { "$set": { "x": 1 } } };
    shell
        .ok(rawdoc! { "update": "c", "updates": [statement.clone(), statement] })
        .await;
    shell
        .ok(rawdoc! { "delete": "c", "deletes": [{ "q": { "_id": 3 }, "limit": 1 }] })
        .await;
    shell.first_batch(rawdoc! { "find": "c" }).await;
    shell.advance(1);
    let collection = shell.state.account.find_collection("db", "c").expect("a collection");
    let purged = shell.state.account.purge(&collection, PurgeMode::Force, None).await;
    assert_eq!(purged.expect("a purge"), 2);
    let status = shell.ok(rawdoc! { "serverStatus": 1 }).await;
    let counters = status.get_document("opcounters").expect("counters");
    let count = |name: &str| counters.get_i64(name).expect("an i64");
    assert_eq!(
        (count("insert"), count("update"), count("delete"), count("query")),
        (3, 2, 1, 1)
    );
    let metrics = status.get_document("metrics").expect("metrics");
    let ttl = metrics.get_document("ttl").expect("figures");
    assert_eq!(ttl.get_i64("deletedDocuments").expect("an i64"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn collections_are_counted() {
    let shell = Shell::new().await;
    shell.ok(rawdoc! { "create": "c" }).await;
    shell.ok(rawdoc! { "create": "v", "viewOn": "c" }).await;
    let status = shell.ok(rawdoc! { "serverStatus": 1 }).await;
    let catalog = status.get_document("catalogStats").expect("a document");
    assert_eq!(catalog.get_i32("collections").expect("a number"), 1);
    assert_eq!(catalog.get_i32("views").expect("a number"), 1);
}
