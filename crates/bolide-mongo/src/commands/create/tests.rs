use bson::raw::{CStr, cstr};
use bson::rawdoc;

use crate::commands::fixture::Shell;

/// Source: mongo.md §6 and §18.2.
#[tokio::test]
async fn options_are_checked() {
    let shell = Shell::new().await;
    for (command, expected) in [
        (rawdoc! { "create": "c", "capped": true, "size": 4096 }, 238),
        (rawdoc! { "create": "c", "size": 4096 }, 72),
        (rawdoc! { "create": "c", "capped": true }, 72),
        (rawdoc! { "create": "c", "capped": true, "size": 0 }, 51024),
        (rawdoc! { "create": "c", "pipeline": [] }, 2),
        (rawdoc! { "create": "c", "timeseries": { "timeField": "t" } }, 238),
        (
            rawdoc! { "create": "c", "clusteredIndex": { "key": { "_id": 1 }, "unique": true } },
            238,
        ),
        (rawdoc! { "create": "c", "expireAfterSeconds": 5 }, 72),
        (rawdoc! { "create": "c", "autoIndexId": false }, 72),
        (rawdoc! { "create": "c", "validator": { "$foo": 1 } }, 2),
        (rawdoc! { "create": "c", "validator": 1 }, 14),
        (
            rawdoc! { "create": "c", "validator": { "a": { "$near": [1, 1] } } },
            224,
        ),
        (rawdoc! { "create": "c", "validator": { "a": 1 }, "$db": "admin" }, 72),
        (rawdoc! { "create": "c", "validationLevel": "hard" }, 2),
        (rawdoc! { "create": "c", "validationAction": "ignore" }, 2),
        (rawdoc! { "create": "c", "collation": {} }, 2),
        (rawdoc! { "create": "c", "collation": { "locale": "xx-yy" } }, 2),
        (rawdoc! { "create": "c", "changeStreamPreAndPostImages": {} }, 40414),
        (
            rawdoc! { "create": "c", "idIndex": { "key": { "a": 1 }, "name": "a" } },
            2,
        ),
        (rawdoc! { "create": "c", "foo": 1 }, 40415),
        (rawdoc! { "create": "" }, 73),
        (rawdoc! { "create": "system.foo" }, 73),
        (rawdoc! { "create": 1 }, 73),
    ] {
        assert_eq!(shell.code(command.clone()).await, expected, "{command:?}");
    }
    assert_eq!(shell.first_batch(rawdoc! { "listCollections": 1 }).await.len(), 0);
}

#[tokio::test]
async fn the_same_options_again_are_a_success() {
    let shell = Shell::new().await;
    let plain = || rawdoc! { "create": "c" };
    shell.ok(plain()).await;
    shell.ok(plain()).await;
    let with_id_index = rawdoc! { "create": "c", "idIndex": { "v": 2, "key": { "_id": 1 }, "name": "_id_" } };
    shell.ok(with_id_index).await;
    let other = rawdoc! { "create": "c", "validator": { "a": 1 } };
    let reply = shell.run(other).await;
    assert_eq!(reply.get_i32("code").expect("a code"), 48);
    assert_eq!(
        reply.get_str("errmsg").expect("a text"),
        "Collection db.c already exists."
    );
    let collated = || rawdoc! { "create": "d", "collation": { "locale": "en", "strength": 2 } };
    shell.ok(collated()).await;
    shell.ok(collated()).await;
    assert_eq!(shell.code(rawdoc! { "create": "d" }).await, 48);
    // collMod changes the order in which options are stored.
    let validated = || rawdoc! { "create": "e", "validator": { "a": 1 }, "validationLevel": "strict", "validationAction": "error", "collation": { "locale": "en" } };
    shell.ok(validated()).await;
    shell.ok(rawdoc! { "collMod": "e", "validationLevel": "strict" }).await;
    shell.ok(validated()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_collation_is_that_of_queries_and_indexes() {
    let shell = Shell::new().await;
    shell
        .ok(rawdoc! { "create": "c", "collation": { "locale": "en", "strength": 2 } })
        .await;
    shell.insert("c", &[rawdoc! { "_id": "A", "x": "Ab" }]).await;
    assert_eq!(
        shell
            .first_batch(rawdoc! { "find": "c", "filter": { "x": "aB" } })
            .await
            .len(),
        1
    );
    let reply = shell.ok(rawdoc! { "insert": "c", "documents": [{ "_id": "a" }] }).await;
    let errors = reply.get_array("writeErrors").expect("an error");
    let first = errors.into_iter().next().expect("an error").expect("valid");
    assert_eq!(
        first
            .as_document()
            .expect("a document")
            .get_i32("code")
            .expect("a code"),
        11000
    );
    let indexes = shell.first_batch(rawdoc! { "listIndexes": "c" }).await;
    let collation = indexes[0].get_document("collation").expect("a collation");
    assert_eq!(collation.get_i32("strength").expect("a number"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn validators_hold_for_writes() {
    let shell = Shell::new().await;
    shell
        .ok(rawdoc! { "create": "c", "validator": { "a": { "$gt": 1 } } })
        .await;
    shell.insert("c", &[rawdoc! { "_id": 1, "a": 2 }]).await;
    let reply = shell
        .ok(rawdoc! { "insert": "c", "documents": [{ "_id": 2, "a": 1 }] })
        .await;
    let errors = reply.get_array("writeErrors").expect("an error");
    let first = errors.into_iter().next().expect("an error").expect("valid");
    assert_eq!(
        first
            .as_document()
            .expect("a document")
            .get_i32("code")
            .expect("a code"),
        121
    );
}

/// What MongoDB refuses in a transaction is refused (mongo.md §7).
#[tokio::test(flavor = "multi_thread")]
async fn in_a_transaction_what_exists_is_not_created_again_and_not_indexed() {
    let shell = Shell::new().await;
    shell.insert("c", &[rawdoc! { "_id": 1 }]).await;
    shell.ok(rawdoc! { "create": "empty" }).await;
    let lsid = rawdoc! { "id": bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes: vec![1; 16] } };
    let index = |field: &CStr| rawdoc! { "key": { field: 1 }, "name": field.as_str() };
    for (at, (command, expected)) in [
        (rawdoc! { "create": "c" }, 48),
        (rawdoc! { "create": "new" }, 0),
        (rawdoc! { "createIndexes": "c", "indexes": [index(cstr!("a"))] }, 263),
        (rawdoc! { "createIndexes": "c", "indexes": [index(cstr!("_id"))] }, 0),
        (
            rawdoc! { "createIndexes": "empty", "indexes": [index(cstr!("a"))] },
            263,
        ),
        (rawdoc! { "create": "view", "viewOn": "c", "pipeline": [] }, 263),
        (rawdoc! { "createIndexes": "other", "indexes": [index(cstr!("a"))] }, 0),
    ]
    .into_iter()
    .enumerate()
    {
        let mut command = command;
        command.append(cstr!("lsid"), lsid.clone());
        command.append(cstr!("txnNumber"), i64::try_from(at).expect("small"));
        command.append(cstr!("autocommit"), false);
        command.append(cstr!("startTransaction"), true);
        assert_eq!(shell.code(command.clone()).await, expected, "{command:?}");
    }
    let listed = shell.first_batch(rawdoc! { "listIndexes": "c" }).await;
    assert_eq!(listed.len(), 1);
}
