//! Read feed and change feed: order, pages, continuations.

use bolide_core::{FeedStart, ReadFeed, ScanScope, Throughput};
use bolide_model::epk::{Epk, EpkRange};
use bolide_model::{ErrorKind, UnixSeconds};
use serde_json::json;

use crate::test_container::{TestContainer, ids, key};

async fn with_items(test: &TestContainer, count: usize) {
    for n in 0..count {
        test.create(json!({"id": format!("i{n}"), "pk": format!("p{}", n % 5)}))
            .await
            .unwrap();
    }
}

async fn several_ranges() -> TestContainer {
    TestContainer::with_throughput(json!({"defaultTtl": -1}), Some(Throughput::Manual { ru: 20_000 })).await
}

#[tokio::test]
async fn pages_of_a_read_feed_show_each_item_once_over_all_ranges() {
    let test = several_ranges().await;
    assert_eq!(test.container.ranges().ranges.len(), 4);
    with_items(&test, 23).await;
    let (mut seen, mut continuation) = (Vec::new(), None);
    loop {
        let (page, next) = test.list(4, continuation).await;
        assert!(!page.is_empty());
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        continuation = next;
        if continuation.is_none() {
            break;
        }
    }
    assert_eq!(seen, test.listed().await);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 23);
}

#[tokio::test]
async fn a_logical_partition_is_listed_in_the_order_of_insertion() {
    let test = TestContainer::with(json!({})).await;
    for id in ["c", "a", "b"] {
        test.create(json!({"id": id})).await.unwrap();
    }
    test.replace("c", json!({"id": "c", "n": 1}), None).await.unwrap();
    assert_eq!(test.listed().await, ["c", "a", "b"]);
}

#[tokio::test]
async fn a_range_is_listed_in_the_order_of_creation() {
    let test = TestContainer::with(json!({})).await;
    let created: Vec<String> = (0..30).map(|n| format!("i{n:02}")).collect();
    for id in &created {
        test.create(json!({"id": id, "pk": format!("p{id}")})).await.unwrap();
    }
    assert_eq!(test.listed().await, created);
    let (mut seen, mut continuation) = (Vec::new(), None);
    loop {
        let (page, next) = test.list(7, continuation).await;
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        // What is created meanwhile comes last, wherever its key lies.
        if seen.len() == 14 {
            test.create(json!({"id": "late", "pk": "0"})).await.unwrap();
        }
        continuation = next;
        if continuation.is_none() {
            break;
        }
    }
    assert_eq!(seen, [created, vec!["late".to_owned()]].concat());
}

#[tokio::test]
async fn a_range_that_outgrows_one_read_while_it_is_listed_gives_each_item_once() {
    let test = TestContainer::with(json!({})).await;
    for n in 0..900 {
        test.create(json!({"id": format!("i{n}"), "pk": format!("p{n}")}))
            .await
            .unwrap();
    }
    let (page, mut continuation) = test.list(100, None).await;
    let mut seen: Vec<String> = ids(&page).into_iter().map(str::to_owned).collect();
    assert_eq!(seen[99], "i99");
    for n in 900..1300 {
        test.create(json!({"id": format!("i{n}"), "pk": format!("p{n}")}))
            .await
            .unwrap();
    }
    while continuation.is_some() {
        let (page, next) = test.list(300, continuation).await;
        seen.extend(ids(&page).into_iter().map(str::to_owned));
        continuation = next;
    }
    let all: Vec<String> = (0..1300).map(|n| format!("i{n}")).collect();
    assert_eq!(seen, all);
    // From the start it is too large for that order, but complete.
    let mut listed = test.listed().await;
    listed.sort();
    seen.sort();
    assert_eq!(listed, seen);
}

