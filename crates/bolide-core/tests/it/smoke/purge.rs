//! The purge: what it removes, in which order, at what cost, and what it says about itself.

use bolide_core::{
    AccountOptions, FeedStart, Pacing, PacingSettings, PurgeMode, ReadChanges, ReadFeed, ScanScope, Throughput,
    TtlPreview, TtlRule, TtlState,
};
use bolide_model::time::Monotonic;
use bolide_model::ttl::Policy;
use bolide_model::{RequestUnits, UnixMillis};
use bolide_storage::Engine as _;
use serde_json::json;

use crate::test_container::{TestContainer, background_options, ids, key, options, run_background};

/// A budget of 400 units a second, of which only explicit load counts as use, and 10 units for each item purged.
fn paced() -> PacingSettings {
    PacingSettings {
        pacing: Pacing::Provisioned { ru: 400.0 },
        delete_ru: Some(10.0),
        count_only_load: true,
    }
}

async fn purge_paced(test: &TestContainer) -> u64 {
    test.account
        .purge(&test.container, PurgeMode::Paced, None)
        .await
        .unwrap()
}

async fn create_many(test: &TestContainer, count: usize) {
    for n in 0..count {
        test.create(json!({"id": n.to_string()})).await.unwrap();
    }
}

#[tokio::test]
async fn a_purge_removes_all_ghosts_and_nothing_else() {
    let test = TestContainer::with_ttl(10).await;
    create_many(&test, 250).await;
    test.create(json!({"id": "own", "ttl": 5})).await.unwrap();
    test.create(json!({"id": "kept", "ttl": -1})).await.unwrap();
    test.at(105);
    assert_eq!(test.purge().await, 1);
    test.at(110);
    assert_eq!(test.purge().await, 250);
    assert_eq!(test.listed().await, ["kept"]);
    let report = test.account.verify(&test.container).await.unwrap();
    assert_eq!((report.stored, report.live, report.is_ok()), (1, 1, true));
}

#[tokio::test]
async fn ghosts_from_before_are_purged_when_ttl_is_off() {
    // TTL-232
    let test = TestContainer::with_ttl(10).await;
    create_many(&test, 3).await;
    test.at(110);
    test.define(json!({})).await.unwrap();
    let state = async || test.account.ttl_report(&test.container).await.unwrap().state;
    assert_eq!(state().await, TtlState::Active);
    assert_eq!(test.purge().await, 3);
    assert_eq!(state().await, TtlState::Disabled);
}

#[tokio::test]
async fn a_paced_purge_spends_what_users_left_over_in_the_second_before() {
    // TTL-259
    let test = TestContainer::with_ttl(10).await;
    test.account.set_pacing(&test.container, paced()).await.unwrap();
    create_many(&test, 60).await;
    test.at(110);
    test.account.consume(&test.container, RequestUnits(375.0)).unwrap();
    assert_eq!(purge_paced(&test).await, 40, "400 were left over in 109");
    assert_eq!(purge_paced(&test).await, 0);
    test.at(111);
    assert_eq!(
        purge_paced(&test).await,
        3,
        "25 are left over from 110: two items, and one into debt"
    );
    test.at(112);
    assert_eq!(purge_paced(&test).await, 17);
}

#[tokio::test]
async fn no_progress_is_made_under_full_load_and_users_are_never_throttled_by_the_purge() {
    // TTL-058, TTL-061, P8
    let enforcing = AccountOptions {
        enforce_throughput: true,
        ..options()
    };
    let throughput = Some(Throughput::Manual { ru: 400 });
    let test = TestContainer::with_options(json!({"defaultTtl": 10}), throughput, enforcing).await;
    test.account.set_pacing(&test.container, paced()).await.unwrap();
    create_many(&test, 60).await;
    test.at(120);
    assert_eq!(purge_paced(&test).await, 40);
    test.account
        .consume(&test.container, RequestUnits(400.0))
        .expect("the purge leaves users all of it");
    test.at(121);
    test.account.consume(&test.container, RequestUnits(400.0)).unwrap();
    assert_eq!(purge_paced(&test).await, 0);
    let report = test.account.ttl_report(&test.container).await.unwrap();
    assert_eq!(
        (report.state, report.backlog_items, report.credit),
        (TtlState::Waiting, 20, Some(0.0))
    );
    assert_eq!(report.oldest_pending_seconds, 11);
    assert_eq!(test.count().await, 0, "a delayed purge never shows a ghost (TTL-060)");
}

