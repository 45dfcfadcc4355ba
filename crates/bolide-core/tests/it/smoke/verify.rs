//! The full check: what it finds, and that everything else goes on beside it.

use std::sync::Arc;
use std::time::Duration;

use bolide_core::{PurgeMode, VerifyReport};
use bolide_model::Result;
use bolide_storage::{Key, Space};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::random::RandomChoices;
use crate::test_container::{START, TestContainer};

/// Items of several pages.
const MANY: usize = 200;
/// The first byte of the keys of the history, behind the log.
const HISTORY: u8 = 0xFE;

/// Whatever keeps entries: unique keys, ttls, a history.
fn everything() -> Value {
    json!({
        "defaultTtl": 1_000, "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/n"]}]},
        "changeFeedPolicy": {"retentionDuration": 60},
    })
}

async fn problems(test: &TestContainer) -> Vec<String> {
    test.account.verify(&test.container).await.expect("a check").problems
}

async fn expect_problem(test: &TestContainer, words: &str, damage: &str) {
    let problems = problems(test).await;
    let is_found = problems.iter().any(|problem| problem.contains(words));
    assert!(is_found, "{damage}: no '{words}' in {problems:?}");
}

/// Some items, half of which have a ttl of their own, and one of these has expired.
async fn filled() -> TestContainer {
    let test = TestContainer::with(everything()).await;
    for n in 0..4 {
        let mut item = json!({"id": format!("i{n}"), "pk": format!("p{}", n % 2), "n": n});
        if n % 2 == 0 {
            item["ttl"] = (10 + n).into();
        }
        test.create(item).await.unwrap();
    }
    test.at(110);
    test.assert_sound().await;
    test
}

#[tokio::test]
async fn every_row_that_is_lost_is_found() {
    let test = filled().await;
    for space in [Space::Item, Space::Index, Space::Log, Space::Expiry] {
        for (key, value) in test.engine.rows(space).await {
            let words = match space {
                Space::Item => "has no item",
                Space::Log if key[0] == HISTORY => "a stored version is missing in the history",
                _ => &format!("an item has no entry in {space:?}"),
            };
            let key = Key::new(space, key);
            test.engine.rewrite(key.clone(), None).await;
            expect_problem(&test, words, &format!("without {key:?}")).await;
            if space == Space::Item {
                expect_problem(&test, "the counter of stored items says 4, found 3", "without an item").await;
            }
            test.engine.rewrite(key, Some(value)).await;
        }
    }
    test.assert_sound().await;
}

#[tokio::test]
async fn every_entry_that_is_no_items_is_found() {
    let test = filled().await;
    for space in [Space::Index, Space::Log, Space::Expiry] {
        let rows = test.engine.rows(space).await;
        for (key, value) in rows.into_iter().filter(|(key, _)| key[0] != HISTORY) {
            // Another id or digest, or another place in its transaction.
            let mut other = key.to_vec();
            *other.last_mut().unwrap() ^= 1;
            let other = Key::new(space, other);
            let damage = format!("with {other:?}");
            test.engine.rewrite(other.clone(), Some(value)).await;
            expect_problem(&test, &format!("an entry of {space:?} has no item"), &damage).await;
            test.engine.rewrite(other, None).await;
        }
    }
    test.assert_sound().await;
}

#[tokio::test]
async fn every_row_that_is_changed_is_found() {
    let test = filled().await;
    let rows = |space| test.engine.rows(space);
    let first = async |space| rows(space).await.remove(0);
    let flipped = |bytes: &Bytes, at: usize| {
        let mut bytes = bytes.to_vec();
        bytes[at] ^= 1;
        Bytes::from(bytes)
    };
    let (item_key, item) = first(Space::Item).await;
    let (index_key, index) = first(Space::Index).await;
    let (log_key, log) = rows(Space::Log).await.remove(1);
    let (expiry_key, expiry) = first(Space::Expiry).await;
    let (counters_key, counters) = first(Space::Meta).await;
    for (space, key, value, changed, words) in [
        // The last byte of its number.
        (
            Space::Item,
            &item_key,
            &item,
            flipped(&item, 55),
            "is stored under another number",
        ),
        // The last byte of its size.
        (
            Space::Log,
            &log_key,
            &log,
            flipped(&log, 12),
            "an entry of Log does not fit its item",
        ),
        (Space::Log, &log_key, &log, flipped(&log, 8), "_ts falls along the log"),
        (
            Space::Expiry,
            &expiry_key,
            &expiry,
            flipped(&expiry, 3),
            "an entry of Expiry does not fit its item",
        ),
        (
            Space::Index,
            &index_key,
            &index,
            flipped(&index, 7),
            "an entry of Index does not fit its item",
        ),
        (
            Space::Meta,
            &counters_key,
            &counters,
            flipped(&counters, 8),
            "the counter of stored items says 5, found 4",
        ),
        (
            Space::Meta,
            &counters_key,
            &counters,
            flipped(&counters, 16),
            "the counter of stored bytes",
        ),
    ] {
        let key = Key::new(space, key.clone());
        test.engine.rewrite(key.clone(), Some(changed)).await;
        expect_problem(&test, words, words).await;
        test.engine.rewrite(key, Some(value.clone())).await;
    }
    test.assert_sound().await;
}

