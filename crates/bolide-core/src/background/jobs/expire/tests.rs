//! One step of the purge: what it removes, what it leaves, and where the next one goes on.

use std::time::Duration;

use bolide_model::time::{Clock, Monotonic};
use bolide_model::{UnixMillis, UnixSeconds};
use bolide_storage::memory::MemoryEngine;
use serde_json::json;

use super::*;
use crate::api::Account;
use crate::change_log::{ChangeKind, HistoryEntry};
use crate::fixture::{Fixture, options_by_hand};
use crate::format::keys;
use crate::throughput::{Pacing, PacingSettings};

fn job(fixture: &Fixture) -> Expire {
    let shared = (&fixture.account.cluster().cloned(), &Monotonic::manual());
    let context = PartitionContext::new(&fixture.container, &fixture.partition(), shared);
    Expire::new(context, Arc::new(PurgeFault::new(None)))
}

async fn step(fixture: &Fixture, items: u64, mode: PurgeMode) -> (u64, End) {
    let limits = StepLimits {
        items,
        mode,
        patience: Duration::ZERO,
    };
    let report = job(fixture).step(limits).await.expect("a step");
    (report.step.purged, report.step.end)
}

/// A step without a budget, as large as steps may be.
async fn forced(fixture: &Fixture) -> (u64, End) {
    step(fixture, u64::MAX, PurgeMode::Force).await
}

async fn purged_total(fixture: &Fixture) -> u64 {
    let partition = fixture.partition();
    let total = partition.background(|batch| Ok(batch.state.purged_total)).await;
    total.expect("counters")
}

/// What clients of the all-versions feed would see of ends.
async fn deletes(fixture: &Fixture) -> Vec<ChangeKind> {
    let rows = fixture.rows(fixture.partition().id, Space::Log).await;
    let history = rows.into_iter().filter(|(key, _)| *key >= keys::log_end());
    let kinds = history.map(|(_, value)| HistoryEntry::decode(&value).expect("an entry").kind);
    kinds
        .filter(|kind| !matches!(kind, ChangeKind::Create | ChangeKind::Replace))
        .collect()
}

#[tokio::test]
async fn only_what_is_due_is_removed_and_the_job_knows_when_more_will_be() {
    let fixture = Fixture::with(json!({"defaultTtl": 10})).await;
    fixture.upsert(json!({"id": "default"})).await;
    fixture.upsert(json!({"id": "own", "ttl": 5})).await;
    fixture.upsert(json!({"id": "never", "ttl": -1})).await;
    for (second, purged, next_due, left) in [
        (104, 0, 105, &["default", "never", "own"][..]),
        (105, 1, 110, &["default", "never"]),
        (109, 0, 110, &["default", "never"]),
        (110, 1, i64::MAX, &["never"]),
        (1_000_000, 0, i64::MAX, &["never"]),
    ] {
        fixture.at(second);
        assert_eq!(forced(&fixture).await, (purged, End::Drained), "at {second}");
        assert_eq!(job(&fixture).next_due(), next_due, "at {second}");
        assert_eq!(fixture.stored_ids().await, left, "at {second}");
    }
    assert_eq!(purged_total(&fixture).await, 2);
    fixture.assert_sound().await;
}

#[tokio::test]
async fn what_ended_before_ttl_was_switched_off_is_removed_and_nothing_else() {
    // TTL-232
    let fixture = Fixture::with(json!({"defaultTtl": 10})).await;
    fixture.upsert(json!({"id": "before"})).await;
    fixture.at(105);
    fixture.upsert(json!({"id": "after"})).await;
    fixture.upsert(json!({"id": "own", "ttl": 6})).await;
    fixture.at(110);
    let ctx = fixture.begin().await;
    let off = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    let replaced = fixture.account.replace_container(&ctx, &fixture.container, &off, None);
    replaced.await.expect("a new definition");
    fixture.at(200);
    assert_eq!(forced(&fixture).await, (1, End::Drained));
    assert_eq!(fixture.stored_ids().await, ["after", "own"]);
}