#[tokio::test]
async fn the_two_lines_are_served_in_turn() {
    // TTL-266
    let test = TestContainer::with_ttl(10).await;
    create_many(&test, 4).await;
    for n in 0..4 {
        test.create(json!({"id": format!("own{n}"), "ttl": 9 - n}))
            .await
            .unwrap();
    }
    test.at(110);
    let purged = test
        .account
        .purge(&test.container, PurgeMode::Force, Some(4))
        .await
        .unwrap();
    assert_eq!(purged, 4);
    let mut left = Vec::new();
    for id in ["0", "1", "2", "3", "own0", "own1", "own2", "own3"] {
        let why = test.account.ttl_why(&test.container, id, &key("p")).await.unwrap();
        left.extend(why.item.map(|_| id));
    }
    assert_eq!(
        left,
        ["2", "3", "own0", "own1"],
        "of each line what ended first is gone"
    );
}

#[tokio::test]
async fn serverless_purges_are_billed_and_provisioned_ones_are_not() {
    // TTL-260, TTL-262
    for (pacing, billed) in [(Pacing::Serverless, 20.0), (Pacing::Provisioned { ru: 400.0 }, 0.0)] {
        let test = TestContainer::with_ttl(10).await;
        let settings = PacingSettings { pacing, ..paced() };
        test.account.set_pacing(&test.container, settings).await.unwrap();
        create_many(&test, 2).await;
        test.at(110);
        assert_eq!(purge_paced(&test).await, 2);
        let report = test.account.ttl_report(&test.container).await.unwrap();
        assert_eq!(
            (report.ru_spent_total.0, report.ru_billed_total.0),
            (20.0, billed),
            "{pacing:?}"
        );
    }
}

#[tokio::test]
async fn figures_of_the_purge_survive_a_restart() {
    let test = TestContainer::with_ttl(10).await;
    create_many(&test, 3).await;
    test.at(110);
    test.account
        .purge(&test.container, PurgeMode::Force, Some(2))
        .await
        .unwrap();
    let test = test.reopen().await;
    let report = test.account.ttl_report(&test.container).await.unwrap();
    assert_eq!((report.purged_total, report.backlog_items), (2, 1));
    assert_eq!(test.purge().await, 1);
}

#[tokio::test]
async fn a_purge_cut_off_between_commits_is_finished_after_the_restart() {
    // TTL-270
    let test = TestContainer::with_ttl(10).await;
    create_many(&test, 250).await;
    test.at(110);
    test.engine.cut_after(1);
    assert!(
        test.account
            .purge(&test.container, PurgeMode::Force, None)
            .await
            .is_err()
    );
    test.engine.mend();
    let test = test.reopen().await;
    test.assert_sound().await;
    let left = test.account.ttl_report(&test.container).await.unwrap().backlog_items;
    assert!((1..250).contains(&left), "{left}");
    assert_eq!(test.purge().await, left);
    test.assert_sound().await;
}

#[tokio::test]
async fn a_preview_counts_what_another_default_would_end_and_changes_nothing() {
    let test = TestContainer::with_ttl(1_000_000).await;
    create_many(&test, 2).await;
    test.create(json!({"id": "own", "ttl": 5000})).await.unwrap();
    test.create(json!({"id": "never", "ttl": -1})).await.unwrap();
    test.at(150);
    test.create(json!({"id": "young"})).await.unwrap();
    let preview = test
        .account
        .ttl_preview(&test.container, Policy::After(50))
        .await
        .unwrap();
    let expected = TtlPreview {
        expire_now: 2,
        expire_within_hour: 1,
        expire_within_day: 2,
        never_expire: 1,
    };
    assert_eq!(preview, expected);
    assert_eq!(test.count().await, 5);
}

#[tokio::test]
async fn why_names_what_decides() {
    let test = TestContainer::with_ttl(10).await;
    test.create(json!({"id": "by default"})).await.unwrap();
    test.create(json!({"id": "own", "ttl": 20})).await.unwrap();
    test.create(json!({"id": "never", "ttl": -1})).await.unwrap();
    let why = async |id: &str| {
        let why = test.account.ttl_why(&test.container, id, &key("p")).await.unwrap();
        (why.is_live, why.expires_at_seconds, why.rule)
    };
    assert_eq!(why("by default").await, (true, Some(110), TtlRule::Default));
    assert_eq!(why("own").await, (true, Some(120), TtlRule::Own));
    assert_eq!(why("never").await, (true, None, TtlRule::Never));
    test.at(115);
    test.define(json!({"defaultTtl": 1000})).await.unwrap();
    assert_eq!(why("by default").await, (false, Some(110), TtlRule::Floor));
    assert_eq!(test.purge().await, 1);
    assert!(!why("by default").await.0);
}

