//! Splits of ranges that are in use: no concurrent change is lost, and a split that ends early leaves nothing behind.

use std::collections::BTreeMap;
use std::sync::Arc;

use bolide_core::{Account, FeedStart, SplitReport};
use bolide_model::ErrorKind;
use bolide_storage::faults::Faults;
use bolide_storage::memory::MemoryEngine;
use bolide_storage::{Batch, Engine, EngineError, PartitionId, Put, ReadRequest};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::probe::Probe;
use crate::random::RandomChoices;
use crate::test_container::{TestContainer, options, shown};

/// The container's first partition, and the ids of the partitions that the first split creates.
const PARENT: PartitionId = PartitionId(1);
const CHILDREN: [PartitionId; 2] = [PartitionId(2), PartitionId(3)];

type Splitting = JoinHandle<Result<SplitReport, ErrorKind>>;

/// Begins a split and stops it after the items are copied, before the history.
async fn held_split(test: &TestContainer) -> Splitting {
    test.engine.hold_splits();
    let split = begin(test, None);
    test.engine.until_held(1).await;
    split
}

fn begin(test: &TestContainer, range: Option<u32>) -> Splitting {
    let (account, container) = (test.account.clone(), test.container.clone());
    tokio::spawn(async move { account.split(&container, range).await.map_err(|error| error.kind) })
}

async fn is_there(test: &TestContainer, partition: PartitionId) -> bool {
    match test.engine.read(partition, ReadRequest::default()).await {
        Ok(_) => true,
        Err(EngineError::NoPartition(_)) => false,
        Err(other) => panic!("{other}"),
    }
}

fn name(n: usize) -> String {
    format!("i{n:04}")
}

/// Writes an item in one of many logical partitions.
async fn write(test: &TestContainer, n: usize, v: i64) {
    let item = json!({"id": name(n), "pk": format!("p{}", n % 90), "u": n, "v": v});
    test.upsert(item, None).await.unwrap();
}

async fn delete(test: &TestContainer, n: usize) {
    use bolide_core::{DeleteItem, ItemTarget};
    let delete = DeleteItem {
        target: ItemTarget::Id(name(n)),
        partition_key: crate::test_container::key(&format!("p{}", n % 90)),
        if_match: None,
    };
    let ctx = test.begin().await;
    let deleted = test.account.delete_item(&ctx, &test.container, delete).await;
    deleted.unwrap();
}

/// Returns all items, as id and version number.
async fn stored(test: &TestContainer) -> BTreeMap<String, i64> {
    let (mut stored, mut continuation) = (BTreeMap::new(), None);
    loop {
        let (page, next) = test.list(1000, continuation).await;
        for item in &page {
            let before = stored.insert(item.id().to_owned(), shown(item)["v"].as_i64().unwrap());
            assert_eq!(before, None, "listed twice");
        }
        continuation = next;
        if continuation.is_none() {
            return stored;
        }
    }
}

#[tokio::test]
async fn a_range_is_written_and_read_while_it_is_split() {
    // TTL-277. Several pages of each kind of row; some writes are in the part that is already copied, some in the rest.
    let test = TestContainer::with(json!({
        "defaultTtl": 1000,
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]},
        "changeFeedPolicy": {"retentionDuration": 10_000},
    }))
    .await;
    const ITEMS: usize = 2_500;
    let mut expected = BTreeMap::new();
    for n in 0..ITEMS {
        write(&test, n, 0).await;
        expected.insert(name(n), 0);
    }
    test.create(json!({"id": "short", "u": -1, "v": 0, "ttl": 5}))
        .await
        .unwrap();
    let (_, feed) = test.changes(FeedStart::Now, 10).await;
    test.engine.hold_splits_before_items();
    let split = begin(&test, None);
    test.engine.until_held(1).await;
    test.engine.let_through(3);
    test.engine.until_held(1).await;
    test.at(110);
    let mut round = 0;
    while !split.is_finished() && round < 3 {
        for n in (round..ITEMS).step_by(7) {
            match n % 3 {
                0 => {
                    delete(&test, n).await;
                    expected.remove(&name(n));
                }
                _ => {
                    write(&test, n, round as i64 + 1).await;
                    expected.insert(name(n), round as i64 + 1);
                }
            }
        }
        write(&test, ITEMS + round, 9).await;
        expected.insert(name(ITEMS + round), 9);
        assert_eq!(stored(&test).await, expected);
        assert_eq!(test.container.ranges().ranges.len(), 1);
        if round == 1 {
            assert_eq!(test.purge().await, 1, "the short one");
        }
        round += 1;
        test.engine.let_through(1);
        test.engine.until_held(1).await;
    }
    test.engine.release_scans();
    let report = split.await.unwrap().unwrap();
    assert_eq!((report.parents, report.children), (vec![0], vec![1, 2]));
    assert_eq!(stored(&test).await, expected);
    assert!(!is_there(&test, PARENT).await);
    test.assert_sound().await;

    let (mut changed, mut place) = (BTreeMap::new(), feed);
    loop {
        let (page, next) = test.changes(FeedStart::After(place), 1000).await;
        if page.is_empty() {
            break;
        }
        for item in &page {
            let before = changed.insert(item.id().to_owned(), shown(item)["v"].as_i64().unwrap());
            assert_eq!(before, None, "a change is shown once");
        }
        place = next;
    }
    let newer = expected.iter().filter(|(_, v)| **v > 0);
    assert_eq!(changed, newer.map(|(id, v)| (id.clone(), *v)).collect());
    let taken = test.create(json!({"id": "new", "pk": "p4", "u": 4, "v": 0})).await;
    assert_eq!(taken.map(|_| ()), Err(ErrorKind::UniqueKeyConflict));

    let test = test.reopen().await;
    assert_eq!(stored(&test).await, expected);
    test.at(1_110);
    assert_eq!(test.purge().await, expected.len() as u64);
    test.assert_sound().await;
}

