#![expect(clippy::needless_pass_by_value, reason = "tests read better with json!(…) in place")]

use proptest::prelude::*;
use serde_json::json;

use super::*;

mod indexing;
mod replace;
mod search;

/// A definition with these members in addition to an id and a partition key.
fn with(members: Value) -> Value {
    let mut definition = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    let Value::Object(members) = members else {
        panic!("members are an object")
    };
    definition.as_object_mut().unwrap().extend(members);
    definition
}

fn read(members: Value) -> ContainerProperties {
    let definition = with(members);
    ContainerProperties::from_json(&definition).unwrap_or_else(|error| panic!("{definition}: {error}"))
}

fn refusal(members: Value) -> String {
    let definition = with(members);
    let error = ContainerProperties::from_json(&definition).expect_err(&definition.to_string());
    assert_eq!(error.kind, ErrorKind::BadRequest, "{definition}");
    error.to_string()
}

fn written(members: Value) -> Value {
    Value::Object(read(members).to_json())
}

fn default_policy() -> Value {
    json!({
        "indexingMode": "consistent", "automatic": true,
        "includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/\"_etag\"/?"}],
    })
}

/// A definition with every member.
fn everything() -> Value {
    json!({
        "indexingPolicy": {
            "indexingMode": "consistent", "automatic": true,
            "includedPaths": [{"path": "/a/?"}, {"path": "/list/[]/b/*"}],
            "excludedPaths": [{"path": "/*"}, {"path": "/\"_etag\"/?"}],
            "compositeIndexes": [[{"path": "/a", "order": "ascending"}, {"path": "/b/c", "order": "descending"}]],
            "spatialIndexes": [{"path": "/area/*", "types": ["Point", "LineString", "Polygon", "MultiPolygon"],
                                "boundingBox": {"xmin": -10, "ymin": -20.5, "xmax": 10, "ymax": 20}}],
            "vectorIndexes": [{"path": "/v", "type": "diskANN", "quantizerType": "product", "quantizationByteSize": 8,
                               "indexingSearchListSize": 50, "vectorIndexShardKey": ["/city"],
                               "vectorIndexShardKeys": ["/city", "/street"]}],
            "fullTextIndexes": [{"path": "/text"}],
        },
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/a", "/b"]}]},
        "conflictResolutionPolicy": {"mode": "Custom", "conflictResolutionPath": "", "conflictResolutionProcedure": "p"},
        "geospatialConfig": {"type": "Geometry"},
        "defaultTtl": 60,
        "analyticalStorageTtl": -1,
        "computedProperties": [{"name": "lower", "query": "SELECT VALUE LOWER(c.a) FROM c"}],
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [
            {"path": "/v", "dataType": "float32", "dimensions": 256, "distanceFunction": "cosine"},
        ]},
        "fullTextPolicy": {
            "defaultLanguage": "en-US", "package": "standard",
            "defaultSpec": {"language": "fr-FR", "tokenizer": "word", "filters": ["stop", "lowercase", "stem"],
                            "stopWordListKind": "basic", "addStopWords": []},
            "fullTextPaths": [{"path": "/text", "language": "de-DE", "tokenizer": "word"}],
        },
        "changeFeedPolicy": {"retentionDuration": 10},
        "clientEncryptionPolicy": {"includedPaths": [
            {"path": "/secret", "clientEncryptionKeyId": "k", "encryptionType": "Randomized",
             "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256"},
        ], "policyFormatVersion": 1},
        "dataMaskingPolicy": {"isPolicyEnabled": true, "includedPaths": [{"path": "/secret", "strategy": "Default"}]},
    })
}

#[test]
fn the_minimal_definition_gets_the_defaults_of_the_service() {
    let expected = json!({
        "id": "c",
        "indexingPolicy": default_policy(),
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "uniqueKeyPolicy": {"uniqueKeys": []},
        "conflictResolutionPolicy":
            {"mode": "LastWriterWins", "conflictResolutionPath": "/_ts", "conflictResolutionProcedure": ""},
        "geospatialConfig": {"type": "Geography"},
    });
    // Compared as text, because the order matters too.
    assert_eq!(written(json!({})).to_string(), expected.to_string());
    assert_eq!(
        read(json!({})),
        ContainerProperties::new("c", read(json!({})).partition_key)
    );
}

#[test]
fn everything_that_was_sent_comes_back() {
    assert_eq!(written(everything()), with(everything()));
}

#[test]
fn null_and_unknown_members_count_as_absent() {
    // TTL-214, TTL-220
    let members = json!({
        "indexingPolicy": null, "uniqueKeyPolicy": null, "defaultTtl": null, "analyticalStorageTtl": null, "ttlPropertyPath": null,
        "computedProperties": null, "vectorEmbeddingPolicy": null, "DefaultTimeToLive": 0, "_ts": 1, "createMode": "x",
    });
    assert_eq!(written(members), written(json!({})));
}

