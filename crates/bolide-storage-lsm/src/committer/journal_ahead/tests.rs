//! Claims about writing journals ahead.

use std::sync::mpsc::{Receiver, sync_channel};

use super::*;

const JOURNAL_BYTES: u64 = 16 << 20;

struct JournalFile {
    dir: tempfile::TempDir,
    ahead: JournalAhead,
    calls: Receiver<()>,
}

/// Journals of `JOURNAL_BYTES` without blocks; nothing recorded yet.
fn new_fixture() -> JournalFile {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..2 {
        let journal = File::create(journal::path(dir.path(), number)).unwrap();
        journal.set_len(JOURNAL_BYTES).unwrap();
    }
    let (wake, calls) = sync_channel(1);
    let ahead = JournalAhead::new(dir.path().to_owned(), wake);
    JournalFile { dir, ahead, calls }
}

impl JournalFile {
    /// Appends bytes in small commits.
    fn append(&mut self, number: u64, at: u64, bytes: &[u8]) {
        let mut at = at;
        for commit in bytes.chunks(4 << 10) {
            self.commit(number, at, commit);
            at += commit.len() as u64;
        }
    }

    fn commit(&mut self, number: u64, at: u64, bytes: &[u8]) {
        let path = journal::path(self.dir.path(), number);
        let mut journal = File::options().write(true).open(path).unwrap();
        journal.seek(SeekFrom::Start(at)).unwrap();
        journal.write_all(bytes).unwrap();
        self.ahead.note(number, bytes.len() as u64, true);
    }

    fn bytes(&self, number: u64) -> Vec<u8> {
        std::fs::read(journal::path(self.dir.path(), number)).unwrap()
    }

    /// Writes pieces until there is nothing to do; returns their number.
    fn advance(&mut self) -> u64 {
        std::iter::from_fn(|| self.ahead.advance()).count() as u64
    }
}

const PIECE: u64 = PIECE_BYTES as u64;

#[test]
fn blocks_are_written_so_far_ahead_and_no_further_than_the_file() {
    let mut fixture = new_fixture();
    fixture.append(0, 0, &[1; 1_000]);
    fixture.calls.try_recv().unwrap();
    // The first piece contains data.
    assert_eq!(fixture.advance(), AHEAD_BYTES / PIECE);
    assert_eq!(fixture.ahead.written, AHEAD_BYTES + PIECE);
    fixture.append(0, 1_000, &[2; 1_000]);
    assert!(fixture.calls.try_recv().is_err(), "it is far enough ahead");
    fixture.append(0, 2_000, &vec![3; JOURNAL_BYTES as usize - 2_000]);
    assert_eq!(fixture.advance(), 0);
    assert_eq!(fixture.bytes(0).len() as u64, JOURNAL_BYTES);
}

#[test]
fn appended_data_is_never_overwritten() {
    let mut fixture = new_fixture();
    let mut expected = vec![0; JOURNAL_BYTES as usize];
    let mut at = 0;
    // Appends overtake the zeros, and the zeros overtake the appends.
    for (n, length) in [10, 9 << 20, 100, 3 << 20, 1, 300_000].into_iter().enumerate() {
        let bytes = vec![n as u8 + 1; length];
        fixture.append(0, at as u64, &bytes);
        expected[at..at + length].copy_from_slice(&bytes);
        at += length;
        for _ in 0..n * 3 {
            let _ = fixture.ahead.advance();
        }
    }
    fixture.advance();
    assert!(fixture.bytes(0) == expected);
}

#[test]
fn each_journal_is_written_ahead_from_its_beginning() {
    let mut fixture = new_fixture();
    fixture.append(0, 0, &[1; 1_000]);
    fixture.advance();
    fixture.append(1, 0, &[2; 1_000]);
    assert_eq!(fixture.advance(), AHEAD_BYTES / PIECE);
    assert_eq!(fixture.bytes(1)[..1_000], [2; 1_000]);
}

#[test]
fn nothing_is_written_ahead_of_large_commits() {
    let mut fixture = new_fixture();
    let large = vec![1; 1 << 20];
    for n in 0..4 {
        fixture.commit(0, n << 20, &large);
        assert_eq!(fixture.advance(), 0);
    }
    assert!(fixture.calls.try_recv().is_err());
    // Zeros follow again behind everything that was appended.
    for n in 0..100 {
        fixture.commit(0, (4 << 20) + n * 100, &[2; 100]);
    }
    fixture.calls.try_recv().unwrap();
    assert_eq!(fixture.advance(), AHEAD_BYTES / PIECE);
    let bytes = fixture.bytes(0);
    assert!(bytes[..4 << 20].iter().all(|byte| *byte == 1));
    assert!(bytes[4 << 20..][..10_000].iter().all(|byte| *byte == 2));
}

/// When the store opens a journal it cuts it off after its last write, and appends to the rest.
#[test]
fn nothing_is_written_to_a_journal_without_room() {
    let mut fixture = new_fixture();
    let recovered = vec![7; 3 << 20];
    std::fs::write(journal::path(fixture.dir.path(), 0), &recovered).unwrap();
    fixture.ahead.note(0, 1_000, true);
    assert_eq!(fixture.advance(), 0);
    assert!(fixture.bytes(0) == recovered);
    fixture.ahead.note(0, SYNC_BYTES, true);
    assert_eq!(fixture.calls.try_iter().count(), 1, "the call of the first note only");
}

#[test]
fn nothing_is_written_if_the_journal_is_gone() {
    let mut fixture = new_fixture();
    fixture.ahead.note(9, 1_000, true);
    assert!(fixture.calls.try_recv().is_err());
    assert_eq!(fixture.advance(), 0);
}
