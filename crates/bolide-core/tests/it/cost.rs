//! P11: the cost of a change of settings, of deciding whether an item is live, and of reading statistics does not grow with the number of items,
//! nor with the number of earlier changes.

use serde_json::json;

use crate::probe::Traffic;
use crate::test_container::TestContainer;

/// Returns the engine's traffic of one change of settings, of one read of a live item, and of one read of an expired item.
async fn traffic(items: i64, changes: i64) -> [Traffic; 3] {
    let test = TestContainer::with_ttl(1000).await;
    for n in 0..items {
        test.create(json!({"id": n.to_string(), "ttl": 1 + n % 20}))
            .await
            .unwrap();
    }
    test.create(json!({"id": "kept"})).await.unwrap();
    test.create(json!({"id": "gone", "ttl": 5})).await.unwrap();
    for n in 0..changes {
        test.define(json!({"defaultTtl": 2000 + n})).await.unwrap();
    }
    test.at(110);
    test.begin().await;
    test.engine.traffic();
    test.define(json!({"defaultTtl": 50})).await.unwrap();
    let change = test.engine.traffic();
    assert!(test.has("kept").await);
    let live = test.engine.traffic();
    assert!(!test.has("gone").await);
    [change, live, test.engine.traffic()]
}

#[tokio::test]
async fn a_change_of_settings_and_a_verdict_cost_the_same_with_many_items_and_many_changes() {
    let few = traffic(1, 0).await;
    assert_eq!(few[0].commits, 1, "a change of settings is one commit");
    assert_eq!(few, traffic(2_000, 0).await);
    assert_eq!(few, traffic(1, 300).await);
}

/// Returns the rows that a report of expiry and the statistics of metrics read in a container with `items` items of each class, after they are
/// counted: before any item has expired, and with ghosts.
async fn rows_of_figures(items: i64) -> [u64; 2] {
    let test = TestContainer::with_ttl(1000).await;
    // These items precede all others in the log, and are skipped there.
    for n in 0..items {
        test.create(json!({"id": format!("o{n}"), "ttl": 5_000})).await.unwrap();
    }
    for n in 0..items {
        test.create(json!({"id": format!("d{n}")})).await.unwrap();
    }
    let look = async || {
        test.account.ttl_report(&test.container).await.unwrap();
        test.engine.found_rows();
        let report = test.account.ttl_report(&test.container).await.unwrap();
        test.account.container_figures().await.unwrap();
        (report, test.engine.found_rows())
    };
    let (report, fresh) = look().await;
    let ends: u64 = report.forecast.iter().map(|slice| slice.items).sum();
    assert_eq!(ends, 2 * items as u64);
    test.at(1_200);
    let (report, with_ghosts) = look().await;
    assert_eq!(report.backlog_items, items as u64);
    assert_eq!(report.oldest_pending_seconds, 100);
    assert_eq!(report.forecast[2].items, items as u64);
    [fresh, with_ghosts]
}

#[tokio::test]
async fn figures_are_read_from_counters_not_from_items() {
    // As many rows as a forecast reads at each of its boundaries, and no more.
    const ROWS: u64 = 1_000;
    let few = rows_of_figures(500).await;
    assert!(few.iter().all(|rows| *rows < ROWS), "{few:?}");
    assert_eq!(few, rows_of_figures(3_000).await);
}
