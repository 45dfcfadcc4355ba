//! Claims about partitions as a whole.

use bolide_model::{Lsn, UnixMillis};

use super::test_engine::{PARTITION, key, put};
use super::{EngineFixture, TestEngine};
use crate::{Edition, EngineError, Head, PartitionId, ReadRequest, Scan, Space};

/// Every operation on a partition that was never created fails and names it.
pub async fn missing_partition_is_named(fixture: &dyn EngineFixture) {
    let engine = TestEngine::new(fixture);
    let missing = EngineError::NoPartition(PARTITION);
    assert_eq!(
        engine.try_read(PARTITION, ReadRequest::default()).await.map(drop),
        Err(missing.clone())
    );
    let batch = engine.batch(Lsn(0), vec![], vec![]);
    let ticket = batch.ticket();
    assert_eq!(engine.commit(PARTITION, batch).await, Err(missing.clone()));
    assert_eq!(engine.resolve(PARTITION, ticket).await, Err(missing));
}

/// A new partition is empty, at the head it was created with.
pub async fn new_partition_is_empty_and_at_its_first_head(fixture: &dyn EngineFixture) {
    let engine = TestEngine::new(fixture);
    let first = Head {
        lsn: Lsn(41),
        stamp: UnixMillis(1_600_000_000_000),
        edition: Edition(3),
    };
    engine.create_at(PARTITION, first).await;
    let request = ReadRequest {
        gets: vec![key(Space::Item, b"a")],
        scans: Space::ALL.map(Scan::whole).to_vec(),
        ..ReadRequest::default()
    };
    let response = engine.read(PARTITION, request).await;
    assert_eq!(response.head, first);
    assert_eq!(response.gets, [None]);
    assert!(response.pages.iter().all(|page| page.rows.is_empty() && !page.more));
}

/// Creating an existing partition changes nothing; removing a missing one is no error.
pub async fn create_and_remove_may_be_repeated(fixture: &dyn EngineFixture) {
    let engine = TestEngine::with_partition(fixture).await;
    let head = engine
        .commit_next(PARTITION, vec![put(Space::Item, b"a", "1")], vec![])
        .await;
    engine.create(PARTITION).await;
    assert_eq!(engine.head(PARTITION).await, head);
    assert_eq!(engine.keys(PARTITION, Space::Item).await, ["a"]);
    engine.remove(PARTITION).await;
    engine.remove(PARTITION).await;
    assert_eq!(
        engine.try_read(PARTITION, ReadRequest::default()).await.map(drop),
        Err(EngineError::NoPartition(PARTITION))
    );
}

/// A removed partition is gone at once; other partitions keep their keys.
pub async fn removed_partition_takes_its_keys_along_and_no_others(fixture: &dyn EngineFixture) {
    let engine = TestEngine::new(fixture);
    let [before, gone, after] = [8, 9, 10].map(PartitionId);
    for partition in [before, gone, after] {
        engine.create(partition).await;
        let rows = (0..600u32).map(|n| put(Space::Item, &n.to_be_bytes(), "v")).collect();
        engine.commit_next(partition, rows, vec![]).await;
    }
    engine.remove(gone).await;
    assert_eq!(
        engine.try_read(gone, ReadRequest::default()).await.map(drop),
        Err(EngineError::NoPartition(gone))
    );
    assert_eq!(engine.keys(before, Space::Item).await.len(), 600);
    assert_eq!(engine.keys(after, Space::Item).await.len(), 600);
}