#[tokio::test]
async fn entries_find_their_items_under_every_kind_of_partition_key() {
    for partition_key in [
        json!({"paths": ["/pk"], "kind": "Hash", "version": 1}),
        json!({"paths": ["/pk"], "kind": "Hash", "version": 2}),
        json!({"paths": ["/pk"], "kind": "Range"}),
        json!({"paths": ["/pk", "/b", "/c"], "kind": "MultiHash"}),
    ] {
        let test = TestContainer::with(json!({"partitionKey": partition_key})).await;
        let keys = json!(["p", "", "ü".repeat(50), "x".repeat(101), 5, -1.25e300, true, null, {}]);
        for pk in keys.as_array().unwrap() {
            for id in ["a", "b\u{1}", "\u{ff}"] {
                test.create(json!({"id": id, "pk": pk, "b": pk})).await.unwrap();
            }
        }
        test.assert_sound().await;
        let index = test.engine.rows(Space::Index).await;
        assert_eq!(index.len(), 27);
        for (key, value) in index {
            let other = Key::new(Space::Index, [&key[..], b"c"].concat());
            test.engine.rewrite(other.clone(), Some(value)).await;
            assert_eq!(problems(&test).await.len(), 1, "{partition_key} with {other:?}");
            test.engine.rewrite(other, None).await;
        }
    }
}

#[tokio::test]
async fn a_history_that_does_not_lead_to_what_is_stored_is_found() {
    let test = TestContainer::with(everything()).await;
    test.create(json!({"id": "a", "n": 1})).await.unwrap();
    for version in 0..3 {
        test.upsert(json!({"id": "b", "n": 2, "version": version}), None)
            .await
            .unwrap();
    }
    test.create(json!({"id": "c", "n": 3})).await.unwrap();
    test.delete("c", None).await.unwrap();
    test.assert_sound().await;
    let rows = test.engine.rows(Space::Log).await;
    let history: Vec<_> = rows.into_iter().filter(|(key, _)| key[0] == HISTORY).collect();
    let not_stored = "the history's last version of an item is not the one stored";
    for (lost, words) in [
        (0, "a stored version is missing in the history"),
        (2, "an entry of the history does not follow the one before"),
        (3, not_stored),
        (5, not_stored),
    ] {
        let (key, value) = &history[lost];
        let key = Key::new(Space::Log, key.clone());
        test.engine.rewrite(key.clone(), None).await;
        expect_problem(&test, words, &format!("without entry {lost}")).await;
        test.engine.rewrite(key, Some(value.clone())).await;
    }
    test.assert_sound().await;
}

/// One of them, that ends within the first forty seconds.
fn item(n: usize) -> Value {
    json!({"id": n.to_string(), "n": n, "ttl": 10 + n % 30, "text": "x".repeat(n % 50)})
}

/// A container of several pages, whose scans wait.
async fn held() -> Arc<TestContainer> {
    let test = TestContainer::with(everything()).await;
    for n in 0..MANY {
        test.create(item(n)).await.unwrap();
    }
    test.engine.hold_scans();
    Arc::new(test)
}

fn start(test: &Arc<TestContainer>) -> JoinHandle<Result<VerifyReport>> {
    let test = test.clone();
    tokio::spawn(async move { test.account.verify(&test.container).await })
}

/// Lets others go on until it is so.
async fn until(mut is_so: impl FnMut() -> bool) {
    loop {
        tokio::task::yield_now().await;
        if is_so() {
            return;
        }
    }
}

