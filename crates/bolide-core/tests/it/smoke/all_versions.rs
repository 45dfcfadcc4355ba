//! The all-versions feed: what it shows, for how long, and when it is there at all.

use bolide_core::{ChangeKind, FeedStart, ItemChange, ReadChanges, ScanScope};
use bolide_model::ErrorKind;
use serde_json::json;

use crate::test_container::{TestContainer, scope_of, shown};

/// A container that keeps its history for ten minutes.
async fn with_history(default_ttl: i64) -> TestContainer {
    TestContainer::with(json!({"defaultTtl": default_ttl, "changeFeedPolicy": {"retentionDuration": 10}})).await
}

async fn page(
    test: &TestContainer,
    scope: ScanScope,
    start: FeedStart,
) -> Result<(Vec<ItemChange>, String), (ErrorKind, String)> {
    let read = ReadChanges {
        scope,
        start,
        max_items: None,
    };
    let ctx = test.begin().await;
    match test.account.all_versions(&ctx, &test.container, &read).await {
        Ok(answer) => Ok((answer.value.changes, answer.value.continuation)),
        Err(refusal) => Err((refusal.error.kind, refusal.error.message)),
    }
}

async fn now(test: &TestContainer) -> String {
    let (changes, continuation) = page(test, ScanScope::default(), FeedStart::Now).await.expect("a page");
    assert!(changes.is_empty());
    continuation
}

async fn since(test: &TestContainer, continuation: &str) -> Vec<(ChangeKind, String)> {
    let start = FeedStart::After(continuation.to_owned());
    let (mut found, mut start) = (Vec::new(), start);
    loop {
        // A page is of one range.
        let (changes, next) = page(test, ScanScope::default(), start).await.expect("a page");
        found.extend(changes.iter().map(what));
        if changes.is_empty() {
            return found;
        }
        start = FeedStart::After(next);
    }
}

fn what(change: &ItemChange) -> (ChangeKind, String) {
    let item = change.current.as_ref().or(change.previous.as_ref()).expect("a version");
    (change.kind, item.id().to_owned())
}

fn named(changes: &[(ChangeKind, &str)]) -> Vec<(ChangeKind, String)> {
    changes.iter().map(|(kind, id)| (*kind, (*id).to_owned())).collect()
}

#[tokio::test]
async fn every_version_is_shown_with_the_one_before_and_deletes_too() {
    let test = with_history(-1).await;
    let start = now(&test).await;
    test.create(json!({"id": "a", "n": 1})).await.unwrap();
    test.at(101);
    test.upsert(json!({"id": "a", "n": 2}), None).await.unwrap();
    test.delete("a", None).await.unwrap();
    let (changes, _) = page(&test, ScanScope::default(), FeedStart::After(start))
        .await
        .unwrap();
    let kinds: Vec<ChangeKind> = changes.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [ChangeKind::Create, ChangeKind::Replace, ChangeKind::Delete]);
    let n = |item: &Option<bolide_core::StoredItem>| item.as_ref().map(|item| shown(item)["n"].clone());
    let versions: Vec<_> = changes
        .iter()
        .map(|change| (n(&change.previous), n(&change.current)))
        .collect();
    let (one, two) = (Some(json!(1)), Some(json!(2)));
    assert_eq!(versions, [(None, one.clone()), (one, two.clone()), (two, None)]);
    assert_eq!(changes[1].crts.0, 101);
    let lsns: Vec<u64> = changes.iter().map(|change| change.lsn.0).collect();
    assert!(lsns.is_sorted() && lsns[0] < lsns[2], "{lsns:?}");
}

#[tokio::test]
async fn a_write_over_a_ghost_shows_its_end_first_and_then_the_create() {
    // TTL-240, TTL-250, TTL-255
    let test = with_history(10).await;
    let start = now(&test).await;
    test.create(json!({"id": "a"})).await.unwrap();
    test.at(110);
    assert_eq!(test.delete("a", None).await, Err(ErrorKind::NotFound));
    assert_eq!(since(&test, &start).await, named(&[(ChangeKind::Create, "a")]));
    test.upsert(json!({"id": "a"}), None).await.unwrap();
    assert_eq!(test.purge().await, 0);
    let all = [
        (ChangeKind::Create, "a"),
        (ChangeKind::Expire, "a"),
        (ChangeKind::Create, "a"),
    ];
    assert_eq!(since(&test, &start).await, named(&all));
    test.assert_sound().await;
}

