use std::sync::Arc;

use bson::{RawArrayBuf, RawDocumentBuf, rawdoc};

use super::super::super::fixture::{self, KEY, code, run};
use crate::client::Client;
use crate::state::MongoState;

async fn server(index: RawDocumentBuf, documents: &[RawDocumentBuf]) -> (Arc<MongoState>, Client) {
    let state = fixture::state(fixture::options()).await;
    let client = fixture::authenticated(&state, KEY);
    let indexes = RawArrayBuf::from_iter([index]);
    let create = rawdoc! { "createIndexes": "c", "indexes": indexes, "$db": "d" };
    assert_eq!(code(&state, &client, create).await, 0);
    let documents = RawArrayBuf::from_iter(documents.iter().cloned());
    let insert = rawdoc! { "insert": "c", "documents": documents, "$db": "d" };
    assert_eq!(code(&state, &client, insert).await, 0);
    (state, client)
}

/// The first batch of a command.
async fn batch(state: &Arc<MongoState>, client: &Client, command: RawDocumentBuf) -> Vec<RawDocumentBuf> {
    let reply = run(state, client, command.clone()).await;
    let cursor = reply
        .get_document("cursor")
        .unwrap_or_else(|_| panic!("{command:?}: {reply:?}"));
    let batch = cursor.get_array("firstBatch").expect("a batch");
    let documents = batch
        .into_iter()
        .map(|value| value.expect("valid").as_document().expect("one").to_owned());
    documents.collect()
}

