//! Claims about a disk that fills up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bolide_storage::{Engine, Outcome, Space};
use bolide_storage_lsm::{FreeSpace, LsmOptions};

use crate::support::{PARTITION, batch, commit_items, create, key, put, read_all, try_open};

const RESERVE: u64 = 1 << 20;

#[tokio::test]
async fn writes_are_refused_with_the_reason_until_there_is_space_again() {
    let dir = tempfile::tempdir().unwrap();
    let free = Arc::new(AtomicU64::new(u64::MAX));
    let probe = free.clone();
    let options = LsmOptions {
        reserve_bytes: RESERVE,
        free_space: FreeSpace::by(move |_| Ok(probe.load(Ordering::Relaxed))),
        ..LsmOptions::default()
    };
    let engine = try_open(dir.path(), options).unwrap();
    create(&engine, PARTITION).await;
    commit_items(&engine, 0, 10).await;

    free.store(RESERVE - 1, Ordering::Relaxed);
    let refused = engine
        .commit(PARTITION, batch(10, vec![put(Space::Item, b"more", b"v")], vec![]))
        .await;
    assert!(
        matches!(&refused, Ok(Outcome::Refused(why)) if why.contains("the disk is full")),
        "{refused:?}"
    );
    assert_eq!(read_all(&engine, PARTITION).await.unwrap().head.lsn.0, 10);

    // Half of the reserve is for commits that free space.
    let deletes = vec![key(Space::Item, &0u64.to_be_bytes())];
    assert!(matches!(
        engine.commit(PARTITION, batch(10, vec![], deletes.clone())).await,
        Ok(Outcome::Done(_))
    ));
    free.store(RESERVE / 2 - 1, Ordering::Relaxed);
    assert!(matches!(
        engine.commit(PARTITION, batch(11, vec![], deletes)).await,
        Ok(Outcome::Refused(_))
    ));

    free.store(u64::MAX, Ordering::Relaxed);
    commit_items(&engine, 11, 1).await;
}
