//! Claims about the remains of deleted rows.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use super::run::NEWEST_TABLES;
use super::*;
use crate::LsmOptions;

const ROWS: u32 = 20_000;
/// A tenth of the rows is kept.
const KEPT: u32 = ROWS / 10;

fn store(dir: &std::path::Path) -> (Arc<Store>, Arc<Views>) {
    let store = Arc::new(Store::open(&dir.join("store"), &LsmOptions::default()).unwrap());
    let views = Arc::new(Views::default());
    views.publish(&store, []);
    (store, views)
}

/// A compactor whose clock is moved by hand.
fn compactor(views: &Arc<Views>) -> Compactor {
    Compactor::new(views.clone(), Monotonic::manual(), || u64::MAX)
}

/// Fills the memtable of the items, deletes all but [`KEPT`] of them, and returns a compactor for what is left.
fn compactor_of_deleted_rows(store: &Store, views: &Arc<Views>) -> Compactor {
    let space = store.space(Space::Item);
    (0..ROWS).for_each(|n| space.insert(key(n), [7; 200]).unwrap());
    (KEPT..ROWS).for_each(|n| space.remove(key(n)).unwrap());
    let mut compactor = compactor(views);
    compactor.start();
    compactor
}

/// Keys spread over the key space like hashes.
fn key(n: u32) -> [u8; 4] {
    n.wrapping_mul(0x9E37_79B9).to_be_bytes()
}

/// Checks what is due, and waits until it is done.
fn run(compactor: &mut Compactor, store: &Arc<Store>) {
    compactor.compact_if_due(store);
    compactor.join();
}

/// Earlier, 150 MB remained where 10 MB were live, and queries read all of it.
#[test]
fn nothing_is_left_of_deleted_rows() {
    let dir = tempfile::tempdir().unwrap();
    let (store, views) = store(dir.path());
    let space = store.space(Space::Item);
    (0..ROWS).for_each(|n| space.insert(key(n), [7; 200]).unwrap());
    space.rotate_memtable_and_wait().unwrap();
    let full = space.tree.disk_space();
    (KEPT..ROWS).for_each(|n| space.remove(key(n)).unwrap());
    views.publish(&store, []);

    let mut merging = compactor(&views);
    merging.start();
    run(&mut merging, &store);
    assert_eq!(space.approximate_len(), KEPT as usize, "rows that a scan goes through");
    let left = space.tree.disk_space();
    assert!(left * 9 < full, "{left} bytes of {full}");
    assert!((0..KEPT).all(|n| space.get(key(n)).unwrap().is_some()));
    assert!((KEPT..ROWS).all(|n| space.get(key(n)).unwrap().is_none()));

    // Merged tables are kept for readers of earlier snapshots; there are none.
    views.publish(&store, []);
    store.release_all_versions(views.oldest());
    let files = fs::read_dir(space.path().join("tables")).unwrap().count();
    assert_eq!(files, space.table_count());
}

#[test]
fn a_few_deletes_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (store, views) = store(dir.path());
    let space = store.space(Space::Item);
    (0..ROWS).for_each(|n| space.insert(key(n), [7; 200]).unwrap());
    let deletes = ROWS / 10;
    (0..deletes).for_each(|n| space.remove(key(n)).unwrap());
    let mut merging = compactor(&views);
    merging.note_deletes(Space::Item, deletes as usize);
    merging.compact_if_due(&store);
    assert!(merging.running.is_none());
    assert_eq!(space.table_count(), 0);
}

#[test]
fn a_key_space_rests_after_a_compaction_as_long_as_there_are_requests() {
    let dir = tempfile::tempdir().unwrap();
    let (store, views) = store(dir.path());
    let mut merging = compactor_of_deleted_rows(&store, &views);
    let clock = merging.monotonic.clone();
    merging.spaces[Space::Item as usize].rests_until = Some(clock.now() + MAX_REST);
    for second in 0..3 {
        views.publish(&store, []);
        merging.compact_if_due(&store);
        assert!(merging.running.is_none(), "second {second}");
        assert_eq!(merging.next_check_at(), Some(clock.now() + REST_CHECK_INTERVAL));
        clock.advance(REST_CHECK_INTERVAL);
    }
    // Nobody has asked for anything in the last second.
    run(&mut merging, &store);
    assert_eq!(store.space(Space::Item).approximate_len(), KEPT as usize);
}

