use bson::rawdoc;

use crate::commands::fixture::{Shell, only};

#[tokio::test]
async fn databases_have_throughput() {
    let shell = Shell::new().await;
    let get = || rawdoc! { "customAction": "GetDatabase" };
    assert_eq!(shell.code(get()).await, 26);
    shell
        .ok(rawdoc! { "customAction": "CreateDatabase", "offerThroughput": 400 })
        .await;
    assert_eq!(
        shell.ok(get()).await,
        rawdoc! { "database": "db", "provisionedThroughput": 400 }
    );
    let update = rawdoc! { "customAction": "UpdateDatabase", "autoScaleSettings": { "maxThroughput": 4000 } };
    shell.ok(update).await;
    let expected = rawdoc! { "database": "db", "autoScaleSettings": { "maxThroughput": 4000 } };
    assert_eq!(shell.ok(get()).await, expected);
    let again = shell.run(rawdoc! { "customAction": "CreateDatabase" }).await;
    let expected = rawdoc! { "code": 48, "errMsg": "Database db already exists." };
    assert_eq!(only(&again, &["code", "errMsg"]), expected);
}

#[tokio::test]
async fn collections_have_throughput_and_a_set_of_indexes() {
    let shell = Shell::new().await;
    let create = rawdoc! {
        "customAction": "CreateCollection",
        "collection": "c",
        "offerThroughput": 500,
        "indexes": [{ "key": { "_id": 1 }, "name": "_id_1" }, { "key": { "a": 1 }, "name": "a_1" }],
    };
    shell.ok(create.clone()).await;
    assert_eq!(shell.code(create).await, 48);
    let get = || rawdoc! { "customAction": "GetCollection", "collection": "c" };
    let expected = rawdoc! {
        "database": "db",
        "collection": "c",
        "provisionedThroughput": 500,
        "indexes": [
            { "v": 2, "key": { "_id": 1 }, "name": "_id_", "ns": "db.c" },
            { "v": 2, "key": { "a": 1 }, "name": "a_1", "ns": "db.c" },
        ],
    };
    assert_eq!(shell.ok(get()).await, expected);
    shell.insert("c", &[rawdoc! { "_id": 1, "b": 1 }]).await;
    let update = rawdoc! {
        "customAction": "UpdateCollection",
        "collection": "c",
        "offerThroughput": 600,
        "indexes": [{ "key": { "_id": 1 }, "name": "_id_1" }, { "key": { "b": 1 }, "name": "b_1", "unique": true }],
    };
    shell.ok(update).await;
    let expected = rawdoc! {
        "database": "db",
        "collection": "c",
        "provisionedThroughput": 600,
        "indexes": [
            { "v": 2, "key": { "_id": 1 }, "name": "_id_", "ns": "db.c" },
            { "v": 2, "key": { "b": 1 }, "name": "b_1", "unique": true, "ns": "db.c" },
        ],
    };
    assert_eq!(shell.ok(get()).await, expected);
}

#[tokio::test]
async fn what_cannot_be_is_refused() {
    let shell = Shell::new().await;
    shell.ok(rawdoc! { "create": "c" }).await;
    for (command, expected) in [
        (rawdoc! { "customAction": "Nonsense" }, 2),
        (rawdoc! { "customAction": 1 }, 2),
        (rawdoc! { "customAction": "GetCollection" }, 40414),
        (rawdoc! { "customAction": "GetCollection", "collection": "none" }, 26),
        (
            rawdoc! { "customAction": "UpdateCollection", "collection": "c", "offerThroughput": 400 },
            2,
        ),
        (
            rawdoc! { "customAction": "CreateCollection", "collection": "d", "shardKey": "a..b" },
            15998,
        ),
        (
            rawdoc! { "customAction": "CreateCollection", "collection": "d", "offerThroughput": 401 },
            2,
        ),
        (
            rawdoc! { "customAction": "CreateCollection", "collection": "d", "offerThroughput": 20_000 },
            2,
        ),
        (
            rawdoc! { "customAction": "CreateCollection", "collection": "d", "indexes": [{ "key": { "a": 1 }, "name": "a" }] },
            2,
        ),
        (
            rawdoc! { "customAction": "GetChangeStreamTokens", "collection": "c" },
            238,
        ),
        (rawdoc! { "customAction": "GetDatabase", "foo": 1 }, 40415),
    ] {
        assert_eq!(shell.code(command.clone()).await, expected, "{command:?}");
    }
    assert_eq!(shell.first_batch(rawdoc! { "listCollections": 1 }).await.len(), 1);
}
