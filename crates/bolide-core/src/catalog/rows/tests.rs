//! Rows as they are stored, written out by hand: they must stay readable, and writing them again must give the same text.

use serde_json::json;

use super::*;

const DATABASE: DatabaseRid = DatabaseRid::from_bytes([1, 0, 0, 0]);

/// Returns a row of every kind, as version 0.1 writes it.
fn stored() -> Vec<(RowKey, String)> {
    let etag = "00000000000000070000000100000000";
    let container = ContainerRid::new(DATABASE, 1);
    let user = UserRid::new(DATABASE, 1);
    vec![
        (
            RowKey::Account,
            r#"{"nextDatabase":2,"nextOffer":3,"nextPartition":9,"mongoDocumentTtl":false}"#.to_owned(),
        ),
        (
            RowKey::Database(DATABASE),
            format!(
                r#"{{"id":"d","etag":"{etag}","ts":100,"nextContainer":2,"nextUser":2,"offer":{{"number":1,"throughput":{{"maxRu":4000,"increment":null}},"type":"Invalid","etag":"{etag}","ts":100}}}}"#
            ),
        ),
        (
            RowKey::Container(container),
            format!(
                r#"{{"properties":{},"etag":"{etag}","ts":100,"floors":[90,-9223372036854775808],"history":[[50,null],[60,-1],[100,10]],"offer":{{"number":2,"throughput":{{"ru":400}},"type":"S2","etag":"{etag}","ts":100}},"pacing":{{"mode":"provisioned","ru":400.0,"deleteRu":10.5,"countOnlyLoad":true}},"keepsAllVersions":true,"layoutVersion":2,"nextRange":3,"ranges":[{{"id":1,"partition":3,"min":"","max":"1FFF","parents":[0]}},{{"id":2,"partition":4,"min":"1FFF","max":"FF","parents":[0]}}]}}"#,
                container_definition()
            ),
        ),
        (
            RowKey::User(user),
            format!(r#"{{"id":"ada","etag":"{etag}","ts":100,"nextPermission":2}}"#),
        ),
        (
            RowKey::Permission(PermissionRid { user, number: 1 }),
            format!(
                r#"{{"id":"p","mode":"read","resource":"dbs/d/colls/c","partitionKey":"[\"p\"]","etag":"{etag}","ts":100}}"#
            ),
        ),
        (
            RowKey::Script(ChildRid::new(container, ChildKind::Trigger, 7)),
            format!(r#"{{"id":"t","body":"function () {{}}","fires":["pre","ALL"],"etag":"{etag}","ts":100}}"#),
        ),
        (
            RowKey::Script(ChildRid::new(container, ChildKind::StoredProcedure, 8)),
            format!(r#"{{"id":"s","body":"function () {{}}","fires":null,"etag":"{etag}","ts":100}}"#),
        ),
        (
            RowKey::EncryptionKey(EncryptionKeyRid {
                database: DATABASE,
                number: 1,
            }),
            format!(
                r#"{{"properties":{{"id":"k","encryptionAlgorithm":"AEAD","wrappedDataEncryptionKey":"AAEC","keyWrapMetadata":{{"type":"t","name":"n","value":"v","algorithm":"RSA-OAEP"}}}},"cts":90,"etag":"{etag}","ts":100}}"#
            ),
        ),
        (RowKey::Dropped(PartitionId(5)), String::new()),
    ]
}

/// Returns a small definition as the model writes it; the model's own tests check how that is done.
fn container_definition() -> Value {
    let sent = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}, "defaultTtl": 10});
    let properties = bolide_model::container::ContainerProperties::from_json(&sent).expect("a definition");
    Value::Object(properties.to_json())
}

