//! What an operation over several ranges is charged, range by range: to each what was done there.

use bolide_core::{
    Container, Cost, FeedStart, Pacing, PacingSettings, QueryItems, ReadChanges, ReadFeed, ScanScope, Throughput,
};
use bolide_model::epk::Epk;
use bolide_model::{ErrorKind, RequestUnits};
use serde_json::json;

use crate::test_container::{TestContainer, key, options};

/// A container of two ranges. Its items are in one of them.
struct Lopsided {
    test: TestContainer,
    /// A partition key of each range.
    full: String,
    empty: String,
    /// Before the first item, in all versions.
    start: FeedStart,
}

impl Lopsided {
    async fn new() -> Lopsided {
        let options = bolide_core::AccountOptions {
            enforce_throughput: true,
            ..options()
        };
        let throughput = Throughput::Manual { ru: 12_000 };
        let more = json!({"changeFeedPolicy": {"retentionDuration": 100}});
        let test = TestContainer::with_options(more, Some(throughput), options).await;
        let [full, empty] = [0, 1].map(|range| key_in(&test.container, range));
        let read = changes(FeedStart::Now);
        let page = test
            .account
            .all_versions(&test.begin().await, &test.container, &read)
            .await;
        let start = FeedStart::After(page.unwrap().value.continuation);
        for n in 0..15 {
            let item = json!({"id": format!("i{n}"), "pk": full, "pad": "x".repeat(10_000)});
            test.create(item).await.unwrap();
        }
        test.at(101);
        let pacing = PacingSettings {
            pacing: Pacing::Provisioned { ru: 8.0 },
            delete_ru: None,
            count_only_load: false,
        };
        test.account.set_pacing(&test.container, pacing).await.unwrap();
        Lopsided {
            test,
            full,
            empty,
            start,
        }
    }

    /// All of the work was done in the full range, so that there is room in the empty one only.
    async fn assert_borne_by_the_full_range(&self, what: &str, cost: &Cost) {
        let sum: RequestUnits = cost.touched.iter().map(|position| position.charge).sum();
        assert!((sum.0 - cost.charge.0).abs() < 1e-9, "{what}: {cost:?}");
        assert!(cost.charge.0 > 8.0, "{what}: {cost:?}");
        for (pk, is_admitted) in [(&self.full, false), (&self.empty, true)] {
            let read = ReadFeed {
                scope: crate::test_container::scope_of(pk),
                ..ReadFeed::default()
            };
            let ctx = self.test.begin().await;
            let answer = self.test.account.read_feed(&ctx, &self.test.container, &read).await;
            match answer {
                Ok(_) => assert!(is_admitted, "{what}: {pk}"),
                Err(refusal) => {
                    assert!(matches!(refusal.error.kind, ErrorKind::Throttled { .. }), "{refusal:?}");
                    assert!(!is_admitted, "{what}: {pk}");
                }
            }
        }
    }
}

fn key_in(container: &Container, range: usize) -> String {
    let definition = &container.properties().partition_key;
    let range = &container.ranges().ranges[range];
    let mut names = (0..).map(|n| format!("k{n}"));
    let found = names.find(|name| range.epk.contains(&Epk::of(definition, &key(name))));
    found.expect("each range has keys")
}

fn changes(start: FeedStart) -> ReadChanges {
    ReadChanges {
        scope: ScanScope::default(),
        start,
        max_items: None,
    }
}

#[tokio::test]
async fn a_read_feed_is_charged_where_its_items_are() {
    let lopsided = Lopsided::new().await;
    let Lopsided { test, .. } = &lopsided;
    let read = ReadFeed::default();
    let answer = test
        .account
        .read_feed(&test.begin().await, &test.container, &read)
        .await;
    let cost = answer.unwrap().cost;
    lopsided.assert_borne_by_the_full_range("read feed", &cost).await;
}

#[tokio::test]
async fn change_feeds_are_charged_where_the_changes_are() {
    let lopsided = Lopsided::new().await;
    let Lopsided { test, start, .. } = &lopsided;
    let read = changes(FeedStart::Beginning);
    let answer = test
        .account
        .change_feed(&test.begin().await, &test.container, &read)
        .await;
    let cost = answer.unwrap().cost;
    lopsided.assert_borne_by_the_full_range("latest versions", &cost).await;
    test.at(110);
    let read = changes(start.clone());
    let answer = test
        .account
        .all_versions(&test.begin().await, &test.container, &read)
        .await;
    let cost = answer.unwrap().cost;
    lopsided.assert_borne_by_the_full_range("all versions", &cost).await;
}

#[tokio::test]
async fn a_query_is_charged_where_it_loads_items_and_its_start_evenly() {
    let lopsided = Lopsided::new().await;
    let Lopsided { test, .. } = &lopsided;
    for (second, text) in [
        (120, "SELECT * FROM c"),
        (130, "SELECT VALUE COUNT(c.pad) FROM c"),
        (140, "SELECT * FROM c ORDER BY c.id"),
    ] {
        test.at(second);
        let query = QueryItems {
            text: text.into(),
            cross_partition: true,
            merges_ranges: true,
            ..QueryItems::default()
        };
        let answer = test.account.query(&test.begin().await, &test.container, &query).await;
        let cost = answer.unwrap().cost;
        lopsided.assert_borne_by_the_full_range(text, &cost).await;
    }
}

#[tokio::test]
async fn a_query_without_items_counts_too() {
    let lopsided = Lopsided::new().await;
    let Lopsided { test, .. } = &lopsided;
    let query = QueryItems {
        text: "SELECT VALUE 1".into(),
        cross_partition: true,
        ..QueryItems::default()
    };
    let mut admitted = 0;
    while test
        .account
        .query(&test.begin().await, &test.container, &query)
        .await
        .is_ok()
    {
        admitted += 1;
        assert!(admitted < 10, "nothing is counted");
    }
    assert_eq!(admitted, 2, "at 2.3 units each, of 4 in a range");
}
