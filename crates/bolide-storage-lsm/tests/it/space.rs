//! The space of deleted rows is freed without a request.

use std::path::Path;
use std::time::Duration;

use bolide_model::time::Monotonic;
use bolide_storage::{Engine, Outcome, Space};
use bolide_storage_lsm::LsmEngine;

use crate::support::{PARTITION, batch, create, key, open, open_with_manual_clock, put, read_all};

const ROWS: u32 = 20_000;
const ROWS_OF_COMMIT: u32 = 500;

/// Keys spread over the key space like hashes.
fn name(n: u32) -> [u8; 4] {
    n.wrapping_mul(0x9E37_79B9).to_be_bytes()
}

async fn commit(engine: &LsmEngine, base: u64, n: u32, is_put: bool) {
    let rows = n..n + ROWS_OF_COMMIT;
    let changes = if is_put {
        let puts = rows.map(|n| put(Space::Item, &name(n), &[7; 1024]));
        batch(base, puts.collect(), vec![])
    } else {
        batch(base, vec![], rows.map(|n| key(Space::Item, &name(n))).collect())
    };
    let outcome = engine.commit(PARTITION, changes).await;
    assert!(matches!(outcome, Ok(Outcome::Done(_))), "{outcome:?}");
}

/// Bytes of all tables. Journals have a fixed size, whatever is stored.
fn table_bytes(dir: &Path) -> u64 {
    let files = |path: &Path| std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    let spaces = files(&dir.join("store").join("keyspaces"));
    let tables = spaces.filter_map(|space| std::fs::read_dir(space.path().join("tables")).ok());
    let sizes = tables
        .flatten()
        .filter_map(|table| Some(table.ok()?.metadata().ok()?.len()));
    sizes.sum()
}

/// Makes maintenance due, step by step, until `is_done`. The store's threads take the time they need.
async fn wait_until(engine: &LsmEngine, monotonic: &Monotonic, mut is_done: impl FnMut() -> bool) {
    while !is_done() {
        monotonic.advance(Duration::from_millis(100));
        // Any job makes the committer check what is due.
        create(engine, PARTITION).await;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Earlier, 150 MB remained where 10 MB were live, a minute after the purge and after a restart.
#[tokio::test]
async fn after_a_purge_only_live_rows_take_disk_space() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, monotonic) = open_with_manual_clock(dir.path());
    create(&engine, PARTITION).await;
    let (kept, mut base) = (ROWS / 10, 0);
    let next = |n: &mut u64| {
        *n += 1;
        *n - 1
    };
    for n in (0..ROWS).step_by(ROWS_OF_COMMIT as usize) {
        commit(&engine, next(&mut base), n, true).await;
    }
    let loaded = u64::from(ROWS) * 1024;
    wait_until(&engine, &monotonic, || table_bytes(dir.path()) > loaded / 2).await;
    for n in (kept..ROWS).step_by(ROWS_OF_COMMIT as usize) {
        commit(&engine, next(&mut base), n, false).await;
    }
    let live = u64::from(kept) * 1024;
    wait_until(&engine, &monotonic, || table_bytes(dir.path()) < 2 * live).await;
    let response = read_all(&engine, PARTITION).await.unwrap();
    assert_eq!(response.pages[Space::Item as usize].rows.len(), kept as usize);
    drop(engine);
    let engine = open(dir.path());
    let response = read_all(&engine, PARTITION).await.unwrap();
    assert_eq!(response.pages[Space::Item as usize].rows.len(), kept as usize);
}
