//! Which rows the last commits of the catalog changed, in the Log space of partition 0: what a cache reads to catch up.
//!
//! ```text
//!   Log  lsn(8) ‖ 0(4)  → for each row: length(2) ‖ row key
//! ```
//!
//! Each commit adds its entry and removes the one that is [`KEPT`] before it. A cache that is further behind, or finds an LSN without an entry (a
//! version without this log wrote), reads all rows.

use bolide_model::{Lsn, Result};
use bolide_storage::Key;
use bytes::{BufMut, Bytes, BytesMut};

use super::rows::{RowKey, damaged};
use crate::format::keys::LogPosition;

/// How many commits can be caught up with.
pub(super) const KEPT: u64 = 1024;

/// The entry of a commit.
pub(super) fn key(lsn: Lsn) -> Key {
    LogPosition { lsn, seq: 0 }.key()
}

/// The commit of an entry.
///
/// # Errors
/// `Corrupt` if the key is damaged.
pub(super) fn lsn_of(key: &[u8]) -> Result<Lsn> {
    let position = LogPosition::decode(key).ok_or_else(|| damaged("an entry of the changes has no place"))?;
    Ok(position.lsn)
}

/// An entry's value.
pub(super) fn encode(rows: impl Iterator<Item = RowKey>) -> Bytes {
    let mut bytes = BytesMut::new();
    for row in rows {
        let key = row.bytes();
        bytes.put_u16(key.len() as u16);
        bytes.put_slice(&key);
    }
    bytes.freeze()
}

/// Reads an entry's value.
///
/// # Errors
/// `Corrupt` if it is damaged.
pub(super) fn decode(mut value: &[u8]) -> Result<Vec<RowKey>> {
    let damaged = || damaged("an entry of the changes is cut off");
    let mut rows = Vec::new();
    while !value.is_empty() {
        let (length, rest) = value.split_first_chunk::<2>().ok_or_else(damaged)?;
        let (key, rest) = rest
            .split_at_checked(usize::from(u16::from_be_bytes(*length)))
            .ok_or_else(damaged)?;
        rows.push(RowKey::parse(key)?);
        value = rest;
    }
    Ok(rows)
}

#[cfg(test)]
mod tests;