#[tokio::test]
async fn settings_change_during_a_split_and_hold_in_both_children() {
    let test = TestContainer::with_ttl(1000).await;
    for n in 0..40 {
        write(&test, n, 0).await;
    }
    let split = held_split(&test).await;
    test.define(json!({"defaultTtl": 10})).await.unwrap();
    test.at(105);
    write(&test, 7, 1).await;
    test.engine.release_scans();
    split.await.unwrap().unwrap();
    assert_eq!(stored(&test).await.len(), 40);
    test.at(112);
    assert_eq!(stored(&test).await, BTreeMap::from([(name(7), 1)]));
    assert_eq!(test.purge().await, 39);
    test.assert_sound().await;
}

#[tokio::test]
async fn a_history_that_begins_during_a_split_goes_on_in_both_children() {
    let test = TestContainer::with(json!({})).await;
    for n in 0..40 {
        write(&test, n, 0).await;
    }
    let split = held_split(&test).await;
    let policy = json!({"changeFeedPolicy": {"retentionDuration": 10_000}});
    test.define(policy).await.unwrap();
    for n in 0..20 {
        write(&test, n, 1).await;
    }
    delete(&test, 3).await;
    test.engine.release_scans();
    split.await.unwrap().unwrap();
    write(&test, 4, 2).await;
    // The check compares the history with the items.
    test.assert_sound().await;
}

#[tokio::test]
async fn another_split_waits_for_the_first() {
    let test = TestContainer::with(json!({})).await;
    for n in 0..40 {
        write(&test, n, 0).await;
    }
    let first = held_split(&test).await;
    let (same, any) = (begin(&test, Some(0)), begin(&test, None));
    tokio::task::yield_now().await;
    test.engine.release_scans();
    assert_eq!(first.await.unwrap().unwrap().children, [1, 2]);
    assert_eq!(same.await.unwrap(), Err(ErrorKind::RangeGone));
    assert_eq!(any.await.unwrap().unwrap().children, [3, 4]);
    assert_eq!(stored(&test).await.len(), 40);
    test.assert_sound().await;
}

#[tokio::test]
async fn other_containers_are_created_while_a_range_is_split() {
    let test = TestContainer::with(json!({})).await;
    write(&test, 1, 0).await;
    let split = held_split(&test).await;
    let ctx = test.begin().await;
    let other = test.account.create_database(&ctx, "other", None).await;
    test.account
        .delete_database(&ctx, other.unwrap().rid, None)
        .await
        .unwrap();
    test.engine.release_scans();
    split.await.unwrap().unwrap();
    test.assert_sound().await;
}

#[tokio::test]
async fn a_container_that_is_deleted_during_a_split_leaves_nothing() {
    let test = TestContainer::with(json!({})).await;
    for n in 0..40 {
        write(&test, n, 0).await;
    }
    let split = held_split(&test).await;
    let (ctx, rid) = (test.begin().await, test.container.rid());
    test.account.delete_container(&ctx, rid, None).await.unwrap();
    test.engine.release_scans();
    assert_eq!(split.await.unwrap(), Err(ErrorKind::NotFound));
    for partition in [PARENT, CHILDREN[0], CHILDREN[1]] {
        assert!(!is_there(&test, partition).await, "{partition:?}");
    }
    let again = begin(&test, None);
    assert_eq!(again.await.unwrap(), Err(ErrorKind::NotFound));
}