#[tokio::test]
async fn a_page_of_a_feed_is_of_one_range() {
    let test = several_ranges().await;
    with_items(&test, 23).await;
    let (mut continuation, mut pages) = (None, 0);
    loop {
        let read = ReadFeed {
            continuation,
            ..ReadFeed::default()
        };
        let ctx = test.begin().await;
        let page = test.account.read_feed(&ctx, &test.container, &read).await.unwrap();
        let mut ranges: Vec<u32> = page
            .value
            .items
            .iter()
            .map(|item| (item.rid().number >> 40) as u32)
            .collect();
        ranges.dedup();
        assert_eq!(ranges, [page.cost.touched.last().unwrap().range]);
        pages += 1;
        continuation = page.value.continuation;
        if continuation.is_none() {
            break;
        }
    }
    let (mut start, mut change_pages) = (FeedStart::Beginning, 0);
    loop {
        let (page, next) = test.changes(start, 100).await;
        if page.is_empty() {
            break;
        }
        let mut ranges: Vec<u32> = page.iter().map(|item| (item.rid().number >> 40) as u32).collect();
        ranges.dedup();
        assert_eq!(ranges.len(), 1);
        change_pages += 1;
        start = FeedStart::After(next);
    }
    assert_eq!(pages, change_pages);
}

#[tokio::test]
async fn a_read_feed_goes_on_behind_items_that_were_purged_meanwhile() {
    // TTL-247
    let test = TestContainer::with_ttl(-1).await;
    test.create(json!({"id": "a", "ttl": 10})).await.unwrap();
    test.create(json!({"id": "b"})).await.unwrap();
    test.create(json!({"id": "c", "ttl": 10})).await.unwrap();
    test.create(json!({"id": "d"})).await.unwrap();
    let (page, continuation) = test.list(1, None).await;
    assert_eq!(ids(&page), ["a"]);
    test.at(110);
    assert_eq!(test.purge().await, 2);
    let (page, continuation) = test.list(5, continuation).await;
    assert_eq!((ids(&page), continuation), (vec!["b", "d"], None));
}

#[tokio::test]
async fn a_continuation_is_refused_by_another_container() {
    let (test, other) = (
        TestContainer::with(json!({})).await,
        TestContainer::with(json!({})).await,
    );
    let ctx = other.begin().await;
    let database = other.account.create_database(&ctx, "e", None).await.unwrap();
    let properties = (*other.container.properties()).clone();
    let elsewhere = other
        .account
        .create_container(&ctx, database.rid, properties, None)
        .await
        .unwrap();
    test.create(json!({"id": "a"})).await.unwrap();
    test.create(json!({"id": "b"})).await.unwrap();
    let (_, continuation) = test.list(1, None).await;
    assert!(continuation.is_some());
    let read = ReadFeed {
        continuation,
        ..ReadFeed::default()
    };
    let refused = other.account.read_feed(&ctx, &elsewhere, &read).await;
    assert_eq!(
        refused.err().map(|refusal| refusal.error.kind),
        Some(ErrorKind::BadRequest)
    );
}

#[tokio::test]
async fn a_change_feed_shows_each_item_at_its_last_write_and_goes_on_from_there() {
    let test = TestContainer::with(json!({})).await;
    for id in ["a", "b", "c"] {
        test.create(json!({"id": id})).await.unwrap();
    }
    test.replace("a", json!({"id": "a", "n": 1}), None).await.unwrap();
    test.delete("b", None).await.unwrap();
    let (page, continuation) = test.changes(FeedStart::Beginning, 10).await;
    assert_eq!(ids(&page), ["c", "a"], "no deletes, no versions between");
    let (page, continuation) = test.changes(FeedStart::After(continuation), 10).await;
    assert!(page.is_empty());
    test.create(json!({"id": "d"})).await.unwrap();
    let (page, _) = test.changes(FeedStart::After(continuation), 10).await;
    assert_eq!(ids(&page), ["d"]);
}