/// What waits for a check that does not go on would wait for ever.
async fn goes_on<T>(request: impl Future<Output = T>) -> T {
    let timeout = Duration::from_secs(60);
    tokio::time::timeout(timeout, request)
        .await
        .expect("it waits for the check")
}

#[tokio::test]
async fn requests_go_on_while_a_container_is_checked() {
    let test = held().await;
    let check = start(&test);
    until(|| test.engine.held_scans() == 1).await;
    goes_on(test.create(json!({"id": "new", "n": MANY}))).await.unwrap();
    goes_on(test.delete("7", None)).await.unwrap();
    goes_on(test.read("8")).await.unwrap();
    test.engine.release_scans();
    let report = check.await.unwrap().unwrap();
    assert_eq!((report.stored, report.problems), (MANY as u64, vec![]));
}

#[tokio::test]
async fn a_change_of_the_container_waits_for_a_page_and_not_for_the_check() {
    let test = held().await;
    let check = start(&test);
    until(|| test.engine.held_scans() == 1).await;
    let changed = tokio::spawn({
        let test = test.clone();
        let mut definition = everything();
        definition["defaultTtl"] = 2_000.into();
        async move { test.define(definition).await }
    });
    while !changed.is_finished() {
        test.engine.let_through(1);
        until(|| changed.is_finished() || test.engine.held_scans() == 1).await;
    }
    changed.await.unwrap().unwrap();
    assert!(!check.is_finished());
    test.engine.release_scans();
    assert_eq!(check.await.unwrap().unwrap().problems, Vec::<String>::new());
}

/// Items are written and end before, at and behind the place that a check has come to, between any two of its reads.
#[tokio::test]
async fn what_happens_meanwhile_is_no_problem() {
    for seed in 1..=3 {
        let test = held().await;
        let mut choices = RandomChoices::new(seed);
        let check = start(&test);
        let (mut writes, mut second) = (Vec::new(), START);
        while !check.is_finished() {
            until(|| check.is_finished() || test.engine.held_scans() > 0).await;
            for _ in 0..choices.roll(4) {
                let (test, what, n) = (test.clone(), choices.roll(5), choices.roll(2 * MANY as u64) as usize);
                second += i64::from(what == 0);
                test.at(second);
                writes.push(tokio::spawn(async move {
                    match what {
                        0 => {}
                        1 => drop(test.delete(&n.to_string(), None).await),
                        2 => drop(test.account.purge(&test.container, PurgeMode::Force, Some(5)).await),
                        _ => drop(test.upsert(item(n), None).await),
                    }
                }));
            }
            test.engine.let_through(1);
        }
        assert_eq!(
            check.await.unwrap().unwrap().problems,
            Vec::<String>::new(),
            "seed {seed}"
        );
        test.engine.release_scans();
        for write in writes {
            write.await.unwrap();
        }
        test.assert_sound().await;
    }
}

#[tokio::test]
async fn a_range_that_is_split_meanwhile_is_checked_as_its_children() {
    let test = TestContainer::with(everything()).await;
    for n in 0..MANY {
        let item = json!({"id": n.to_string(), "pk": n.to_string(), "n": n});
        test.create(item).await.unwrap();
    }
    test.engine.hold_scans();
    let test = Arc::new(test);
    let check = start(&test);
    until(|| test.engine.held_scans() == 1).await;
    // Far enough to have counted some items.
    for _ in 0..8 {
        test.engine.let_through(1);
        until(|| test.engine.held_scans() == 1).await;
    }
    let split = tokio::spawn({
        let test = test.clone();
        async move { test.account.split(&test.container, None).await }
    });
    tokio::task::yield_now().await;
    test.engine.release_scans();
    split.await.unwrap().unwrap();
    let report = check.await.unwrap().unwrap();
    assert_eq!((report.stored, report.problems), (MANY as u64, vec![]));
}

#[tokio::test]
async fn a_check_whose_client_leaves_ends_and_the_next_one_begins_anew() {
    let test = held().await;
    let check = start(&test);
    test.engine.let_through(6);
    until(|| test.engine.held_scans() == 1).await;
    check.abort();
    assert!(check.await.unwrap_err().is_cancelled());
    test.engine.release_scans();
    test.delete("7", None).await.unwrap();
    test.assert_sound().await;
}
