use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fjall::Database;

use super::*;

/// A key space with two tables that overlap.
fn key_space_of_two_tables(dir: &Path) -> (Database, [Keyspace; 1]) {
    let db = Database::builder(dir).open().unwrap();
    let space = db.keyspace("a", Default::default).unwrap();
    for value in ["first", "second"] {
        space.insert("key", value).unwrap();
        space.rotate_memtable_and_wait().unwrap();
    }
    (db, [space])
}

/// Merges all tables; the store forgets no version.
fn merge(space: &Keyspace) {
    space.tree.major_compact(u64::MAX, 0).unwrap();
}

fn names(dir: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(dir).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn tables(space: &Keyspace) -> BTreeSet<String> {
    names(&space.path().join("tables"))
}

/// The files of versions.
fn version_files(space: &Keyspace) -> BTreeSet<String> {
    let mut files = names(space.path());
    files.retain(|name| name.starts_with('v'));
    files
}

fn current_file(space: &Keyspace) -> String {
    format!("v{}", space.tree.current_version().id())
}

/// Looks until nothing is left, and returns how many looks that took.
fn release_all(versions: &Versions, spaces: &[Keyspace], oldest: SeqNo) -> usize {
    (1..)
        .find(|_| {
            let is_left = versions.release(spaces, oldest);
            versions.wait();
            !is_left
        })
        .unwrap()
}

#[test]
fn merged_tables_outlive_the_versions_that_the_store_forgets() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, spaces) = key_space_of_two_tables(dir.path());
    let space = &spaces[0];
    let versions = Versions::default();
    // Without readers, the store would delete the tables itself.
    assert!(versions.release(&spaces, 0), "there are older versions");
    versions.wait();
    let before = tables(space);
    merge(space);
    let forgotten = space
        .tree
        .get_version_history_lock()
        .maintenance(space.path(), u64::MAX);
    forgotten.unwrap();
    assert!(tables(space).is_superset(&before), "only the thread deletes them");

    assert!(release_all(&versions, &spaces, u64::MAX) > 1);
    assert!(tables(space).is_disjoint(&before));
    assert_eq!(tables(space).len(), space.table_count());
    assert_eq!(space.get("key").unwrap().as_deref(), Some(&b"second"[..]));
}

#[test]
fn files_of_versions_are_gone_once_the_store_has_forgotten_them() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, spaces) = key_space_of_two_tables(dir.path());
    let versions = Versions::default();
    versions.release(&spaces, 0);
    merge(&spaces[0]);
    assert!(version_files(&spaces[0]).len() > 1);
    release_all(&versions, &spaces, u64::MAX);
    assert_eq!(version_files(&spaces[0]), BTreeSet::from([current_file(&spaces[0])]));
}

#[test]
fn versions_are_deleted_under_a_stream_of_new_ones_too() {
    let dir = tempfile::tempdir().unwrap();
    let (_db, spaces) = key_space_of_two_tables(dir.path());
    let versions = Versions::default();
    for round in 0..20 {
        spaces[0].insert("key", format!("{round}")).unwrap();
        spaces[0].rotate_memtable_and_wait().unwrap();
        versions.release(&spaces, u64::MAX);
        versions.wait();
        // The store's own thread may make some more meanwhile.
        assert!(spaces[0].tree.version_free_list_len() <= 4, "round {round}");
        assert!(versions.0.lock().spaces[0].0.len() <= 4, "round {round}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn few_files_are_open_however_long_a_reader_reads() {
    let dir = tempfile::tempdir().unwrap();
    let (db, spaces) = key_space_of_two_tables(dir.path());
    let space = &spaces[0];
    let versions = Versions::default();
    let reader = db.snapshot();
    for round in 0..3 * OPEN_FILES {
        space.insert("key", format!("{round}")).unwrap();
        space.rotate_memtable_and_wait().unwrap();
        versions.note_current(Space::Item, space);
    }
    let open = open_files(space.path());
    assert_eq!(open.len(), OPEN_FILES, "{open:?}");
    drop(reader);
    release_all(&versions, &spaces, u64::MAX);
    // That of the current version, if the store's own thread made it while the others were released.
    let open = open_files(space.path());
    assert!(open.len() <= 1, "{open:?}");
}

/// The files of versions that this process has open, whether or not they have been deleted.
#[cfg(target_os = "linux")]
fn open_files(folder: &Path) -> Vec<PathBuf> {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap();
    let files = descriptors.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    files.filter(|file| file.parent() == Some(folder)).collect()
}

#[test]
fn a_reader_keeps_the_tables_of_its_version() {
    let dir = tempfile::tempdir().unwrap();
    let (db, spaces) = key_space_of_two_tables(dir.path());
    let space = &spaces[0];
    let versions = Versions::default();
    let reader = db.snapshot();
    versions.release(&spaces, 0);
    let before = tables(space);
    space.insert("key", "third").unwrap();
    space.rotate_memtable_and_wait().unwrap();
    space.tree.major_compact(u64::MAX, reader.seqno()).unwrap();
    for _ in 0..10 {
        assert!(versions.release(&spaces, reader.seqno()), "it still reads");
        versions.wait();
    }
    assert!(tables(space).is_superset(&before));
    let read = fjall::Readable::get(&reader, space, "key").unwrap();
    assert_eq!(read.as_deref(), Some(&b"second"[..]));
    drop(reader);
    release_all(&versions, &spaces, u64::MAX);
    assert_eq!(tables(space).len(), space.table_count());
}

/// Another store may be opened in the same place.
#[test]
fn nothing_is_deleted_after_the_versions_are_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let (db, spaces) = key_space_of_two_tables(dir.path());
    let versions = Versions::default();
    versions.release(&spaces, 0);
    merge(&spaces[0]);
    versions.release(&spaces, u64::MAX);
    let folder = spaces[0].path().to_owned();
    let current = current_file(&spaces[0]);
    drop((spaces, db));
    drop(versions);
    assert_eq!(names(&folder.join("tables")).len(), 1);
    assert!(names(&folder).contains(&current));
}
