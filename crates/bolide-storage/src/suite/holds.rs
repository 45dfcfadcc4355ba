//! Claims about held snapshots. If the engine ended one early, which is always allowed, the claim takes another.

use std::sync::Arc;

use bolide_model::UnixMillis;
use bytes::Bytes;

use super::joint::{SHARED_HOME, shared_partitions, with_shared_home};
use super::test_engine::{START, key, put};
use super::{EngineFixture, TestEngine};
use crate::{
    EngineError, HeldSnapshot, HoldError, HomeId, JointOutcome, MAX_HOLD_MS, MAX_HOLDS, PartitionId, ReadRequest, Scan,
    Space,
};

/// Tries before a claim gives up on an engine that keeps ending held snapshots.
const TRIES: usize = 1000;

/// All keys of the item space, read from the snapshot in pages of two.
async fn held_keys(
    engine: &TestEngine,
    held: &dyn HeldSnapshot,
    partition: PartitionId,
) -> Result<Vec<Bytes>, HoldError> {
    let mut keys: Vec<Bytes> = Vec::new();
    loop {
        let from = keys
            .last()
            .map_or_else(Bytes::new, |last| [last, &b"\0"[..]].concat().into());
        let scan = Scan {
            from,
            max_rows: 2,
            ..Scan::whole(Space::Item)
        };
        let request = ReadRequest {
            scans: vec![scan],
            ..ReadRequest::default()
        };
        let page = engine.read_held(held, partition, request).await?.pages.remove(0);
        keys.extend(page.rows.into_iter().map(|(key, _)| key));
        if !page.more {
            return Ok(keys);
        }
    }
}

/// Whatever is committed, created or deleted later, the snapshot stays as it was, page by page, with its heads.
pub async fn hold_shows_no_later_commit(fixture: &dyn EngineFixture) {
    let engine = with_shared_home(fixture).await;
    let partitions = shared_partitions();
    for attempt in 0..TRIES {
        let mut heads = Vec::new();
        for partition in partitions {
            let rows = (0..5).map(|n: u8| put(Space::Item, &[n], "old")).collect();
            heads.push(
                engine
                    .commit_next(partition, rows, vec![key(Space::Item, b"later")])
                    .await,
            );
        }
        let held = engine.hold(SHARED_HOME).await;
        for partition in partitions {
            let puts = vec![put(Space::Item, &[0], "new"), put(Space::Item, b"later", "new")];
            engine
                .commit_next(partition, puts, (1..5).map(|n| key(Space::Item, &[n])).collect())
                .await;
        }
        let number = 1_000 + attempt as u32;
        let created = PartitionId::in_home(SHARED_HOME, number).expect("home 0 is another one");
        engine.create(created).await;
        if shows_the_past(&engine, held.as_ref(), &partitions, &heads, created).await {
            return;
        }
    }
    panic!("what is held always expires");
}

/// Compares the snapshot with what was stored when it was taken; false if it expired.
async fn shows_the_past(
    engine: &TestEngine,
    held: &dyn HeldSnapshot,
    partitions: &[PartitionId],
    heads: &[crate::Head],
    created: PartitionId,
) -> bool {
    let expected: Vec<Bytes> = (0..5).map(|n: u8| Bytes::copy_from_slice(&[n])).collect();
    for (partition, head) in partitions.iter().zip(heads) {
        let request = ReadRequest::of_keys(vec![key(Space::Item, &[0])]);
        let response = match engine.read_held(held, *partition, request).await {
            Err(HoldError::Expired) => return false,
            response => response.expect("the partition was there"),
        };
        assert_eq!((response.head, &response.gets[0]), (*head, &Some(Bytes::from("old"))));
        match held_keys(engine, held, *partition).await {
            Err(HoldError::Expired) => return false,
            keys => assert_eq!(keys.expect("the partition was there"), expected),
        }
    }
    match engine.read_held(held, created, ReadRequest::default()).await {
        Err(HoldError::Expired) => false,
        read => {
            assert_eq!(read.map(drop), Err(EngineError::NoPartition(created).into()));
            true
        }
    }
}

/// A partition that is removed while it is held can be read to the end; a later hold does not show it.
pub async fn hold_shows_a_partition_that_was_removed_since(fixture: &dyn EngineFixture) {
    let engine = TestEngine::new(fixture);
    for attempt in 0..TRIES {
        let number = 1_000 + attempt as u32;
        let partition = PartitionId::in_home(SHARED_HOME, number).expect("home 0 is another one");
        engine.create(partition).await;
        // More rows than an engine removes at once.
        let rows = (0..600u32).map(|n| put(Space::Item, &n.to_be_bytes(), "v")).collect();
        engine.commit_next(partition, rows, vec![]).await;
        let held = engine.hold(SHARED_HOME).await;
        engine.remove(partition).await;
        let after = engine.hold(SHARED_HOME).await;
        let request = ReadRequest {
            scans: vec![Scan::whole(Space::Item)],
            ..ReadRequest::default()
        };
        let before = engine.read_held(held.as_ref(), partition, request).await;
        let after = engine
            .read_held(after.as_ref(), partition, ReadRequest::default())
            .await;
        if before.as_ref().err() == Some(&HoldError::Expired) || after.as_ref().err() == Some(&HoldError::Expired) {
            continue;
        }
        assert_eq!(before.map(|response| response.pages[0].rows.len()), Ok(600));
        assert_eq!(after.map(drop), Err(EngineError::NoPartition(partition).into()));
        return;
    }
    panic!("what is held always expires");
}

