//! Exports and imports of collections (TTL-275): documents keep their bytes, their `_ts` and their ends.

use bolide_core::{CollectionDefinition, ExportPosition, ReadScope, ShardKey};
use bolide_model::ErrorKind;
use bolide_model::epk::Epk;
use bolide_model::ttl::Policy;
use bolide_mql::bson::{DateTime, RawDocumentBuf, rawdoc};
use bolide_mql::index::IndexDefinition;
use bytes::Bytes;
use futures_util::stream;

use super::fixture::{START, TestCollection, date_index, dated, document_id};

/// Returns the lines of an export.
async fn export(test: &TestCollection) -> String {
    let mut text = Vec::new();
    let mut position = Some(ExportPosition::start(&test.collection));
    while let Some(from) = position {
        let ctx = test.account.begin_admin().await.expect("a clock");
        let page = test.account.export(&ctx, &test.collection, from).await.expect("a page");
        text.extend_from_slice(&page.lines);
        position = page.next;
    }
    String::from_utf8(text).expect("UTF-8")
}

async fn import(test: &TestCollection, text: &str) -> Result<u64, (ErrorKind, String)> {
    let parts = stream::iter([Ok(Bytes::copy_from_slice(text.as_bytes()))]);
    let imported = test.account.import(&test.collection, parts).await;
    imported.map_err(|error| {
        let text = error.to_string();
        (error.kind, text)
    })
}

async fn document(test: &TestCollection, id: i32) -> Option<RawDocumentBuf> {
    let scope = ReadScope::new(test.account.begin().await.expect("a clock").now);
    let found = scope
        .find(&test.collection, &Epk::start(), &document_id(id))
        .await
        .expect("a read");
    found.map(|found| found.document().to_owned())
}

fn core_index(seconds: i32) -> RawDocumentBuf {
    rawdoc! {"key": {"_ts": 1}, "name": "_ts_1", "expireAfterSeconds": seconds}
}