#[test]
fn stored_rows_are_read_and_written_again_as_they_are() {
    for (key, text) in stored() {
        let row = Row::decode(key, text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(str::from_utf8(&row.encode()).unwrap(), text);
    }
}

#[test]
fn a_stored_container_means_what_it_says() {
    let (key, text) = &stored()[2];
    let Ok(Row::Container(row)) = Row::decode(*key, text.as_bytes()) else {
        panic!("no container")
    };
    assert_eq!(row.settings().policy.to_number(), Some(10));
    assert_eq!((row.floors.inherited, row.floors.own), (90, i64::MIN));
    assert_eq!(row.history[1].policy.to_number(), Some(-1));
    assert_eq!(row.placements[1].id, PartitionId(4));
    assert!(row.keeps_all_versions && row.pacing.count_only_load);
    assert_eq!(row.offer.map(|offer| offer.number), Some(2));
}

#[test]
fn keys_are_read_as_they_are_written() {
    for (key, _) in stored() {
        assert_eq!(RowKey::parse(&key.bytes()).unwrap(), key);
    }
    assert_eq!(RowKey::Account.bytes(), b"A"[..]);
    assert_eq!(RowKey::Database(DATABASE).bytes(), b"D\x01\0\0\0"[..]);
    assert_eq!(
        RowKey::Container(ContainerRid::new(DATABASE, 2)).bytes(),
        b"C\x01\0\0\0\x80\0\0\x02"[..]
    );
    assert_eq!(RowKey::Dropped(PartitionId(5)).bytes(), b"X\0\0\0\0\0\0\0\x05"[..]);
    let centroids = RowKey::Centroids(ContainerRid::new(DATABASE, 2), 7);
    assert_eq!(centroids.bytes(), b"V\x01\0\0\0\x80\0\0\x02\0\0\0\x07"[..]);
    assert_eq!(RowKey::parse(&centroids.bytes()).unwrap(), centroids);
    for unknown in [&b"?"[..], b"", b"D\x01", b"AA"] {
        assert_eq!(RowKey::parse(unknown).unwrap_err().kind, ErrorKind::Corrupt);
    }
}

#[test]
fn members_that_earlier_versions_did_not_write_have_defaults() {
    let read = |key: RowKey, text: &str| Row::decode(key, text.as_bytes()).expect("a row");
    let etag = "00000000000000070000000100000000";
    let row = read(RowKey::Account, r#"{"nextDatabase":2,"nextOffer":3,"nextPartition":9}"#);
    assert!(matches!(row, Row::Account(row) if row.mongo_document_ttl));
    let text = format!(
        r#"{{"id":"d","etag":"{etag}","ts":100,"nextContainer":2,"offer":{{"number":1,"throughput":null,"etag":"{etag}","ts":1}}}}"#
    );
    let row = read(RowKey::Database(DATABASE), &text);
    assert!(matches!(row, Row::Database(row) if row.next_user == 1 && row.offer.is_some()));
    let (key, text) = &stored()[7];
    let row = read(*key, &text.replace(r#""cts":90,"#, ""));
    assert!(matches!(row, Row::EncryptionKey(row) if row.created().0 == 100));
    let (key, text) = &stored()[2];
    let row = read(*key, &text.replace(r#""keepsAllVersions":true,"#, ""));
    assert!(matches!(row, Row::Container(row) if !row.keeps_all_versions));
}

/// An older node that writes a row again must keep the members that a newer node added.
#[test]
fn members_of_later_versions_are_kept() {
    for (key, text) in stored() {
        let Some(members) = text.strip_suffix('}') else {
            continue;
        };
        let text = format!(r#"{members},"later":{{"a":[1,2.5,"x",null]}}}}"#);
        let row = Row::decode(key, text.as_bytes()).expect("a row");
        assert_eq!(str::from_utf8(&row.encode()).unwrap(), text);
    }
}

#[test]
fn damaged_rows_are_refused() {
    for (key, text) in stored().into_iter().filter(|(_, text)| !text.is_empty()) {
        for damaged in [&text[..text.len() - 1], "", "[]", "{}"] {
            let error = Row::decode(key, damaged.as_bytes()).expect_err("damage");
            assert_eq!(error.kind, ErrorKind::Corrupt);
        }
    }
}

/// Versions that know no shard keys read the fields of a collection at the top of its member, and must not take a sharded one for an unsharded one.
#[test]
fn a_sharded_collection_is_stored_so_that_earlier_versions_refuse_it() {
    let fields = r#"{"uuid":"00000000-0000-0000-0000-000000000001","options":"BQAAAAA=","indexes":[],"nextIndex":1,"rules":[],"nextRule":1,"private":false}"#;
    let sharded = format!(r#"{{"shardKey":"a.b","sharded":{fields}}}"#);
    let read = |text: &str| serde_json::from_str::<collection::StoredCollection>(text).expect("a collection");
    for (text, shard_key) in [(fields, None), (&*sharded, Some("a.b".to_owned()))] {
        let stored = read(text);
        assert_eq!(serde_json::to_string(&stored).unwrap(), text);
        let definition = stored.definition().expect("a definition");
        assert_eq!(definition.shard_key.map(|shard_key| shard_key.path()), shard_key);
    }
    assert!(serde_json::from_str::<collection::StoredFields>(&sharded).is_err());
}

#[test]
fn composite_indexes_are_stored_with_the_directions_of_their_paths() {
    let (key, text) = &stored()[2];
    let paths = r#"[{"path":"/a/?","descending":false},{"path":"/b/c/?","descending":true}]"#;
    let index = format!(r#"{{"id":3,"composite":{paths},"ready":true,"automatic":false}}"#);
    let text = text.replace(
        "\"layoutVersion\"",
        &format!(r#""indexes":{{"list":[{index}],"next":4}},"layoutVersion""#),
    );
    let row = Row::decode(*key, text.as_bytes()).expect("a row");
    assert_eq!(str::from_utf8(&row.encode()).unwrap(), text);
    let Row::Container(row) = row else {
        panic!("no container")
    };
    assert_eq!(row.indexes.list[0].kind.to_string(), "/a ASC, /b/c DESC");
}

#[test]
fn vector_indexes_are_stored_without_their_centroids() {
    let container = ContainerRid::new(DATABASE, 2);
    let (key, text) = &stored()[2];
    let index = r#"{"id":3,"vector":"/a/v/?","dimensions":2,"similarity":"dotproduct","trained":5000,"ready":true,"automatic":false}"#;
    let indexes = format!(r#""indexes":{{"list":[{index}],"next":4}},"layoutVersion""#);
    let text = text.replace("\"layoutVersion\"", &indexes);
    let row = Row::decode(*key, text.as_bytes()).expect("a row");
    assert_eq!(str::from_utf8(&row.encode()).unwrap(), text);
    let Row::Container(row) = row else {
        panic!("no container")
    };
    let vector = row.indexes.list[0].vector().expect("an index of vectors");
    assert_eq!(
        (
            vector.path.to_string().as_str(),
            vector.dimensions,
            vector.trained_items
        ),
        ("/a/v/?", 2, 5_000)
    );
    assert!(vector.loaded().is_none());

    // Two dimensions; scale 1, squared length 5, codes 1 and -2.
    let centroids = [&[0, 0, 0, 2][..], &1f32.to_be_bytes(), &5f32.to_be_bytes(), &[1, 254]].concat();
    let key = RowKey::Centroids(container, 3);
    let row = Row::decode(key, &centroids).expect("centroids");
    assert_eq!(row.encode(), centroids);
    assert_eq!(Row::decode(key, &centroids[1..]).unwrap_err().kind, ErrorKind::Corrupt);
}
