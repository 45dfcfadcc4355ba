//! Deciding a write has no effect outside of its batch.
//!
//! Builds with debug assertions decide every round twice and compare batch, state and what is to be done after the commit; a difference is
//! an internal error. So every test of a write is one of this, too. This one goes through the kinds of writes, so that none is forgotten.

use bolide_core::{Batch, BatchOperation, BatchResponse, FeedStart, Pacing, PacingSettings, PurgeMode};
use bolide_model::document::{Document, Patch};
use futures_util::stream;
use serde_json::json;

use crate::test_container::{TestContainer, key};

fn document(id: &str) -> Document {
    Document::parse(json!({"id": id, "pk": "p", "u": id}).to_string().as_bytes()).unwrap()
}

#[tokio::test]
async fn every_kind_of_write_is_a_function_of_what_was_read() {
    const { assert!(cfg!(debug_assertions), "only such builds decide twice") };
    let definition = json!({
        "defaultTtl": 1000,
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]},
        "changeFeedPolicy": {"retentionDuration": 10},
    });
    let test = TestContainer::with(definition).await;
    let start = test.account.server_time().seconds().0;
    let pacing = PacingSettings {
        pacing: Pacing::Serverless,
        ..PacingSettings::of(None)
    };
    test.account.set_pacing(&test.container, pacing).await.unwrap();

    // Single items; each of the second writes of "g…" and "u…" meets a ghost, by id or by unique key.
    test.create(json!({"id": "a", "u": 1})).await.unwrap();
    test.upsert(json!({"id": "b", "u": 2}), None).await.unwrap();
    test.upsert(json!({"id": "b", "u": 3}), None).await.unwrap();
    test.replace("b", json!({"id": "c", "u": 3}), None).await.unwrap();
    let condition =
        json!({"condition": "FROM c WHERE c.u = 3", "operations": [{"op": "incr", "path": "/u", "value": 1}]});
    test.patch("c", condition, None).await.unwrap();
    test.delete("c", None).await.unwrap();
    for (id, u) in [("g1", 10), ("g2", 11), ("u1", 12)] {
        test.create(json!({"id": id, "u": u, "ttl": 1})).await.unwrap();
    }
    test.at(start + 2);
    test.create(json!({"id": "g1", "u": 20})).await.unwrap();
    test.upsert(json!({"id": "g2", "u": 21}), None).await.unwrap();
    test.create(json!({"id": "u2", "u": 12})).await.unwrap();

    // Several as one.
    let patch = Patch::from_value(&json!([{"op": "set", "path": "/n", "value": 1}])).unwrap();
    let batch = |operations| Batch {
        partition_key: key("p"),
        operations,
    };
    let operations = vec![
        BatchOperation::Create {
            document: document("d"),
        },
        BatchOperation::Upsert {
            document: document("e"),
            if_match: None,
        },
        BatchOperation::Patch {
            id: "d".into(),
            patch,
            if_match: None,
        },
        BatchOperation::Delete {
            id: "a".into(),
            if_match: None,
        },
    ];
    for (operations, is_committed) in [
        (operations, true),
        (
            vec![BatchOperation::Create {
                document: document("d"),
            }],
            false,
        ),
    ] {
        let ctx = test.begin().await;
        let answer = test.account.batch(&ctx, &test.container, batch(operations)).await;
        let answer = answer.unwrap().value;
        assert_eq!(
            matches!(answer, BatchResponse::Committed(_)),
            is_committed,
            "{answer:?}"
        );
    }

    // The background: expired items, those of a deleted key, the history.
    test.account
        .purge(&test.container, PurgeMode::Paced, None)
        .await
        .unwrap();
    test.account
        .delete_all_of_key(&test.begin().await, &test.container, &key("p"))
        .await
        .unwrap();
    test.create(json!({"id": "d", "u": "d"})).await.unwrap();
    test.at(start + 1001);
    assert!(test.purge().await > 0 || test.count().await == 1);
    test.at(start + 2000);
    assert_eq!(test.purge().await, 1);

    // Administration.
    test.create(json!({"id": "z", "u": 1})).await.unwrap();
    test.account.split(&test.container, None).await.unwrap();
    test.account.ttl_report(&test.container).await.unwrap();
    test.assert_sound().await;
    test.changes(FeedStart::Beginning, 10).await;
}

#[tokio::test]
async fn so_is_loading() {
    let test = TestContainer::with(json!({"defaultTtl": 1000})).await;
    let ts = test.account.server_time().seconds().0;
    let lines = json!({"id": "a", "pk": "p", "_ts": ts}).to_string();
    let parts = stream::iter([Ok(bytes::Bytes::from(lines))]);
    assert_eq!(test.account.import(&test.container, parts).await, Ok(1));
    test.assert_sound().await;
}
