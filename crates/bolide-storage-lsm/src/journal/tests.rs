//! Claims about damage in journals.

use std::io::Write;

use fjall::{Database, KeyspaceCreateOptions, PersistMode};

use super::*;

/// A store with 20 batches of two items, and the number of bytes of its journal that are in use.
fn store() -> (tempfile::TempDir, PathBuf, usize) {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::builder(dir.path()).open().unwrap();
    let space = db.keyspace("space", KeyspaceCreateOptions::default).unwrap();
    for n in 0..20u8 {
        let mut batch = db.batch().durability(Some(PersistMode::Buffer));
        batch.insert(&space, [n], vec![n; 100]);
        // Long enough to be compressed.
        batch.insert(&space, [n, n], vec![n; 10_000]);
        batch.commit().unwrap();
    }
    let journal = dir.path().join("0.jnl");
    let used = read_to_last_byte(&mut File::open(&journal).unwrap()).unwrap().len();
    (dir, journal, used)
}

fn overwrite(path: &Path, at: usize, bytes: &[u8]) {
    let mut file = File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(at as u64)).unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn journal_as_the_store_writes_it_is_whole_to_the_end() {
    let (dir, journal, used) = store();
    assert_eq!(examine(&journal).unwrap(), (used as u64, Tail::Clean));
    check(dir.path()).unwrap();
}

#[test]
fn cut_off_batch_is_torn_and_passes_in_the_newest_journal_only() {
    let (dir, journal, used) = store();
    for cut in [1, 5, 13, 60] {
        overwrite(&journal, used - cut, &vec![0; cut]);
        assert_eq!(examine(&journal).unwrap().1, Tail::Torn, "cut={cut}");
    }
    check(dir.path()).unwrap();
    fs::copy(&journal, dir.path().join("1.jnl")).unwrap();
    assert!(matches!(check(dir.path()), Err(OpenError::Corrupt(_))));
}

#[test]
fn changed_byte_before_the_last_batch_is_damage() {
    let (dir, journal, used) = store();
    let bytes = fs::read(&journal).unwrap();
    for at in (0..used * 9 / 10).step_by(37) {
        overwrite(&journal, at, &[bytes[at] ^ 0x40]);
        assert_eq!(examine(&journal).unwrap().1, Tail::Damaged, "at={at}");
        overwrite(&journal, at, &[bytes[at]]);
    }
    overwrite(&journal, used / 2, &[0; 512]);
    assert!(matches!(check(dir.path()), Err(OpenError::Corrupt(_))));
}

#[test]
fn no_store_has_no_journals() {
    let dir = tempfile::tempdir().unwrap();
    check(&dir.path().join("absent")).unwrap();
}
