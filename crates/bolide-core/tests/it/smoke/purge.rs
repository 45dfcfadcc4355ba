//! The purge: what it removes, in which order, at what cost, and what it says about itself.

use bolide_core::{
    AccountOptions, FeedStart, Pacing, PacingSettings, PurgeMode, ReadChanges, ReadFeed, Scope, Throughput, TtlPreview,
    TtlRule, TtlState,
};
use bolide_model::time::Monotonic;
use bolide_model::ttl::Policy;
use bolide_model::{RequestUnits, UnixMillis};
use bolide_storage::Engine as _;
use serde_json::json;

use crate::stage::{Stage, background_options, ids, key, options, run_background};

/// A budget of 400 units a second, of which only explicit load counts as use, and 10 units for each item purged.
fn paced() -> PacingSettings {
    PacingSettings {
        pacing: Pacing::Provisioned { ru: 400.0 },
        delete_ru: Some(10.0),
        count_only_load: true,
    }
}

async fn purge_paced(stage: &Stage) -> u64 {
    stage
        .account
        .purge(&stage.container, PurgeMode::Paced, None)
        .await
        .unwrap()
}

async fn create_many(stage: &Stage, count: usize) {
    for n in 0..count {
        stage.create(json!({"id": n.to_string()})).await.unwrap();
    }
}

#[tokio::test]
async fn a_purge_removes_all_ghosts_and_nothing_else() {
    let stage = Stage::with_ttl(10).await;
    create_many(&stage, 250).await;
    stage.create(json!({"id": "own", "ttl": 5})).await.unwrap();
    stage.create(json!({"id": "kept", "ttl": -1})).await.unwrap();
    stage.at(105);
    assert_eq!(stage.purge().await, 1);
    stage.at(110);
    assert_eq!(stage.purge().await, 250);
    assert_eq!(stage.listed().await, ["kept"]);
    let report = stage.account.verify(&stage.container).await.unwrap();
    assert_eq!((report.stored, report.live, report.is_ok()), (1, 1, true));
}

#[tokio::test]
async fn ghosts_from_before_are_purged_when_ttl_is_off() {
    // TTL-232
    let stage = Stage::with_ttl(10).await;
    create_many(&stage, 3).await;
    stage.at(110);
    stage.define(json!({})).await.unwrap();
    let state = async || stage.account.ttl_report(&stage.container).await.unwrap().state;
    assert_eq!(state().await, TtlState::Active);
    assert_eq!(stage.purge().await, 3);
    assert_eq!(state().await, TtlState::Disabled);
}

#[tokio::test]
async fn a_paced_purge_spends_what_users_left_over_in_the_second_before() {
    // TTL-259
    let stage = Stage::with_ttl(10).await;
    stage.account.set_pacing(&stage.container, paced()).await.unwrap();
    create_many(&stage, 60).await;
    stage.at(110);
    stage.account.consume(&stage.container, RequestUnits(375.0)).unwrap();
    assert_eq!(purge_paced(&stage).await, 40, "400 were left over in 109");
    assert_eq!(purge_paced(&stage).await, 0);
    stage.at(111);
    assert_eq!(
        purge_paced(&stage).await,
        3,
        "25 are left over from 110: two items, and one into debt"
    );
    stage.at(112);
    assert_eq!(purge_paced(&stage).await, 17);
}

#[tokio::test]
async fn no_progress_is_made_under_full_load_and_users_are_never_throttled_by_the_purge() {
    // TTL-058, TTL-061, P8
    let enforcing = AccountOptions {
        enforce_throughput: true,
        ..options()
    };
    let throughput = Some(Throughput::Manual { ru: 400 });
    let stage = Stage::with_options(json!({"defaultTtl": 10}), throughput, enforcing).await;
    stage.account.set_pacing(&stage.container, paced()).await.unwrap();
    create_many(&stage, 60).await;
    stage.at(120);
    assert_eq!(purge_paced(&stage).await, 40);
    stage
        .account
        .consume(&stage.container, RequestUnits(400.0))
        .expect("the purge leaves users all of it");
    stage.at(121);
    stage.account.consume(&stage.container, RequestUnits(400.0)).unwrap();
    assert_eq!(purge_paced(&stage).await, 0);
    let report = stage.account.ttl_report(&stage.container).await.unwrap();
    assert_eq!(
        (report.state, report.backlog_items, report.credit),
        (TtlState::Waiting, 20, Some(0.0))
    );
    assert_eq!(report.oldest_pending_seconds, 11);
    assert_eq!(stage.count().await, 0, "a delayed purge never shows a ghost (TTL-060)");
}