#[tokio::test]
async fn a_change_feed_starts_now_or_after_a_second() {
    let test = TestContainer::with(json!({})).await;
    for (second, id) in [(100, "a"), (105, "b"), (110, "c")] {
        test.at(second);
        test.create(json!({"id": id})).await.unwrap();
    }
    for (second, expected) in [
        (99, vec!["a", "b", "c"]),
        (100, vec!["b", "c"]),
        (104, vec!["b", "c"]),
        (105, vec!["c"]),
        (110, vec![]),
    ] {
        let (page, _) = test.changes(FeedStart::Time(UnixSeconds(second)), 10).await;
        assert_eq!(ids(&page), expected, "{second}");
    }
    let (page, continuation) = test.changes(FeedStart::Now, 10).await;
    assert!(page.is_empty());
    test.create(json!({"id": "d"})).await.unwrap();
    assert_eq!(ids(&test.changes(FeedStart::After(continuation), 10).await.0), ["d"]);
}

#[tokio::test]
async fn neither_expiry_nor_purge_makes_a_change() {
    // TTL-249
    let test = TestContainer::with_ttl(10).await;
    test.create(json!({"id": "a"})).await.unwrap();
    let (_, continuation) = test.changes(FeedStart::Beginning, 10).await;
    test.at(110);
    let (page, continuation) = test.changes(FeedStart::After(continuation), 10).await;
    assert!(page.is_empty());
    test.purge().await;
    let (page, _) = test.changes(FeedStart::After(continuation), 10).await;
    assert!(page.is_empty());
}

#[tokio::test]
async fn a_feed_of_one_range_shows_what_lies_in_it() {
    let test = several_ranges().await;
    with_items(&test, 20).await;
    let mut together = Vec::new();
    for range in test.container.ranges().ranges {
        let read = ReadFeed {
            scope: ScanScope {
                range: Some(range.id),
                ..ScanScope::default()
            },
            ..ReadFeed::default()
        };
        let page = test
            .account
            .read_feed(&test.begin().await, &test.container, &read)
            .await
            .unwrap();
        together.extend(ids(&page.value.items).into_iter().map(str::to_owned));
    }
    assert_eq!(together, test.listed().await);
}

#[tokio::test]
async fn a_page_of_changes_ends_by_its_bytes_too_but_never_before_its_first_item() {
    // cosmos-rest §3.6: pages of 4 MB
    let test = TestContainer::with(json!({})).await;
    for n in 0..5 {
        let item = json!({"id": format!("i{n}"), "pad": "x".repeat(1_500_000)});
        test.create(item).await.unwrap();
    }
    let (mut start, mut pages) = (FeedStart::Beginning, Vec::new());
    loop {
        let (items, continuation) = test.changes(start, 1000).await;
        if items.is_empty() {
            break;
        }
        pages.push(items.len());
        start = FeedStart::After(continuation);
    }
    assert_eq!(pages, [3, 2], "a page is full with the item that makes it 4 MB");
}

/// Clients cut feed ranges at bounds that are longer than a key's hash: the key is below them.
#[tokio::test]
async fn a_bound_longer_than_an_effective_partition_key_lies_behind_it() {
    let test = TestContainer::with(json!({})).await;
    for pk in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        test.create(json!({"id": pk, "pk": pk})).await.unwrap();
        let whole = Epk::of(&test.container.properties().partition_key, &key(pk));
        for more in ["00", "80", "FFFF"] {
            let bound = Epk::from_hex(&format!("{}{more}", whole.to_hex())).unwrap();
            let before = EpkRange::new(Epk::start(), bound.clone());
            let behind = EpkRange::new(bound, Epk::end());
            for (range, expected) in [(before, true), (behind, false)] {
                let read = ReadFeed {
                    scope: ScanScope {
                        epk: Some(range),
                        ..ScanScope::default()
                    },
                    ..ReadFeed::default()
                };
                let ctx = test.begin().await;
                let page = test
                    .account
                    .read_feed(&ctx, &test.container, &read)
                    .await
                    .unwrap()
                    .value;
                assert_eq!(ids(&page.items).contains(&pk), expected, "{pk} {more}");
            }
        }
    }
}
