//! Splits of ranges that are in use: nothing that happens meanwhile is lost, and whatever ends one leaves nothing behind.

use std::collections::BTreeMap;
use std::sync::Arc;

use bolide_core::{Account, FeedStart, SplitReport};
use bolide_model::ErrorKind;
use bolide_storage::faults::Faults;
use bolide_storage::memory::MemoryEngine;
use bolide_storage::{Batch, Engine, EngineError, PartitionId, Put, ReadRequest, Space};
use serde_json::json;
use tokio::task::JoinHandle;

use crate::probe::Probe;
use crate::random::Dice;
use crate::stage::{Stage, options, shown};

/// The container's first partition, and those that the first split takes.
const PARENT: PartitionId = PartitionId(1);
const CHILDREN: [PartitionId; 2] = [PartitionId(2), PartitionId(3)];

type Splitting = JoinHandle<Result<SplitReport, ErrorKind>>;

/// A split that has begun and waits: the log, the expiry queue and items are copied, indexes and the history are not.
async fn held_split(stage: &Stage) -> Splitting {
    stage.engine.hold_scans_of(Space::Index);
    let split = begin(stage, None);
    stage.engine.until_held(1).await;
    split
}

fn begin(stage: &Stage, range: Option<u32>) -> Splitting {
    let (account, container) = (stage.account.clone(), stage.container.clone());
    tokio::spawn(async move { account.split(&container, range).await.map_err(|error| error.kind) })
}

async fn is_there(stage: &Stage, partition: PartitionId) -> bool {
    match stage.engine.read(partition, ReadRequest::default()).await {
        Ok(_) => true,
        Err(EngineError::NoPartition(_)) => false,
        Err(other) => panic!("{other}"),
    }
}

fn name(n: usize) -> String {
    format!("i{n:04}")
}

/// An item in one of many logical partitions.
async fn write(stage: &Stage, n: usize, v: i64) {
    let item = json!({"id": name(n), "pk": format!("p{}", n % 90), "u": n, "v": v});
    stage.upsert(item, None).await.unwrap();
}

async fn delete(stage: &Stage, n: usize) {
    use bolide_core::{DeleteItem, ItemTarget};
    let delete = DeleteItem {
        target: ItemTarget::Id(name(n)),
        partition_key: crate::stage::key(&format!("p{}", n % 90)),
        if_match: None,
    };
    let ctx = stage.begin().await;
    let deleted = stage.account.delete_item(&ctx, &stage.container, delete).await;
    deleted.unwrap();
}

/// All items, as id and version number.
async fn stored(stage: &Stage) -> BTreeMap<String, i64> {
    let (mut stored, mut continuation) = (BTreeMap::new(), None);
    loop {
        let (page, next) = stage.list(1000, continuation).await;
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
    // TTL-277. Several pages of each kind of row; some writes come before their page, some behind it.
    let stage = Stage::with(json!({
        "defaultTtl": 1000,
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]},
        "changeFeedPolicy": {"retentionDuration": 10_000},
    }))
    .await;
    const ITEMS: usize = 2_500;
    let mut expected = BTreeMap::new();
    for n in 0..ITEMS {
        write(&stage, n, 0).await;
        expected.insert(name(n), 0);
    }
    stage
        .create(json!({"id": "short", "u": -1, "v": 0, "ttl": 5}))
        .await
        .unwrap();
    let (_, feed) = stage.changes(FeedStart::Now, 10).await;
    let split = held_split(&stage).await;
    stage.at(110);
    let mut round = 0;
    while !split.is_finished() && round < 3 {
        for n in (round..ITEMS).step_by(7) {
            match n % 3 {
                0 => {
                    delete(&stage, n).await;
                    expected.remove(&name(n));
                }
                _ => {
                    write(&stage, n, round as i64 + 1).await;
                    expected.insert(name(n), round as i64 + 1);
                }
            }
        }
        write(&stage, ITEMS + round, 9).await;
        expected.insert(name(ITEMS + round), 9);
        assert_eq!(stored(&stage).await, expected);
        assert_eq!(stage.container.ranges().ranges.len(), 1);
        if round == 1 {
            assert_eq!(stage.purge().await, 1, "the short one");
        }
        round += 1;
        stage.engine.let_through(1);
        stage.engine.until_held(1).await;
    }
    stage.engine.release_scans();
    let report = split.await.unwrap().unwrap();
    assert_eq!((report.parents, report.children), (vec![0], vec![1, 2]));
    assert_eq!(stored(&stage).await, expected);
    assert!(!is_there(&stage, PARENT).await);
    stage.assert_sound().await;

    let (mut changed, mut place) = (BTreeMap::new(), feed);
    loop {
        let (page, next) = stage.changes(FeedStart::After(place), 1000).await;
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
    let taken = stage.create(json!({"id": "new", "pk": "p4", "u": 4, "v": 0})).await;
    assert_eq!(taken.map(|_| ()), Err(ErrorKind::UniqueKeyConflict));

    let stage = stage.reopen().await;
    assert_eq!(stored(&stage).await, expected);
    stage.at(1_110);
    assert_eq!(stage.purge().await, expected.len() as u64);
    stage.assert_sound().await;
}