#[tokio::test]
async fn the_two_lines_are_served_in_turn() {
    // TTL-266
    let stage = Stage::with_ttl(10).await;
    create_many(&stage, 4).await;
    for n in 0..4 {
        stage
            .create(json!({"id": format!("own{n}"), "ttl": 9 - n}))
            .await
            .unwrap();
    }
    stage.at(110);
    let purged = stage
        .account
        .purge(&stage.container, PurgeMode::Force, Some(4))
        .await
        .unwrap();
    assert_eq!(purged, 4);
    let mut left = Vec::new();
    for id in ["0", "1", "2", "3", "own0", "own1", "own2", "own3"] {
        let why = stage.account.ttl_why(&stage.container, id, &key("p")).await.unwrap();
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
        let stage = Stage::with_ttl(10).await;
        let settings = PacingSettings { pacing, ..paced() };
        stage.account.set_pacing(&stage.container, settings).await.unwrap();
        create_many(&stage, 2).await;
        stage.at(110);
        assert_eq!(purge_paced(&stage).await, 2);
        let report = stage.account.ttl_report(&stage.container).await.unwrap();
        assert_eq!(
            (report.ru_spent_total.0, report.ru_billed_total.0),
            (20.0, billed),
            "{pacing:?}"
        );
    }
}

#[tokio::test]
async fn figures_of_the_purge_survive_a_restart() {
    let stage = Stage::with_ttl(10).await;
    create_many(&stage, 3).await;
    stage.at(110);
    stage
        .account
        .purge(&stage.container, PurgeMode::Force, Some(2))
        .await
        .unwrap();
    let stage = stage.reopen().await;
    let report = stage.account.ttl_report(&stage.container).await.unwrap();
    assert_eq!((report.purged_total, report.backlog_items), (2, 1));
    assert_eq!(stage.purge().await, 1);
}

#[tokio::test]
async fn a_purge_cut_off_between_commits_is_finished_after_the_restart() {
    // TTL-270
    let stage = Stage::with_ttl(10).await;
    create_many(&stage, 250).await;
    stage.at(110);
    stage.engine.cut_after(1);
    assert!(
        stage
            .account
            .purge(&stage.container, PurgeMode::Force, None)
            .await
            .is_err()
    );
    stage.engine.mend();
    let stage = stage.reopen().await;
    stage.assert_sound().await;
    let left = stage.account.ttl_report(&stage.container).await.unwrap().backlog_items;
    assert!((1..250).contains(&left), "{left}");
    assert_eq!(stage.purge().await, left);
    stage.assert_sound().await;
}

#[tokio::test]
async fn a_preview_counts_what_another_default_would_end_and_changes_nothing() {
    let stage = Stage::with_ttl(1_000_000).await;
    create_many(&stage, 2).await;
    stage.create(json!({"id": "own", "ttl": 5000})).await.unwrap();
    stage.create(json!({"id": "never", "ttl": -1})).await.unwrap();
    stage.at(150);
    stage.create(json!({"id": "young"})).await.unwrap();
    let preview = stage
        .account
        .ttl_preview(&stage.container, Policy::After(50))
        .await
        .unwrap();
    let expected = TtlPreview {
        expire_now: 2,
        expire_within_hour: 1,
        expire_within_day: 2,
        never_expire: 1,
    };
    assert_eq!(preview, expected);
    assert_eq!(stage.count().await, 5);
}

#[tokio::test]
async fn why_names_what_decides() {
    let stage = Stage::with_ttl(10).await;
    stage.create(json!({"id": "by default"})).await.unwrap();
    stage.create(json!({"id": "own", "ttl": 20})).await.unwrap();
    stage.create(json!({"id": "never", "ttl": -1})).await.unwrap();
    let why = async |id: &str| {
        let why = stage.account.ttl_why(&stage.container, id, &key("p")).await.unwrap();
        (why.is_live, why.expires_at_seconds, why.rule)
    };
    assert_eq!(why("by default").await, (true, Some(110), TtlRule::Default));
    assert_eq!(why("own").await, (true, Some(120), TtlRule::Own));
    assert_eq!(why("never").await, (true, None, TtlRule::Never));
    stage.at(115);
    stage.define(json!({"defaultTtl": 1000})).await.unwrap();
    assert_eq!(why("by default").await, (false, Some(110), TtlRule::Floor));
    assert_eq!(stage.purge().await, 1);
    assert!(!why("by default").await.0);
}

