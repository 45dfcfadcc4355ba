//! Checks that the files of an open store are still where the next start will look for them.
//!
//! A directory that was removed or moved still takes writes through the open files, but nobody will find them again. So before a write is
//! acknowledged its directory is checked: a few calls of `stat`, a microsecond each.

use std::fs::{self, File, Metadata};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::journal;

/// The files as they were when the store was opened.
#[derive(Debug)]
pub(crate) struct Presence {
    /// The lock file, which is made once and never replaced.
    lock: (PathBuf, FileId),
    store: PathBuf,
    /// The journal that is written to.
    journal: Option<(u64, FileId)>,
}

/// Identifies a file, to tell it from another one of the same name.
type FileId = (u64, u64);

impl Presence {
    /// Records the files of an open store. `None` on platforms where files have no identity.
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

    /// The number of the journal in use at the last check.
    pub(crate) fn journal(&self) -> Option<u64> {
        self.journal.map(|(number, _)| number)
    }

    /// Whether this is the journal in use at the last check, whatever its path is now.
    pub(crate) fn is_journal(&self, file: &File) -> bool {
        let found = file.metadata().ok().and_then(|found| id_in(&found));
        found.is_some() && self.journal.map(|(_, id)| id) == found
    }

    /// Checks the files. The error says what is missing.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        let (lock, id) = &self.lock;
        if is_gone(lock, *id) {
            let store_dir = lock.parent().unwrap_or(lock);
            return Err(format!(
                "the data directory was removed, moved or replaced. path={}",
                store_dir.display()
            ));
        }
        let Some((mut number, mut id)) = self.journal else {
            return Ok(());
        };
        // The store begins a new journal at any time, and numbers them one by one.
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

/// Whether there is certainly another file now, or none. A file that cannot be checked may still be there.
fn is_gone(path: &Path, id: FileId) -> bool {
    match file_id(path) {
        Ok(found) => found.is_some_and(|found| found != id),
        Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    }
}

fn file_id(path: &Path) -> std::io::Result<Option<FileId>> {
    fs::metadata(path).map(|found| id_in(&found))
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "elsewhere files have no identity")]
fn id_in(found: &Metadata) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt as _;
    Some((found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn id_in(_: &Metadata) -> Option<FileId> {
    None
}

#[cfg(test)]
mod tests;
