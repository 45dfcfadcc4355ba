//! Whether the files of an open store are still where the next start will look for them.
//!
//! A directory that was removed, or moved away, goes on to take writes through the files that are open, and nobody will ever find them
//! again. So before a write is acknowledged its directory is looked at: a few calls of `stat`, a microsecond each.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::journal;

/// The files as they were when the store was opened.
#[derive(Debug)]
pub(crate) struct Presence {
    /// The lock file, which is made once and stays.
    lock: (PathBuf, FileId),
    store: PathBuf,
    /// The journal that is written to.
    journal: Option<(u64, FileId)>,
}

/// Tells a file from another one of the same name.
type FileId = (u64, u64);

impl Presence {
    /// Remembers the files of an open store. `None` where files have no identity to be known by.
    pub(crate) fn of(lock: PathBuf, store: PathBuf) -> Option<Presence> {
        let id = file_id(&lock).ok()??;
        let newest = journal::newest_number(&store);
        let journal = newest.and_then(|number| Some((number, file_id(&journal::path(&store, number)).ok()??)));
        Some(Presence {
            lock: (lock, id),
            store,
            journal,
        })
    }

    /// The number of the journal that was written to when it was last looked.
    pub(crate) fn journal(&self) -> Option<u64> {
        self.journal.map(|(number, _)| number)
    }

    /// Looks at the files. An error says what is gone.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        let (lock, id) = &self.lock;
        if is_gone(lock, *id) {
            let home = lock.parent().unwrap_or(lock);
            return Err(format!(
                "the data directory was removed, moved or replaced. path={}",
                home.display()
            ));
        }
        let Some((mut number, mut id)) = self.journal else {
            return Ok(());
        };
        // The store begins a new journal when it likes, and numbers them one by one.
        while let Ok(Some(next)) = file_id(&journal::path(&self.store, number + 1)) {
            (number, id) = (number + 1, next);
        }
        self.journal = Some((number, id));
        let path = journal::path(&self.store, number);
        if is_gone(&path, id) {
            return Err(format!("the journal was removed or replaced. path={}", path.display()));
        }
        Ok(())
    }
}

/// Whether there is surely another file now, or none. A file that cannot be looked at may still be there.
fn is_gone(path: &Path, id: FileId) -> bool {
    match file_id(path) {
        Ok(found) => found.is_some_and(|found| found != id),
        Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    }
}

#[cfg(unix)]
fn file_id(path: &Path) -> std::io::Result<Option<FileId>> {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(path).map(|found| Some((found.dev(), found.ino())))
}

#[cfg(not(unix))]
fn file_id(path: &Path) -> std::io::Result<Option<FileId>> {
    fs::metadata(path).map(|_| None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage() -> (tempfile::TempDir, PathBuf, Presence) {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("data");
        fs::create_dir_all(home.join("store")).unwrap();
        fs::write(home.join("lock"), "").unwrap();
        fs::write(home.join("store").join("3.jnl"), "").unwrap();
        let presence = Presence::of(home.join("lock"), home.join("store")).unwrap();
        (dir, home, presence)
    }

    #[test]
    fn files_in_their_place_are_present_and_journals_may_move_on() {
        let (_dir, home, mut presence) = stage();
        presence.check().unwrap();
        fs::write(home.join("store").join("4.jnl"), "").unwrap();
        presence.check().unwrap();
        fs::remove_file(home.join("store").join("3.jnl")).unwrap();
        presence.check().unwrap();
    }

    #[test]
    fn removed_moved_and_replaced_directories_are_noticed() {
        let (_dir, home, mut presence) = stage();
        let away = home.with_extension("away");
        fs::rename(&home, &away).unwrap();
        assert!(presence.check().unwrap_err().contains("was removed, moved or replaced"));
        fs::create_dir(&home).unwrap();
        fs::write(home.join("lock"), "").unwrap();
        assert!(presence.check().is_err(), "another directory of the same name");
        fs::remove_dir_all(&home).unwrap();
        fs::rename(&away, &home).unwrap();
        presence.check().unwrap();
    }

    #[test]
    fn removed_journal_is_noticed() {
        let (_dir, home, mut presence) = stage();
        fs::remove_file(home.join("store").join("3.jnl")).unwrap();
        assert!(presence.check().unwrap_err().contains("the journal was removed"));
    }
}
