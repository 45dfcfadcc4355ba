//! Gives the blocks of deleted journals back in small steps.
//!
//! The store deletes a journal of 64 MiB when all of its rows are in tables. Where the file system discards the blocks of deleted files at once, each fsync
//! that meets the discard waits for all of it: 15 to 50 ms instead of 7. So every journal is open here, and the store only removes its name; then the file
//! is cut shorter step by step, by a thread that nobody waits for. (RocksDB: `bytes_max_delete_chunk`.)

use std::fs::File;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;

use crate::{journal, priority};

/// Bytes that are given back at a time, and the pause after them.
const STEP_BYTES: u64 = 2 << 20;
const PAUSE: Duration = Duration::from_millis(10);
/// Maximum number of journals that are open here. The store has at most three, and as many may be on their way out.
pub(crate) const OPEN_JOURNALS: usize = 8;

/// The journals that are open, so that the store does not free them.
#[derive(Default)]
pub(crate) struct DeletedJournals(Mutex<State>);

#[derive(Default)]
struct State {
    /// With their numbers.
    journals: Vec<(u64, File)>,
    /// The newest one that was seen. It is being written, and never cut, even if somebody has removed the directory.
    newest: Option<u64>,
    freeing: Option<JoinHandle<()>>,
}

impl DeletedJournals {
    /// Opens the journal of this number of the store at `path`, which is the newest, unless it was opened before. On Unix only: elsewhere a file does not tell
    /// that it has no name any more.
    pub(crate) fn note(&self, path: &Path, number: u64) {
        let mut state = self.0.lock();
        if cfg!(unix) && state.newest != Some(number) && state.journals.len() < OPEN_JOURNALS {
            state.newest = Some(number);
            // One that cannot be opened is freed by the store.
            let file = File::options().write(true).open(journal::path(path, number));
            state.journals.extend(file.map(|file| (number, file)));
        }
    }

    /// Frees the journals that were deleted. Returns whether that goes on, or is still to be done.
    pub(crate) fn free(&self) -> bool {
        let mut state = self.0.lock();
        if state.freeing.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return true;
        }
        let newest = state.newest;
        let is_over = |(number, file): &mut (u64, File)| Some(*number) != newest && is_deleted(file);
        let deleted: Vec<_> = state.journals.extract_if(.., is_over).collect();
        if deleted.is_empty() {
            return false;
        }
        let free = move || deleted.iter().for_each(|(_, file)| free_in_steps(file));
        // Without a thread they are closed here, all at once.
        state.freeing = priority::spawn("bolide-freeing", free).ok();
        true
    }
}

/// Whether a file has no name any more. One with another name, such as a hard link in a backup, keeps its content.
#[cfg(unix)]
fn is_deleted(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    file.metadata().is_ok_and(|found| found.nlink() == 0)
}

/// No journal is open here.
#[cfg(not(unix))]
fn is_deleted(_: &File) -> bool {
    false
}

/// Cuts a file that has no name any more.
fn free_in_steps(file: &File) {
    let mut length = file.metadata().map_or(0, |found| found.len());
    while length > 0 {
        length = length.saturating_sub(STEP_BYTES);
        // What cannot be cut is freed when the file is closed.
        if file.set_len(length).is_err() {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests;
