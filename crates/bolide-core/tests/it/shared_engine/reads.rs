//! What is read from an engine that other processes share.

use std::sync::{Arc, Mutex};

use bolide_core::QueryItems;
use bolide_storage::Engine;
use serde_json::json;

use super::{Two, container};
use crate::probe::Probe;

/// A shared engine answers over a network: an answer that is not there at once is waited for, and not asked for again.
#[tokio::test(flavor = "multi_thread")]
async fn a_query_sends_each_read_once() {
    let probes = Mutex::new(Vec::new());
    let two = Two::through(|engine, _| {
        let probe = Arc::new(Probe::new(engine));
        probes.lock().unwrap().push(probe.clone());
        probe as Arc<dyn Engine>
    })
    .await;
    let probe = probes.lock().unwrap()[0].clone();
    let ctx = two.first.begin().await.unwrap();
    let database = two.first.create_database(&ctx, "d", None).await.unwrap().rid;
    let made = two
        .first
        .create_container(&ctx, database, container("c", &json!({})), None)
        .await
        .unwrap();
    let query = QueryItems {
        text: "SELECT * FROM c WHERE c.pk = 'a' AND c.id = 'b'".to_owned(),
        cross_partition: true,
        ..QueryItems::default()
    };
    let mut reads = Vec::new();
    for is_held in [false, true] {
        if is_held {
            probe.hold_scans();
        }
        probe.traffic();
        let (account, query) = (two.first.clone(), query.clone());
        let container = made.clone();
        let asked = tokio::spawn(async move {
            let ctx = account.begin().await.unwrap();
            account
                .query(&ctx, &container, &query)
                .await
                .map(|page| page.value.rows)
        });
        if is_held {
            probe.until_held(1).await;
            probe.release_scans();
        }
        assert!(asked.await.unwrap().unwrap().is_empty());
        reads.push(probe.traffic().reads);
    }
    assert_eq!(reads[0], reads[1]);
}