#[tokio::test]
async fn a_ghost_stays_while_a_reader_may_judge_it_live() {
    let fixture = Fixture::with(json!({"defaultTtl": 10})).await;
    fixture.upsert(json!({"id": "older"})).await;
    fixture.at(101);
    fixture.upsert(json!({"id": "younger"})).await;
    fixture.at(120);
    let pin = fixture.container.pin_reads_at(UnixMillis(110_000));
    assert_eq!(
        forced(&fixture).await,
        (1, End::Read),
        "the one that had ended when the reader began"
    );
    assert_eq!(fixture.stored_ids().await, ["younger"]);
    assert!(job(&fixture).next_due() <= 111, "it comes again");
    drop(pin);
    assert_eq!(forced(&fixture).await, (1, End::Drained));
    assert_eq!(fixture.stored_ids().await, Vec::<String>::new());
}

#[tokio::test]
async fn a_ghost_whose_place_a_write_took_is_purged_once_and_told_once() {
    // TTL-255, TTL-274
    let fixture = Fixture::with(json!({
        "defaultTtl": 10, "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]},
        "changeFeedPolicy": {"retentionDuration": 60},
    }))
    .await;
    fixture.upsert(json!({"id": "a", "u": 1})).await;
    fixture.upsert(json!({"id": "b", "u": 2})).await;
    fixture.upsert(json!({"id": "c", "u": 3})).await;
    fixture.at(110);
    // The ids of the first, the unique key of the second.
    fixture.upsert(json!({"id": "a", "u": 2})).await;
    assert_eq!(purged_total(&fixture).await, 2);
    assert_eq!(forced(&fixture).await, (1, End::Drained));
    assert_eq!(purged_total(&fixture).await, 3);
    assert_eq!(
        deletes(&fixture).await,
        [ChangeKind::Expire; 3],
        "each ghost ends once (TTL-250)"
    );
    assert_eq!(fixture.listed().await, ["a"]);
    fixture.assert_sound().await;
}

#[tokio::test]
async fn a_step_removes_as_many_items_as_it_may_and_the_next_goes_on() {
    let fixture = Fixture::with(json!({"defaultTtl": 10})).await;
    for n in 0..STEP_ITEMS + 7 {
        fixture.upsert(json!({"id": format!("i{n:03}")})).await;
    }
    fixture.at(110);
    assert_eq!(step(&fixture, 3, PurgeMode::Force).await, (3, End::Unfinished));
    assert_eq!(fixture.stored_ids().await[0], "i003", "what ended first goes first");
    assert_eq!(forced(&fixture).await, (STEP_ITEMS, End::Unfinished));
    assert_eq!(step(&fixture, 4, PurgeMode::Force).await, (4, End::Drained));
    assert_eq!(forced(&fixture).await, (0, End::Drained));
    fixture.assert_sound().await;
}

#[tokio::test]
async fn a_step_reads_so_many_bytes_of_items_and_at_least_one() {
    let fixture = Fixture::with(json!({"defaultTtl": 10})).await;
    for n in 0..7 {
        fixture
            .upsert(json!({"id": format!("i{n}"), "text": "x".repeat(STEP_BYTES / 4)}))
            .await;
    }
    fixture.at(110);
    assert_eq!(forced(&fixture).await, (4, End::Unfinished));
    assert_eq!(forced(&fixture).await, (3, End::Drained));
}

#[tokio::test]
async fn a_paced_step_ends_where_the_credit_does_and_the_last_item_may_overdraw_it() {
    // TTL-259
    let fixture = Fixture::with(json!({"defaultTtl": 10})).await;
    let pacing = PacingSettings {
        pacing: Pacing::Provisioned { ru: 400.0 },
        delete_ru: Some(15.0),
        count_only_load: true,
    };
    fixture
        .account
        .set_pacing(&fixture.container, pacing)
        .await
        .expect("a budget");
    for n in 0..40 {
        fixture.upsert(json!({"id": format!("i{n:02}")})).await;
    }
    fixture.at(110);
    // 26 items are 390 units; the 27th begins with what is left and owes 5.
    assert_eq!(step(&fixture, u64::MAX, PurgeMode::Paced).await, (27, End::Exhausted));
    assert_eq!(step(&fixture, u64::MAX, PurgeMode::Paced).await, (0, End::Exhausted));
    assert_eq!(fixture.stored_ids().await.len(), 13);
    assert_eq!(
        fixture.listed().await,
        Vec::<String>::new(),
        "whatever is stored (TTL-060)"
    );
    fixture.at(111);
    assert_eq!(step(&fixture, u64::MAX, PurgeMode::Paced).await, (13, End::Drained));
}