#[tokio::test]
async fn settings_change_during_a_split_and_hold_in_both_children() {
    let stage = Stage::with_ttl(1000).await;
    for n in 0..40 {
        write(&stage, n, 0).await;
    }
    let split = held_split(&stage).await;
    stage.define(json!({"defaultTtl": 10})).await.unwrap();
    stage.at(105);
    write(&stage, 7, 1).await;
    stage.engine.release_scans();
    split.await.unwrap().unwrap();
    assert_eq!(stored(&stage).await.len(), 40);
    stage.at(112);
    assert_eq!(stored(&stage).await, BTreeMap::from([(name(7), 1)]));
    assert_eq!(stage.purge().await, 39);
    stage.assert_sound().await;
}

#[tokio::test]
async fn a_history_that_begins_during_a_split_goes_on_in_both_children() {
    let stage = Stage::with(json!({})).await;
    for n in 0..40 {
        write(&stage, n, 0).await;
    }
    let split = held_split(&stage).await;
    let policy = json!({"changeFeedPolicy": {"retentionDuration": 10_000}});
    stage.define(policy).await.unwrap();
    for n in 0..20 {
        write(&stage, n, 1).await;
    }
    delete(&stage, 3).await;
    stage.engine.release_scans();
    split.await.unwrap().unwrap();
    write(&stage, 4, 2).await;
    // The check compares the history with the items.
    stage.assert_sound().await;
}

#[tokio::test]
async fn another_split_waits_for_the_first() {
    let stage = Stage::with(json!({})).await;
    for n in 0..40 {
        write(&stage, n, 0).await;
    }
    let first = held_split(&stage).await;
    let (same, any) = (begin(&stage, Some(0)), begin(&stage, None));
    tokio::task::yield_now().await;
    stage.engine.release_scans();
    assert_eq!(first.await.unwrap().unwrap().children, [1, 2]);
    assert_eq!(same.await.unwrap(), Err(ErrorKind::RangeGone));
    assert_eq!(any.await.unwrap().unwrap().children, [3, 4]);
    assert_eq!(stored(&stage).await.len(), 40);
    stage.assert_sound().await;
}

#[tokio::test]
async fn other_containers_are_created_while_a_range_is_split() {
    let stage = Stage::with(json!({})).await;
    write(&stage, 1, 0).await;
    let split = held_split(&stage).await;
    let ctx = stage.begin().await;
    let other = stage.account.create_database(&ctx, "other", None).await;
    stage
        .account
        .delete_database(&ctx, other.unwrap().rid, None)
        .await
        .unwrap();
    stage.engine.release_scans();
    split.await.unwrap().unwrap();
    stage.assert_sound().await;
}

#[tokio::test]
async fn a_container_that_is_deleted_during_a_split_leaves_nothing() {
    let stage = Stage::with(json!({})).await;
    for n in 0..40 {
        write(&stage, n, 0).await;
    }
    let split = held_split(&stage).await;
    let (ctx, rid) = (stage.begin().await, stage.container.rid());
    stage.account.delete_container(&ctx, rid, None).await.unwrap();
    stage.engine.release_scans();
    assert_eq!(split.await.unwrap(), Err(ErrorKind::NotFound));
    for partition in [PARENT, CHILDREN[0], CHILDREN[1]] {
        assert!(!is_there(&stage, partition).await, "{partition:?}");
    }
    let again = begin(&stage, None);
    assert_eq!(again.await.unwrap(), Err(ErrorKind::NotFound));
}

