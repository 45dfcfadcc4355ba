//! The durable mark: a small file beside the store that remembers how far the store was durable.
//!
//! The store forgets a damaged or missing end of its journal without an error. The mark holds, for each key space, the number of the
//! newest write that was known to be on the disk; a store that comes back with less has lost commits. The mark may lag behind the store
//! (it is written at most once a second, and at close), but is never ahead of it.
//!
//! Two slots, written in turn, so that a crash in the middle of a write leaves the other. Integers big-endian:
//!
//! ```text
//! 0      slot A     "BOLIDMRK" (8) | turn (8) | number per key space (5 × 8) | FNV-1a of what is before (8)
//! 4096   slot B     the same
//! ```

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use bolide_storage::Space;
use bytes::{Buf, BufMut};

/// The newest durable write per key space, in the order of [`Space::ALL`].
pub(crate) type Numbers = [u64; Space::ALL.len()];

const MAGIC: &[u8; 8] = b"BOLIDMRK";
const SLOT_BYTES: usize = 8 + 8 + 8 * Space::ALL.len() + 8;
/// Slots are a block apart, so that the disk never writes both at once.
const SLOT_DISTANCE: u64 = 4096;

/// An open mark file.
#[derive(Debug)]
pub(crate) struct Mark {
    file: File,
    turn: u64,
    numbers: Numbers,
}

impl Mark {
    /// Makes the mark of a new store, durable.
    pub(crate) fn create(path: &Path) -> io::Result<Mark> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        let mut mark = Mark {
            file,
            turn: 0,
            numbers: Numbers::default(),
        };
        mark.write(Numbers::default())?;
        Ok(mark)
    }

    /// Reads the mark at `path`; `None` if neither slot is whole.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Mark>> {
        let mut file = OpenOptions::new().read(true).write(true).open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let slots = [0, SLOT_DISTANCE as usize].map(|at| bytes.get(at..).and_then(decode));
        let newest = slots.into_iter().flatten().max_by_key(|(turn, _)| *turn);
        Ok(newest.map(|(turn, numbers)| Mark { file, turn, numbers }))
    }

    /// What was written last.
    pub(crate) fn numbers(&self) -> Numbers {
        self.numbers
    }

    /// Replaces the mark, durable on return. The caller has made sure that the store is durable up to `numbers`.
    pub(crate) fn write(&mut self, numbers: Numbers) -> io::Result<()> {
        let turn = self.turn + 1;
        self.file.seek(SeekFrom::Start(turn % 2 * SLOT_DISTANCE))?;
        self.file.write_all(&encode(turn, numbers))?;
        self.file.sync_data()?;
        self.turn = turn;
        self.numbers = numbers;
        Ok(())
    }
}

fn encode(turn: u64, numbers: Numbers) -> Vec<u8> {
    let mut slot = Vec::with_capacity(SLOT_BYTES);
    slot.put_slice(MAGIC);
    slot.put_u64(turn);
    numbers.iter().for_each(|number| slot.put_u64(*number));
    slot.put_u64(fnv1a(&slot));
    slot
}

fn decode(bytes: &[u8]) -> Option<(u64, Numbers)> {
    let (body, mut sum) = bytes.get(..SLOT_BYTES)?.split_at(SLOT_BYTES - 8);
    if sum.get_u64() != fnv1a(body) {
        return None;
    }
    let mut body = body.strip_prefix(MAGIC)?;
    let turn = body.get_u64();
    Some((turn, Numbers::default().map(|_| body.get_u64())))
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mark_comes_back_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("durable");
        let mut mark = Mark::create(&path).unwrap();
        mark.write([1, 2, 3, 4, 5]).unwrap();
        mark.write([6, 7, 8, 9, 10]).unwrap();
        assert_eq!(Mark::open(&path).unwrap().unwrap().numbers(), [6, 7, 8, 9, 10]);
    }

    #[test]
    fn half_written_slot_leaves_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("durable");
        let mut mark = Mark::create(&path).unwrap();
        mark.write([1, 2, 3, 4, 5]).unwrap();
        mark.write([6, 7, 8, 9, 10]).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        // The third write went to the second slot.
        bytes[SLOT_DISTANCE as usize + 20] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(Mark::open(&path).unwrap().unwrap().numbers(), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn mark_of_other_bytes_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("durable");
        std::fs::write(&path, b"short").unwrap();
        assert!(Mark::open(&path).unwrap().is_none());
    }
}
