//! Deleting all items of a partition key: gone at once, removed in the background.

use bolide_core::{Account, ChangeKind, FeedStart, Pacing, PacingSettings, PurgeMode, ReadChanges, Scope};
use bolide_model::ErrorKind;
use bolide_model::partition_key::{Component, PartitionKey};
use bolide_model::ttl::Policy;
use serde_json::json;

use crate::stage::{Stage, ids, key};

async fn delete_all(stage: &Stage, pk: &str) {
    let deleted = stage
        .account
        .delete_all_of_key(&stage.begin().await, &stage.container, &key(pk))
        .await;
    deleted.expect("a deletion");
}

async fn with_items(more: serde_json::Value) -> Stage {
    let stage = Stage::with(more).await;
    for n in 0..250 {
        stage.create(json!({"id": format!("i{n}"), "u": n})).await.unwrap();
    }
    stage.create(json!({"id": "i0", "pk": "q", "u": 0})).await.unwrap();
    stage
}

async fn events(account: &Account, stage: &Stage, after: &str) -> Vec<ChangeKind> {
    let mut kinds = Vec::new();
    let mut start = FeedStart::After(after.to_owned());
    loop {
        let read = ReadChanges {
            scope: Scope::default(),
            start,
            max_items: None,
        };
        let page = account
            .all_versions(&stage.begin().await, &stage.container, &read)
            .await;
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
    let stage = with_items(json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}})).await;
    delete_all(&stage, "p").await;
    assert!(!stage.has("i7").await);
    assert_eq!(stage.delete("i7", None).await, Err(ErrorKind::NotFound));
    assert_eq!(stage.listed().await, ["i0"], "of the other key");
    assert_eq!(stage.count().await, 1);
    let (changes, _) = stage.changes(FeedStart::Beginning, 1000).await;
    assert_eq!(ids(&changes), ["i0"]);
    // Id and unique value are free.
    stage.create(json!({"id": "i7", "u": 8, "n": 1})).await.unwrap();
    stage.upsert(json!({"id": "i9", "u": 9}), None).await.unwrap();
    assert_eq!(stage.count().await, 3);
    stage.assert_sound().await;
}

#[tokio::test]
async fn removal_survives_a_restart_spares_what_came_later_and_leaves_nothing() {
    let stage = with_items(json!({})).await;
    delete_all(&stage, "p").await;
    stage.create(json!({"id": "i3", "n": 1})).await.unwrap();
    let stage = stage.reopen().await;
    assert_eq!(stage.listed().await, ["i0", "i3"]);
    assert_eq!(stage.purge().await, 0, "these are no ghosts");
    let report = stage.account.verify(&stage.container).await.unwrap();
    assert_eq!((report.stored, report.live, report.problems), (2, 2, vec![]));
    assert_eq!(stage.listed().await, ["i0", "i3"]);
}

#[tokio::test]
async fn removal_goes_on_in_the_children_of_a_split() {
    // TTL-277
    let stage = with_items(json!({})).await;
    delete_all(&stage, "p").await;
    stage.account.split(&stage.container, None).await.unwrap();
    assert_eq!(stage.listed().await, ["i0"]);
    stage.purge().await;
    let report = stage.account.verify(&stage.container).await.unwrap();
    assert_eq!((report.stored, report.problems), (1, vec![]));
}

#[tokio::test]
async fn what_had_expired_before_ends_by_its_ttl_and_the_rest_by_the_deletion() {
    // TTL-235, TTL-250, TTL-274
    let stage = Stage::with(json!({"defaultTtl": -1, "changeFeedPolicy": {"retentionDuration": 10}})).await;
    stage.create(json!({"id": "ghost", "ttl": 5})).await.unwrap();
    stage.create(json!({"id": "live", "ttl": 20})).await.unwrap();
    stage.create(json!({"id": "other"})).await.unwrap();
    let start = stage.container.ranges().ranges[0].lsn.to_string();
    stage.at(105);
    delete_all(&stage, "p").await;
    stage.at(120);
    assert_eq!(events(&stage.account, &stage, &start).await, []);
    assert_eq!(stage.purge().await, 1, "only the ghost was one");
    let mut kinds = events(&stage.account, &stage, &start).await;
    kinds.sort_by_key(|kind| *kind as u8);
    assert_eq!(kinds, [ChangeKind::Delete, ChangeKind::Delete, ChangeKind::Expire]);
    stage.assert_sound().await;
}

