use super::*;

#[test]
fn vector_indexes_are_refused_in_the_words_of_the_service() {
    let cases = [
        (
            json!({"path": "/vector3", "type": "flat"}),
            "vector3 not matching in Embedding's path",
        ),
        (
            json!({"path": "/vector1", "type": "notFlat"}),
            "Index Type::notFlat is invalid",
        ),
        (
            json!({"path": "/vector1", "type": "quantizedFlat", "quantizationByteSize": 0}),
            "The Vector Indexing Policy parameter QuantizationByteSize value :: 0 is out of range. The allowed range is between 1 and 256.",
        ),
        (
            json!({"path": "/vector1", "type": "diskANN", "indexingSearchListSize": 5}),
            "IndexingSearchListSize value :: 5 is out of range. The allowed range is between 25 and 500.",
        ),
        (
            json!({"path": "/vector1", "type": "diskANN", "vectorIndexShardKey": ["country"]}),
            "The Vector Indexing Policy has an invalid Shard Path: country.",
        ),
        (
            json!({"path": "/vector1", "type": "diskANN", "vectorIndexShardKey": ["/country", "/city", "/zipcode"]}),
            "The number of shard paths defined in the Vector Indexing Policy: 3 exceeds the maximum: 1.",
        ),
        (
            json!({"path": "/vector1", "type": "diskANN", "vectorIndexShardKey": "/country"}),
            "One of the specified inputs is invalid",
        ),
    ];
    for (index, fragment) in cases {
        let message = refusal(vectors(embedding(json!({})), index));
        assert!(message.contains(fragment), "{message}");
    }
    let message = refusal(json!({"indexingPolicy": {"vectorIndexes": [{"path": "/vector1", "type": "flat"}]}}));
    assert!(
        message.contains("vector1 not matching in Embedding's path"),
        "{message}"
    );
    let index = json!({"path": "/vector1", "type": "quantizedFlat", "quantizationByteSize": 513});
    let message = refusal(vectors(embedding(json!({"dimensions": 550})), index));
    assert!(
        message.contains("The Vector Indexing Policy parameter QuantizationByteSize value :: 513 is out of range."),
        "{message}"
    );
    let message = refusal(vectors(
        embedding(json!({"dimensions": 506})),
        json!({"path": "/vector1", "type": "flat"}),
    ));
    assert!(message.contains("Dimensions:506"), "{message}");
}

#[test]
fn vector_embeddings_are_refused_in_the_words_of_the_service() {
    let cases = [
        (
            json!({"dataType": "float33"}),
            "Vector Embedding Policy has an invalid DataType",
        ),
        (
            json!({"dimensions": 8000}),
            "Vector Embedding Policy has Dimensions:8000 which is more than the maximum supported value",
        ),
        (
            json!({"dimensions": -1}),
            "The Vector Embedding Policy has Dimensions:-1",
        ),
        (
            json!({"distanceFunction": "handMeasured"}),
            "The Vector Embedding Policy has an invalid DistanceFunction:handMeasured",
        ),
        (json!({"dimensions": "3"}), "One of the specified inputs is invalid"),
        (json!({"path": "vector1"}), "One of the specified inputs is invalid"),
        (
            json!({"embeddingSource": {"endpoint": "e", "deploymentName": "d", "sourcePaths": []}}),
            "sourcePaths",
        ),
        (
            json!({"embeddingSource": {"deploymentName": "d", "sourcePaths": ["/a"]}}),
            "endpoint",
        ),
        (
            json!({"embeddingSource": {"endpoint": "e", "deploymentName": "d", "sourcePaths": ["/a"], "authType": "None"}}),
            "The auth type provided in the embedding source of vector policy is invalid.",
        ),
    ];
    for (changes, fragment) in cases {
        let message = refusal(json!({"vectorEmbeddingPolicy": {"vectorEmbeddings": [embedding(changes)]}}));
        assert!(message.contains(fragment), "{message}");
    }
    let twice = json!({"vectorEmbeddings": [embedding(json!({})), embedding(json!({}))]});
    assert!(refusal(json!({"vectorEmbeddingPolicy": twice})).contains("different paths"));
}

