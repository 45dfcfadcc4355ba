//! Allocates blocks of the journal before they are needed.
//!
//! The store creates a journal as a file of 64 MiB without blocks. A fsync of bytes that needed new blocks makes the file system commit, and that
//! waits for everything else that is being written to the disk: tables that are flushed or merged, and the files of other processes. A fsync of bytes
//! in existing blocks waits for these bytes only. So zeros are written ahead of the end of the journal, on a thread that no request waits for.
//! (PostgreSQL: `wal_init_zero`.)
//!
//! Large commits are not helped: their own bytes take longer than the file system's commit, and the zeros would be as many bytes again. With commits of
//! 128 KB a client that waits for each of them makes a quarter more of them without zeros, and the 95th percentile of their times is less than half.
//!
//! Before a piece is overwritten it is read, and skipped unless it is all zeros; whoever holds the committer prevents appends meanwhile. A journal
//! that existed when the store was opened has no space after its end, so nothing is written to it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use crate::journal;

/// How far to write ahead: the amount appended while a table of the largest size is being written to the disk.
const AHEAD_BYTES: u64 = 8 << 20;
/// Bytes of zeros that are written and synced together. If a commit's fsync meets them it waits for them, and for the file system, so they should be
/// rare rather than early.
const SYNC_BYTES: u64 = 2 << 20;
/// Bytes of zeros per write, during which no commit can run: a few microseconds.
const PIECE_BYTES: usize = 16 << 10;
/// Average size of the last commits above which nothing is written ahead.
const LARGE_COMMIT_BYTES: u64 = 64 << 10;
/// Number of pieces between two syncs.
pub(super) const PIECES: u64 = SYNC_BYTES / PIECE_BYTES as u64;
static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];

/// See the module.
pub(super) struct JournalAhead {
    store: PathBuf,
    /// The number of the current journal, and about how many bytes were appended to it.
    number: u64,
    appended: u64,
    /// Average size of the last commits in bytes, whichever their journal.
    commit_bytes: u64,
    /// `None` if nothing more is to be done in this journal.
    file: Option<Arc<File>>,
    /// Blocks are written up to here.
    written: u64,
    /// Requests a call of [`JournalAhead::advance`].
    wake: SyncSender<()>,
}

impl JournalAhead {
    pub(super) fn new(store: PathBuf, wake: SyncSender<()>) -> JournalAhead {
        JournalAhead {
            store,
            number: u64::MAX,
            appended: 0,
            commit_bytes: 0,
            file: None,
            written: 0,
            wake,
        }
    }

    /// Records that about `bytes` bytes were appended to a journal. `is_worth_it`: a fsync takes time on this disk.
    pub(super) fn note(&mut self, number: u64, bytes: u64, is_worth_it: bool) {
        if self.number != number {
            let path = journal::path(&self.store, number);
            // If the file cannot be opened, nothing is written ahead; no harm is done.
            self.file = File::options().read(true).write(true).open(path).ok().map(Arc::new);
            self.file.iter().for_each(|file| read_no_further(file));
            (self.number, self.appended, self.written) = (number, 0, 0);
        }
        self.appended += bytes;
        self.commit_bytes = (self.commit_bytes * 7 + bytes) / 8;
        if self.commit_bytes > LARGE_COMMIT_BYTES {
            // When commits are small again, only what is ahead of them then is looked at.
            let piece = PIECE_BYTES as u64;
            self.written = self.written.max(self.appended / piece * piece);
            return;
        }
        if is_worth_it && self.file.is_some() && self.missing() >= SYNC_BYTES {
            // If the thread was already called, or has ended with the store, nothing is to be done.
            let _ = self.wake.try_send(());
        }
    }

    /// Writes one piece, if it is needed. Returns the file to sync.
    ///
    /// Call it only while nothing is appended.
    pub(super) fn advance(&mut self) -> Option<Arc<File>> {
        if self.missing() == 0 || self.commit_bytes > LARGE_COMMIT_BYTES {
            return None;
        }
        let advanced = self.write_piece();
        if !matches!(advanced, Ok(Some(_))) {
            self.file = None;
        }
        advanced.unwrap_or_else(|error| {
            tracing::debug!(%error, journal = self.number, "the journal is not written ahead");
            None
        })
    }

    /// Bytes still to be written ahead.
    fn missing(&self) -> u64 {
        (self.appended + AHEAD_BYTES).saturating_sub(self.written)
    }

    fn write_piece(&mut self) -> io::Result<Option<Arc<File>>> {
        let Some(shared) = &self.file else { return Ok(None) };
        let mut file: &File = shared;
        let length = file.metadata()?.len();
        // Not on the heap: its first use by a thread takes memory that is never given back.
        let mut found = [0; PIECE_BYTES];
        if self.written == 0 && length >= PIECE_BYTES as u64 {
            file.seek(SeekFrom::Start(length - PIECE_BYTES as u64))?;
            file.read_exact(&mut found)?;
            if found != ZEROS {
                return Ok(None);
            }
        }
        while self.written + PIECE_BYTES as u64 <= length {
            file.seek(SeekFrom::Start(self.written))?;
            file.read_exact(&mut found)?;
            let at = self.written;
            self.written += PIECE_BYTES as u64;
            if found == ZEROS {
                file.seek(SeekFrom::Start(at))?;
                file.write_all(&ZEROS)?;
                return Ok(Some(shared.clone()));
            }
        }
        Ok(None)
    }
}

/// Keeps the system from reading ahead in a journal: it would fill megabytes of memory with zeros, and a piece is read while no commit can run.
#[cfg(target_os = "linux")]
fn read_no_further(file: &File) {
    if let Err(error) = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Random) {
        tracing::debug!(%error, "the system reads ahead in the journal");
    }
}

#[cfg(not(target_os = "linux"))]
fn read_no_further(_: &File) {}

#[cfg(test)]
mod tests;
