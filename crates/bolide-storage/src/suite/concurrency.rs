//! Claims about concurrent callers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bolide_model::Lsn;
use bytes::Bytes;

use super::test_engine::{PARTITION, key, put};
use super::{EngineFixture, TestEngine};
use crate::{Outcome, PartitionId, RESOLVABLE_COMMITS, ReadRequest, Scan, Space};

/// Commits of the busy partition.
const COMMITS: u64 = 400;
/// Keys each of them writes, in every space.
const KEYS: u8 = 20;

/// Whenever a read happens between commits, its gets, its pages and its head are of the same commit.
pub async fn read_shows_one_snapshot_of_a_busy_partition(fixture: &dyn EngineFixture) {
    let engine = Arc::new(TestEngine::with_partition(fixture).await);
    engine.commit_next(PARTITION, rows_of(Lsn(1)), vec![]).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let readers: Vec<_> = (0..3)
        .map(|_| tokio::spawn(watch(engine.clone(), is_over.clone())))
        .collect();
    for n in 1..COMMITS {
        assert_eq!(
            engine.commit_next(PARTITION, rows_of(Lsn(n + 1)), vec![]).await.lsn,
            Lsn(n + 1)
        );
    }
    is_over.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.expect("every read shows one moment");
    }
}

fn rows_of(lsn: Lsn) -> Vec<crate::Put> {
    let rows = |space| (0..KEYS).map(move |n| put(space, &[n], lsn.to_string()));
    Space::ALL.into_iter().flat_map(rows).collect()
}

async fn watch(engine: Arc<TestEngine>, is_over: Arc<AtomicBool>) {
    let mut newest = Lsn(0);
    while !is_over.load(Ordering::Relaxed) {
        let gets = Space::ALL.map(|space| key(space, &[KEYS - 1])).to_vec();
        let response = engine
            .read(
                PARTITION,
                ReadRequest {
                    gets,
                    scans: Space::ALL.map(Scan::whole).to_vec(),
                    ..ReadRequest::default()
                },
            )
            .await;
        let expected = Bytes::from(response.head.lsn.to_string());
        assert!(response.head.lsn >= newest, "reads go forward");
        assert!(
            response.gets.iter().all(|got| got.as_ref() == Some(&expected)),
            "{expected:?} {:?}",
            response.gets
        );
        for page in response.pages {
            assert_eq!(page.rows.len(), usize::from(KEYS));
            assert!(
                page.rows.iter().all(|(_, value)| *value == expected),
                "{expected:?} {:?}",
                page.rows
            );
        }
        newest = response.head.lsn;
    }
}

/// Writers that read, add one, and try again when stale, lose no increment. However long one of them is delayed, the others make no more commits than
/// the engine must be able to resolve.
pub async fn counters_lose_no_step_under_contention(fixture: &dyn EngineFixture) {
    const WRITERS: usize = 4;
    let engine = Arc::new(TestEngine::new(fixture));
    for partition in (0..8).map(PartitionId) {
        engine.create(partition).await;
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| tokio::spawn(count(engine.clone(), partition, RESOLVABLE_COMMITS / WRITERS)))
            .collect();
        for writer in writers {
            writer.await.expect("every step is done");
        }
        assert_eq!(
            engine.get(partition, key(Space::Meta, b"count")).await,
            Some(Bytes::from(RESOLVABLE_COMMITS.to_string()))
        );
        assert_eq!(engine.head(partition).await.lsn, Lsn(RESOLVABLE_COMMITS as u64));
    }
}

async fn count(engine: Arc<TestEngine>, partition: PartitionId, steps: usize) {
    let mut done = 0;
    while done < steps {
        let response = engine
            .read(partition, ReadRequest::of_keys(vec![key(Space::Meta, b"count")]))
            .await;
        let count = response.gets[0].as_deref().map_or(0, |text| {
            String::from_utf8_lossy(text).parse::<u64>().expect("a number")
        });
        let batch = engine.batch(
            response.head.lsn,
            vec![put(Space::Meta, b"count", (count + 1).to_string())],
            vec![],
        );
        match engine.commit(partition, batch).await {
            Ok(Outcome::Done(_)) => done += 1,
            Ok(Outcome::Stale) => tokio::task::yield_now().await,
            other => panic!("{other:?}"),
        }
    }
}

/// Concurrent commits to different partitions do not wait for each other or mix; each writer sees its own writes at once.
pub async fn partitions_commit_side_by_side(fixture: &dyn EngineFixture) {
    let engine = Arc::new(TestEngine::new(fixture));
    let write = |engine: Arc<TestEngine>, partition: PartitionId| async move {
        engine.create(partition).await;
        for n in 0..20u32 {
            let head = engine
                .commit_next(
                    partition,
                    vec![put(Space::Item, &n.to_be_bytes(), partition.0.to_string())],
                    vec![],
                )
                .await;
            assert_eq!(engine.head(partition).await, head);
            assert!(
                engine
                    .get(partition, key(Space::Item, &n.to_be_bytes()))
                    .await
                    .is_some()
            );
        }
    };
    let writers: Vec<_> = (100..116)
        .map(|n| tokio::spawn(write(engine.clone(), PartitionId(n))))
        .collect();
    for writer in writers {
        writer.await.expect("every commit is done");
    }
    for n in 100..116 {
        let rows = engine.scan(PartitionId(n), Scan::whole(Space::Item)).await.rows;
        assert_eq!(rows.len(), 20);
        assert!(rows.iter().all(|(_, value)| *value == n.to_string()));
    }
}
