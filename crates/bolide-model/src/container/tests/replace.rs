use super::*;

fn replace(old: Value, new: Value) -> Result<ContainerProperties> {
    let sent = with(new);
    read(old).replace(ContainerProperties::from_json(&sent)?, &sent)
}

#[test]
fn replacing_with_what_was_read_changes_nothing() {
    assert_eq!(replace(everything(), everything()), Ok(read(everything())));
}

#[test]
fn replacing_resets_what_is_not_sent() {
    let new = replace(
        json!({"defaultTtl": 5, "analyticalStorageTtl": -1, "computedProperties": [{"name": "a", "query": "q"}],
        "changeFeedPolicy": {"retentionDuration": 5}, "fullTextPolicy": {}, "indexingPolicy": {"excludedPaths": [{"path": "/*"}]}}),
        json!({}),
    );
    assert_eq!(new, Ok(read(json!({}))));
}

#[test]
fn replacing_keeps_what_has_no_off() {
    let old = read(everything());
    let mut sent = everything();
    for member in ["conflictResolutionPolicy", "geospatialConfig"] {
        sent.as_object_mut().unwrap().remove(member);
    }
    // Geometry, because an index with a bounding box is also valid for geography.
    assert_eq!(replace(everything(), sent), Ok(old));
}

#[test]
fn fixed_members_cannot_be_replaced() {
    let kind = |new: Value| replace(everything(), new).unwrap_err().kind;
    let changed = |member: &str, value: Value| {
        let mut sent = everything();
        sent[member] = value;
        sent
    };
    assert_eq!(kind(changed("id", json!("other"))), ErrorKind::BadRequest);
    assert_eq!(
        kind(changed("partitionKey", json!({"paths": ["/other"], "version": 2}))),
        ErrorKind::BadRequest
    );
    assert_eq!(
        kind(changed("partitionKey", json!({"paths": ["/pk"], "version": 1}))),
        ErrorKind::BadRequest
    );
    assert_eq!(kind(changed("uniqueKeyPolicy", Value::Null)), ErrorKind::Forbidden);
    assert_eq!(
        kind(changed(
            "uniqueKeyPolicy",
            json!({"uniqueKeys": [{"paths": ["/b", "/a"]}]})
        )),
        ErrorKind::Forbidden
    );
    assert_eq!(
        kind(changed("clientEncryptionPolicy", json!({"policyFormatVersion": 1}))),
        ErrorKind::BadRequest
    );
    assert_eq!(
        replace(
            json!({}),
            json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/a"]}]}})
        )
        .unwrap_err()
        .kind,
        ErrorKind::Forbidden
    );
}

#[test]
fn a_partition_key_without_version_keeps_the_one_there_is() {
    let replaced = replace(json!({}), json!({"partitionKey": {"paths": ["/pk"], "kind": "Hash"}})).unwrap();
    assert_eq!(replaced.partition_key, read(json!({})).partition_key);
}

#[test]
fn vector_paths_are_added_but_not_changed() {
    let index = json!({"path": "/vector1", "type": "flat"});
    let old = || vectors(embedding(json!({})), index.clone());
    let message = |new: Value| replace(old(), new).unwrap_err().to_string();
    let without_policy = json!({"indexingPolicy": {"vectorIndexes": [index]}});
    assert!(
        message(without_policy)
            .contains("The Vector Indexing Policy's path::/vector1 not matching in Embedding's path.")
    );
    let other_type = vectors(
        embedding(json!({})),
        json!({"path": "/vector1", "type": "quantizedFlat"}),
    );
    assert!(
        message(other_type)
            .contains("Paths in existing vector indexing policy cannot be modified in Collection Replace")
    );
    let other_dimensions = vectors(embedding(json!({"dimensions": 384})), index.clone());
    assert!(
        message(other_dimensions)
            .contains("Paths in existing embedding policy cannot be modified in Collection Replace")
    );
    let mut more = old();
    more["vectorEmbeddingPolicy"]["vectorEmbeddings"]
        .as_array_mut()
        .unwrap()
        .push(embedding(json!({"path": "/vector2"})));
    more["indexingPolicy"]["vectorIndexes"]
        .as_array_mut()
        .unwrap()
        .push(json!({"path": "/vector2", "type": "flat"}));
    assert_eq!(replace(old(), more.clone()), Ok(read(more)));
}
