//! What the purge removes from a collection with date rules, and how it is counted.

use bolide_model::epk::Epk;
use std::sync::atomic::{AtomicU32, Ordering};

use bolide_core::{DocumentId, PurgeMode, ReadScope};
use bolide_model::ErrorKind;
use bolide_model::partition_key::PartitionKey;
use bolide_model::time::Monotonic;
use bolide_mql::bson::raw::cstr;
use bolide_mql::bson::{DateTime, RawBsonRef, rawdoc};

use super::fixture::{START, TestCollection, date_index, dated};
use crate::test_container::{background_options, run_background};

/// The specification of a TTL index on a field with this name.
fn index_on(field: &str, seconds: i32) -> bolide_mql::bson::RawDocumentBuf {
    let name = format!("{field}_1");
    let mut key = bolide_mql::bson::RawDocumentBuf::new();
    match field {
        "b" => key.append(cstr!("b"), 1),
        _ => key.append(cstr!("c"), 1),
    }
    rawdoc! {"key": key, "name": name, "expireAfterSeconds": seconds}
}

/// The specification of the TTL index on `_ts`.
fn core_index(seconds: i32) -> bolide_mql::bson::RawDocumentBuf {
    rawdoc! {"key": {"_ts": 1}, "name": "_ts_1", "expireAfterSeconds": seconds}
}

async fn ghosts(test: &TestCollection) -> u64 {
    let report = test.account.ttl_report(&test.collection).await.unwrap();
    report.backlog_items
}

async fn assert_sound(test: &TestCollection) {
    let report = test.account.verify(&test.collection).await.unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}

#[tokio::test]
async fn a_document_that_is_due_under_two_rules_is_removed_and_counted_once() {
    // extensions §2, "Traps of expiry" (2).
    let test = TestCollection::new().await;
    test.create_index(date_index(0)).await.unwrap().unwrap();
    test.create_index(index_on("b", 5)).await.unwrap().unwrap();
    test.create_index(core_index(8)).await.unwrap().unwrap();
    let mut document = dated(1, START + 1_000);
    document.append(cstr!("b"), DateTime::from_millis(START - 1_000));
    test.insert(document).await.unwrap();
    test.insert(dated(2, START + 60_000)).await.unwrap();
    for after in [1_000, 4_000, 7_999] {
        test.set_clock(START + after);
        assert_eq!(ghosts(&test).await, 1, "after {after} ms");
        assert_sound(&test).await;
    }
    test.set_clock(START + 8_000);
    assert_eq!(ghosts(&test).await, 2, "by the core rule, too");
    assert_eq!(test.purge().await, 2);
    assert_eq!(test.purge().await, 0);
    let report = test.account.ttl_report(&test.collection).await.unwrap();
    assert_eq!((report.backlog_items, report.purged_total), (0, 2));
    assert_sound(&test).await;
}

#[tokio::test]
async fn a_document_that_is_written_past_its_date_is_purged_although_the_purge_was_there_before() {
    // extensions §2, "Traps of expiry" (3).
    let test = TestCollection::new().await;
    test.create_index(date_index(0)).await.unwrap().unwrap();
    test.insert(dated(1, START)).await.unwrap();
    assert_eq!(test.purge().await, 1);
    for date in [START - 1, START - 10_000, START] {
        test.insert(dated(2, date)).await.unwrap();
        assert_eq!(ghosts(&test).await, 1, "{date}");
        assert_eq!(test.purge().await, 1, "{date}");
        assert_sound(&test).await;
    }
}

#[tokio::test]
async fn a_document_that_ends_before_the_first_one_that_the_purge_saw_is_not_missed() {
    let test = TestCollection::new().await;
    test.create_index(date_index(0)).await.unwrap().unwrap();
    test.insert(dated(1, START)).await.unwrap();
    test.insert(dated(2, START + 60_000)).await.unwrap();
    assert_eq!(test.purge().await, 1);
    test.insert(dated(3, START + 30_000)).await.unwrap();
    assert_eq!((ghosts(&test).await, test.purge().await), (0, 0), "it lives");
    assert_sound(&test).await;
    test.set_clock(START + 30_000);
    assert_eq!((ghosts(&test).await, test.purge().await), (1, 1));
    assert_sound(&test).await;
}

#[tokio::test]
async fn nothing_is_purged_before_its_millisecond() {
    let test = TestCollection::new().await;
    test.create_index(date_index(1)).await.unwrap().unwrap();
    test.insert(dated(1, START + 500)).await.unwrap();
    test.set_clock(START + 1_499);
    assert_eq!((test.purge().await, test.ids().await), (0, vec![1]));
    test.set_clock(START + 1_500);
    assert_eq!((ghosts(&test).await, test.purge().await), (1, 1));
}

#[tokio::test]
async fn the_background_purge_removes_a_document_at_the_start_of_the_second_after_its_millisecond() {
    let monotonic = Monotonic::manual();
    let test = TestCollection::with_options(background_options(&monotonic)).await;
    test.create_index(date_index(0)).await.unwrap().unwrap();
    test.insert(dated(1, START + 500)).await.unwrap();
    let purged = async || {
        let report = test.account.ttl_report(&test.collection).await.unwrap();
        (report.backlog_items, report.purged_total)
    };
    let run_a_while = async || {
        let looks = AtomicU32::new(0);
        run_background(&monotonic, async || looks.fetch_add(1, Ordering::Relaxed) > 100).await;
    };
    run_a_while().await;
    test.set_clock(START + 999);
    run_a_while().await;
    assert_eq!(purged().await, (1, 0));
    test.set_clock(START + 1_000);
    run_background(&monotonic, async || purged().await == (0, 1)).await;
}

