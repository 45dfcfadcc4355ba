//! Splits a text that comes in parts into lines.

use bolide_model::{Error, ErrorKind, Result};
use bytes::{Bytes, BytesMut};

/// The lines of a text that comes in parts.
pub(super) struct JsonLines {
    rest: BytesMut,
    /// Number of bytes at the start of `rest` that contain no end of a line.
    searched: usize,
    /// Number of the last line taken, counted from 1.
    number: u32,
    /// Maximum length of a line in bytes.
    limit: usize,
}

impl JsonLines {
    pub fn new(limit: usize) -> JsonLines {
        JsonLines {
            rest: BytesMut::new(),
            searched: 0,
            number: 0,
            limit,
        }
    }

    /// Adds a part.
    ///
    /// # Errors
    /// `TooLarge` if the line before it is too long.
    pub fn add(&mut self, part: &[u8]) -> Result<()> {
        if self.rest.len() > self.limit {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!(
                    "line {}: it is longer than an item may be. limit={} bytes",
                    self.number + 1,
                    self.limit
                ),
            ));
        }
        self.rest.extend_from_slice(part);
        Ok(())
    }

    /// Returns the next complete line and its number. Lines of white space are left out. At the end of the text the last line needs no line end.
    pub fn next(&mut self, is_end: bool) -> Option<(u32, Bytes)> {
        loop {
            let end = self.rest[self.searched..].iter().position(|byte| *byte == b'\n');
            let line = match end {
                Some(end) => self.rest.split_to(self.searched + end + 1),
                None if is_end && !self.rest.is_empty() => self.rest.split(),
                None => {
                    self.searched = self.rest.len();
                    return None;
                }
            };
            self.searched = 0;
            self.number += 1;
            if !line.trim_ascii().is_empty() {
                return Some((self.number, line.freeze()));
            }
        }
    }
}
