//! Frames on a pipe, and the fields in them.
//!
//! ```text
//!   frame:   length of the rest (4) ‖ tag (1) ‖ fields
//!   text:    length (4) ‖ UTF-8           optional text: flag (1) ‖ text, if the flag is 1
//!   numbers: 4 or 8 bytes                 flags: 1 byte, 0 or 1
//! ```
//!
//! All numbers are big-endian. Each side limits the length of frames it accepts; a longer one, and one that is not exactly its fields, is an error.
//! Memory is allocated as bytes arrive, not by the length field.

use std::io::{Error, ErrorKind, Read, Result, Write};

/// Bytes of a frame's length.
const LENGTH_BYTES: usize = 4;

/// A frame to send.
pub struct Frame(Vec<u8>);

impl Frame {
    /// An empty frame with this tag.
    pub fn new(tag: u8) -> Frame {
        let mut bytes = vec![0; LENGTH_BYTES];
        bytes.push(tag);
        Frame(bytes)
    }

    pub fn flag(mut self, flag: bool) -> Frame {
        self.0.push(u8::from(flag));
        self
    }

    pub fn small(mut self, number: u32) -> Frame {
        self.0.extend(number.to_be_bytes());
        self
    }

    pub fn number(mut self, number: u64) -> Frame {
        self.0.extend(number.to_be_bytes());
        self
    }

    pub fn text(self, text: &str) -> Frame {
        // A longer text exceeds the limit of any frame, and is refused when it is sent.
        let mut frame = self.small(u32::try_from(text.len()).unwrap_or(u32::MAX));
        frame.0.extend(text.as_bytes());
        frame
    }

    pub fn optional(self, text: Option<&str>) -> Frame {
        match text {
            Some(text) => self.flag(true).text(text),
            None => self.flag(false),
        }
    }

    /// The length of the frame, without the length field.
    pub fn bytes(&self) -> usize {
        self.0.len() - LENGTH_BYTES
    }

    /// Writes the frame.
    ///
    /// # Errors
    /// Errors of the pipe; `InvalidInput` if the frame is longer than `max_bytes`.
    pub fn send(mut self, to: &mut impl Write, max_bytes: usize) -> Result<()> {
        let length = u32::try_from(self.bytes()).ok().filter(|_| self.bytes() <= max_bytes);
        let length = length.ok_or_else(|| Error::new(ErrorKind::InvalidInput, "the frame is too long"))?;
        self.0[..LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
        to.write_all(&self.0)?;
        to.flush()
    }
}

/// Reads the next frame.
///
/// # Errors
/// Errors of the pipe; `UnexpectedEof` also at its end; `InvalidData` if the frame is longer than `max_bytes`.
pub fn receive(from: &mut impl Read, max_bytes: usize) -> Result<Vec<u8>> {
    let mut length = [0; LENGTH_BYTES];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > max_bytes {
        return Err(malformed());
    }
    let mut bytes = Vec::new();
    let read = from.take(length as u64).read_to_end(&mut bytes)?;
    if read < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

/// The error for an invalid frame.
pub fn malformed() -> Error {
    Error::new(ErrorKind::InvalidData, "the frame is malformed")
}

/// The fields of a received frame. All methods return `None` if the frame has something else.
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub fn of(frame: &'a [u8]) -> Fields<'a> {
        Fields(frame)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub fn tag(&mut self) -> Option<u8> {
        self.take::<1>().map(|[tag]| tag)
    }

    pub fn flag(&mut self) -> Option<bool> {
        match self.take()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    pub fn small(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    pub fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    pub fn text(&mut self) -> Option<String> {
        let length = self.small()? as usize;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok().map(str::to_owned)
    }

    pub fn optional(&mut self) -> Option<Option<String>> {
        Some(if self.flag()? { Some(self.text()?) } else { None })
    }

    /// Returns `value` if no bytes are left.
    pub fn end<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

#[cfg(test)]
mod tests;