#[tokio::test]
async fn versions_outlive_their_item_and_a_restart() {
    // TTL-250, TTL-274
    let test = with_history(10).await;
    let start = now(&test).await;
    test.create(json!({"id": "a"})).await.unwrap();
    test.create(json!({"id": "b", "ttl": 5})).await.unwrap();
    test.at(105);
    test.purge().await;
    let test = test.reopen().await;
    test.at(110);
    test.purge().await;
    test.purge().await;
    let all = [
        (ChangeKind::Create, "a"),
        (ChangeKind::Create, "b"),
        (ChangeKind::Expire, "b"),
        (ChangeKind::Expire, "a"),
    ];
    assert_eq!(since(&test, &start).await, named(&all));
    test.assert_sound().await;
}

#[tokio::test]
async fn a_refused_write_or_batch_is_no_event() {
    // TTL-218, TTL-257
    let test = with_history(10).await;
    test.create(json!({"id": "a"})).await.unwrap();
    let start = now(&test).await;
    assert_eq!(test.create(json!({"id": "a"})).await.err(), Some(ErrorKind::Conflict));
    assert!(test.create(json!({"id": "b", "ttl": 0})).await.is_err());
    assert!(test.replace("a", json!({"id": "a"}), Some("\"x\"")).await.is_err());
    assert_eq!(since(&test, &start).await, []);
}

#[tokio::test]
async fn a_feed_of_one_key_shows_that_key() {
    let test = with_history(-1).await;
    let start = now(&test).await;
    test.create(json!({"id": "a", "pk": "x"})).await.unwrap();
    test.create(json!({"id": "b", "pk": "y"})).await.unwrap();
    let (changes, _) = page(&test, scope_of("y"), FeedStart::After(start)).await.unwrap();
    let found: Vec<_> = changes.iter().map(what).collect();
    assert_eq!(found, named(&[(ChangeKind::Create, "b")]));
}

#[tokio::test]
async fn it_starts_now_or_at_a_continuation_only() {
    let test = with_history(-1).await;
    for start in [
        FeedStart::Beginning,
        FeedStart::Time(bolide_model::UnixSeconds(100)),
        FeedStart::After("x".into()),
    ] {
        let refused = page(&test, ScanScope::default(), start.clone()).await.err();
        assert_eq!(refused.map(|(kind, _)| kind), Some(ErrorKind::BadRequest), "{start:?}");
    }
}

