//! Entity tags.

use std::fmt;

use bolide_model::{Lsn, Reason, Result};

/// Version of a resource for conditional operations.
///
/// Shape: shown as the service shows it, a GUID inside quotes that belong to the value. It consists of the partition, the LSN and the position
/// in the transaction of the write, so no two writes of an account share one, not even the writes of a ghost and its successor (TTL-242).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Etag(pub u128);

impl Etag {
    /// Returns the tag of a write.
    pub(crate) fn of_write(partition: u64, lsn: Lsn, seq: u32) -> Etag {
        Etag((u128::from(partition as u32) << 96) | (u128::from(lsn.0) << 32) | u128::from(seq))
    }

    /// Returns the tag as clients see it, with its quotes; ASCII.
    // Written by hand: every answer about an item shows its tag twice, and formatting it part by part took a tenth of the time of a point read.
    pub fn text(self) -> [u8; TEXT_BYTES] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = *b"\"00000000-0000-0000-0000-000000000000\"";
        let mut at = 1;
        for (byte, group_ends) in self.0.to_be_bytes().into_iter().zip(GROUP_ENDS) {
            text[at] = DIGITS[usize::from(byte >> 4)];
            text[at + 1] = DIGITS[usize::from(byte & 0xF)];
            at += if group_ends { 3 } else { 2 };
        }
        text
    }

    /// Returns the GUID in a [`Etag::text`], without the quotes.
    pub(crate) fn guid(text: &[u8; TEXT_BYTES]) -> &[u8] {
        &text[1..TEXT_BYTES - 1]
    }

    /// Checks an `If-Match` condition; `None` always matches.
    ///
    /// # Errors
    /// `PreconditionFailed` if the condition names another version.
    pub(crate) fn check(self, if_match: Option<&str>) -> Result<()> {
        match if_match {
            Some(header) if !self.matches(header) => Err(Reason::VersionDiffers.into()),
            _ => Ok(()),
        }
    }

    /// Returns whether an `If-Match` or `If-None-Match` header names this version. `*` names any version; the quotes may be missing.
    pub fn matches(self, header: &str) -> bool {
        let header = header.trim();
        let text = self.text();
        header == "*" || header.trim_matches('"').as_bytes() == Etag::guid(&text)
    }
}

/// Length of a GUID with its two quotes, in bytes.
const TEXT_BYTES: usize = 38;
/// Whether a hyphen follows a byte of the GUID.
const GROUP_ENDS: [bool; 16] = {
    let mut ends = [false; 16];
    ends[3] = true;
    ends[5] = true;
    ends[7] = true;
    ends[9] = true;
    ends
};

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(str::from_utf8(&self.text()).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests;