#[test]
fn there_is_a_load_for_a_while_after_a_request() {
    let dir = tempfile::tempdir().unwrap();
    let (store, views) = store(dir.path());
    let merging = compactor(&views);
    let stays = Duration::from_millis(250);
    // What opened the store.
    merging.pace.has_foreground_load();
    merging.monotonic.advance(stays);
    assert!(!merging.pace.has_foreground_load(), "nobody has asked for anything");
    views.publish(&store, []);
    for passed in [Duration::ZERO, stays / 2, stays / 2 - Duration::from_millis(1)] {
        merging.monotonic.advance(passed);
        assert!(
            merging.pace.has_foreground_load(),
            "a merge looks more often than users ask"
        );
    }
    merging.monotonic.advance(Duration::from_millis(1));
    assert!(!merging.pace.has_foreground_load());
}

#[test]
fn a_key_space_that_is_nearly_dead_does_not_rest() {
    for (space, tombstones, live, is_nearly_dead) in [
        (Space::Item, 25_000, 6_250, true),
        (Space::Item, 25_000, 6_300, false),
        (Space::Item, 24_999, 0, false),
        (Space::Item, 100_000, 1_000_000, false),
        (Space::Expiry, 100_000, 1_000_000, true),
    ] {
        let found = super::is_nearly_dead(space, tombstones, 2 * tombstones + live);
        assert_eq!(found, is_nearly_dead, "{space:?}: {tombstones} beside {live}");
    }
}

#[test]
fn a_rest_ends_after_its_time_although_there_are_requests() {
    let dir = tempfile::tempdir().unwrap();
    let (store, views) = store(dir.path());
    let mut merging = compactor_of_deleted_rows(&store, &views);
    merging.spaces[Space::Item as usize].rests_until = Some(merging.monotonic.now() + MAX_REST);
    merging.monotonic.advance(MAX_REST);
    views.publish(&store, []);
    run(&mut merging, &store);
    assert_eq!(store.space(Space::Item).approximate_len(), KEPT as usize);
}

#[test]
fn beside_requests_a_compaction_waits_for_more_deletes_but_not_for_ever() {
    const DELETES: u32 = ROWS * 18 / 100;
    let dir = tempfile::tempdir().unwrap();
    let (store, views) = store(dir.path());
    let space = store.space(Space::Item);
    (0..ROWS).for_each(|n| space.insert(key(n), [7; 200]).unwrap());
    (0..DELETES).for_each(|n| space.remove(key(n)).unwrap());
    let mut merging = compactor(&views);
    merging.start();
    views.publish(&store, []);
    merging.compact_if_due(&store);
    assert!(merging.running.is_none(), "it waits");
    merging.monotonic.advance(MAX_REST);
    views.publish(&store, []);
    run(&mut merging, &store);
    assert_eq!(space.approximate_len(), (ROWS - DELETES) as usize);
}

/// A reader that began before the compaction must still see its rows.
#[test]
fn rows_that_a_reader_sees_outlive_their_compaction() {
    let dir = tempfile::tempdir().unwrap();
    let (store, views) = store(dir.path());
    let space = store.space(Space::Log);
    (0..ROWS).for_each(|n| space.insert(key(n), [7; 20]).unwrap());
    let before = store.db.snapshot();
    views.publish(&store, []);
    let held = views.newest();
    (0..ROWS).for_each(|n| space.remove(key(n)).unwrap());
    views.publish(&store, []);
    let mut merging = compactor(&views);
    merging.start();
    run(&mut merging, &store);
    store.release_versions(views.oldest());
    let seen = fjall::Readable::iter(&before, space).count();
    assert_eq!(seen, ROWS as usize);
    drop((before, held));

    views.publish(&store, []);
    store.release_all_versions(views.oldest());
    let now = store.db.snapshot();
    assert_eq!(fjall::Readable::iter(&now, space).count(), 0);
}

#[test]
fn a_compaction_ends_when_the_store_closes() {
    let dir = tempfile::tempdir().unwrap();
    let (store, views) = store(dir.path());
    let mut merging = compactor_of_deleted_rows(&store, &views);
    merging.compact_if_due(&store);
    merging.finish();
    assert!(!merging.is_running());
    assert_eq!(
        fjall::Readable::iter(&store.db.snapshot(), store.space(Space::Item)).count(),
        KEPT as usize
    );
    views.withdraw();
    drop(store);
    // It can be opened again, whatever files were left.
    let store = Store::open(&dir.path().join("store"), &LsmOptions::default()).unwrap();
    let space = store.space(Space::Item);
    assert_eq!(
        fjall::Readable::iter(&store.db.snapshot(), space).count(),
        KEPT as usize
    );
}

