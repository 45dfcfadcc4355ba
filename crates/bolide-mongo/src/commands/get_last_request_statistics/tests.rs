use bson::rawdoc;

use crate::commands::fixture::{Shell, only};

#[tokio::test(flavor = "multi_thread")]
async fn each_command_has_its_charge() {
    let shell = Shell::new().await;
    let ask = async || shell.ok(rawdoc! { "getLastRequestStatistics": 1 }).await;
    assert_eq!(ask().await, rawdoc! {});
    let charge = async |name: &str| {
        let found = ask().await;
        assert_eq!(only(&found, &["CommandName"]), rawdoc! { "CommandName": name });
        assert!(found.get_i64("RequestDurationInMilliSeconds").is_ok());
        found.get_f64("RequestCharge").expect("a charge")
    };
    let documents: Vec<_> = (0..200)
        .map(|id| rawdoc! { "_id": id, "text": "x".repeat(100) })
        .collect();
    shell.insert("c", &documents).await;
    let insert = charge("insert").await;
    shell.ok(rawdoc! { "find": "c", "filter": { "_id": 1 } }).await;
    let by_id = charge("find").await;
    let reply = shell.ok(rawdoc! { "find": "c", "batchSize": 1 }).await;
    let scan = charge("find").await;
    assert!(by_id > 0.0 && scan > by_id && insert > scan, "{by_id} {scan} {insert}");
    let cursor = reply.get_document("cursor").and_then(|cursor| cursor.get_i64("id"));
    shell
        .ok(rawdoc! { "getMore": cursor.expect("an id"), "collection": "c" })
        .await;
    assert!(charge("getMore").await > 0.0);
    let pipeline = rawdoc! { "aggregate": "c", "pipeline": [{ "$count": "n" }], "cursor": {} };
    shell.ok(pipeline).await;
    assert!(charge("aggregate").await > by_id);
    shell.ok(rawdoc! { "ping": 1 }).await;
    assert_eq!(charge("ping").await.to_bits(), 0.0_f64.to_bits());
    // It does not count itself.
    assert_eq!(charge("ping").await.to_bits(), 0.0_f64.to_bits());
}