#[tokio::test]
async fn removal_is_paced_by_what_users_leave_over() {
    // TTL-259
    let stage = with_items(json!({})).await;
    let pacing = PacingSettings {
        pacing: Pacing::Provisioned { ru: 400.0 },
        delete_ru: Some(10.0),
        count_only_load: true,
    };
    stage.account.set_pacing(&stage.container, pacing).await.unwrap();
    delete_all(&stage, "p").await;
    let stored = async || stage.account.verify(&stage.container).await.unwrap().stored;
    stage.at(110);
    stage
        .account
        .purge(&stage.container, PurgeMode::Paced, None)
        .await
        .unwrap();
    assert_eq!(stored().await, 251 - 40, "400 units at 10 each");
    assert_eq!(stage.listed().await, ["i0"], "hidden all the same");
    stage.at(111);
    stage
        .account
        .purge(&stage.container, PurgeMode::Paced, None)
        .await
        .unwrap();
    assert_eq!(stored().await, 251 - 80);
}

#[tokio::test]
async fn a_key_of_too_few_components_is_refused() {
    let stage = Stage::with(json!({"partitionKey": {"paths": ["/pk", "/b"], "kind": "MultiHash", "version": 2}})).await;
    let prefix = PartitionKey(vec![Component::String("p".into())]);
    let refused = stage
        .account
        .delete_all_of_key(&stage.begin().await, &stage.container, &prefix)
        .await;
    assert_eq!(
        refused.err().map(|refusal| refusal.error.kind),
        Some(ErrorKind::PartitionKeyMismatch)
    );
}

#[tokio::test]
async fn what_was_deleted_with_its_key_is_in_no_figure_of_expiry() {
    // TTL-272
    let stage = Stage::with(json!({"defaultTtl": 10})).await;
    stage.create(json!({"id": "own", "ttl": 20})).await.unwrap();
    stage.create(json!({"id": "inherits"})).await.unwrap();
    delete_all(&stage, "p").await;
    stage.at(105);
    stage.create(json!({"id": "later"})).await.unwrap();
    for (second, live, ghosts, oldest, next) in [(105, 1, 0, 0, Some(115)), (130, 0, 1, 15, None)] {
        stage.at(second);
        let report = stage.account.ttl_report(&stage.container).await.unwrap();
        assert_eq!(stage.count().await, live);
        assert_eq!(report.forecast.iter().map(|slice| slice.items).sum::<u64>(), live);
        assert_eq!(report.next_expiry_seconds, next);
        assert_eq!((report.backlog_items, report.oldest_pending_seconds), (ghosts, oldest));
        let figures = stage.account.container_figures().await.unwrap().remove(0);
        assert_eq!((figures.ghosts.items, figures.lag_seconds), (ghosts, oldest));
        let preview = stage.account.ttl_preview(&stage.container, Policy::Off).await.unwrap();
        assert_eq!(preview.expire_now + preview.never_expire, live);
    }
    assert_eq!(stage.purge().await, 1);
}

#[tokio::test]
async fn a_key_that_is_deleted_again_and_again_leaves_room_for_others() {
    let stage = with_items(json!({})).await;
    for _ in 0..4 {
        delete_all(&stage, "p").await;
    }
    let again = stage
        .account
        .delete_all_of_key(&stage.begin().await, &stage.container, &key("p"))
        .await;
    assert_eq!(
        again.err().map(|refusal| refusal.error.kind),
        Some(ErrorKind::Forbidden)
    );
    delete_all(&stage, "q").await;
    stage.purge().await;
    delete_all(&stage, "p").await;
}

/// Tombstones were remembered for ten seconds after the removal of what they hid: a reader that took longer showed it again.
#[tokio::test]
async fn a_reader_that_is_stalled_beyond_the_removal_shows_nothing_of_the_key() {
    let stage = with_items(json!({})).await;
    stage.engine.hold_next_answer();
    let removal = async {
        while stage.engine.held_answers() == 0 {
            tokio::task::yield_now().await;
        }
        delete_all(&stage, "p").await;
        stage.create(json!({"id": "later"})).await.unwrap();
        // However long the reader is stalled: nothing but the tombstone said that what it has read was deleted, and that is gone.
        stage.purge().await;
        assert_eq!(stage.listed().await, ["i0", "later"]);
        stage.engine.release_answer();
    };
    let (listed, ()) = tokio::join!(stage.listed(), removal);
    assert_eq!(listed, ["i0", "later"]);
    stage.assert_sound().await;
}