#[tokio::test]
async fn what_a_command_may_still_read_is_not_purged() {
    // mongo.md §18.6: a command is judged at one time.
    let test = TestCollection::new().await;
    test.create_index(date_index(0)).await.unwrap().unwrap();
    test.insert(dated(1, START + 500)).await.unwrap();
    test.set_clock(START + 499);
    let scope = ReadScope::new(test.account.begin().await.unwrap().now);
    let id = DocumentId::of(RawBsonRef::Int32(1), None);
    assert!(
        scope
            .find(&test.collection, &Epk::start(), &id)
            .await
            .unwrap()
            .is_some()
    );
    test.set_clock(START + 500);
    assert!(test.ids().await.is_empty(), "gone for commands that begin now");
    assert_eq!((test.purge().await, ghosts(&test).await), (0, 1));
    assert!(
        scope
            .find(&test.collection, &Epk::start(), &id)
            .await
            .unwrap()
            .is_some()
    );
    drop(scope);
    assert_eq!((test.purge().await, ghosts(&test).await), (1, 0));
}

#[tokio::test]
async fn what_a_dropped_index_had_ended_is_purged_also_after_a_restart() {
    // TTL-232, TTL-269.
    for restarts in [false, true] {
        let mut test = TestCollection::new().await;
        test.create_index(date_index(0)).await.unwrap().unwrap();
        for id in 1..=5 {
            test.insert(dated(id, START + i64::from(id) * 1_000)).await.unwrap();
        }
        test.set_clock(START + 3_000);
        test.change_index("at_1", None).await;
        test.set_clock(START + 60_000);
        if restarts {
            test.reopen().await;
        }
        assert_eq!((ghosts(&test).await, test.ids().await), (3, vec![4, 5]));
        assert_eq!(test.purge().await, 3);
        assert_sound(&test).await;
    }
}

#[tokio::test]
async fn many_ghosts_of_several_rules_are_counted_exactly_and_purged_in_turn() {
    // TTL-266.
    let mut test = TestCollection::new().await;
    test.create_index(date_index(0)).await.unwrap().unwrap();
    test.create_index(index_on("b", 0)).await.unwrap().unwrap();
    test.create_index(index_on("c", 0)).await.unwrap().unwrap();
    for id in 0..900 {
        let date = DateTime::from_millis(START + 1_000 + i64::from(id % 7));
        let document = match id % 3 {
            0 => rawdoc! {"_id": 100 + id, "at": date},
            1 => rawdoc! {"_id": 100 + id, "b": date, "at": DateTime::from_millis(START + 500_000)},
            _ => rawdoc! {"_id": 100 + id, "b": date, "c": date},
        };
        test.insert(document).await.unwrap();
    }
    test.set_clock(START + 2_000);
    assert_eq!(ghosts(&test).await, 900);
    assert_sound(&test).await;
    let purged = test.account.purge(&test.collection, PurgeMode::Force, Some(60)).await;
    assert_eq!(purged.unwrap(), 60);
    // The documents of `at` alone are in a queue of their own, which had its turns.
    let mut of_first = 0;
    for id in (0..900).step_by(3) {
        let id = (100 + id).to_string();
        let why = test
            .account
            .ttl_why(&test.collection, &id, &PartitionKey::default())
            .await;
        of_first += u32::from(why.unwrap().item.is_none());
    }
    assert!((15..=30).contains(&of_first), "{of_first} of 60");
    assert_eq!(ghosts(&test).await, 840);
    test.reopen().await;
    assert_eq!(ghosts(&test).await, 840);
    assert_sound(&test).await;
    assert_eq!(test.purge().await, 840);
    assert_eq!(ghosts(&test).await, 0);
}

#[tokio::test]
async fn ghosts_are_counted_after_a_rule_without_documents_is_forgotten() {
    // A rule whose index was dropped is forgotten with the next change once no document has a date under it. Its oldest ghost was removed before.
    let plain = rawdoc! {"key": {"other": 1}, "name": "other_1"};
    for (kept, next) in [(index_on("b", 0), index_on("c", 0)), (core_index(8), plain)] {
        let test = TestCollection::new().await;
        test.create_index(date_index(0)).await.unwrap().unwrap();
        test.create_index(kept).await.unwrap().unwrap();
        test.insert(dated(1, START + 1_000)).await.unwrap();
        test.insert(rawdoc! {"_id": 2, "b": DateTime::from_millis(START + 2_000)})
            .await
            .unwrap();
        test.set_clock(START + 8_000);
        assert_eq!(ghosts(&test).await, 2);
        test.insert(rawdoc! {"_id": 1}).await.unwrap();
        test.change_index("at_1", None).await;
        test.create_index(next).await.unwrap().unwrap();
        assert_eq!(ghosts(&test).await, 1);
        assert_sound(&test).await;
    }
}

#[tokio::test]
async fn what_only_containers_of_items_can_do_is_refused() {
    let test = TestCollection::new().await;
    let split = test.account.split(&test.collection, None).await.unwrap_err();
    assert_eq!(split.kind, ErrorKind::BadRequest, "{split}");
    assert!(split.to_string().contains("cannot be split"), "{split}");
}