#[test]
fn members_of_the_wrong_type_are_refused_by_name() {
    let members = [
        "indexingPolicy",
        "uniqueKeyPolicy",
        "conflictResolutionPolicy",
        "geospatialConfig",
        "analyticalStorageTtl",
        "computedProperties",
        "vectorEmbeddingPolicy",
        "fullTextPolicy",
        "changeFeedPolicy",
        "clientEncryptionPolicy",
        "dataMaskingPolicy",
        "ttlPropertyPath",
    ];
    for member in members {
        for value in [json!("x"), json!(true), json!(1.5)] {
            let message = refusal(json!({ member: value }));
            assert!(
                message.contains("One of the specified inputs is invalid") && message.contains(member),
                "{message}"
            );
        }
    }
    for inner in [
        json!({"indexingPolicy": {"indexingMode": 1}}),
        json!({"indexingPolicy": {"indexingMode": "eager"}}),
        json!({"indexingPolicy": {"automatic": "true"}}),
        json!({"indexingPolicy": {"includedPaths": {}}}),
        json!({"indexingPolicy": {"includedPaths": ["/*"]}}),
        json!({"indexingPolicy": {"excludedPaths": [{}]}}),
        json!({"indexingPolicy": {"compositeIndexes": [{}]}}),
        json!({"indexingPolicy": {"spatialIndexes": [{"path": "/a/*"}]}}),
        json!({"indexingPolicy": {"spatialIndexes": [{"path": "/a/*", "types": []}]}}),
        json!({"indexingPolicy": {"spatialIndexes": [{"path": "/a/*", "types": ["Circle"]}]}}),
        json!({"uniqueKeyPolicy": {"uniqueKeys": {}}}),
        json!({"uniqueKeyPolicy": {"uniqueKeys": [{}]}}),
        json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["a"]}]}}),
        json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/a", "/\"a\""]}]}}),
        json!({"conflictResolutionPolicy": {"mode": "FirstWriterWins"}}),
        json!({"geospatialConfig": {"type": "Flat"}}),
        json!({"changeFeedPolicy": {}}),
        json!({"changeFeedPolicy": {"retentionDuration": -1}}),
        json!({"computedProperties": {}}),
        json!({"computedProperties": [{"name": "a"}]}),
        json!({"computedProperties": [{"name": "_ts", "query": "SELECT VALUE 1 FROM c"}]}),
        json!({"computedProperties": [{"name": "a", "query": "q"}, {"name": "a", "query": "q"}]}),
        json!({"clientEncryptionPolicy": {"policyFormatVersion": 3}}),
        json!({"clientEncryptionPolicy": {"includedPaths": [{"path": "/a/b"}]}}),
    ] {
        assert!(refusal(inner).contains("One of the specified inputs is invalid"));
    }
}

#[test]
fn ids_and_partition_keys_are_required() {
    let error = |definition| ContainerProperties::from_json(&definition).unwrap_err();
    let key = json!({"paths": ["/pk"]});
    assert!(
        error(json!({"partitionKey": key}))
            .to_string()
            .contains("'id; ' - are missing")
    );
    assert_eq!(error(json!({"id": 1, "partitionKey": key})).kind, ErrorKind::BadRequest);
    assert_eq!(
        error(json!({"id": "a/b", "partitionKey": key})).kind,
        ErrorKind::BadRequest
    );
    assert_eq!(error(json!({"id": "c"})).kind, ErrorKind::PartitionKeyMissing);
    assert_eq!(error(json!([])).kind, ErrorKind::BadRequest);
}

#[test]
fn default_ttl_is_minus_one_or_a_positive_whole_number() {
    // TTL-212, TTL-213
    assert_eq!(read(json!({"defaultTtl": -1})).policy, Policy::OwnOnly);
    assert_eq!(read(json!({"defaultTtl": 20.0})).policy, Policy::After(20));
    assert_eq!(
        read(json!({"defaultTtl": 2_147_483_647})).policy,
        Policy::After(2_147_483_647)
    );
    for value in [
        json!(0),
        json!(-2),
        json!(-10),
        json!(1.5),
        json!(2_147_483_648_i64),
        json!("5"),
        json!(true),
        json!([]),
        json!({}),
    ] {
        let message = refusal(json!({"defaultTtl": value}));
        assert!(
            message.contains("defaultTtl") && message.contains(&value.to_string()),
            "{message}"
        );
    }
}

