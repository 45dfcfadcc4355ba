use bson::rawdoc;

use crate::commands::fixture::{Shell, only};

#[tokio::test]
async fn collections_are_summed_up() {
    let shell = Shell::new().await;
    // 14 bytes each.
    shell.insert("a", &[rawdoc! { "_id": 1 }, rawdoc! { "_id": 2 }]).await;
    shell.insert("b", &[rawdoc! { "_id": 1 }]).await;
    let index = rawdoc! { "key": { "x": 1 }, "name": "x_1" };
    shell.ok(rawdoc! { "createIndexes": "b", "indexes": [index] }).await;
    let expected = rawdoc! {
        "db": "db",
        "collections": 2_i64,
        "views": 0_i64,
        "objects": 3_i64,
        "avgObjSize": 14.0,
        "dataSize": 21.0,
        "storageSize": 21.0,
        "indexes": 3_i64,
        "indexSize": 0.0,
        "totalSize": 21.0,
        "scaleFactor": 2_i64,
    };
    assert_eq!(shell.ok(rawdoc! { "dbStats": 1, "scale": 2 }).await, expected);
    let empty = shell.ok(rawdoc! { "dbstats": 1, "$db": "none" }).await;
    let expected = rawdoc! { "objects": 0_i64, "avgObjSize": 0.0 };
    assert_eq!(only(&empty, &["objects", "avgObjSize"]), expected);
}
