use super::*;

#[test]
fn paths_without_an_index_are_potential() {
    let usage = QueryUsage {
        indexed: vec!["/name".to_owned()],
        unindexed: vec!["/_etag".to_owned()],
        sort: vec![("/a".to_owned(), false), ("/b".to_owned(), true)],
        advice: Vec::new(),
    };
    assert_eq!(
        of_text(&usage).to_string(),
        r#"{"UtilizedIndexes":{"SingleIndexes":[{"IndexSpec":"/name/?"}],"CompositeIndexes":[{"IndexSpecs":["/a ASC","/b DESC"]}]},"#.to_owned()
            + r#""PotentialIndexes":{"SingleIndexes":[{"IndexSpec":"/_etag/?"}],"CompositeIndexes":[]}}"#
    );
}

#[test]
fn the_first_components_of_the_partition_key_served() {
    let definition = json!({"id": "c", "partitionKey": {"paths": ["/a", "/b"], "kind": "MultiHash", "version": 2}});
    let properties = ContainerProperties::from_json(&definition).unwrap();
    assert_eq!(
        served(&properties, 1, None).to_string(),
        r#"{"UtilizedSingleIndexes":[{"FilterExpression":"","IndexSpec":"/a/?","FilterPreciseSet":true,"IndexPreciseSet":true,"#.to_owned()
            + r#""IndexImpactScore":"High"}],"PotentialSingleIndexes":[],"UtilizedCompositeIndexes":[],"PotentialCompositeIndexes":[]}"#
    );
}

#[test]
fn a_composite_index_that_was_read_is_named_by_its_paths() {
    let definition = json!({"id": "c", "partitionKey": {"paths": ["/a"], "kind": "Hash", "version": 2}});
    let properties = ContainerProperties::from_json(&definition).unwrap();
    let metrics = served(&properties, 1, Some("/a ASC, /at DESC"));
    assert_eq!(metrics["UtilizedSingleIndexes"][0]["IndexSpec"], "/a/?");
    assert_eq!(
        metrics["UtilizedCompositeIndexes"],
        json!([{"IndexSpecs": ["/a ASC", "/at DESC"], "IndexPreciseSet": true, "IndexImpactScore": "High"}])
    );
}

#[test]
fn the_index_that_was_read_served() {
    let definition = json!({"id": "c", "partitionKey": {"paths": ["/a"], "kind": "Hash", "version": 2}});
    let properties = ContainerProperties::from_json(&definition).unwrap();
    let metrics = served(&properties, 0, Some("/v/?"));
    assert_eq!(metrics["UtilizedSingleIndexes"][0]["IndexSpec"], "/v/?");
    assert_eq!(metrics["UtilizedSingleIndexes"].as_array().unwrap().len(), 1);
}
