use super::*;
use crate::commands::fixture::Shell;

#[tokio::test(flavor = "multi_thread")]
async fn databases_with_collections_are_listed_with_the_sizes_of_live_documents() {
    let shell = Shell::new().await;
    let list = || rawdoc! { "listDatabases": 1, "$db": "admin" };
    let nothing = rawdoc! { "databases": [], "totalSize": 0_i64, "totalSizeMb": 0_i64 };
    assert_eq!(shell.ok(list()).await, nothing);
    // {_id: 1} has 14 bytes.
    shell.insert("c", &[rawdoc! { "_id": 1 }, rawdoc! { "_id": 2 }]).await;
    shell.ok(rawdoc! { "create": "d", "$db": "other" }).await;
    let expected = rawdoc! {
        "databases": [
            { "name": "db", "sizeOnDisk": 28_i64, "empty": false },
            { "name": "other", "sizeOnDisk": 0_i64, "empty": false },
        ],
        "totalSize": 28_i64,
        "totalSizeMb": 0_i64,
    };
    assert_eq!(shell.ok(list()).await, expected);
    let filtered =
        rawdoc! { "listDatabases": 1, "filter": { "name": { "$regex": "^o" } }, "nameOnly": true, "$db": "admin" };
    let expected = rawdoc! { "databases": [{ "name": "other" }] };
    assert_eq!(shell.ok(filtered).await, expected);
    shell.ok(rawdoc! { "drop": "d", "$db": "other" }).await;
    let only_one = shell
        .ok(rawdoc! { "listDatabases": 1, "nameOnly": true, "$db": "admin" })
        .await;
    assert_eq!(only_one, rawdoc! { "databases": [{ "name": "db" }] });
}

#[tokio::test]
async fn only_admin_lists_databases() {
    let shell = Shell::new().await;
    assert_eq!(shell.code(rawdoc! { "listDatabases": 1 }).await, 13);
    let bad = rawdoc! { "listDatabases": 1, "filter": { "$foo": 1 }, "$db": "admin" };
    assert_eq!(shell.code(bad).await, 2);
}