/// Rows are deleted at the front of the queue, so the share of dead rows does not matter.
#[test]
fn the_front_of_the_expiry_queue_is_cleared_however_long_it_is() {
    let many = 1_000_000_000;
    assert!(is_worth_compacting(Space::Expiry, QUEUE_TOMBSTONES, many));
    assert!(!is_worth_compacting(Space::Item, QUEUE_TOMBSTONES, many));

    let dir = tempfile::tempdir().unwrap();
    let (store, views) = store(dir.path());
    let space = store.space(Space::Expiry);
    let cleared = ROWS / 20;
    (0..ROWS).for_each(|n| space.insert(n.to_be_bytes(), []).unwrap());
    space.rotate_memtable_and_wait().unwrap();
    (0..cleared).for_each(|n| space.remove(n.to_be_bytes()).unwrap());
    views.publish(&store, []);
    let mut merging = compactor(&views);
    merging.start();
    merging.compact_if_due(&store);
    assert!(merging.running.is_none(), "there are few of them");
    merging.note_deletes(Space::Expiry, QUEUE_TOMBSTONES as usize);
    run(&mut merging, &store);
    assert_eq!(space.approximate_len(), (ROWS - cleared) as usize);
}

/// Rows are written and deleted while tables are merged; a read returns what was written last.
#[test]
fn merges_change_nothing_that_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let (store, views) = store(dir.path());
    let space = store.space(Space::Item);
    let mut merging = compactor(&views);
    merging.start();
    let mut model = std::collections::BTreeMap::new();
    let (mut random, mut due) = (7u64, 0);
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    for round in 0..25u32 {
        // Ranges of keys that are written, and ranges that are deleted.
        let (from, puts) = (next(40_000), next(3) > 0);
        for n in 0..3_000 {
            let key = key(u32::try_from((from + n) % 40_000).unwrap());
            if puts {
                let value = [&round.to_be_bytes()[..], &[7; 100]].concat();
                space.insert(key, value.clone()).unwrap();
                model.insert(key, value);
            } else {
                space.remove(key).unwrap();
                model.remove(&key);
                merging.note_deletes(Space::Item, 1);
            }
        }
        if next(2) == 0 {
            space.rotate_memtable().unwrap();
        }
        views.publish(&store, []);
        merging.compact_if_due(&store);
        due += u32::from(merging.running.is_some());
        if next(4) == 0 {
            merging.finish();
        }
        store.release_versions(views.oldest());
        let read = fjall::Readable::iter(&store.db.snapshot(), space).map(|row| row.into_inner().unwrap());
        let read: Vec<_> = read.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        let want: Vec<_> = model.iter().map(|(key, value)| (key.to_vec(), value.clone())).collect();
        assert!(read == want, "round {round}: {} rows of {}", read.len(), want.len());
    }
    merging.finish();
    assert!(due > 0, "nothing was ever merged");
}

/// Earlier, two thirds of a store remained: the table with the tombstones spanned beyond the ends of those with the rows, and the store does not move
/// such a table.
#[test]
fn a_table_that_reaches_beyond_those_below_does_not_stay() {
    let dir = tempfile::tempdir().unwrap();
    let (store, views) = store(dir.path());
    let space = store.space(Space::Item);
    let rows = (0..ROWS).map(|n| (n + 1).to_be_bytes());
    rows.clone().for_each(|key| space.insert(key, [7; 200]).unwrap());
    space.rotate_memtable_and_wait().unwrap();
    rows.for_each(|key| space.remove(key).unwrap());
    let ends = [0, u32::MAX].map(u32::to_be_bytes);
    ends.iter().for_each(|key| space.insert(key, []).unwrap());
    space.rotate_memtable_and_wait().unwrap();
    views.publish(&store, []);
    // As levelling leaves it.
    let one_table = || Leveled::default().with_l0_threshold(1).with_table_target_size(1 << 20);
    while store.space(Space::Item).tree.level_table_count(5) == Some(0) {
        space.tree.compact(Arc::new(one_table()), 0).unwrap();
    }
    let mut merging = compactor(&views);
    merging.start();
    run(&mut merging, &store);
    assert_eq!(space.approximate_len(), ends.len());
}

/// A store whose only table below the newest ones is damaged in its last block of rows, so that every merge fails.
fn damaged(dir: &std::path::Path) -> (Arc<Store>, Arc<Views>) {
    let (store, views) = store(dir);
    let space = store.space(Space::Item);
    (0..ROWS).for_each(|n| space.insert(key(n), [7; 200]).unwrap());
    space.rotate_memtable_and_wait().unwrap();
    let table = files(space).into_iter().next().unwrap();
    let mut bytes = fs::read(&table).unwrap();
    // Rows come first, in blocks without compression.
    let last_row = bytes.windows(100).rposition(|row| row == [7; 100]).unwrap();
    bytes[last_row] = 0;
    fs::write(&table, bytes).unwrap();
    (store, views)
}

