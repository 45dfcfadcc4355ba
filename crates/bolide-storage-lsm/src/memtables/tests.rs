use super::*;

fn memtable() -> Memtable {
    Arc::new(0)
}

#[test]
fn a_memtable_is_freed_when_nobody_else_has_it() {
    let (used, unused) = (memtable(), memtable());
    let memtables = Memtables(Mutex::new(vec![used.clone(), unused]));
    assert_eq!(memtables.take_unused().len(), 1);
    assert!(memtables.take_unused().is_empty(), "the other one is in use");
    drop(used);
    assert_eq!(memtables.take_unused().len(), 1);
}

#[test]
fn each_active_memtable_is_noted_once_and_outlives_its_flush() {
    let dir = tempfile::tempdir().unwrap();
    let db = fjall::Database::builder(dir.path()).open().unwrap();
    let spaces = [db.keyspace("a", Default::default).unwrap()];
    let memtables = Memtables::default();
    spaces[0].insert("key", "value").unwrap();
    memtables.note_active(&spaces);
    memtables.note_active(&spaces);
    assert!(memtables.take_unused().is_empty(), "it is written to");
    spaces[0].rotate_memtable_and_wait().unwrap();
    memtables.note_active(&spaces);
    let release = || {
        spaces[0]
            .tree
            .get_version_history_lock()
            .maintenance(spaces[0].path(), u64::MAX)
    };
    release().unwrap();
    // The thread that flushed it may still have a reference for its last instructions.
    let mut unused = memtables.take_unused();
    for _ in 0..10_000 {
        if !unused.is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
        unused = memtables.take_unused();
    }
    assert_eq!(unused.len(), 1, "the flushed one, but not the active one");
}