#[tokio::test]
async fn closing_the_account_ends_a_split() {
    let stage = Stage::with(json!({})).await;
    for n in 0..40 {
        write(&stage, n, 0).await;
    }
    let split = held_split(&stage).await;
    let account = stage.account.clone();
    let closed = tokio::spawn(async move { account.close().await });
    while !split.is_finished() {
        tokio::task::yield_now().await;
        stage.engine.let_through(1);
    }
    assert_eq!(split.await.unwrap(), Err(ErrorKind::Unavailable));
    closed.await.unwrap().unwrap();
    assert!(!is_there(&stage, CHILDREN[0]).await);
    stage.engine.release_scans();
    let stage = stage.reopen().await;
    assert_eq!(stored(&stage).await.len(), 40);
    stage.account.split(&stage.container, None).await.unwrap();
    stage.assert_sound().await;
}

#[tokio::test]
async fn a_split_goes_on_without_its_request() {
    let stage = Stage::with(json!({})).await;
    write(&stage, 1, 0).await;
    let split = held_split(&stage).await;
    split.abort();
    stage.engine.release_scans();
    while stage.container.ranges().ranges.len() == 1 {
        tokio::task::yield_now().await;
    }
    stage.assert_sound().await;
}

/// However far it comes, one of the two is true: the range is as it was, or it is split.
#[tokio::test]
async fn an_engine_that_fails_during_a_split_leaves_the_range_as_it_was() {
    let mut outcomes = [0, 0];
    for commits in 0..12 {
        let stage = Stage::with(json!({})).await;
        let mut expected = BTreeMap::new();
        for n in 0..40 {
            write(&stage, n, 0).await;
            expected.insert(name(n), 0);
        }
        stage.engine.cut_after(commits);
        let split = begin(&stage, None).await.unwrap();
        stage.engine.mend();
        assert!(matches!(split, Ok(_) | Err(ErrorKind::Unavailable)), "{split:?}");
        outcomes[usize::from(split.is_ok())] += 1;
        for stage in [stage.beside(stage.engine.clone()).await, stage] {
            // The process that failed, and one that was started after it.
            let stage = stage.reopen().await;
            assert_eq!(stage.container.ranges().ranges.len(), 1 + usize::from(split.is_ok()));
            assert_eq!(stored(&stage).await, expected);
            assert_eq!(is_there(&stage, PARENT).await, split.is_err());
            for child in CHILDREN {
                assert_eq!(is_there(&stage, child).await, split.is_ok(), "{commits} commits");
            }
            stage.assert_sound().await;
        }
    }
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}

#[tokio::test]
async fn a_split_that_failed_can_be_made_again() {
    let stage = Stage::with(json!({})).await;
    for n in 0..40 {
        write(&stage, n, 0).await;
    }
    for commits in [1, 2, 3] {
        stage.engine.cut_after(commits);
        assert_eq!(begin(&stage, None).await.unwrap(), Err(ErrorKind::Unavailable));
        stage.engine.mend();
        write(&stage, 1, commits).await;
    }
    stage.account.split(&stage.container, None).await.unwrap();
    assert_eq!(stored(&stage).await.len(), 40);
    assert_eq!(stored(&stage).await[&name(1)], 3);
    stage.assert_sound().await;
}