#[tokio::test]
async fn both_queues_are_served_in_turn() {
    // TTL-266
    let fixture = Fixture::with(json!({"defaultTtl": 10})).await;
    for n in 0..4 {
        fixture.upsert(json!({"id": format!("default{n}")})).await;
        fixture.upsert(json!({"id": format!("own{n}"), "ttl": 9 - n})).await;
    }
    fixture.at(110);
    assert_eq!(step(&fixture, 5, PurgeMode::Force).await, (5, End::Unfinished));
    assert_eq!(fixture.stored_ids().await, ["default2", "default3", "own0"]);
    assert_eq!(forced(&fixture).await, (3, End::Drained));
}

#[tokio::test]
async fn entries_of_items_with_a_ttl_of_their_own_are_stepped_over_once() {
    let fixture = Fixture::with(json!({"defaultTtl": 10})).await;
    for n in 0..2 * STEPPED_OVER + 10 {
        fixture.upsert(json!({"id": format!("own{n}"), "ttl": -1})).await;
    }
    fixture.upsert(json!({"id": "due"})).await;
    fixture.at(110);
    let one = async || step(&fixture, 1, PurgeMode::Force).await;
    assert_eq!([one().await, one().await], [(0, End::Unfinished); 2]);
    assert_eq!(one().await, (1, End::Drained));
    let log = fixture.partition().background(|batch| Ok(batch.state.purge.log)).await;
    let last = LogPosition {
        lsn: fixture.partition().lsn(),
        seq: 0,
    };
    assert!(log.expect("a cursor") < last);
    // One that was stepped over lives by the default from now on: it is at the end of the log.
    fixture.upsert(json!({"id": "own0"})).await;
    fixture.at(120);
    assert_eq!(one().await, (1, End::Drained));
    assert!(!fixture.stored_ids().await.contains(&"own0".to_owned()));
}

/// Deleted rows before a cursor would be read over by every later step.
#[tokio::test]
async fn the_cursors_pass_everything_that_is_gone_also_while_there_is_a_backlog() {
    let fixture = Fixture::with(json!({"defaultTtl": 1_000})).await;
    for n in 0..3 {
        fixture.upsert(json!({"id": format!("gone{n}")})).await;
        fixture.upsert(json!({"id": format!("short{n}"), "ttl": 5})).await;
        fixture.upsert(json!({"id": format!("dropped{n}"), "ttl": 7})).await;
    }
    fixture.upsert(json!({"id": "later", "ttl": 500})).await;
    let kept = LogPosition {
        lsn: fixture.partition().lsn().next(),
        seq: 0,
    };
    fixture.upsert(json!({"id": "kept"})).await;
    for n in 0..3 {
        fixture.delete("p", &format!("gone{n}")).await;
        fixture.delete("p", &format!("dropped{n}")).await;
    }
    let cursors = async || {
        let cursors = fixture.partition().background(|batch| Ok(batch.state.purge)).await;
        cursors.expect("cursors")
    };
    fixture.at(110);
    assert_eq!(step(&fixture, 1, PurgeMode::Force).await, (1, End::Unfinished));
    assert_eq!(cursors().await.log, kept, "two items are still due in the other queue");
    assert_eq!(step(&fixture, 2, PurgeMode::Force).await, (2, End::Drained));
    assert_eq!(
        cursors().await.expiry.base,
        UnixSeconds(111),
        "not further: the next item may end before `later`"
    );
    fixture.upsert(json!({"id": "next", "ttl": 1})).await;
    fixture.at(111);
    assert_eq!(forced(&fixture).await, (1, End::Drained));
    assert_eq!(fixture.stored_ids().await, ["kept", "later"]);
    fixture.assert_sound().await;
}

