//! Deciding a write has no effect outside of its batch.
//!
//! Builds with debug assertions decide every round twice and compare batch, state and what is to be done after the commit; a difference is
//! an internal error. So every test of a write is one of this, too. This one goes through the kinds of writes, so that none is forgotten.

use bolide_core::{Batch, BatchAnswer, BatchOperation, FeedStart, Pacing, PacingSettings, PurgeMode};
use bolide_model::document::{Document, Patch};
use futures_util::stream;
use serde_json::json;

use crate::stage::{Stage, key};

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
    let stage = Stage::with(definition).await;
    let start = stage.account.server_time().seconds().0;
    let pacing = PacingSettings {
        pacing: Pacing::Serverless,
        ..PacingSettings::of(None)
    };
    stage.account.set_pacing(&stage.container, pacing).await.unwrap();

    // Single items; each of the second writes of "g…" and "u…" meets a ghost, by id or by unique key.
    stage.create(json!({"id": "a", "u": 1})).await.unwrap();
    stage.upsert(json!({"id": "b", "u": 2}), None).await.unwrap();
    stage.upsert(json!({"id": "b", "u": 3}), None).await.unwrap();
    stage.replace("b", json!({"id": "c", "u": 3}), None).await.unwrap();
    let condition =
        json!({"condition": "FROM c WHERE c.u = 3", "operations": [{"op": "incr", "path": "/u", "value": 1}]});
    stage.patch("c", condition, None).await.unwrap();
    stage.delete("c", None).await.unwrap();
    for (id, u) in [("g1", 10), ("g2", 11), ("u1", 12)] {
        stage.create(json!({"id": id, "u": u, "ttl": 1})).await.unwrap();
    }
    stage.at(start + 2);
    stage.create(json!({"id": "g1", "u": 20})).await.unwrap();
    stage.upsert(json!({"id": "g2", "u": 21}), None).await.unwrap();
    stage.create(json!({"id": "u2", "u": 12})).await.unwrap();

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
        let ctx = stage.begin().await;
        let answer = stage.account.batch(&ctx, &stage.container, batch(operations)).await;
        let answer = answer.unwrap().value;
        assert_eq!(matches!(answer, BatchAnswer::Committed(_)), is_committed, "{answer:?}");
    }

    // The background: expired items, those of a deleted key, the history.
    stage
        .account
        .purge(&stage.container, PurgeMode::Paced, None)
        .await
        .unwrap();
    stage
        .account
        .delete_all_of_key(&stage.begin().await, &stage.container, &key("p"))
        .await
        .unwrap();
    stage.create(json!({"id": "d", "u": "d"})).await.unwrap();
    stage.at(start + 1001);
    assert!(stage.purge().await > 0 || stage.count().await == 1);
    stage.at(start + 2000);
    assert_eq!(stage.purge().await, 1);

    // Administration.
    stage.create(json!({"id": "z", "u": 1})).await.unwrap();
    stage.account.split(&stage.container, None).await.unwrap();
    stage.account.ttl_report(&stage.container).await.unwrap();
    stage.assert_sound().await;
    stage.changes(FeedStart::Beginning, 10).await;
}

#[tokio::test]
async fn so_is_loading() {
    let stage = Stage::with(json!({"defaultTtl": 1000})).await;
    let ts = stage.account.server_time().seconds().0;
    let lines = json!({"id": "a", "pk": "p", "_ts": ts}).to_string();
    let parts = stream::iter([Ok(bytes::Bytes::from(lines))]);
    assert_eq!(stage.account.import(&stage.container, parts).await, Ok(1));
    stage.assert_sound().await;
}