#[tokio::test]
async fn a_read_that_began_before_a_purge_shows_none_of_what_was_due_with_what_was_purged() {
    // docs/ttl.md, "Time": of two items due in the same second an answer never shows one and lacks the other
    let test = TestContainer::with_throughput(json!({"defaultTtl": 10}), Some(Throughput::Manual { ru: 20_000 })).await;
    for n in 0..8 {
        test.create(json!({"id": n.to_string(), "pk": n.to_string()}))
            .await
            .unwrap();
    }
    test.at(109);
    let began_before = test.begin().await;
    test.at(110);
    let purged = test.account.purge(&test.container, PurgeMode::Force, Some(1)).await;
    assert_eq!(purged, Ok(1));
    let listed = test
        .account
        .read_feed(&began_before, &test.container, &ReadFeed::default())
        .await
        .unwrap();
    assert_eq!(ids(&listed.value.items), Vec::<&str>::new());
    let changes = ReadChanges {
        scope: ScanScope::default(),
        start: FeedStart::Beginning,
        max_items: None,
    };
    let changed = test
        .account
        .change_feed(&began_before, &test.container, &changes)
        .await
        .unwrap();
    assert_eq!(ids(&changed.value.items), Vec::<&str>::new());
}

#[tokio::test]
async fn two_housekeepers_at_once_do_not_disturb_each_other() {
    let test = TestContainer::with_ttl(10).await;
    create_many(&test, 150).await;
    test.at(110);
    let (purged, usage, report) = tokio::join!(
        test.account.purge(&test.container, PurgeMode::Force, None),
        test.account.usage(&test.container),
        test.account.ttl_report(&test.container),
    );
    assert_eq!((purged, usage.map(|usage| usage.items)), (Ok(150), Ok(0)));
    assert!(report.is_ok());
    test.assert_sound().await;
}

#[tokio::test]
async fn the_background_purge_tries_again_after_a_commit_that_failed() {
    let monotonic = Monotonic::manual();
    let in_background = background_options(&monotonic);
    let test = TestContainer::with_options(json!({"defaultTtl": 10}), None, in_background).await;
    create_many(&test, 3).await;
    test.engine.cut_after(0);
    test.engine.traffic();
    test.at(110);
    run_background(&monotonic, async || test.engine.traffic().commits > 0).await;
    test.engine.mend();
    run_background(&monotonic, async || {
        let report = test.account.ttl_report(&test.container).await.unwrap();
        report.purged_total == 3
    })
    .await;
}

#[tokio::test]
async fn an_account_that_shall_not_purge_does_not_and_still_keeps_its_time() {
    // TTL-203
    let monotonic = Monotonic::manual();
    let looking = AccountOptions {
        background_purge: false,
        ..background_options(&monotonic)
    };
    let test = TestContainer::with_options(json!({"defaultTtl": 10}), None, looking).await;
    create_many(&test, 3).await;
    test.at(110);
    assert_eq!(test.count().await, 0, "expired all the same");
    assert!(
        test.engine.durable_time() >= UnixMillis(110_000),
        "durable before the answer"
    );
    // Its background is at work: it makes a second durable before it begins, as there was a request.
    test.clock.set(UnixMillis(110_960));
    run_background(&monotonic, async || test.engine.durable_time() >= UnixMillis(111_000)).await;
    let report = test.account.ttl_report(&test.container).await.unwrap();
    assert_eq!((report.backlog_items, report.purged_total), (3, 0));
    assert_eq!(test.purge().await, 3, "when it is told to");
}

#[tokio::test]
async fn the_rate_of_the_purge_is_the_mean_of_the_last_minute() {
    // TTL-272
    let test = TestContainer::with_ttl(10).await;
    create_many(&test, 3).await;
    let rate_at = async |second| {
        test.at(second);
        let report = test.account.ttl_report(&test.container).await;
        report.unwrap().purge_rate
    };
    assert_eq!(rate_at(200).await, 0.0);
    test.purge().await;
    assert_eq!(rate_at(200).await, 0.05);
    assert_eq!(rate_at(259).await, 0.05);
    assert_eq!(rate_at(260).await, 0.0);
}