#[tokio::test]
async fn closing_the_account_ends_a_split() {
    let test = TestContainer::with(json!({})).await;
    for n in 0..40 {
        write(&test, n, 0).await;
    }
    let split = held_split(&test).await;
    let account = test.account.clone();
    let closed = tokio::spawn(async move { account.close().await });
    while !split.is_finished() {
        tokio::task::yield_now().await;
        test.engine.let_through(1);
    }
    assert_eq!(split.await.unwrap(), Err(ErrorKind::Unavailable));
    closed.await.unwrap().unwrap();
    assert!(!is_there(&test, CHILDREN[0]).await);
    test.engine.release_scans();
    let test = test.reopen().await;
    assert_eq!(stored(&test).await.len(), 40);
    test.account.split(&test.container, None).await.unwrap();
    test.assert_sound().await;
}

#[tokio::test]
async fn a_split_goes_on_without_its_request() {
    let test = TestContainer::with(json!({})).await;
    write(&test, 1, 0).await;
    let split = held_split(&test).await;
    split.abort();
    test.engine.release_scans();
    while test.container.ranges().ranges.len() == 1 {
        tokio::task::yield_now().await;
    }
    test.assert_sound().await;
}

/// Wherever the engine fails, either the range is as it was, or it is split.
#[tokio::test]
async fn an_engine_that_fails_during_a_split_leaves_the_range_as_it_was() {
    let mut outcomes = [0, 0];
    for commits in 0..12 {
        let test = TestContainer::with(json!({})).await;
        let mut expected = BTreeMap::new();
        for n in 0..40 {
            write(&test, n, 0).await;
            expected.insert(name(n), 0);
        }
        test.engine.cut_after(commits);
        let split = begin(&test, None).await.unwrap();
        test.engine.mend();
        assert!(matches!(split, Ok(_) | Err(ErrorKind::Unavailable)), "{split:?}");
        outcomes[usize::from(split.is_ok())] += 1;
        for test in [test.beside(test.engine.clone()).await, test] {
            // In the process that failed, and in one that was started after it.
            let test = test.reopen().await;
            assert_eq!(test.container.ranges().ranges.len(), 1 + usize::from(split.is_ok()));
            assert_eq!(stored(&test).await, expected);
            assert_eq!(is_there(&test, PARENT).await, split.is_err());
            for child in CHILDREN {
                assert_eq!(is_there(&test, child).await, split.is_ok(), "{commits} commits");
            }
            test.assert_sound().await;
        }
    }
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}

#[tokio::test]
async fn a_split_that_failed_can_be_made_again() {
    let test = TestContainer::with(json!({})).await;
    for n in 0..40 {
        write(&test, n, 0).await;
    }
    for commits in [1, 2, 3] {
        test.engine.cut_after(commits);
        assert_eq!(begin(&test, None).await.unwrap(), Err(ErrorKind::Unavailable));
        test.engine.mend();
        write(&test, 1, commits).await;
    }
    test.account.split(&test.container, None).await.unwrap();
    assert_eq!(stored(&test).await.len(), 40);
    assert_eq!(stored(&test).await[&name(1)], 3);
    test.assert_sound().await;
}

/// Writes into the wrong ranges would be lost, so no request is admitted before the outcome is known.
#[tokio::test]
async fn a_split_whose_commit_is_lost_finds_out_what_became_of_it() {
    // The commit that marks the parent for removal.
    let switches = |partition, batch: &Batch| {
        let names_parent = |put: &Put| put.key.bytes.ends_with(&PARENT.0.to_be_bytes()) && put.value.is_empty();
        partition == PartitionId::CATALOG && batch.puts.iter().any(names_parent)
    };
    for is_done in [true, false] {
        let test = TestContainer::with(json!({})).await;
        for n in 0..40 {
            write(&test, n, 0).await;
        }
        test.engine.lose_outcome(is_done, switches);
        let split = begin(&test, None).await.unwrap();
        assert_eq!(split.is_ok(), is_done, "{split:?}");
        write(&test, 1, 1).await;
        let test = test.reopen().await;
        assert_eq!(test.container.ranges().ranges.len(), 1 + usize::from(is_done));
        assert_eq!(stored(&test).await[&name(1)], 1);
        assert_eq!(is_there(&test, PARENT).await, !is_done);
        assert_eq!(is_there(&test, CHILDREN[1]).await, is_done);
        test.assert_sound().await;
    }
}

