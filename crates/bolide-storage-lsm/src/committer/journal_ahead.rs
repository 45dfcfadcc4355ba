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
mod tests {
    use std::sync::mpsc::{Receiver, sync_channel};

    use super::*;

    const JOURNAL_BYTES: u64 = 16 << 20;

    struct Stage {
        dir: tempfile::TempDir,
        ahead: JournalAhead,
        calls: Receiver<()>,
    }

    /// Journals of `JOURNAL_BYTES` without blocks, and nothing noted yet.
    fn stage() -> Stage {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..2 {
            let journal = File::create(journal::path(dir.path(), number)).unwrap();
            journal.set_len(JOURNAL_BYTES).unwrap();
        }
        let (wake, calls) = sync_channel(1);
        let ahead = JournalAhead::new(dir.path().to_owned(), wake);
        Stage { dir, ahead, calls }
    }

    impl Stage {
        fn append(&mut self, number: u64, at: u64, bytes: &[u8]) {
            let path = journal::path(self.dir.path(), number);
            let mut journal = File::options().write(true).open(path).unwrap();
            journal.seek(SeekFrom::Start(at)).unwrap();
            journal.write_all(bytes).unwrap();
            self.ahead.note(number, bytes.len() as u64, true);
        }

        fn bytes(&self, number: u64) -> Vec<u8> {
            std::fs::read(journal::path(self.dir.path(), number)).unwrap()
        }

        /// Pieces that are written until there is nothing to do.
        fn advance(&mut self) -> u64 {
            std::iter::from_fn(|| self.ahead.advance()).count() as u64
        }
    }

    const PIECE: u64 = PIECE_BYTES as u64;

    #[test]
    fn blocks_are_written_so_far_ahead_and_no_further_than_the_file() {
        let mut stage = stage();
        stage.append(0, 0, &[1; 1_000]);
        stage.calls.try_recv().unwrap();
        // The first piece has data in it.
        assert_eq!(stage.advance(), AHEAD_BYTES / PIECE);
        assert_eq!(stage.ahead.written, AHEAD_BYTES + PIECE);
        stage.append(0, 1_000, &[2; 1_000]);
        assert!(stage.calls.try_recv().is_err(), "it is far enough ahead");
        stage.append(0, 2_000, &vec![3; JOURNAL_BYTES as usize - 2_000]);
        assert_eq!(stage.advance(), 0);
        assert_eq!(stage.bytes(0).len() as u64, JOURNAL_BYTES);
    }

    #[test]
    fn what_was_appended_stays_wherever_it_is() {
        let mut stage = stage();
        let mut expected = vec![0; JOURNAL_BYTES as usize];
        let mut at = 0;
        // Overtakes what is written ahead, and is overtaken.
        for (n, length) in [10, 9 << 20, 100, 3 << 20, 1, 300_000].into_iter().enumerate() {
            let bytes = vec![n as u8 + 1; length];
            stage.append(0, at as u64, &bytes);
            expected[at..at + length].copy_from_slice(&bytes);
            at += length;
            for _ in 0..n * 3 {
                let _ = stage.ahead.advance();
            }
        }
        stage.advance();
        assert!(stage.bytes(0) == expected);
    }

    #[test]
    fn each_journal_is_written_ahead_from_its_beginning() {
        let mut stage = stage();
        stage.append(0, 0, &[1; 1_000]);
        stage.advance();
        stage.append(1, 0, &[2; 1_000]);
        assert_eq!(stage.advance(), AHEAD_BYTES / PIECE);
        assert_eq!(stage.bytes(1)[..1_000], [2; 1_000]);
    }

    /// The store cuts a journal off behind its last write when it is opened, and appends to what is left.
    #[test]
    fn nothing_is_written_to_a_journal_without_room() {
        let mut stage = stage();
        let recovered = vec![7; 3 << 20];
        std::fs::write(journal::path(stage.dir.path(), 0), &recovered).unwrap();
        stage.ahead.note(0, 1_000, true);
        assert_eq!(stage.advance(), 0);
        assert!(stage.bytes(0) == recovered);
        stage.ahead.note(0, STRETCH_BYTES, true);
        assert_eq!(stage.calls.try_iter().count(), 1, "the call of the first note only");
    }

    #[test]
    fn where_the_journal_is_gone_nothing_happens() {
        let mut stage = stage();
        stage.ahead.note(9, 1_000, true);
        assert!(stage.calls.try_recv().is_err());
        assert_eq!(stage.advance(), 0);
    }
}
