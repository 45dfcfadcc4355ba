//! Statistics for metrics, which the newest commits publish in memory (TTL-272).

use std::pin::pin;

use bolide_core::{AccountOptions, ContainerFigures, PurgeMode};
use bolide_model::time::Monotonic;
use bolide_storage::Space;
use futures_util::future::poll_immediate;
use serde_json::json;

use crate::probe::Traffic;
use crate::test_container::{TestContainer, background_options, key, run_background};

async fn scrape(test: &TestContainer) -> ContainerFigures {
    test.account.container_figures().await.unwrap().remove(0)
}

/// Like [`scrape`], but returns `None` if the scrape has to wait.
async fn scrape_at_once(test: &TestContainer) -> Option<ContainerFigures> {
    let mut figures = pin!(scrape(test));
    for _ in 0..100 {
        if let Some(figures) = poll_immediate(&mut figures).await {
            return Some(figures);
        }
        tokio::task::yield_now().await;
    }
    None
}

/// Earlier, a scrape sent a request to the worker of every partition, and so waited for stalled ones.
#[tokio::test]
async fn a_scrape_shows_the_last_commit_while_the_worker_is_stalled() {
    let monotonic = Monotonic::manual();
    let options = background_options(&monotonic);
    let test = TestContainer::with_options(json!({"defaultTtl": -1}), None, options).await;
    scrape(&test).await;
    test.create(json!({"id": "stays"})).await.unwrap();
    test.create(json!({"id": "ends", "ttl": 5})).await.unwrap();
    test.engine.hold_scans_of(Space::Expiry);
    let mut quota = pin!(test.account.usage(&test.container));
    assert!(poll_immediate(&mut quota).await.is_none());
    test.engine.until_held(1).await;
    let mut write = pin!(test.create(json!({"id": "waits"})));
    for second in [100, 105] {
        test.at(second);
        assert!(poll_immediate(&mut write).await.is_none(), "the worker is stalled");
        let shown = scrape_at_once(&test).await.expect("it waits for nobody");
        assert_eq!((shown.usage.items, shown.ghosts.items), (2, 0));
    }
    test.engine.release_scans();
    let (quota, write) = tokio::join!(quota, write);
    assert!(quota.is_ok() && write.is_ok());
    let is_purged = async || {
        let shown = scrape_at_once(&test).await.unwrap();
        (shown.usage.items, shown.ghosts.items, shown.purged_total) == (2, 0, 1)
    };
    run_background(&monotonic, is_purged).await;
}

#[tokio::test]
async fn what_expires_is_counted_in_the_background_where_nothing_is_purged() {
    let monotonic = Monotonic::manual();
    let options = AccountOptions {
        background_purge: false,
        ..background_options(&monotonic)
    };
    let test = TestContainer::with_options(json!({"defaultTtl": 10}), None, options).await;
    scrape(&test).await;
    test.create(json!({"id": "a"})).await.unwrap();
    assert_eq!(scrape_at_once(&test).await.unwrap().usage.items, 1);
    test.at(110);
    run_background(&monotonic, async || {
        scrape_at_once(&test).await.unwrap().ghosts.items == 1
    })
    .await;
    test.at(117);
    let shown = scrape_at_once(&test).await.unwrap();
    assert_eq!((shown.usage.items, shown.purged_total, shown.lag_seconds), (0, 0, 7));
}

#[tokio::test]
async fn a_scrape_reads_nothing_of_the_engine() {
    let test = TestContainer::with_ttl(10).await;
    scrape(&test).await;
    for n in 0..3 {
        test.create(json!({"id": n.to_string()})).await.unwrap();
    }
    test.delete("0", None).await.unwrap();
    test.at(110);
    assert_eq!(scrape(&test).await.ghosts.items, 2);
    test.create(json!({"id": "later"})).await.unwrap();
    test.purge().await;
    test.engine.traffic();
    let shown = scrape(&test).await;
    assert_eq!((shown.usage.items, shown.ghosts.items, shown.purged_total), (1, 0, 2));
    let nothing = Traffic {
        reads: 0,
        commits: 0,
        rows: 0,
    };
    assert_eq!(test.engine.traffic(), nothing);
}

