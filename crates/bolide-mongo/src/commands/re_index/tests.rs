use bson::rawdoc;

use crate::commands::fixture::Shell;

#[tokio::test(flavor = "multi_thread")]
async fn indexes_are_built_again() {
    let shell = Shell::new().await;
    shell.insert("c", &[rawdoc! { "_id": 1, "a": 1 }]).await;
    let index = rawdoc! { "key": { "a": 1 }, "name": "a_1", "unique": true };
    shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
    let expected = rawdoc! {
        "nIndexesWas": 2,
        "nIndexes": 2,
        "indexes": [
            { "v": 2, "key": { "_id": 1 }, "name": "_id_" },
            { "v": 2, "key": { "a": 1 }, "name": "a_1", "unique": true },
        ],
    };
    assert_eq!(shell.ok(rawdoc! { "reIndex": "c" }).await, expected);
    assert_eq!(shell.code(rawdoc! { "reIndex": "none" }).await, 26);
    assert_eq!(shell.ok(rawdoc! { "compact": "c" }).await, rawdoc! { "bytesFreed": 0 });
    assert_eq!(shell.code(rawdoc! { "compact": "none" }).await, 26);
    assert_eq!(shell.code(rawdoc! { "convertToCapped": "c", "size": 1 }).await, 238);
}
