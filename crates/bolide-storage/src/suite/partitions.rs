//! Claims about partitions as a whole.

use bolide_model::{Lsn, UnixMillis};

use super::rig::{PARTITION, key, put, whole};
use super::{Rig, Stage};
use crate::{Edition, EngineError, Head, PartitionId, ReadRequest, Space};

/// Nothing can be done with a partition that was never created.
pub async fn missing_partition_is_named(stage: &dyn Stage) {
    let rig = Rig::new(stage);
    let missing = EngineError::NoPartition(PARTITION);
    assert_eq!(
        rig.try_read(PARTITION, ReadRequest::default()).await.map(drop),
        Err(missing.clone())
    );
    let batch = rig.batch(Lsn(0), vec![], vec![]);
    let ticket = batch.ticket();
    assert_eq!(rig.commit(PARTITION, batch).await, Err(missing.clone()));
    assert_eq!(rig.resolve(PARTITION, ticket).await, Err(missing));
}

/// A partition begins empty, at the head it was given.
pub async fn new_partition_is_empty_and_at_its_first_head(stage: &dyn Stage) {
    let rig = Rig::new(stage);
    let first = Head {
        lsn: Lsn(41),
        stamp: UnixMillis(1_600_000_000_000),
        edition: Edition(3),
    };
    rig.create_at(PARTITION, first).await;
    let request = ReadRequest {
        gets: vec![key(Space::Item, b"a")],
        scans: Space::ALL.map(whole).to_vec(),
        ..ReadRequest::default()
    };
    let response = rig.read(PARTITION, request).await;
    assert_eq!(response.head, first);
    assert_eq!(response.gets, [None]);
    assert!(response.pages.iter().all(|page| page.rows.is_empty() && !page.more));
}

/// Creating again changes nothing; removing what is not there is no error.
pub async fn create_and_remove_may_be_repeated(stage: &dyn Stage) {
    let rig = Rig::with_partition(stage).await;
    let head = rig
        .commit_next(PARTITION, vec![put(Space::Item, b"a", "1")], vec![])
        .await;
    rig.create(PARTITION).await;
    assert_eq!(rig.head(PARTITION).await, head);
    assert_eq!(rig.keys(PARTITION, Space::Item).await, ["a"]);
    rig.remove(PARTITION).await;
    rig.remove(PARTITION).await;
    assert_eq!(
        rig.try_read(PARTITION, ReadRequest::default()).await.map(drop),
        Err(EngineError::NoPartition(PARTITION))
    );
}

/// A removed partition is gone at once, and its neighbours stay whole.
pub async fn removed_partition_takes_its_keys_along_and_no_others(stage: &dyn Stage) {
    let rig = Rig::new(stage);
    let [before, gone, after] = [8, 9, 10].map(PartitionId);
    for partition in [before, gone, after] {
        rig.create(partition).await;
        let rows = (0..600u32).map(|n| put(Space::Item, &n.to_be_bytes(), "v")).collect();
        rig.commit_next(partition, rows, vec![]).await;
    }
    rig.remove(gone).await;
    assert_eq!(
        rig.try_read(gone, ReadRequest::default()).await.map(drop),
        Err(EngineError::NoPartition(gone))
    );
    assert_eq!(rig.keys(before, Space::Item).await.len(), 600);
    assert_eq!(rig.keys(after, Space::Item).await.len(), 600);
}
