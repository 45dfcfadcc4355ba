//! Deleting all items of a partition key: gone at once, removed in the background.

use bolide_core::{Account, ChangeKind, FeedStart, Pacing, PacingSettings, PurgeMode, ReadChanges, ScanScope};
use bolide_model::ErrorKind;
use bolide_model::partition_key::{Component, PartitionKey};
use bolide_model::ttl::Policy;
use serde_json::json;

use crate::test_container::{TestContainer, ids, key};

async fn delete_all(test: &TestContainer, pk: &str) {
    let deleted = test
        .account
        .delete_all_of_key(&test.begin().await, &test.container, &key(pk))
        .await;
    deleted.expect("a deletion");
}

async fn with_items(more: serde_json::Value) -> TestContainer {
    let test = TestContainer::with(more).await;
    for n in 0..250 {
        test.create(json!({"id": format!("i{n}"), "u": n})).await.unwrap();
    }
    test.create(json!({"id": "i0", "pk": "q", "u": 0})).await.unwrap();
    test
}

async fn events(account: &Account, test: &TestContainer, after: &str) -> Vec<ChangeKind> {
    let mut kinds = Vec::new();
    let mut start = FeedStart::After(after.to_owned());
    loop {
        let read = ReadChanges {
            scope: ScanScope::default(),
            start,
            max_items: None,
        };
        let page = account.all_versions(&test.begin().await, &test.container, &read).await;
        let page = page.expect("a page").value;
        if page.changes.is_empty() {
            return kinds;
        }
        kinds.extend(page.changes.iter().map(|change| change.kind));
        start = FeedStart::After(page.continuation);
    }
}

#[tokio::test]
async fn everything_of_the_key_is_gone_at_once_for_reads_feeds_counts_and_conflicts() {
    let test = with_items(json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}})).await;
    delete_all(&test, "p").await;
    assert!(!test.has("i7").await);
    assert_eq!(test.delete("i7", None).await, Err(ErrorKind::NotFound));
    assert_eq!(test.listed().await, ["i0"], "of the other key");
    assert_eq!(test.count().await, 1);
    let (changes, _) = test.changes(FeedStart::Beginning, 1000).await;
    assert_eq!(ids(&changes), ["i0"]);
    // Id and unique value are free.
    test.create(json!({"id": "i7", "u": 8, "n": 1})).await.unwrap();
    test.upsert(json!({"id": "i9", "u": 9}), None).await.unwrap();
    assert_eq!(test.count().await, 3);
    test.assert_sound().await;
}

#[tokio::test]
async fn removal_survives_a_restart_spares_what_came_later_and_leaves_nothing() {
    let test = with_items(json!({})).await;
    delete_all(&test, "p").await;
    test.create(json!({"id": "i3", "n": 1})).await.unwrap();
    let test = test.reopen().await;
    assert_eq!(test.listed().await, ["i0", "i3"]);
    assert_eq!(test.purge().await, 0, "these are no ghosts");
    let report = test.account.verify(&test.container).await.unwrap();
    assert_eq!((report.stored, report.live, report.problems), (2, 2, vec![]));
    assert_eq!(test.listed().await, ["i0", "i3"]);
}

#[tokio::test]
async fn removal_goes_on_in_the_children_of_a_split() {
    // TTL-277
    let test = with_items(json!({})).await;
    delete_all(&test, "p").await;
    test.account.split(&test.container, None).await.unwrap();
    assert_eq!(test.listed().await, ["i0"]);
    test.purge().await;
    let report = test.account.verify(&test.container).await.unwrap();
    assert_eq!((report.stored, report.problems), (1, vec![]));
}

#[tokio::test]
async fn what_had_expired_before_ends_by_its_ttl_and_the_rest_by_the_deletion() {
    // TTL-235, TTL-250, TTL-274
    let test = TestContainer::with(json!({"defaultTtl": -1, "changeFeedPolicy": {"retentionDuration": 10}})).await;
    test.create(json!({"id": "ghost", "ttl": 5})).await.unwrap();
    test.create(json!({"id": "live", "ttl": 20})).await.unwrap();
    test.create(json!({"id": "other"})).await.unwrap();
    let start = test.container.ranges().ranges[0].lsn.to_string();
    test.at(105);
    delete_all(&test, "p").await;
    test.at(120);
    assert_eq!(events(&test.account, &test, &start).await, []);
    assert_eq!(test.purge().await, 1, "only the ghost was one");
    let mut kinds = events(&test.account, &test, &start).await;
    kinds.sort_by_key(|kind| *kind as u8);
    assert_eq!(kinds, [ChangeKind::Delete, ChangeKind::Delete, ChangeKind::Expire]);
    test.assert_sound().await;
}