fn aggregate(stages: &[RawDocumentBuf]) -> RawDocumentBuf {
    let stages = RawArrayBuf::from_iter(stages.iter().cloned());
    rawdoc! { "aggregate": "c", "pipeline": stages, "cursor": {}, "$db": "d" }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_is_searched_with_the_index_of_the_collection() {
    let index = rawdoc! { "name": "words", "key": { "a": "text" }, "weights": { "a": 4 } };
    let documents = [
        rawdoc! { "_id": 1, "a": "tea and cake" },
        rawdoc! { "_id": 2, "a": "cake" },
        rawdoc! { "_id": 3, "a": "coffee" },
    ];
    let (state, client) = server(index, &documents).await;
    let search = rawdoc! { "$text": { "$search": "cakes" } };
    let found = batch(
        &state,
        &client,
        rawdoc! { "find": "c", "filter": search.clone(), "$db": "d" },
    )
    .await;
    assert_eq!(found, documents[..2]);
    let score = rawdoc! { "$meta": "textScore" };
    let stages = [
        rawdoc! { "$match": search.clone() },
        rawdoc! { "$sort": { "x": score.clone() } },
        rawdoc! { "$project": { "score": score.clone() } },
    ];
    // 4 · 1.1 for a text that is the word; 4 · (1/2 / 2 + 1/2) for one of two words: "and" does not count.
    let scores = batch(&state, &client, aggregate(&stages)).await;
    assert_eq!(
        scores,
        [rawdoc! { "_id": 2, "score": 4.4 }, rawdoc! { "_id": 1, "score": 3.0 }]
    );
    let find = rawdoc! {
        "find": "c", "filter": search.clone(), "projection": { "score": score.clone(), "_id": 1 }, "sort": { "x": score.clone() },
        "$db": "d",
    };
    let found = batch(&state, &client, find).await;
    let expected = [rawdoc! { "_id": 2, "score": 4.4 }, rawdoc! { "_id": 1, "score": 3.0 }];
    assert_eq!(found, expected);
    let late = [rawdoc! { "$limit": 1 }, rawdoc! { "$match": search.clone() }];
    assert_eq!(code(&state, &client, aggregate(&late)).await, 17313);
    let delete = rawdoc! { "delete": "c", "deletes": [{ "q": search.clone(), "limit": 0 }], "$db": "d" };
    assert_eq!(run(&state, &client, delete).await.get_i32("n").ok(), Some(2));
    let drop = rawdoc! { "dropIndexes": "c", "index": "words", "$db": "d" };
    assert_eq!(code(&state, &client, drop).await, 0);
    assert_eq!(
        code(&state, &client, rawdoc! { "find": "c", "filter": search, "$db": "d" }).await,
        27
    );
}

#[tokio::test]
async fn text_stands_once_and_is_not_negated() {
    let index = rawdoc! { "name": "words", "key": { "$**": "text" } };
    let (state, client) = server(index, &[rawdoc! { "_id": 1 }]).await;
    let text = rawdoc! { "$text": { "$search": "a" } };
    for filter in [
        rawdoc! { "$and": [text.clone(), text.clone()] },
        rawdoc! { "$nor": [text.clone()] },
        rawdoc! { "a": { "$elemMatch": text.clone() } },
        rawdoc! { "$and": [text, { "a": { "$near": [1, 1] } }] },
    ] {
        let find = rawdoc! { "find": "c", "filter": filter, "$db": "d" };
        assert_eq!(code(&state, &client, find.clone()).await, 2, "{find:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_are_searched_exactly() {
    let options = rawdoc! { "kind": "vector-ivf", "numLists": 1, "similarity": "COS", "dimensions": 2 };
    let index = rawdoc! { "name": "v", "key": { "v": "cosmosSearch" }, "cosmosSearchOptions": options };
    let documents = [
        rawdoc! { "_id": 1, "v": [0, 1], "t": "x" },
        rawdoc! { "_id": 2, "v": [2, 0], "t": "x" },
        rawdoc! { "_id": 3, "v": [-1, 0], "t": "y" },
        rawdoc! { "_id": 4, "v": [1, 2, 3] },
        rawdoc! { "_id": 5 },
    ];
    let (state, client) = server(index, &documents).await;
    let cosmos = |more: RawDocumentBuf, k: i32| {
        let mut search = rawdoc! { "vector": [1, 0], "path": "v", "k": k };
        for (name, value) in more.iter().flatten() {
            search.append(name, value);
        }
        aggregate(&[
            rawdoc! { "$search": { "cosmosSearch": search, "returnStoredSource": true } },
            rawdoc! { "$project": { "score": { "$meta": "searchScore" } } },
        ])
    };
    let best = [rawdoc! { "_id": 2, "score": 1.0 }, rawdoc! { "_id": 1, "score": 0.0 }];
    assert_eq!(batch(&state, &client, cosmos(rawdoc! {}, 2)).await, best);
    let filtered = cosmos(rawdoc! { "filter": { "t": "y" } }, 2);
    assert_eq!(
        batch(&state, &client, filtered).await,
        [rawdoc! { "_id": 3, "score": -1.0 }]
    );
    let atlas = aggregate(&[
        rawdoc! { "$vectorSearch": { "index": "v", "path": "v", "queryVector": [1, 0], "numCandidates": 10, "limit": 1 } },
        rawdoc! { "$project": { "score": { "$meta": "vectorSearchScore" } } },
    ]);
    assert_eq!(
        batch(&state, &client, atlas).await,
        [rawdoc! { "_id": 2, "score": 1.0 }]
    );
    for (stage, expected) in [
        (
            rawdoc! { "$search": { "cosmosSearch": { "vector": [1], "path": "v", "k": 1 } } },
            2,
        ),
        (
            rawdoc! { "$search": { "cosmosSearch": { "vector": [1, 0], "path": "w", "k": 1 } } },
            2,
        ),
        (
            rawdoc! { "$search": { "cosmosSearch": { "vector": [1, 0], "path": "v", "k": 0 } } },
            2,
        ),
        (
            rawdoc! { "$search": { "cosmosSearch": { "vector": [1, 0], "path": "v" } } },
            40414,
        ),
        (rawdoc! { "$search": { "text": { "query": "a", "path": "b" } } }, 115),
        (
            rawdoc! { "$vectorSearch": { "index": "w", "path": "v", "queryVector": [1, 0], "limit": 1 } },
            2,
        ),
    ] {
        assert_eq!(
            code(&state, &client, aggregate(std::slice::from_ref(&stage))).await,
            expected,
            "{stage:?}"
        );
    }
}