/// Writes into the wrong ranges would be lost: nobody is let in before it is known which they are.
#[tokio::test]
async fn a_split_whose_commit_is_lost_finds_out_what_became_of_it() {
    // The commit that names the parent for removal.
    let switches = |partition, batch: &Batch| {
        let names_parent = |put: &Put| put.key.bytes.ends_with(&PARENT.0.to_be_bytes()) && put.value.is_empty();
        partition == PartitionId::CATALOG && batch.puts.iter().any(names_parent)
    };
    for is_done in [true, false] {
        let stage = Stage::with(json!({})).await;
        for n in 0..40 {
            write(&stage, n, 0).await;
        }
        stage.engine.lose_outcome(is_done, switches);
        let split = begin(&stage, None).await.unwrap();
        assert_eq!(split.is_ok(), is_done, "{split:?}");
        write(&stage, 1, 1).await;
        let stage = stage.reopen().await;
        assert_eq!(stage.container.ranges().ranges.len(), 1 + usize::from(is_done));
        assert_eq!(stored(&stage).await[&name(1)], 1);
        assert_eq!(is_there(&stage, PARENT).await, !is_done);
        assert_eq!(is_there(&stage, CHILDREN[1]).await, is_done);
        stage.assert_sound().await;
    }
}

/// A write that nobody was answered is part of the copy if it happened.
#[tokio::test]
async fn a_write_whose_outcome_is_lost_during_a_split_is_found_or_not() {
    for is_done in [true, false] {
        let stage = Stage::with(json!({})).await;
        for n in 0..40 {
            write(&stage, n, 0).await;
        }
        let split = held_split(&stage).await;
        stage.engine.lose_outcome(is_done, |partition, _| partition == PARENT);
        let lost = stage.upsert(json!({"id": "lost", "pk": "p1", "v": 1}), None).await;
        assert_eq!(lost.map(|_| ()), Err(ErrorKind::Timeout));
        stage.engine.release_scans();
        split.await.unwrap().unwrap();
        assert_eq!(stored(&stage).await.contains_key("lost"), is_done);
        stage.assert_sound().await;
    }
}

/// What a writer in trouble knows of an item: what it may have by now.
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
            ..Faults::bad_day(seed)
        };
        let engine = Arc::new(Probe::with_faults(memory, faults));
        let stage = Stage::over(engine.clone(), clock, json!({}), None, options()).await;
        for n in 0..40 {
            write(&stage, n, 0).await;
        }
        let mut possible = Possible::default();
        engine.be_calm(false);
        let mut dice = Dice::new(seed);
        for _ in 0..3 {
            let split = begin(&stage, None);
            let mut v = 0;
            while !split.is_finished() {
                v += 1;
                try_write(&stage, dice.roll(40) as usize, v, &mut possible).await;
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
        let stage = stage.reopen().await;
        let stored = stored(&stage).await;
        for n in 0..40 {
            let v = stored.get(&name(n)).copied();
            let v = v.unwrap_or_else(|| panic!("seed {seed}: item {n} is lost"));
            let possible = possible.0.get(&n).map_or(&[0][..], Vec::as_slice);
            assert!(
                possible.contains(&v),
                "seed {seed}: item {n} is {v}, not of {possible:?}"
            );
        }
        stage.assert_sound().await;
    }
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}

async fn try_write(stage: &Stage, n: usize, v: i64, possible: &mut Possible) {
    let item = json!({"id": name(n), "pk": format!("p{}", n % 90), "u": n, "v": v});
    let possible = possible.0.entry(n).or_insert_with(|| vec![0]);
    let ctx = match stage.account.begin().await {
        Ok(ctx) => ctx,
        Err(_) => return,
    };
    let upsert = bolide_core::UpsertItem {
        document: bolide_model::document::Document::parse(item.to_string().as_bytes()).unwrap(),
        partition_key: None,
        if_match: None,
    };
    match stage.account.upsert_item(&ctx, &stage.container, upsert).await {
        Ok(_) => *possible = vec![v],
        Err(refusal) if refusal.error.kind == ErrorKind::Timeout => possible.push(v),
        Err(_) => {}
    }
}

/// A split holds the account's engine no longer than to its next page.
#[tokio::test]
async fn an_account_that_is_dropped_ends_its_split() {
    let stage = Stage::with(json!({})).await;
    for n in 0..40 {
        write(&stage, n, 0).await;
    }
    let Stage {
        clock,
        engine,
        account,
        container,
    } = stage;
    engine.hold_scans_of(Space::Index);
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
    let stage = Stage {
        clock,
        engine,
        account,
        container,
    };
    assert_eq!(stage.container.ranges().ranges.len(), 1);
    assert_eq!(stored(&stage).await.len(), 40);
    stage.assert_sound().await;
}
