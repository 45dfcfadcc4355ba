//! Writes the blocks of the journal before they are needed.
//!
//! The store makes a journal as a file of 64 MiB without blocks. A fsync of bytes that needed new blocks makes the file system commit, and that waits for
//! whatever else is on its way to the disk: tables that are written or merged, and what other processes write. A fsync of bytes in blocks
//! that were there before waits for these bytes only. So zeros are written some way ahead of what is appended, on a thread that nobody waits for.
//! (PostgreSQL: `wal_init_zero`.)
//!
//! What is written over is read first, and left alone unless it is zeros; and whoever holds the committer keeps others from appending meanwhile. A journal
//! that was there when the store was opened has no room behind its end, and nothing is written to it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use crate::journal;

/// How far ahead of what is appended: what is appended while a table of the largest size is on its way to the disk.
const AHEAD_BYTES: u64 = 8 << 20;
/// Zeros that are written and synced together. A commit's fsync that comes upon them waits for them, and for the file system: seldom is better than soon.
const STRETCH_BYTES: u64 = 2 << 20;
/// Zeros written at once, while no commit can be: a few microseconds.
const PIECE_BYTES: usize = 16 << 10;
/// Pieces of a stretch.
pub(super) const PIECES: u64 = STRETCH_BYTES / PIECE_BYTES as u64;
static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];

/// See the module.
pub(super) struct JournalAhead {
    store: PathBuf,
    /// The number of the journal that is appended to, and about how many bytes were.
    number: u64,
    appended: u64,
    /// `None` if there is nothing more to do in it.
    file: Option<Arc<File>>,
    /// Its blocks are written up to here.
    written: u64,
    /// Calls for [`JournalAhead::advance`].
    wake: SyncSender<()>,
}

impl JournalAhead {
    pub(super) fn new(store: PathBuf, wake: SyncSender<()>) -> JournalAhead {
        JournalAhead {
            store,
            number: u64::MAX,
            appended: 0,
            file: None,
            written: 0,
            wake,
        }
    }

    /// Takes note that about so many bytes were appended to a journal. `is_worth_it`: an fsync takes time here.
    pub(super) fn note(&mut self, number: u64, bytes: u64, is_worth_it: bool) {
        if self.number != number {
            let path = journal::path(&self.store, number);
            // Without the file nothing is done ahead, and nothing is lost.
            self.file = File::options().read(true).write(true).open(path).ok().map(Arc::new);
            (self.number, self.appended, self.written) = (number, 0, 0);
        }
        self.appended += bytes;
        if is_worth_it && self.file.is_some() && self.missing() >= STRETCH_BYTES {
            // If it was called already, or has ended with the store, that is well, too.
            let _ = self.wake.try_send(());
        }
    }

    /// Writes one piece, if it is time for one. Returns the file it went to, which is to be synced.
    ///
    /// To be called only while nothing is appended.
    pub(super) fn advance(&mut self) -> Option<Arc<File>> {
        if self.missing() == 0 {
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

    /// Bytes that are not as far ahead as they should be.
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

#[cfg(test)]
mod tests;
