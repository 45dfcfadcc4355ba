use bson::rawdoc;

use crate::commands::fixture::{Shell, without};

#[tokio::test]
async fn the_size_is_that_of_the_documents() {
    let shell = Shell::new().await;
    shell.insert("c", &[rawdoc! { "_id": 1 }, rawdoc! { "_id": 2 }]).await;
    let reply = shell.ok(rawdoc! { "dataSize": "db.c", "estimate": true }).await;
    let expected = rawdoc! { "estimate": false, "size": 28, "numObjects": 2 };
    assert_eq!(without(&reply, &["millis"]), expected);
    for (command, expected) in [
        (rawdoc! { "dataSize": "db.none" }, 0),
        (rawdoc! { "dataSize": "db" }, 73),
        (rawdoc! { "dataSize": 1 }, 14),
        (rawdoc! { "dataSize": "db.c", "keyPattern": { "_id": 1 } }, 238),
    ] {
        assert_eq!(shell.code(command.clone()).await, expected, "{command:?}");
    }
}