#[tokio::test]
async fn what_is_exported_and_imported_has_the_same_documents_times_and_ends() {
    let from = TestCollection::new().await;
    from.create_index(core_index(100)).await.unwrap().unwrap();
    from.create_index(date_index(0)).await.unwrap().unwrap();
    let plain =
        rawdoc! {"_id": 1, "n": 7_i64, "d": 1.0, "at": DateTime::from_millis(START + 50_500), "e": {"f": [1, "x"]}};
    // Extended JSON cannot tell these fields from a date.
    let dollar = rawdoc! {"_id": 2, "v": {"$date": {"$numberLong": "1"}}, "ttl": 20};
    from.insert(plain.clone()).await.unwrap();
    from.set_clock(START + 3_000);
    from.insert(dollar.clone()).await.unwrap();
    from.insert(dated(3, START + 3_500)).await.unwrap();
    from.set_clock(START + 4_000);
    let text = export(&from).await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "document 3 has ended: {text}");
    let head = r#"{"_ts":100,"document":{"_id":{"$numberInt":"1"},"n":{"$numberLong":"7"},"#;
    assert!(lines[0].starts_with(head), "{text}");
    assert!(lines[1].starts_with(r#"{"_ts":103,"bson":""#), "{text}");

    let to = TestCollection::new().await;
    to.create_index(core_index(100)).await.unwrap().unwrap();
    to.create_index(date_index(0)).await.unwrap().unwrap();
    to.set_clock(START + 5_000);
    assert_eq!(import(&to, &text).await, Ok(2));
    assert_eq!(document(&to, 1).await.as_deref(), Some(&*plain));
    assert_eq!(document(&to, 2).await.as_deref(), Some(&*dollar));
    assert_eq!(export(&to).await, text);
    for (millis, ids) in [
        (START + 22_999, &[1, 2][..]),
        (START + 23_000, &[1][..]),
        (START + 50_499, &[1][..]),
        (START + 50_500, &[][..]),
    ] {
        to.set_clock(millis);
        assert_eq!(to.ids().await, ids, "at {millis}");
    }
    assert_eq!(to.purge().await, 2);
    let report = to.account.verify(&to.collection).await.unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
    // The numbers go on behind those of the import.
    to.insert(rawdoc! {"_id": 1}).await.unwrap();
    assert_eq!(to.ids().await, [1]);
}

#[tokio::test]
async fn a_default_time_to_live_counts_from_the_imported_time() {
    let to = TestCollection::new().await;
    to.create_index(core_index(100)).await.unwrap().unwrap();
    to.set_clock(START + 60_000);
    // In any order; a time in the future becomes the present.
    let text = concat!(
        r#"{"_ts":160,"document":{"_id":{"$numberInt":"1"}}}"#,
        "\n",
        r#"{"document":{"_id":{"$numberInt":"2"}},"_ts":70}"#,
        "\n\n",
        r#"{"_ts":9999,"document":{"_id":{"$numberInt":"3"},"ttl":{"$numberInt":"-1"}}}"#,
    );
    assert_eq!(import(&to, text).await, Ok(3));
    to.set_clock(START + 69_999);
    assert_eq!(to.ids().await, [2, 1, 3]);
    to.set_clock(START + 70_000);
    assert_eq!(to.ids().await, [1, 3]);
    to.set_clock(START + 160_000);
    assert_eq!(to.ids().await, [3]);
    assert!(export(&to).await.starts_with(r#"{"_ts":160,"#));
}

#[tokio::test]
async fn lines_that_are_no_documents_are_refused_and_nothing_is_imported() {
    let unique = rawdoc! {"key": {"u": 1}, "name": "u_1", "unique": true};
    let good = r#"{"_ts":1,"document":{"_id":{"$numberInt":"1"},"u":{"$numberInt":"5"}}}"#;
    // The same `_id` and the same unique key, as other types of numbers.
    let twin = r#"{"_ts":2,"document":{"_id":{"$numberDouble":"1.0"},"u":{"$numberInt":"6"}}}"#;
    let unique_twin = r#"{"_ts":2,"document":{"_id":{"$numberInt":"2"},"u":{"$numberLong":"5"}}}"#;
    let cases = [
        ("7", ErrorKind::BadRequest, "line 2: it is not an object"),
        ("{", ErrorKind::BadRequest, "line 2: it is not JSON"),
        (r#"{"_id":1}"#, ErrorKind::BadRequest, "_ts"),
        (r#"{"_ts":1}"#, ErrorKind::BadRequest, "document or bson"),
        (r#"{"_ts":-1,"document":{"_id":null}}"#, ErrorKind::BadRequest, "_ts"),
        (
            r#"{"_ts":1,"document":{"_id":1}}"#,
            ErrorKind::BadRequest,
            "extended JSON",
        ),
        (
            r#"{"_ts":1,"document":{"_id":null},"x":1}"#,
            ErrorKind::BadRequest,
            "members",
        ),
        (r#"{"_ts":1,"document":{"a":null}}"#, ErrorKind::BadRequest, "_id"),
        (
            r#"{"_ts":1,"document":{"_id":null,"_id":true}}"#,
            ErrorKind::BadRequest,
            "_id",
        ),
        (r#"{"_ts":1,"document":{"_id":[]}}"#, ErrorKind::BadRequest, "_id"),
        (r#"{"_ts":1,"bson":"AAAA"}"#, ErrorKind::BadRequest, "Base64"),
        // A document of 8 bytes, in which the value of a field is missing.
        (r#"{"_ts":1,"bson":"CAAAABBhAAA="}"#, ErrorKind::BadRequest, "line 2"),
        (twin, ErrorKind::Conflict, "lines 1 and 2 hold the same id"),
        (
            unique_twin,
            ErrorKind::Conflict,
            "lines 1 and 2 hold the same unique key",
        ),
    ];
    let to = TestCollection::new().await;
    to.create_index(unique).await.unwrap().unwrap();
    for (line, kind, part) in cases {
        let (found, text) = import(&to, &format!("{good}\n{line}\n")).await.unwrap_err();
        assert_eq!(found, kind, "{line}: {text}");
        assert!(text.contains(part), "{line}: {text}");
        assert!(to.ids().await.is_empty());
    }
    assert_eq!(import(&to, good).await, Ok(1));
    assert!(
        to.insert(rawdoc! {"_id": 4, "u": 5.0}).await.is_err(),
        "the unique key is taken"
    );
    assert_eq!(to.ids().await, [1]);
}

#[tokio::test]
async fn a_collection_that_had_documents_takes_no_import() {
    let line = r#"{"_ts":1,"document":{"_id":{"$numberInt":"1"}}}"#;
    let written = TestCollection::new().await;
    written.insert(rawdoc! {"_id": 5}).await.unwrap();
    assert!(written.delete(5).await);
    assert_eq!(import(&written, line).await.unwrap_err().0, ErrorKind::BadRequest);
    assert!(written.ids().await.is_empty());
}

#[tokio::test]
async fn documents_of_sharded_collections_are_imported_where_their_shard_key_says() {
    let mut test = TestCollection::new().await;
    let definition = CollectionDefinition::new(RawDocumentBuf::new(), None, IndexDefinition::id_index(None).unwrap());
    let definition = definition.sharded(Some(ShardKey::parse("k").unwrap()));
    let created = test.account.create_collection("db", "s", definition, Policy::Off);
    test.collection = created.await.unwrap();
    test.account.split(&test.collection, None).await.unwrap();
    let line = |id: u8, key: u8| {
        format!(
            r#"{{"_ts":50,"document":{{"_id":{{"$numberInt":"{id}"}},"k":{{"$numberInt":"{key}"}}}}}}
"#
        )
    };
    let twins = format!("{}{}", line(1, 1), line(1, 1));
    assert_eq!(import(&test, &twins).await.unwrap_err().0, ErrorKind::Conflict);
    let keyless = r#"{"_ts":1,"document":{"_id":{"$numberInt":"1"}}}"#;
    assert_eq!(import(&test, keyless).await.unwrap_err().0, ErrorKind::BadRequest);
    let lines: Vec<String> = (1..=8).flat_map(|key| [line(1, key), line(2, key)]).collect();
    assert_eq!(import(&test, &lines.concat()).await, Ok(16));
    let mut exported: Vec<String> = export(&test).await.lines().map(|line| format!("{line}\n")).collect();
    exported.sort();
    let mut expected = lines;
    expected.sort();
    assert_eq!(exported, expected);
    let used = test.account.range_usage(&test.collection).await.unwrap();
    assert!(
        used.len() == 2 && used.iter().all(|(_, usage)| usage.items > 0),
        "{used:?}"
    );
    let report = test.account.verify(&test.collection).await.unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}