fn files(space: &fjall::Keyspace) -> HashSet<PathBuf> {
    let entries = fs::read_dir(space.path().join("tables")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// New tables that overlap each other.
fn add_tables(store: &Store, space: Space, tables: usize) {
    let space = store.space(space);
    let before = space.l0_table_count();
    while space.l0_table_count() < before + tables {
        for end in [0, u32::MAX] {
            space.insert(end.to_be_bytes(), [8; 200]).unwrap();
        }
        space.rotate_memtable_and_wait().unwrap();
    }
}

/// Earlier, every merge that met a damaged table left its output behind, four times a second, and once there were thirty new tables writes waited forever.
#[test]
fn a_merge_that_fails_leaves_nothing_behind_and_writes_are_refused_before_they_wait() {
    let dir = tempfile::tempdir().unwrap();
    let (store, views) = damaged(dir.path());
    let space = store.space(Space::Item);
    add_tables(&store, Space::Item, usize::from(NEWEST_TABLES));
    add_tables(&store, Space::Log, usize::from(NEWEST_TABLES));
    let before = files(space);
    let mut merging = compactor(&views);
    merging.start();
    run(&mut merging, &store);
    assert_eq!(files(space), before);
    let failed = merging.failed[Space::Item as usize]
        .as_ref()
        .expect("the table is damaged");
    assert!(failed.reason.contains("cannot be merged"), "{failed:?}");
    assert!(!is_full(&store, Space::Log), "the others are merged all the same");

    // It is retried, but not at once.
    assert!(merging.blocked_reason(&store).is_none());
    merging.note_write();
    merging.compact_if_due(&store);
    assert!(merging.running.is_none());
    let at = merging.next_check_at().expect("it is tried again");
    assert_eq!(at, merging.monotonic.now() + RETRY_INTERVAL);
    add_tables(&store, Space::Log, MAX_NEW_TABLES);
    assert!(merging.blocked_reason(&store).is_none(), "those can be merged");
    run(&mut merging, &store);
    assert!(!is_full(&store, Space::Log));
    add_tables(&store, Space::Item, MAX_NEW_TABLES);
    assert!(merging.blocked_reason(&store).is_some());
    merging.monotonic.advance(RETRY_INTERVAL);
    merging.compact_if_due(&store);
    assert!(merging.running.is_some());
    merging.finish();
}

/// A merge needs space for its output. Earlier, that output stayed when the space ran out, and no write was accepted any more.
#[test]
fn a_merge_without_room_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let (store, views) = store(dir.path());
    let space = store.space(Space::Item);
    while !is_full(&store, Space::Item) {
        (0..ROWS / 4).for_each(|n| space.insert(key(n), [7; 200]).unwrap());
        space.rotate_memtable_and_wait().unwrap();
    }
    let before = files(space);
    let has_room = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let probe = has_room.clone();
    let spare_bytes = move || {
        if probe.load(std::sync::atomic::Ordering::Relaxed) {
            u64::MAX
        } else {
            0
        }
    };
    let mut merging = Compactor::new(views.clone(), Monotonic::manual(), spare_bytes);
    merging.start();
    run(&mut merging, &store);
    assert_eq!(files(space), before);
    let failed = merging.failed[Space::Item as usize].as_ref().expect("there is no room");
    assert!(failed.reason.contains("too little space"), "{failed:?}");

    has_room.store(true, std::sync::atomic::Ordering::Relaxed);
    merging.monotonic.advance(RETRY_INTERVAL);
    run(&mut merging, &store);
    assert!(merging.failed.iter().all(Option::is_none) && !is_full(&store, Space::Item));
}

/// Earlier, writes waited until gigabytes were merged.
#[test]
fn a_merge_of_a_whole_key_space_gives_way_to_tables_that_writes_would_wait_for() {
    let dir = tempfile::tempdir().unwrap();
    let (store, views) = store(dir.path());
    let space = store.space(Space::Item);
    (0..ROWS).for_each(|n| space.insert(key(n), [7; 200]).unwrap());
    space.rotate_memtable_and_wait().unwrap();
    (0..ROWS / 2).for_each(|n| space.remove(key(n)).unwrap());
    space.rotate_memtable_and_wait().unwrap();
    let before = files(space);
    add_tables(&store, Space::Log, 14);
    views.publish(&store, []);
    let pace = compactor(&views).pace;
    let mut run = Run::over(&store, &pace, [false; Space::ALL.len()]);
    let _paced = pace.enter(&store);
    assert!(!run.merge_whole(Space::Item).unwrap(), "it is put off");
    assert_eq!(files(space), before);
    run.level();
    assert!(run.merge_whole(Space::Item).unwrap());
    assert_eq!(space.approximate_len(), ROWS as usize / 2);
}