#[test]
fn analytical_ttl_is_kept_and_checked() {
    // TTL-223
    for value in [-1, 0, 1, 2_147_483_647_i64] {
        assert_eq!(
            written(json!({"analyticalStorageTtl": value}))["analyticalStorageTtl"],
            json!(value)
        );
    }
    for value in [json!(-10), json!(2_147_483_648_i64), json!(0.5), json!("1")] {
        assert!(refusal(json!({"analyticalStorageTtl": value})).contains("analyticalStorageTtl"));
    }
}

#[test]
fn another_base_time_than_the_last_write_is_refused() {
    // TTL-222
    assert!(refusal(json!({"ttlPropertyPath": "/creationDate", "defaultTtl": 10})).contains("ttlPropertyPath"));
}

#[test]
fn ttl_needs_an_index() {
    // TTL-079, TTL-080, TTL-221
    let none = json!({"indexingMode": "None", "automatic": false});
    for ttl in [-1, 100] {
        assert!(refusal(json!({"indexingPolicy": none, "defaultTtl": ttl})).contains("defaultTtl"));
    }
    assert_eq!(
        read(json!({"indexingPolicy": none})).indexing_policy.mode,
        IndexingMode::None
    );
    let excluded = json!({"excludedPaths": [{"path": "/*"}, {"path": "/ttl/?"}]});
    assert_eq!(
        read(json!({"indexingPolicy": excluded, "defaultTtl": -1})).policy,
        Policy::OwnOnly
    );
}

#[test]
fn unique_keys_have_their_limits() {
    let key = |n: usize, paths: usize| json!({"paths": (0..paths).map(|p| format!("/k{n}/p{p}")).collect::<Vec<_>>()});
    let policy = |keys: Vec<Value>| json!({"uniqueKeyPolicy": {"uniqueKeys": keys}});
    assert_eq!(
        read(policy((0..10).map(|n| key(n, 16)).collect())).unique_keys.len(),
        10
    );
    assert!(refusal(policy((0..11).map(|n| key(n, 1)).collect())).contains("at most 10"));
    assert!(refusal(policy(vec![key(0, 17)])).contains("1 to 16"));
    assert!(refusal(policy(vec![key(0, 0)])).contains("1 to 16"));
}

#[test]
fn computed_properties_end_at_twenty() {
    let properties = |n: usize| json!({"computedProperties": (0..n).map(|n| json!({"name": format!("p{n}"), "query": "q"})).collect::<Vec<_>>()});
    assert_eq!(read(properties(20)).computed_properties.len(), 20);
    assert!(refusal(properties(21)).contains("at most 20"));
}

fn embedding(changes: Value) -> Value {
    let mut embedding =
        json!({"path": "/vector1", "dataType": "float32", "dimensions": 256, "distanceFunction": "euclidean"});
    embedding
        .as_object_mut()
        .unwrap()
        .extend(changes.as_object().unwrap().clone());
    embedding
}

fn vectors(embedding: Value, index: Value) -> Value {
    json!({"vectorEmbeddingPolicy": {"vectorEmbeddings": [embedding]}, "indexingPolicy": {"vectorIndexes": [index]}})
}

#[test]
fn views_are_not_pretended() {
    let definition = with(json!({"materializedViewDefinition": {"sourceCollectionId": "x", "definition": "SELECT 1"}}));
    let error = ContainerProperties::from_json(&definition).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotSupported);
    assert!(error.to_string().contains("materializedViewDefinition"), "{error}");
}

/// Random members, with values of any type, including all members that the reader knows.
fn member() -> impl Strategy<Value = (String, Value)> {
    let known = with(everything());
    let names: Vec<String> = known
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .chain(["ttlPropertyPath".to_owned()])
        .collect();
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[/*?a\\[\\]\"]{0,6}".prop_map(Value::from),
    ];
    let value = scalar.prop_recursive(3, 16, 4, |inner| {
        let words = prop::sample::select(vec![
            "path",
            "paths",
            "includedPaths",
            "excludedPaths",
            "compositeIndexes",
            "spatialIndexes",
            "types",
            "uniqueKeys",
            "type",
            "kind",
            "indexingMode",
            "vectorIndexes",
            "vectorEmbeddings",
            "fullTextPaths",
            "name",
            "query",
            "boundingBox",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(words, inner, 0..4).prop_map(|members| Value::Object(
                members
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect()
            )),
        ]
    });
    (prop::sample::select(names), value)
}

proptest! {
    #[test]
    fn any_definition_is_read_or_refused_and_reads_back(members in prop::collection::vec(member(), 0..4)) {
        let mut definition = with(everything());
        definition.as_object_mut().unwrap().extend(members);
        if let Ok(properties) = ContainerProperties::from_json(&definition) {
            let stored = Value::Object(properties.to_json());
            prop_assert_eq!(ContainerProperties::from_json(&stored), Ok(properties));
        }
    }
}
