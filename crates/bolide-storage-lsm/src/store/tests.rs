//! Claims about memtables.

use super::*;

#[test]
fn memtables_are_written_out_once_they_are_large() {
    const ROW_BYTES: usize = 1 << 20;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("store"), &LsmOptions::default()).unwrap();
    let space = store.space(Space::Item);
    space.insert([1], vec![0; ROW_BYTES]).unwrap();
    assert!(!store.write_out_above(2 * ROW_BYTES as u64).unwrap());
    assert_eq!(space.table_count(), 0);
    assert!(store.write_out_above(ROW_BYTES as u64 / 2).unwrap());
    let monotonic = Monotonic::manual();
    assert!(
        store
            .write_out_all(&monotonic, monotonic.now() + Duration::from_secs(1))
            .unwrap()
    );
    assert_eq!(space.table_count(), 1);
    assert_eq!(space.get([1]).unwrap().map(|row| row.len()), Some(ROW_BYTES));
}
