//! The durable watermark: a small file beside the store that records how far the store was durable, and server time.
//!
//! The store drops a damaged or missing end of its journal without an error. The watermark holds, for each key space, the number of the newest write
//! that was known to be on the disk; a store that opens with less has lost commits. The watermark may lag behind the store (it is written at most
//! once a second, and at close), but is never ahead of it.
//!
//! Server time is stored here so that it can be made durable without a commit: responses that depend on expiry wait for it (TTL-203). It also works
//! on a full disk, because a slot is overwritten by one of the same size.
//!
//! Two slots, written alternately, so that a crash during a write leaves the other one. Integers big-endian:
//!
//! ```text
//! 0      slot A     "BOLIDMK2" (8) | generation (8) | number per key space (5 × 8) | time, ms (8) | FNV-1a of the bytes before (8)
//! 4096   slot B     the same
//! ```
//!
//! Slots of earlier versions begin with "BOLIDMRK" and have no time.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use bolide_model::UnixMillis;
use bolide_storage::Space;
use bytes::{Buf, BufMut};

/// The newest durable write per key space, in the order of [`Space::ALL`].
pub(crate) type Numbers = [u64; Space::ALL.len()];

/// The content of a watermark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) numbers: Numbers,
    /// Server time must not fall below this.
    pub(crate) time: UnixMillis,
}

const MAGIC: &[u8; 8] = b"BOLIDMK2";
const UNTIMED_MAGIC: &[u8; 8] = b"BOLIDMRK";
const UNTIMED_SLOT_BYTES: usize = 8 + 8 + 8 * Space::ALL.len() + 8;
const SLOT_BYTES: usize = UNTIMED_SLOT_BYTES + 8;
/// Slots are a block apart, so that the disk never writes both in one operation.
const SLOT_DISTANCE: u64 = 4096;

/// An open watermark file.
#[derive(Debug)]
pub(crate) struct DurableWatermark {
    file: File,
    generation: u64,
    position: Position,
}

impl DurableWatermark {
    /// Creates the watermark of a new store, durable on return.
    pub(crate) fn create(path: &Path) -> io::Result<DurableWatermark> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        let mut watermark = DurableWatermark {
            file,
            generation: 0,
            position: Position {
                numbers: Numbers::default(),
                time: UnixMillis(i64::MIN),
            },
        };
        // Write both slots now, so that later writes need no new space.
        watermark.write(watermark.position)?;
        watermark.write(watermark.position)?;
        Ok(watermark)
    }

    /// Writes the watermark of a store that is made from another one. It is not durable yet.
    pub(crate) fn draft(path: &Path, position: Position) -> io::Result<()> {
        // Both slots, so that later writes need no new space.
        let slot = encode(1, position);
        let mut bytes = slot.clone();
        bytes.resize(SLOT_DISTANCE as usize, 0);
        bytes.extend_from_slice(&slot);
        std::fs::write(path, bytes)
    }

    /// Reads the watermark at `path`; `None` if neither slot is intact.
    pub(crate) fn open(path: &Path) -> io::Result<Option<DurableWatermark>> {
        let mut file = OpenOptions::new().read(true).write(true).open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let slots = [0, SLOT_DISTANCE as usize].map(|at| bytes.get(at..).and_then(decode));
        let newest = slots.into_iter().flatten().max_by_key(|(generation, _)| *generation);
        Ok(newest.map(|(generation, position)| DurableWatermark {
            file,
            generation,
            position,
        }))
    }

    /// What was last written.
    pub(crate) fn position(&self) -> Position {
        self.position
    }

    /// Replaces the watermark, durable on return. The caller has made sure that the store is durable up to these numbers.
    pub(crate) fn write(&mut self, position: Position) -> io::Result<()> {
        let generation = self.generation + 1;
        self.file.seek(SeekFrom::Start(generation % 2 * SLOT_DISTANCE))?;
        self.file.write_all(&encode(generation, position))?;
        self.file.sync_data()?;
        self.generation = generation;
        self.position = position;
        Ok(())
    }
}

fn encode(generation: u64, position: Position) -> Vec<u8> {
    let mut slot = Vec::with_capacity(SLOT_BYTES);
    slot.put_slice(MAGIC);
    slot.put_u64(generation);
    position.numbers.iter().for_each(|number| slot.put_u64(*number));
    slot.put_i64(position.time.0);
    slot.put_u64(fnv1a(&slot));
    slot
}

fn decode(bytes: &[u8]) -> Option<(u64, Position)> {
    let is_timed = bytes.starts_with(MAGIC);
    if !is_timed && !bytes.starts_with(UNTIMED_MAGIC) {
        return None;
    }
    let len = if is_timed { SLOT_BYTES } else { UNTIMED_SLOT_BYTES };
    let (body, mut sum) = bytes.get(..len)?.split_at(len - 8);
    if sum.get_u64() != fnv1a(body) {
        return None;
    }
    let mut body = &body[MAGIC.len()..];
    let generation = body.get_u64();
    let numbers = Numbers::default().map(|_| body.get_u64());
    let time = if is_timed { body.get_i64() } else { i64::MIN };
    let time = UnixMillis(time);
    Some((generation, Position { numbers, time }))
}

/// FNV-1a, written here: it is part of the file format, and stores of all earlier versions must open. It only has to find half-written slots of a few
/// bytes, so a better hash has no advantage.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests;
