//! P11: what a change of settings and a verdict cost does not grow with the number of items, nor with that of earlier changes.

use serde_json::json;

use crate::probe::Traffic;
use crate::stage::Stage;

/// The engine's traffic of one change of settings, and of one read of an item that is live and one that is not.
async fn traffic(items: i64, changes: i64) -> [Traffic; 3] {
    let stage = Stage::with_ttl(1000).await;
    for n in 0..items {
        stage
            .create(json!({"id": n.to_string(), "ttl": 1 + n % 20}))
            .await
            .unwrap();
    }
    stage.create(json!({"id": "kept"})).await.unwrap();
    stage.create(json!({"id": "gone", "ttl": 5})).await.unwrap();
    for n in 0..changes {
        stage.define(json!({"defaultTtl": 2000 + n})).await.unwrap();
    }
    stage.at(110);
    stage.begin().await;
    stage.engine.traffic();
    stage.define(json!({"defaultTtl": 50})).await.unwrap();
    let change = stage.engine.traffic();
    assert!(stage.has("kept").await);
    let live = stage.engine.traffic();
    assert!(!stage.has("gone").await);
    [change, live, stage.engine.traffic()]
}

#[tokio::test]
async fn a_change_of_settings_and_a_verdict_cost_the_same_with_many_items_and_many_changes() {
    let few = traffic(1, 0).await;
    assert_eq!(few[0].commits, 1, "a change of settings is one commit");
    assert_eq!(few, traffic(2_000, 0).await);
    assert_eq!(few, traffic(1, 300).await);
}