/// A partition that is its own home is held alone; a home without partitions gives an empty snapshot.
pub async fn hold_shows_no_other_home(fixture: &dyn EngineFixture) {
    let engine = with_shared_home(fixture).await;
    let alone = PartitionId::in_own_home(10);
    engine.create(alone).await;
    engine.commit_next(alone, vec![], vec![]).await;
    let [shared, ..] = shared_partitions();
    assert_eq!(shared.number(), alone.number(), "the number does not make the home");
    for (home, partition, is_there) in [
        (alone.home(), alone, true),
        (alone.home(), shared, false),
        (SHARED_HOME, shared, true),
        (SHARED_HOME, alone, false),
        (HomeId(77), alone, false),
    ] {
        let mut read = Err(HoldError::Expired);
        for _ in 0..TRIES {
            let held = engine.hold(home).await;
            read = engine
                .read_held(held.as_ref(), partition, ReadRequest::default())
                .await
                .map(drop);
            if read != Err(HoldError::Expired) {
                break;
            }
        }
        let expected = is_there.then_some(()).ok_or(EngineError::NoPartition(partition).into());
        assert_eq!(read, expected, "{home:?} {partition}");
    }
}

/// A snapshot can be read before its end, but not at the end or later. The limit applies to longer requests.
pub async fn hold_expires_at_its_end_and_no_later_than_the_limit(fixture: &dyn EngineFixture) {
    let engine = with_shared_home(fixture).await;
    let [partition, ..] = shared_partitions();
    for (ask_ms, held_ms) in [
        (1_000, 1_000),
        (MAX_HOLD_MS, MAX_HOLD_MS),
        (10 * MAX_HOLD_MS, MAX_HOLD_MS),
    ] {
        let mut was_read = false;
        for _ in 0..TRIES {
            // Time may be imprecise; half a second is more than that.
            let until = UnixMillis(engine.time().lo.0 + ask_ms);
            let held = engine.hold_until(SHARED_HOME, until).await;
            engine.clock.advance(held_ms - 500);
            let read = engine
                .read_held(held.as_ref(), partition, ReadRequest::default())
                .await
                .map(drop);
            engine.clock.advance(1_000);
            let late = engine
                .read_held(held.as_ref(), partition, ReadRequest::default())
                .await
                .map(drop);
            assert_eq!(late, Err(HoldError::Expired), "ask_ms={ask_ms}");
            was_read = read == Ok(());
            if was_read {
                break;
            }
        }
        assert!(was_read, "ask_ms={ask_ms}");
    }
}

/// At the limit no more snapshots are held, until one is dropped or has expired.
pub async fn holds_are_bounded_in_number_and_dropping_one_makes_room(fixture: &dyn EngineFixture) {
    let engine = with_shared_home(fixture).await;
    let mut held: Vec<Arc<dyn HeldSnapshot>> = Vec::new();
    while held.len() < MAX_HOLDS {
        held.push(engine.hold(SHARED_HOME).await);
    }
    for _ in 0..10 {
        let refused = engine.engine.hold(SHARED_HOME, UnixMillis(i64::MAX)).await;
        assert!(matches!(refused, Err(EngineError::Unavailable(_))), "{refused:?}");
    }
    held.pop();
    held.push(engine.hold(SHARED_HOME).await);
    engine.clock.advance(2 * MAX_HOLD_MS);
    held.push(engine.hold(SHARED_HOME).await);
}

/// The engine can be closed and opened again while a snapshot is still referenced; that snapshot has expired then, and shows nothing of later commits.
pub async fn hold_does_not_outlive_its_engine(fixture: &dyn EngineFixture) {
    if !fixture.is_durable() {
        return;
    }
    let engine = with_shared_home(fixture).await;
    let held = engine.hold(SHARED_HOME).await;
    let engine = engine.restart(fixture, START).await;
    let batches = engine.joint_batches(&shared_partitions(), "1").await;
    assert_eq!(
        engine.commit_together(batches.clone()).await,
        Ok(JointOutcome::done(&batches))
    );
    let [partition, ..] = shared_partitions();
    let read = engine
        .read_held(held.as_ref(), partition, ReadRequest::default())
        .await
        .map(drop);
    assert_eq!(read, Err(HoldError::Expired));
}
