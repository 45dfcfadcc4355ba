//! Claims about durability. Engines that are not durable skip them.

use bolide_model::{Lsn, UnixMillis};
use bytes::Bytes;

use super::commits::{check_chain, send_chain};
use super::test_engine::{PARTITION, START, key, put};
use super::{EngineFixture, TestEngine};
use crate::{Batch, Edition, EngineError, Head, Outcome, PartitionId, ReadRequest, Resolved, Space};

/// Rows, heads and the last commit's token survive a restart, and commits continue.
pub async fn commits_survive_a_restart(fixture: &dyn EngineFixture) {
    if !fixture.is_durable() {
        return;
    }
    let engine = TestEngine::with_partition(fixture).await;
    engine
        .commit_next(
            PARTITION,
            vec![put(Space::Item, b"a", "1"), put(Space::Item, b"b", "1")],
            vec![],
        )
        .await;
    let batch = engine.batch(Lsn(1), vec![put(Space::Item, b"a", "2")], vec![key(Space::Item, b"b")]);
    let (ticket, head) = (batch.ticket(), batch.head());
    assert_eq!(engine.commit(PARTITION, batch).await, Ok(Outcome::Done(head)));
    let engine = engine.restart(fixture, START).await;
    assert_eq!(engine.head(PARTITION).await, head);
    assert_eq!(
        engine.get(PARTITION, key(Space::Item, b"a")).await,
        Some(Bytes::from("2"))
    );
    assert_eq!(engine.keys(PARTITION, Space::Item).await, ["a"]);
    assert_eq!(engine.resolve(PARTITION, ticket).await, Ok(Resolved::Done(head)));
    engine
        .commit_next(PARTITION, vec![put(Space::Item, b"c", "3")], vec![])
        .await;
    assert_eq!(engine.keys(PARTITION, Space::Item).await, ["a", "c"]);
}

/// The edition of a commit, and of a partition that was only created, survive a restart.
pub async fn edition_survives_a_restart(fixture: &dyn EngineFixture) {
    if !fixture.is_durable() {
        return;
    }
    let created = PartitionId(PARTITION.0 + 1);
    let first = Head {
        lsn: Lsn(4),
        stamp: START,
        edition: Edition(11),
    };
    let engine = TestEngine::with_partition(fixture).await;
    engine.create_at(created, first).await;
    let batch = Batch {
        edition: Edition(12),
        ..engine.batch(Lsn(0), vec![], vec![])
    };
    let (ticket, head) = (batch.ticket(), batch.head());
    assert_eq!(engine.commit(PARTITION, batch).await, Ok(Outcome::Done(head)));
    let engine = engine.restart(fixture, START).await;
    assert_eq!(engine.head(PARTITION).await.edition, Edition(12));
    assert_eq!(engine.resolve(PARTITION, ticket).await, Ok(Resolved::Done(head)));
    assert_eq!(engine.head(created).await, first);
}

/// Server time is not below the highest stored stamp, whatever the clock shows and even if the partition of that stamp was removed (TTL-203).
pub async fn server_time_survives_a_restart(fixture: &dyn EngineFixture) {
    if !fixture.is_durable() {
        return;
    }
    let engine = TestEngine::with_partition(fixture).await;
    let stamp = UnixMillis(START.0 + 5_000);
    let batch = Batch {
        stamp,
        ..engine.batch(Lsn(0), vec![], vec![])
    };
    assert!(matches!(engine.commit(PARTITION, batch).await, Ok(Outcome::Done(_))));
    engine.remove(PARTITION).await;
    let engine = engine.restart(fixture, UnixMillis(START.0 - 3_600_000)).await;
    assert!(engine.time().lo >= stamp, "time={:?}", engine.time());
}

/// The time that was made durable survives a restart, even without a commit (TTL-203).
pub async fn time_made_durable_survives_a_restart(fixture: &dyn EngineFixture) {
    if !fixture.is_durable() {
        return;
    }
    let engine = TestEngine::with_partition(fixture).await;
    engine.clock.advance(60_000);
    let seen = engine.time().lo;
    engine.make_time_durable(seen).await;
    assert!(engine.durable_time() >= seen);
    let engine = engine.restart(fixture, UnixMillis(START.0 - 3_600_000)).await;
    assert!(engine.time().hi >= seen, "time={:?} seen={seen:?}", engine.time());
}

/// A removed partition does not come back, even if its deletion was not finished.
pub async fn removal_survives_a_restart(fixture: &dyn EngineFixture) {
    if !fixture.is_durable() {
        return;
    }
    let other = PartitionId(PARTITION.0 + 1);
    let engine = TestEngine::with_partition(fixture).await;
    engine.create(other).await;
    for partition in [PARTITION, other] {
        let rows = (0..3000u32).map(|n| put(Space::Item, &n.to_be_bytes(), "v")).collect();
        engine.commit_next(partition, rows, vec![]).await;
    }
    engine.remove(PARTITION).await;
    let engine = engine.restart(fixture, START).await;
    assert_eq!(
        engine.try_read(PARTITION, ReadRequest::default()).await.map(drop),
        Err(EngineError::NoPartition(PARTITION))
    );
    assert_eq!(engine.keys(other, Space::Item).await.len(), 3000);
}

/// The claim of [`super::commits_sent_at_once_happen_in_their_order`] holds after a replay of the log too.
pub async fn merged_commits_of_one_key_are_right_after_a_restart(fixture: &dyn EngineFixture) {
    if !fixture.is_durable() {
        return;
    }
    let engine = TestEngine::with_partition(fixture).await;
    send_chain(&engine).await;
    let engine = engine.restart(fixture, START).await;
    check_chain(&engine).await;
}
