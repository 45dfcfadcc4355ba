//! Locks of partitions, between engines over one store.

use std::sync::atomic::{AtomicBool, Ordering};

use bolide_model::UnixMillis;
use bolide_storage::{Engine, EngineError, Head, HomeId, JointOutcome, Key, Outcome, PartitionId, Space, WriteLock};
use bolide_storage_postgres::PostgresEngine;
use futures_util::FutureExt;

use super::Store;
use super::claims::{PARTITION, batch, put, two};

fn value() -> Vec<Key> {
    vec![Key::new(Space::Item, &b"k"[..])]
}

/// The newest number, and the lock.
async fn lock(engine: &PostgresEngine) -> (u64, Option<WriteLock>) {
    let (read, lock) = engine.read_and_lock(PARTITION, value()).await.unwrap();
    (read.head.lsn.0, lock)
}

async fn commit(engine: &PostgresEngine, base: u64, next: u64, value: &str) -> Outcome {
    let batch = batch(base, next, vec![put("k", value)]);
    engine.commit(PARTITION, batch).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_without_the_lock_waits_for_the_holder_and_is_stale_then() {
    let store = Store::new();
    let [holder, other] = two(&store).await;
    for round in 0..10 {
        let base = round * 2;
        assert!(matches!(
            commit(&other, base, base + 1, "other").await,
            Outcome::Done(_)
        ));
        let (head, lock) = lock(&holder).await;
        assert!(lock.is_some() && head == base + 1, "{lock:?} at {head}");
        // The other one knows the newest commit, so its commit would be done if it did not wait.
        let mut waits = Box::pin(commit(&other, base + 1, base + 3, "late"));
        assert!((&mut waits).now_or_never().is_none());
        let held = commit(&holder, base + 1, base + 2, "held").await;
        assert!(matches!(held, Outcome::Done(_)), "{held:?}");
        assert_eq!(waits.await, Outcome::Stale);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_holder_that_does_not_commit_loses_the_lock() {
    let store = Store::new();
    let [holder, other] = two(&store).await;
    let (_, dropped) = lock(&holder).await;
    drop(dropped.expect("nobody else has it"));
    assert!(matches!(commit(&other, 0, 1, "a").await, Outcome::Done(_)));
    // This one hangs: the server ends its transaction.
    let (_, hangs) = lock(&holder).await;
    assert!(hangs.is_some());
    let mut base = 1;
    while !matches!(commit(&other, base, base + 1, "b").await, Outcome::Done(_)) {
        base = lock(&other).await.0;
    }
    // What the holder commits later follows no record that it knew.
    let outcome = commit(&holder, 1, 9, "late").await;
    let outcome = match outcome {
        Outcome::Unknown(ticket) => holder.resolve(PARTITION, ticket).await.map(|_| Outcome::Stale).unwrap(),
        outcome => outcome,
    };
    assert_eq!(outcome, Outcome::Stale);
    let (_, ended) = lock(&other).await;
    drop((hangs, ended));
    let (head, _) = lock(&holder).await;
    assert_eq!(head, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn locks_leave_connections_for_other_work_and_joint_commits_do_not_wait_for_ones_own() {
    let store = Store::new();
    let [engine, _other] = two(&store).await;
    let partitions: Vec<_> = (20..40)
        .filter_map(|number| PartitionId::in_home(HomeId(20), number))
        .collect();
    let mut locks = Vec::new();
    for partition in &partitions {
        engine
            .create(*partition, Head::first(UnixMillis(1_700_000_000_000)))
            .await
            .unwrap();
        let (_, lock) = engine.read_and_lock(*partition, value()).await.unwrap();
        locks.extend(lock);
    }
    assert!(!locks.is_empty() && locks.len() < partitions.len(), "{}", locks.len());
    let joint = partitions.iter().map(|id| (*id, batch(0, 1, vec![put("k", "v")])));
    let joint = engine.commit_together(joint.collect()).await.unwrap();
    assert!(matches!(joint, JointOutcome::Done(_)), "{joint:?}");
    drop(locks);
    let missing = engine.read_and_lock(PartitionId(99), value()).await.map(|_| ());
    assert!(matches!(missing, Err(EngineError::NoPartition(_))), "{missing:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_writer_with_locks_gets_its_turns_beside_one_that_never_pauses() {
    let store = Store::new();
    let [steady, other] = two(&store).await;
    let is_over = AtomicBool::new(false);
    let without_locks = async {
        let mut base = 0;
        while !is_over.load(Ordering::SeqCst) {
            match commit(&steady, base, base + 1, "steady").await {
                Outcome::Done(head) => base = head.lsn.0,
                _ => base = steady.read(PARTITION, Default::default()).await.unwrap().head.lsn.0,
            }
        }
    };
    let with_locks = async {
        let mut done = 0;
        for _ in 0..50 {
            let (head, _lock) = lock(&other).await;
            done += u32::from(matches!(
                commit(&other, head, head + 1, "other").await,
                Outcome::Done(_)
            ));
        }
        is_over.store(true, Ordering::SeqCst);
        done
    };
    let ((), done) = tokio::join!(without_locks, with_locks);
    assert!(done >= 40, "{done} of 50");
}
