use bson::{DateTime, rawdoc};

use crate::commands::fixture::{NOW, Shell, only};

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_counted_until_the_millisecond_of_their_end() {
    let shell = Shell::new().await;
    let index = rawdoc! { "key": { "d": 1 }, "name": "d_1", "expireAfterSeconds": 0 };
    shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
    // 14 and 25 bytes.
    let ends = rawdoc! { "_id": 2, "d": DateTime::from_millis(NOW.0 + 500) };
    shell.insert("c", &[rawdoc! { "_id": 1 }, ends]).await;
    let stats = || rawdoc! { "collStats": "c" };
    shell.advance(499);
    let expected = rawdoc! {
        "ns": "db.c",
        "size": 39,
        "count": 2,
        "avgObjSize": 19,
        "numOrphanDocs": 0,
        "storageSize": 39,
        "freeStorageSize": 0,
        "capped": false,
        "nindexes": 2,
        "indexBuilds": [],
        "totalIndexSize": 0,
        "totalSize": 39,
        "indexSizes": { "_id_": 0, "d_1": 0 },
        "scaleFactor": 1,
    };
    assert_eq!(shell.ok(stats()).await, expected);
    shell.advance(1);
    let reply = shell.ok(stats()).await;
    assert_eq!(only(&reply, &["count", "size"]), rawdoc! { "count": 1, "size": 14 });
}

#[tokio::test(flavor = "multi_thread")]
async fn the_core_rule_counts_too() {
    let shell = Shell::new().await;
    let index = rawdoc! { "key": { "_ts": 1 }, "name": "_ts_1", "expireAfterSeconds": 10 };
    shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
    shell.insert("c", &[rawdoc! { "_id": 1 }]).await;
    for (advance, expected) in [(9_749, 1), (1, 0)] {
        shell.advance(advance);
        let reply = shell.ok(rawdoc! { "collStats": "c" }).await;
        assert_eq!(only(&reply, &["count"]), rawdoc! { "count": expected }, "{advance}");
    }
}

#[tokio::test]
async fn the_scale_divides_and_a_missing_collection_is_empty() {
    let shell = Shell::new().await;
    shell.insert("c", &[rawdoc! { "_id": 1, "x": "x".repeat(3000) }]).await;
    let reply = shell.ok(rawdoc! { "collStats": "c", "scale": 1024 }).await;
    assert_eq!(
        only(&reply, &["size", "scaleFactor"]),
        rawdoc! { "size": 2, "scaleFactor": 1024 }
    );
    let reply = shell.ok(rawdoc! { "collstats": "none" }).await;
    assert_eq!(
        only(&reply, &["count", "nindexes"]),
        rawdoc! { "count": 0, "nindexes": 0 }
    );
    for (scale, expected) in [(0, 51024), (-1, 51024)] {
        assert_eq!(shell.code(rawdoc! { "collStats": "c", "scale": scale }).await, expected);
    }
    assert_eq!(shell.code(rawdoc! { "collStats": "c", "scale": "x" }).await, 14);
}