#[test]
fn full_text_is_refused_in_the_words_of_the_service() {
    let policy = json!({"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/abstract", "language": "en-US"}]});
    let cases = [
        (
            json!({"fullTextPolicy": {"fullTextPaths": [{"path": "abstract"}]}}),
            "The Full Text Policy contains an invalid Path: abstract",
        ),
        (
            json!({"fullTextPolicy": {"defaultLanguage": "spa-SPA"}}),
            "The Full Text Policy contains an unsupported language spa-SPA. Supported languages are:",
        ),
        (
            json!({"fullTextPolicy": {"fullTextPaths": [{"path": "/a", "language": "unsupported-LANG"}]}}),
            "The Full Text Policy contains an unsupported language",
        ),
        (
            json!({"fullTextPolicy": {"fullTextPaths": [{"path": "/a"}, {"path": "/a", "language": "not-a-LANG"}]}}),
            "The Full Text Policy contains an unsupported language",
        ),
        (
            json!({"fullTextPolicy": {"fullTextPaths": [{"path": "/a"}, {"path": "/a", "language": "de-DE"}]}}),
            "one language for each path",
        ),
        (
            json!({"indexingPolicy": {"fullTextIndexes": [{"path": "/path"}]}, "fullTextPolicy": policy}),
            "The path of the Full Text Index /path does not match the path specified in the Full Text Policy",
        ),
        (
            json!({"indexingPolicy": {"fullTextIndexes": [{"path": "abstract"}]}, "fullTextPolicy": policy}),
            "Full-text index specification at index (0) contains invalid path",
        ),
        (
            json!({"indexingPolicy": {"fullTextIndexes": [{"not_path": "abstract"}]}, "fullTextPolicy": policy}),
            "Missing path in full-text index specification at index (0)",
        ),
    ];
    for (members, fragment) in cases {
        let message = refusal(members);
        assert!(message.contains(fragment), "{message}");
    }
}

#[test]
fn full_text_policies_come_back_as_sent() {
    for policy in [
        json!({"defaultLanguage": "en-US"}),
        json!({"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/abstract"}]}),
        json!({"fullTextPaths": []}),
        // The JavaScript SDK's tests send the language as a number.
        json!({"defaultLanguage": "1033", "fullTextPaths": [{"path": "/abstract", "language": "1031"}]}),
        // EF Core lists a path once for each type of entity.
        json!({"fullTextPaths": [{"path": "/a", "language": "en-US"}, {"path": "/a", "language": "en-US"}, {"path": "/a"}]}),
    ] {
        assert_eq!(written(json!({"fullTextPolicy": policy}))["fullTextPolicy"], policy);
    }
}

#[test]
fn analyzers_that_would_find_something_else_are_refused() {
    for spec in [
        json!({"tokenizer": "ngram"}),
        json!({"filters": ["stop", "lowercase"]}),
        json!({"filters": ["stop", "lowercase", "stem", "ascii"]}),
        json!({"stopWordListKind": "none"}),
        json!({"addStopWords": ["customword"]}),
        json!({"removeStopWords": ["the"]}),
    ] {
        let mut path = spec.clone();
        path["path"] = "/text".into();
        for policy in [json!({"defaultSpec": spec}), json!({"fullTextPaths": [path]})] {
            let definition = with(json!({"fullTextPolicy": policy}));
            let error = ContainerProperties::from_json(&definition).expect_err(&definition.to_string());
            assert_eq!(error.kind, ErrorKind::NotSupported, "{definition}");
            let member = spec.as_object().unwrap().keys().next().unwrap();
            assert!(error.to_string().contains(member), "{error}");
        }
    }
    assert!(refusal(json!({"fullTextPolicy": {"package": "other"}})).contains("legacy, standard"));
    assert!(refusal(json!({"fullTextPolicy": {"defaultSpec": {"filters": [1]}}})).contains("defaultSpec.filters"));
}

#[test]
fn the_language_of_the_default_spec_is_the_default_language() {
    let policy = json!({"defaultSpec": {"language": "fr-FR"}, "fullTextPaths": [{"path": "/text"}]});
    let properties = read(json!({"fullTextPolicy": policy}));
    let path = crate::path::PropertyPath::parse("/text").unwrap();
    assert_eq!(properties.full_text_policy.unwrap().language_at(&path), Some("fr-FR"));
}