/// What stands in the queues for versions that are gone, as after a commit that this version of the server would not make.
#[tokio::test]
async fn an_item_that_was_replaced_meanwhile_is_not_removed_for_its_old_version() {
    // TTL-268
    let fixture = Fixture::with(json!({"defaultTtl": 10})).await;
    fixture.upsert(json!({"id": "own", "ttl": 5})).await;
    fixture.upsert(json!({"id": "default"})).await;
    fixture.upsert(json!({"id": "gone"})).await;
    fixture.upsert(json!({"id": "both", "ttl": 9})).await;
    let partition = fixture.partition();
    let mut old = Vec::new();
    for space in [Space::Expiry, Space::Log] {
        let rows = fixture.rows(partition.id, space).await;
        old.extend(rows.into_iter().map(|(key, value)| (Key::new(space, key), value)));
    }
    assert_eq!(old.len(), 6);
    fixture.at(104);
    fixture.upsert(json!({"id": "own", "ttl": 5, "n": 2})).await;
    fixture.upsert(json!({"id": "default", "n": 2})).await;
    fixture.upsert(json!({"id": "both", "ttl": 5})).await;
    fixture.delete("p", "gone").await;
    let stale = partition.background(move |batch| {
        for (key, value) in &old {
            batch.put(key.clone(), value.clone());
        }
        batch.next_lsn();
        Ok(())
    });
    stale.await.expect("a commit");
    fixture.at(108);
    assert_eq!(
        forced(&fixture).await,
        (0, End::Drained),
        "only the old version of `own` is due"
    );
    fixture.at(110);
    // Of `both`, two entries are due at once.
    assert_eq!(
        forced(&fixture).await,
        (2, End::Drained),
        "the new versions of `own` and `both`, at 109"
    );
    assert_eq!(fixture.listed().await, ["default"]);
    fixture.at(114);
    assert_eq!(forced(&fixture).await, (1, End::Drained), "that of `default`");
    assert_eq!(purged_total(&fixture).await, 3);
}

/// Whatever a crash leaves behind is the state between two steps. The cursors are merely a help: older ones find what is left.
#[tokio::test]
async fn steps_go_on_after_a_crash_and_remove_nothing_twice() {
    // TTL-270, TTL-274
    let fixture = Fixture::with(json!({"defaultTtl": 10, "changeFeedPolicy": {"retentionDuration": 60}})).await;
    for n in 0..9 {
        fixture.upsert(json!({"id": format!("default{n}")})).await;
        fixture.upsert(json!({"id": format!("own{n}"), "ttl": 5})).await;
    }
    fixture.upsert(json!({"id": "kept", "ttl": -1})).await;
    fixture.at(110);
    assert_eq!(step(&fixture, 7, PurgeMode::Force).await, (7, End::Unfinished));
    let fixture = fixture.reopened().await;
    assert_eq!(purged_total(&fixture).await, 7);
    assert_eq!(step(&fixture, 3, PurgeMode::Force).await, (3, End::Unfinished));
    let partition = fixture.partition();
    let forgotten = partition.background(|batch| {
        batch.state.purge = Cursors::default();
        batch.next_lsn();
        Ok(())
    });
    forgotten.await.expect("a commit");
    let fixture = fixture.reopened().await;
    assert_eq!(forced(&fixture).await, (8, End::Drained));
    assert_eq!(purged_total(&fixture).await, 18);
    assert_eq!(deletes(&fixture).await, [ChangeKind::Expire; 18]);
    assert_eq!(fixture.stored_ids().await, ["kept"]);
    fixture.assert_sound().await;
}

/// It ended by its deletion, and not by its ttl, which came later.
#[tokio::test]
async fn a_ghost_that_was_deleted_with_its_key_goes_with_the_step_and_counts_as_a_delete() {
    let fixture = Fixture::with(json!({"defaultTtl": 10, "changeFeedPolicy": {"retentionDuration": 60}})).await;
    fixture.upsert(json!({"id": "a"})).await;
    fixture.delete_all_of_key("p").await;
    fixture.at(110);
    assert_eq!(forced(&fixture).await, (0, End::Drained));
    assert_eq!(fixture.stored_ids().await, Vec::<String>::new());
    assert_eq!(
        (purged_total(&fixture).await, deletes(&fixture).await),
        (0, vec![ChangeKind::Delete])
    );
}

/// TTL-293: whoever reads on another server may have begun at any time since this one has looked at the others.
#[tokio::test]
async fn what_was_due_after_the_last_look_at_the_other_servers_is_left() {
    let clock = Arc::new(Clock::virtual_at(UnixMillis(100_000)));
    let engine = Arc::new(MemoryEngine::shared(clock.clone()));
    let account = Account::open(engine.clone(), options_by_hand(Monotonic::manual()))
        .await
        .expect("an account");
    let fixture = Fixture::in_account((clock, engine), account, json!({"defaultTtl": 10}), None).await;
    fixture.upsert(json!({"id": "a"})).await;
    fixture.at(150);
    assert_eq!(forced(&fixture).await.0, 0);
    let cluster = fixture.account.cluster().expect("the engine is shared");
    cluster.beat().await.expect("a heartbeat");
    assert_eq!(forced(&fixture).await.0, 1);
}