#[tokio::test]
async fn removal_is_paced_by_what_users_leave_over() {
    // TTL-259
    let test = with_items(json!({})).await;
    let pacing = PacingSettings {
        pacing: Pacing::Provisioned { ru: 400.0 },
        delete_ru: Some(10.0),
        count_only_load: true,
    };
    test.account.set_pacing(&test.container, pacing).await.unwrap();
    delete_all(&test, "p").await;
    let stored = async || test.account.verify(&test.container).await.unwrap().stored;
    test.at(110);
    test.account
        .purge(&test.container, PurgeMode::Paced, None)
        .await
        .unwrap();
    assert_eq!(stored().await, 251 - 40, "400 units at 10 each");
    assert_eq!(test.listed().await, ["i0"], "hidden all the same");
    test.at(111);
    test.account
        .purge(&test.container, PurgeMode::Paced, None)
        .await
        .unwrap();
    assert_eq!(stored().await, 251 - 80);
}

#[tokio::test]
async fn a_key_of_too_few_components_is_refused() {
    let test =
        TestContainer::with(json!({"partitionKey": {"paths": ["/pk", "/b"], "kind": "MultiHash", "version": 2}})).await;
    let prefix = PartitionKey(vec![Component::String("p".into())]);
    let refused = test
        .account
        .delete_all_of_key(&test.begin().await, &test.container, &prefix)
        .await;
    assert_eq!(
        refused.err().map(|refusal| refusal.error.kind),
        Some(ErrorKind::PartitionKeyMismatch)
    );
}

#[tokio::test]
async fn what_was_deleted_with_its_key_is_in_no_figure_of_expiry() {
    // TTL-272
    let test = TestContainer::with(json!({"defaultTtl": 10})).await;
    test.create(json!({"id": "own", "ttl": 20})).await.unwrap();
    test.create(json!({"id": "inherits"})).await.unwrap();
    delete_all(&test, "p").await;
    test.at(105);
    test.create(json!({"id": "later"})).await.unwrap();
    for (second, live, ghosts, oldest, next) in [(105, 1, 0, 0, Some(115)), (130, 0, 1, 15, None)] {
        test.at(second);
        let report = test.account.ttl_report(&test.container).await.unwrap();
        assert_eq!(test.count().await, live);
        assert_eq!(report.forecast.iter().map(|slice| slice.items).sum::<u64>(), live);
        assert_eq!(report.next_expiry_seconds, next);
        assert_eq!((report.backlog_items, report.oldest_pending_seconds), (ghosts, oldest));
        let figures = test.account.container_figures().await.unwrap().remove(0);
        assert_eq!((figures.ghosts.items, figures.lag_seconds), (ghosts, oldest));
        let preview = test.account.ttl_preview(&test.container, Policy::Off).await.unwrap();
        assert_eq!(preview.expire_now + preview.never_expire, live);
    }
    assert_eq!(test.purge().await, 1);
}

#[tokio::test]
async fn a_key_that_is_deleted_again_and_again_leaves_room_for_others() {
    let test = with_items(json!({})).await;
    for _ in 0..4 {
        delete_all(&test, "p").await;
    }
    let again = test
        .account
        .delete_all_of_key(&test.begin().await, &test.container, &key("p"))
        .await;
    assert_eq!(
        again.err().map(|refusal| refusal.error.kind),
        Some(ErrorKind::Forbidden)
    );
    delete_all(&test, "q").await;
    test.purge().await;
    delete_all(&test, "p").await;
}

/// Tombstones were remembered for ten seconds after the removal of what they hid: a reader that took longer showed it again.
#[tokio::test]
async fn a_reader_that_is_stalled_beyond_the_removal_shows_nothing_of_the_key() {
    let test = with_items(json!({})).await;
    test.engine.hold_next_answer();
    let removal = async {
        while test.engine.held_answers() == 0 {
            tokio::task::yield_now().await;
        }
        delete_all(&test, "p").await;
        test.create(json!({"id": "later"})).await.unwrap();
        // However long the reader is stalled: nothing but the tombstone said that what it has read was deleted, and that is gone.
        test.purge().await;
        assert_eq!(test.listed().await, ["i0", "later"]);
        test.engine.release_answer();
    };
    let (listed, ()) = tokio::join!(test.listed(), removal);
    assert_eq!(listed, ["i0", "later"]);
    test.assert_sound().await;
}