#[tokio::test]
async fn without_the_policy_clients_hear_that_it_must_be_enabled() {
    for policy in [json!({}), json!({"changeFeedPolicy": {"retentionDuration": 0}})] {
        let test = TestContainer::with(policy).await;
        let (kind, message) = page(&test, ScanScope::default(), FeedStart::Now)
            .await
            .expect_err("not enabled");
        assert_eq!(kind, ErrorKind::BadRequest);
        assert!(
            message.contains("All Versions and Deletes") && message.contains("must be enabled"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn changes_leave_at_the_second_their_retention_is_over_whether_trimmed_or_not() {
    for is_trimmed in [false, true] {
        let test = with_history(-1).await;
        let start = now(&test).await;
        test.create(json!({"id": "a"})).await.unwrap();
        test.at(101);
        let later = now(&test).await;
        test.create(json!({"id": "b"})).await.unwrap();
        test.at(699);
        test.purge().await;
        assert_eq!(since(&test, &start).await.len(), 2, "ten minutes are not over");
        test.at(700);
        if is_trimmed {
            test.purge().await;
        }
        let (kind, message) = page(&test, ScanScope::default(), FeedStart::After(start))
            .await
            .expect_err("a change behind it is gone");
        assert_eq!(kind, ErrorKind::BadRequest, "{is_trimmed}");
        assert!(message.contains("retentionDuration"), "{message}");
        assert_eq!(since(&test, &later).await, named(&[(ChangeKind::Create, "b")]));
        test.at(10_000);
        test.purge().await;
        let end = now(&test).await;
        assert_eq!(since(&test, &end).await, []);
        test.assert_sound().await;
    }
}

#[tokio::test]
async fn who_has_read_everything_may_come_back_however_late() {
    let test = with_history(-1).await;
    test.create(json!({"id": "a"})).await.unwrap();
    let end = now(&test).await;
    test.at(100_000);
    assert_eq!(since(&test, &end).await, []);
    test.purge().await;
    assert_eq!(since(&test, &end).await, []);
    test.create(json!({"id": "b"})).await.unwrap();
    assert_eq!(since(&test, &end).await, named(&[(ChangeKind::Create, "b")]));
}

#[tokio::test]
async fn a_history_that_is_switched_off_and_on_again_begins_anew() {
    let test = with_history(-1).await;
    let first = now(&test).await;
    test.create(json!({"id": "a"})).await.unwrap();
    test.define(json!({"defaultTtl": -1})).await.unwrap();
    test.create(json!({"id": "b"})).await.unwrap();
    let history = json!({"defaultTtl": -1, "changeFeedPolicy": {"retentionDuration": 10}});
    test.define(history).await.unwrap();
    let second = now(&test).await;
    test.replace("b", json!({"id": "b", "n": 1}), None).await.unwrap();
    assert_eq!(since(&test, &second).await, named(&[(ChangeKind::Replace, "b")]));
    let refused = page(&test, ScanScope::default(), FeedStart::After(first)).await;
    assert_eq!(
        refused.err().map(|(kind, _)| kind),
        Some(ErrorKind::BadRequest),
        "b came while nothing was kept"
    );
    test.assert_sound().await;
}

#[tokio::test]
async fn loaded_items_are_creates_at_the_time_of_loading() {
    let test = with_history(-1).await;
    let start = now(&test).await;
    test.at(200);
    let items = b"{\"id\":\"a\",\"pk\":\"p\",\"_ts\":50}\n";
    let parts = futures_util::stream::iter([Ok(bytes::Bytes::from_static(items))]);
    test.account.import(&test.container, parts).await.unwrap();
    let (changes, _) = page(&test, ScanScope::default(), FeedStart::After(start))
        .await
        .unwrap();
    assert_eq!(
        changes.iter().map(what).collect::<Vec<_>>(),
        named(&[(ChangeKind::Create, "a")])
    );
    assert_eq!(changes[0].crts.0, 200);
    test.assert_sound().await;
}

#[tokio::test]
async fn children_of_a_split_go_on_with_their_parents_history() {
    // TTL-277
    let test = with_history(10).await;
    let start = now(&test).await;
    for pk in ["ant", "bee", "cat", "dog", "elk"] {
        test.create(json!({"id": pk, "pk": pk})).await.unwrap();
    }
    test.account.split(&test.container, None).await.unwrap();
    test.at(110);
    test.purge().await;
    let mut found = since(&test, &start).await;
    found.sort_by_key(|(kind, id)| (*kind == ChangeKind::Expire, id.clone()));
    let mut expected = Vec::new();
    for kind in [ChangeKind::Create, ChangeKind::Expire] {
        expected.extend(["ant", "bee", "cat", "dog", "elk"].map(|id| (kind, id.to_owned())));
    }
    assert_eq!(found, expected);
    test.assert_sound().await;
}

#[tokio::test]
async fn a_history_that_a_client_began_goes_on_after_a_restart_and_a_split() {
    let test = TestContainer::with(json!({})).await;
    test.account.keep_all_versions(&test.container).await.unwrap();
    let start = now(&test).await;
    test.create(json!({"id": "a", "pk": "ant"})).await.unwrap();
    let test = test.reopen().await;
    test.account.split(&test.container, None).await.unwrap();
    test.create(json!({"id": "b", "pk": "bee"})).await.unwrap();
    let mut found = since(&test, &start).await;
    found.sort_by(|one, other| one.1.cmp(&other.1));
    assert_eq!(found, named(&[(ChangeKind::Create, "a"), (ChangeKind::Create, "b")]));
    test.assert_sound().await;
}
