use bson::rawdoc;

use crate::commands::fixture::Shell;

async fn options(shell: &Shell) -> bson::RawDocumentBuf {
    let listed = shell
        .first_batch(rawdoc! { "listCollections": 1, "filter": { "name": "c" } })
        .await;
    listed[0].get_document("options").expect("options").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn validation_changes_and_is_shown_in_full() {
    let shell = Shell::new().await;
    shell.insert("c", &[rawdoc! { "_id": 1 }]).await;
    shell.ok(rawdoc! { "collMod": "c", "validator": { "a": 1 } }).await;
    let expected = rawdoc! { "validator": { "a": 1 }, "validationLevel": "strict", "validationAction": "error" };
    assert_eq!(options(&shell).await, expected);
    let reply = shell.ok(rawdoc! { "insert": "c", "documents": [{ "_id": 2 }] }).await;
    assert!(reply.get_array("writeErrors").is_ok());
    shell.ok(rawdoc! { "collMod": "c", "validationLevel": "off" }).await;
    let expected = rawdoc! { "validator": { "a": 1 }, "validationLevel": "off", "validationAction": "error" };
    assert_eq!(options(&shell).await, expected);
    shell.insert("c", &[rawdoc! { "_id": 2 }]).await;
    shell
        .ok(rawdoc! { "collMod": "c", "changeStreamPreAndPostImages": { "enabled": true } })
        .await;
    assert!(
        options(&shell)
            .await
            .get_document("changeStreamPreAndPostImages")
            .is_ok()
    );
    assert_eq!(
        options(&shell).await.get_str("validationLevel").expect("a level"),
        "off"
    );
}

#[tokio::test]
async fn bad_changes_are_refused() {
    let shell = Shell::new().await;
    shell.ok(rawdoc! { "create": "c" }).await;
    for (command, expected) in [
        (rawdoc! { "collMod": "none", "validator": {} }, 26),
        (rawdoc! { "collMod": "c", "validator": { "$foo": 1 } }, 2),
        (rawdoc! { "collMod": "c", "validationLevel": "x" }, 2),
        (rawdoc! { "collMod": "c", "expireAfterSeconds": 5 }, 72),
        (rawdoc! { "collMod": "c", "cappedSize": 5 }, 238),
        (rawdoc! { "collMod": "c", "viewOn": "d" }, 72),
        (rawdoc! { "collMod": "c", "foo": 1 }, 40415),
        (rawdoc! { "collMod": "c" }, 0),
    ] {
        assert_eq!(shell.code(command.clone()).await, expected, "{command:?}");
    }
    assert_eq!(options(&shell).await, rawdoc! {});
}

async fn shell_with_index() -> Shell {
    let shell = Shell::new().await;
    shell
        .insert("c", &[rawdoc! { "_id": 1, "a": 1 }, rawdoc! { "_id": 2, "a": 2 }])
        .await;
    let index = rawdoc! { "key": { "a": 1 }, "name": "a_1" };
    shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
    shell
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_becomes_unique_in_two_steps() {
    let shell = shell_with_index().await;
    let prepare = rawdoc! { "collMod": "c", "index": { "name": "a_1", "prepareUnique": true } };
    let convert = || rawdoc! { "collMod": "c", "index": { "name": "a_1", "unique": true } };
    assert_eq!(shell.code(convert()).await, 72);
    shell.ok(prepare).await;
    // Documents that existed before count too.
    let duplicate = || rawdoc! { "insert": "c", "documents": [{ "_id": 3, "a": 2 }] };
    assert!(shell.ok(duplicate()).await.get_array("writeErrors").is_ok());
    assert_eq!(shell.ok(convert()).await, rawdoc! { "unique_new": true });
    assert!(shell.ok(duplicate()).await.get_array("writeErrors").is_ok());
    let indexes = shell.first_batch(rawdoc! { "listIndexes": "c" }).await;
    assert_eq!(
        indexes[1],
        rawdoc! { "v": 2, "key": { "a": 1 }, "name": "a_1", "unique": true }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_with_equal_keys_prevent_it() {
    let shell = shell_with_index().await;
    shell.insert("c", &[rawdoc! { "_id": 3, "a": 2.0 }]).await;
    let prepare = || rawdoc! { "collMod": "c", "index": { "name": "a_1", "prepareUnique": true } };
    assert_eq!(shell.code(prepare()).await, 359);
    let indexes = shell.first_batch(rawdoc! { "listIndexes": "c" }).await;
    assert_eq!(indexes[1], rawdoc! { "v": 2, "key": { "a": 1 }, "name": "a_1" });
    // The index is as before.
    shell.insert("c", &[rawdoc! { "_id": 4, "a": 1 }]).await;
    shell
        .ok(rawdoc! { "delete": "c", "deletes": [{ "q": { "_id": { "$gt": 2 } }, "limit": 0 }] })
        .await;
    shell.ok(prepare()).await;
}
