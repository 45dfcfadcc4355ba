use bolide_model::UnixSeconds;
use serde_json::json;

use super::*;
use crate::fixture::Fixture;

/// Deleted rows before a position would be read over whenever a document ends.
#[tokio::test]
async fn the_positions_pass_everything_that_is_gone() {
    let fixture = Fixture::with(json!({"defaultTtl": 1_000})).await;
    for n in 0..3 {
        fixture.upsert(json!({"id": format!("gone{n}")})).await;
        fixture.upsert(json!({"id": format!("dropped{n}"), "ttl": 7})).await;
    }
    fixture.upsert(json!({"id": "later", "ttl": 500})).await;
    let kept = LogPosition {
        lsn: fixture.partition().lsn().next(),
        seq: 0,
    };
    fixture.upsert(json!({"id": "kept"})).await;
    for n in 0..3 {
        fixture.delete("p", &format!("gone{n}")).await;
        fixture.delete("p", &format!("dropped{n}")).await;
    }
    fixture.at(110);
    let partition = fixture.partition();
    pass_over(&fixture.state().settings, &partition).await.expect("passed");
    let told = partition
        .background(|batch| Ok(batch.state.told))
        .await
        .expect("a state");
    assert_eq!((told.log, told.expiry.base), (kept, UnixSeconds(111)));
}
