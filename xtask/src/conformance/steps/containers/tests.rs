use super::*;

fn body_of(step: Value) -> Value {
    definition(&serde_json::from_value(step).expect("a definition"))
}

#[test]
fn a_plain_definition_sends_only_its_id_and_partition_key() {
    let expected = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    assert_eq!(body_of(json!({"id": "c"})), expected);
}

#[test]
fn a_default_ttl_of_null_is_sent_as_null() {
    let body = body_of(json!({"id": "c", "defaultTtl": null}));
    assert_eq!(body.get("defaultTtl"), Some(&Value::Null));
    assert_eq!(body_of(json!({"id": "c"})).get("defaultTtl"), None);
}

#[test]
fn indexing_mode_none_is_not_automatic() {
    let body = body_of(json!({"id": "c", "indexingMode": "none"}));
    assert_eq!(
        body["indexingPolicy"],
        json!({"indexingMode": "none", "automatic": false})
    );
}

#[test]
fn each_unique_path_is_a_key_of_its_own() {
    let body = body_of(json!({"id": "c", "uniqueKeys": ["/a", "/b"]}));
    assert_eq!(
        body["uniqueKeyPolicy"]["uniqueKeys"],
        json!([{"paths": ["/a"]}, {"paths": ["/b"]}])
    );
}

#[test]
fn the_documents_count_is_not_mistaken_for_the_documents_size() {
    assert_eq!(
        documents_count("documentSize=1;documentsSize=7;documentsCount=2;collectionSize=9;"),
        Some(2)
    );
    assert_eq!(documents_count("documentsSize=7"), None);
}
