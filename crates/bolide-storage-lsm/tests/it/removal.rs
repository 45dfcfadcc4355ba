//! Removed partitions leave nothing on the disk.

use std::time::Duration;

use bolide_storage::{Engine, Head, Outcome, Space};

use crate::support::{PARTITION, batch, create, open_with_manual_clock, put, read_all};

#[tokio::test]
async fn number_of_a_removed_partition_is_free_once_its_rows_are_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, _) = open_with_manual_clock(dir.path());
    create(&engine, PARTITION).await;
    let rows = (0..2000u32).map(|n| put(Space::Item, &n.to_be_bytes(), b"v")).collect();
    assert!(matches!(
        engine.commit(PARTITION, batch(0, rows, vec![])).await,
        Ok(Outcome::Done(_))
    ));
    engine.remove(PARTITION).await.unwrap();
    let first = Head::first(engine.time().hi);
    assert!(
        engine.create(PARTITION, first).await.is_err(),
        "rows of the old partition are still there"
    );
    // The deletion continues after a restart, and ends.
    drop(engine);
    let (engine, monotonic) = open_with_manual_clock(dir.path());
    let mut steps = 0;
    while engine.create(PARTITION, first).await.is_err() {
        monotonic.advance(Duration::from_millis(5));
        steps += 1;
        assert!(steps < 100, "the removal has no end");
    }
    assert!(
        read_all(&engine, PARTITION)
            .await
            .unwrap()
            .pages
            .iter()
            .all(|page| page.rows.is_empty())
    );
}
