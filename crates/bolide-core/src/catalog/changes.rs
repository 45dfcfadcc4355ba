//! The rows that the last commits of the catalog changed, in the Log space of partition 0. A cache reads them to catch up.
//!
//! ```text
//!   Log  lsn(8) ‖ 0(4)  → for each row: length(2) ‖ row key
//! ```
//!
//! Each commit adds its entry and removes the entry of the commit [`KEPT`] before it. A cache that is further behind, or that finds an LSN without an
//! entry (written by a version without this log), reads all rows.

use bolide_model::{Lsn, Result};
use bolide_storage::Key;
use bytes::{BufMut, Bytes, BytesMut};

use super::rows::{RowKey, damaged};
use crate::format::keys::LogPosition;

/// Number of commits whose entries are kept.
pub(super) const KEPT: u64 = 1024;

/// Returns the key of a commit's entry.
pub(super) fn key(lsn: Lsn) -> Key {
    LogPosition { lsn, seq: 0 }.key()
}

/// Returns the log sequence number of an entry's commit.
///
/// # Errors
/// `Corrupt` if the key is damaged.
pub(super) fn lsn_of(key: &[u8]) -> Result<Lsn> {
    let position = LogPosition::decode(key).ok_or_else(|| damaged("an entry of the changes has no place"))?;
    Ok(position.lsn)
}

/// Returns an entry's value.
pub(super) fn encode(rows: impl Iterator<Item = RowKey>) -> Bytes {
    let mut bytes = BytesMut::new();
    for row in rows {
        let key = row.bytes();
        bytes.put_u16(key.len() as u16);
        bytes.put_slice(&key);
    }
    bytes.freeze()
}

/// Decodes an entry's value.
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