#[tokio::test]
async fn a_read_that_began_before_a_purge_shows_none_of_what_was_due_with_what_was_purged() {
    // docs/ttl.md, "Time": of two items due in the same second an answer never shows one and lacks the other
    let stage = Stage::with_throughput(json!({"defaultTtl": 10}), Some(Throughput::Manual { ru: 20_000 })).await;
    for n in 0..8 {
        stage
            .create(json!({"id": n.to_string(), "pk": n.to_string()}))
            .await
            .unwrap();
    }
    stage.at(109);
    let began_before = stage.begin().await;
    stage.at(110);
    let purged = stage.account.purge(&stage.container, PurgeMode::Force, Some(1)).await;
    assert_eq!(purged, Ok(1));
    let listed = stage
        .account
        .read_feed(&began_before, &stage.container, &ReadFeed::default())
        .await
        .unwrap();
    assert_eq!(ids(&listed.value.items), Vec::<&str>::new());
    let changes = ReadChanges {
        scope: Scope::default(),
        start: FeedStart::Beginning,
        max_items: None,
    };
    let changed = stage
        .account
        .change_feed(&began_before, &stage.container, &changes)
        .await
        .unwrap();
    assert_eq!(ids(&changed.value.items), Vec::<&str>::new());
}

#[tokio::test]
async fn two_housekeepers_at_once_do_not_disturb_each_other() {
    let stage = Stage::with_ttl(10).await;
    create_many(&stage, 150).await;
    stage.at(110);
    let (purged, usage, report) = tokio::join!(
        stage.account.purge(&stage.container, PurgeMode::Force, None),
        stage.account.usage(&stage.container),
        stage.account.ttl_report(&stage.container),
    );
    assert_eq!((purged, usage.map(|usage| usage.items)), (Ok(150), Ok(0)));
    assert!(report.is_ok());
    stage.assert_sound().await;
}

#[tokio::test]
async fn the_background_purge_tries_again_after_a_commit_that_failed() {
    let monotonic = Monotonic::manual();
    let in_background = background_options(&monotonic);
    let stage = Stage::with_options(json!({"defaultTtl": 10}), None, in_background).await;
    create_many(&stage, 3).await;
    stage.engine.cut_after(0);
    stage.engine.traffic();
    stage.at(110);
    run_background(&monotonic, async || stage.engine.traffic().commits > 0).await;
    stage.engine.mend();
    run_background(&monotonic, async || {
        let report = stage.account.ttl_report(&stage.container).await.unwrap();
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
    let stage = Stage::with_options(json!({"defaultTtl": 10}), None, looking).await;
    create_many(&stage, 3).await;
    stage.at(110);
    assert_eq!(stage.count().await, 0, "expired all the same");
    assert!(
        stage.engine.durable_time() >= UnixMillis(110_000),
        "durable before the answer"
    );
    // Its background is at work: it makes a second durable before it begins, as there was a request.
    stage.clock.set(UnixMillis(110_960));
    run_background(&monotonic, async || stage.engine.durable_time() >= UnixMillis(111_000)).await;
    let report = stage.account.ttl_report(&stage.container).await.unwrap();
    assert_eq!((report.backlog_items, report.purged_total), (3, 0));
    assert_eq!(stage.purge().await, 3, "when it is told to");
}

#[tokio::test]
async fn the_rate_of_the_purge_is_the_mean_of_the_last_minute() {
    // TTL-272
    let stage = Stage::with_ttl(10).await;
    create_many(&stage, 3).await;
    let rate_at = async |second| {
        stage.at(second);
        let report = stage.account.ttl_report(&stage.container).await;
        report.unwrap().purge_rate
    };
    assert_eq!(rate_at(200).await, 0.0);
    stage.purge().await;
    assert_eq!(rate_at(200).await, 0.05);
    assert_eq!(rate_at(259).await, 0.05);
    assert_eq!(rate_at(260).await, 0.0);
}
