use super::*;
use crate::commands::fixture::{Shell, without};

#[tokio::test]
async fn collections_are_listed_with_their_options() {
    let shell = Shell::new().await;
    shell.ok(rawdoc! { "create": "a" }).await;
    let create = rawdoc! {
        "create": "b",
        "validationAction": "warn",
        "validator": { "x": 1 },
        "changeStreamPreAndPostImages": { "enabled": true },
    };
    shell.ok(create).await;
    let listed = shell.first_batch(rawdoc! { "listCollections": 1, "cursor": {} }).await;
    assert_eq!(listed.len(), 2);
    let info = listed[0].get_document("info").expect("info");
    assert!(!info.get_bool("readOnly").expect("a boolean"));
    let uuid = info.get_binary("uuid").expect("a uuid");
    assert_eq!((uuid.subtype, uuid.bytes.len()), (bson::spec::BinarySubtype::Uuid, 16));
    let expected = rawdoc! {
        "name": "a",
        "type": "collection",
        "options": {},
        "idIndex": { "v": 2, "key": { "_id": 1 }, "name": "_id_" },
    };
    assert_eq!(without(&listed[0], &["info"]), expected);
    let options = rawdoc! {
        "changeStreamPreAndPostImages": { "enabled": true },
        "validator": { "x": 1 },
        "validationAction": "warn",
    };
    assert_eq!(listed[1].get_document("options").expect("options"), &*options);
}

#[tokio::test]
async fn a_filter_uses_any_field_and_name_only_shows_two() {
    let shell = Shell::new().await;
    for name in ["a", "b", "c"] {
        shell.ok(rawdoc! { "create": name }).await;
    }
    let cases = [
        (
            rawdoc! { "listCollections": 1, "filter": { "name": "b" }, "nameOnly": true },
            vec!["b"],
        ),
        (
            rawdoc! { "listCollections": 1.0, "filter": { "name": { "$in": ["c", "x"] } } },
            vec!["c"],
        ),
        (
            rawdoc! { "listCollections": 1, "filter": { "idIndex.name": "_id_" } },
            vec!["a", "b", "c"],
        ),
        (rawdoc! { "listCollections": 1, "filter": { "type": "view" } }, vec![]),
        (
            rawdoc! { "listCollections": 1, "nameOnly": true, "authorizedCollections": true },
            vec!["a", "b", "c"],
        ),
    ];
    for (command, expected) in cases {
        let listed = shell.first_batch(command.clone()).await;
        let names: Vec<&str> = listed
            .iter()
            .map(|entry| entry.get_str("name").expect("a name"))
            .collect();
        assert_eq!(names, expected, "{command:?}");
    }
    let listed = shell
        .first_batch(rawdoc! { "listCollections": 1, "nameOnly": true })
        .await;
    assert_eq!(listed[0], rawdoc! { "name": "a", "type": "collection" });
    assert_eq!(
        shell
            .first_batch(rawdoc! { "listCollections": 1, "$db": "none" })
            .await
            .len(),
        0
    );
}

#[tokio::test]
async fn the_cursor_goes_on() {
    let shell = Shell::new().await;
    for name in ["a", "b", "c"] {
        shell.ok(rawdoc! { "create": name }).await;
    }
    let reply = shell
        .ok(rawdoc! { "listCollections": 1, "nameOnly": true, "cursor": { "batchSize": 2 } })
        .await;
    let cursor = reply.get_document("cursor").expect("a cursor");
    assert_eq!(cursor.get_str("ns").expect("a name"), "db.$cmd.listCollections");
    let id = cursor.get_i64("id").expect("an i64");
    let more = shell
        .ok(rawdoc! { "getMore": id, "collection": "$cmd.listCollections" })
        .await;
    let rest = more
        .get_document("cursor")
        .and_then(|cursor| cursor.get_array("nextBatch"));
    let expected = rawdoc! { "nextBatch": [{ "name": "c", "type": "collection" }] };
    assert_eq!(
        rest.expect("a batch"),
        expected.get_array("nextBatch").expect("an array")
    );
}