/// A write of unknown outcome is part of the copy if it happened.
#[tokio::test]
async fn a_write_whose_outcome_is_lost_during_a_split_is_found_or_not() {
    for is_done in [true, false] {
        let test = TestContainer::with(json!({})).await;
        for n in 0..40 {
            write(&test, n, 0).await;
        }
        let split = held_split(&test).await;
        test.engine.lose_outcome(is_done, |partition, _| partition == PARENT);
        let lost = test.upsert(json!({"id": "lost", "pk": "p1", "v": 1}), None).await;
        assert_eq!(lost.map(|_| ()), Err(ErrorKind::Timeout));
        test.engine.release_scans();
        split.await.unwrap().unwrap();
        assert_eq!(stored(&test).await.contains_key("lost"), is_done);
        test.assert_sound().await;
    }
}

/// What a writer knows of items after engine errors: the values that each may have by now.
#[derive(Default)]
struct Possible(BTreeMap<usize, Vec<i64>>);

#[tokio::test(start_paused = true)]
async fn an_engine_in_trouble_may_refuse_a_split_but_loses_nothing() {
    let mut outcomes = [0, 0];
    for seed in 1..=40 {
        let clock = Arc::new(bolide_model::time::Clock::virtual_at(bolide_model::UnixMillis(100_500)));
        let memory = Arc::new(MemoryEngine::new(clock.clone()));
        let faults = Faults {
            down_percent: 1,
            stale_percent: 10,
            unknown_percent: 10,
            ..Faults::frequent(seed)
        };
        let engine = Arc::new(Probe::with_faults(memory, faults));
        let test = TestContainer::over(engine.clone(), clock, json!({}), None, options()).await;
        for n in 0..40 {
            write(&test, n, 0).await;
        }
        let mut possible = Possible::default();
        engine.be_calm(false);
        let mut choices = RandomChoices::new(seed);
        for _ in 0..3 {
            let split = begin(&test, None);
            let mut v = 0;
            while !split.is_finished() {
                v += 1;
                try_write(&test, choices.roll(40) as usize, v, &mut possible).await;
                tokio::task::yield_now().await;
            }
            let split = split.await.unwrap();
            assert!(
                matches!(
                    split,
                    Ok(_) | Err(ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::StorageFull)
                ),
                "seed {seed}: {split:?}"
            );
            outcomes[usize::from(split.is_ok())] += 1;
        }
        engine.be_calm(true);
        let test = test.reopen().await;
        let stored = stored(&test).await;
        for n in 0..40 {
            let v = stored.get(&name(n)).copied();
            let v = v.unwrap_or_else(|| panic!("seed {seed}: item {n} is lost"));
            let possible = possible.0.get(&n).map_or(&[0][..], Vec::as_slice);
            assert!(
                possible.contains(&v),
                "seed {seed}: item {n} is {v}, not of {possible:?}"
            );
        }
        test.assert_sound().await;
    }
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}

async fn try_write(test: &TestContainer, n: usize, v: i64, possible: &mut Possible) {
    let item = json!({"id": name(n), "pk": format!("p{}", n % 90), "u": n, "v": v});
    let possible = possible.0.entry(n).or_insert_with(|| vec![0]);
    let ctx = match test.account.begin().await {
        Ok(ctx) => ctx,
        Err(_) => return,
    };
    let upsert = bolide_core::UpsertItem {
        document: bolide_model::document::Document::parse(item.to_string().as_bytes()).unwrap(),
        partition_key: None,
        if_match: None,
    };
    match test.account.upsert_item(&ctx, &test.container, upsert).await {
        Ok(_) => *possible = vec![v],
        Err(refusal) if refusal.error.kind == ErrorKind::Timeout => possible.push(v),
        Err(_) => {}
    }
}

/// A split keeps the account's engine open only until its next page.
#[tokio::test]
async fn an_account_that_is_dropped_ends_its_split() {
    let test = TestContainer::with(json!({})).await;
    for n in 0..40 {
        write(&test, n, 0).await;
    }
    let TestContainer {
        clock,
        engine,
        account,
        container,
    } = test;
    engine.hold_splits();
    let mut split = Box::pin(account.split(&container, None));
    while engine.held_scans() == 0 {
        let began = futures_util::future::poll_immediate(&mut split).await;
        assert!(began.is_none());
        tokio::task::yield_now().await;
    }
    drop(split);
    drop((account, container));
    engine.release_scans();
    while Arc::strong_count(&engine) > 1 {
        tokio::task::yield_now().await;
    }
    let account = Account::open(engine.clone(), options()).await.unwrap();
    let container = account.all_containers().pop().unwrap();
    let test = TestContainer {
        clock,
        engine,
        account,
        container,
    };
    assert_eq!(test.container.ranges().ranges.len(), 1);
    assert_eq!(stored(&test).await.len(), 40);
    test.assert_sound().await;
}
