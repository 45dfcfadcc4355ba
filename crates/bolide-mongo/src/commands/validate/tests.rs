use bson::rawdoc;

use crate::commands::fixture::{Shell, without};

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_collection_is_valid() {
    let shell = Shell::new().await;
    shell
        .insert("c", &[rawdoc! { "_id": 1, "a": [1, 2] }, rawdoc! { "_id": 2 }])
        .await;
    let multikey = rawdoc! { "key": { "a": 1 }, "name": "a_1" };
    let sparse = rawdoc! { "key": { "b": 1 }, "name": "b_1", "sparse": true };
    shell
        .ok(rawdoc! { "createIndexes": "c", "indexes": [multikey, sparse] })
        .await;
    let both = rawdoc! { "validate": "c", "full": true, "background": true };
    assert_eq!(shell.code(both).await, 72);
    let reply = shell.ok(rawdoc! { "validate": "c", "full": true }).await;
    let expected = rawdoc! {
        "ns": "db.c",
        "nInvalidDocuments": 0,
        "nNonCompliantDocuments": 0,
        "nrecords": 2,
        "nIndexes": 3,
        "keysPerIndex": { "_id_": 2, "a_1": 3, "b_1": 0 },
        "valid": true,
        "repaired": false,
        "warnings": [],
        "errors": [],
        "extraIndexEntries": [],
        "missingIndexEntries": [],
        "corruptRecords": [],
    };
    assert_eq!(without(&reply, &["uuid", "indexDetails"]), expected);
    let details = reply.get_document("indexDetails").expect("details");
    assert!(
        details
            .get_document("a_1")
            .and_then(|index| index.get_bool("valid"))
            .expect("valid")
    );
}

#[tokio::test]
async fn bad_arguments_are_refused() {
    let shell = Shell::new().await;
    shell.ok(rawdoc! { "create": "c" }).await;
    for (command, expected) in [
        (rawdoc! { "validate": "none" }, 26),
        (rawdoc! { "validate": "c", "repair": true }, 72),
        (rawdoc! { "validate": "c", "full": true, "metadata": true }, 72),
        (rawdoc! { "validate": "c", "metadata": true }, 0),
        // As PyMongo sends it.
        (rawdoc! { "validate": "c", "scandata": false, "full": true }, 0),
        (rawdoc! { "validate": "c", "foo": true }, 40415),
    ] {
        assert_eq!(shell.code(command.clone()).await, expected, "{command:?}");
    }
}