/// Checks the values that metrics show: live items, ghosts, the age in seconds of the oldest ghost, and the number of purged ghosts. A second account on
/// the same engine, which counts again from the start, must show the same values.
async fn assert_shows(test: TestContainer, expected: (u64, u64, i64, u64)) -> TestContainer {
    let shown = async |test: &TestContainer| {
        let shown = scrape(test).await;
        let counts = (shown.usage.items, shown.ghosts.items);
        (counts.0, counts.1, shown.lag_seconds, shown.purged_total)
    };
    assert_eq!(shown(&test).await, expected);
    assert_eq!(test.listed().await.len() as u64, expected.0);
    test.assert_sound().await;
    let beside = test.beside(test.engine.clone()).await;
    assert_eq!(shown(&beside).await, expected, "counted anew");
    test
}

#[tokio::test]
async fn counts_in_memory_are_those_of_a_recount() {
    let test = TestContainer::with_ttl(50).await;
    // More items of each kind than the first write batch counts: p has 75 items under the default and 75 that expire at 120; q has 50 that expire at
    // 105, 25 at 106, and 75 that never expire.
    let ttl_of = |n: i64| match (n % 4, n < 200) {
        (0, _) => None,
        (1, true) => Some(5),
        (1, false) => Some(6),
        (2, _) => Some(20),
        _ => Some(-1),
    };
    for n in 0..300 {
        let pk = if n % 2 == 0 { "p" } else { "q" };
        let mut item = json!({"id": format!("i{n}"), "pk": pk});
        if let Some(ttl) = ttl_of(n) {
            item["ttl"] = ttl.into();
        }
        test.create(item).await.unwrap();
    }
    let test = assert_shows(test, (300, 0, 0, 0)).await;
    test.at(112);
    let test = assert_shows(test, (225, 75, 7, 0)).await;
    let deleted = test
        .account
        .delete_all_of_key(&test.begin().await, &test.container, &key("p"))
        .await;
    deleted.expect("a deletion");
    let test = assert_shows(test, (75, 75, 7, 0)).await;
    // Items that were deleted with their partition key expire, too; they do not become ghosts.
    test.at(120);
    let test = assert_shows(test, (75, 75, 15, 0)).await;
    // Writers remove the oldest ghosts, whose ids conflict with the new items.
    for n in (1..200).step_by(4) {
        test.create(json!({"id": format!("i{n}"), "pk": "q", "ttl": -1}))
            .await
            .unwrap();
    }
    let test = assert_shows(test, (125, 25, 14, 50)).await;
    test.account.split(&test.container, None).await.unwrap();
    let test = assert_shows(test, (125, 25, 14, 50)).await;
    let purged = test.account.purge(&test.container, PurgeMode::Force, Some(20)).await;
    assert_eq!(purged, Ok(20));
    let test = assert_shows(test, (125, 5, 14, 70)).await;
    test.at(150);
    let test = assert_shows(test, (125, 5, 44, 70)).await;
    test.purge().await;
    assert_shows(test, (125, 0, 0, 75)).await;
}

#[tokio::test]
async fn the_oldest_ghost_is_found_behind_many_entries_of_others() {
    let test = TestContainer::with_ttl(10).await;
    test.create(json!({"id": "first"})).await.unwrap();
    // These items have entries in the log, but do not expire by the default.
    for n in 0..100 {
        test.create(json!({"id": n.to_string(), "ttl": 1_000})).await.unwrap();
    }
    test.at(104);
    test.create(json!({"id": "second"})).await.unwrap();
    test.at(120);
    let test = assert_shows(test, (100, 2, 10, 0)).await;
    test.create(json!({"id": "first"})).await.unwrap();
    assert_shows(test, (101, 1, 6, 1)).await;
}
