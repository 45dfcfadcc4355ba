//! Frames on a pipe, and the fields in them.
//!
//! ```text
//!   frame:   length of the rest (4) ‖ tag (1) ‖ fields
//!   text:    length (4) ‖ UTF-8           optional text: flag (1) ‖ text, if the flag is 1
//!   numbers: 4 or 8 bytes                 flags: 1 byte, 0 or 1
//! ```
//!
//! All numbers are big-endian. Each side says how long a frame it takes; a longer one, and one that is not exactly its fields, is an
//! error, and memory is taken as the bytes come, not as the length says.

use std::io::{Error, ErrorKind, Read, Result, Write};

/// Bytes of a frame's length.
const LENGTH_BYTES: usize = 4;

/// A frame that is written.
pub struct Frame(Vec<u8>);

impl Frame {
    /// Begins one.
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
        // What is longer is longer than any frame may be, and refused when it is sent.
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

    /// How long the frame is, without its length.
    pub fn bytes(&self) -> usize {
        self.0.len() - LENGTH_BYTES
    }

    /// Writes it at once.
    ///
    /// # Errors
    /// From the pipe; `InvalidInput` if the frame is longer than `most`.
    pub fn send(mut self, to: &mut impl Write, most: usize) -> Result<()> {
        let length = u32::try_from(self.bytes()).ok().filter(|_| self.bytes() <= most);
        let length = length.ok_or_else(|| Error::new(ErrorKind::InvalidInput, "the frame is too long"))?;
        self.0[..LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
        to.write_all(&self.0)?;
        to.flush()
    }
}

/// Reads the next frame.
///
/// # Errors
/// From the pipe; `UnexpectedEof` also at its end; `InvalidData` if the frame is longer than `most`.
pub fn receive(from: &mut impl Read, most: usize) -> Result<Vec<u8>> {
    let mut length = [0; LENGTH_BYTES];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > most {
        return Err(malformed());
    }
    let mut bytes = Vec::new();
    let read = from.take(length as u64).read_to_end(&mut bytes)?;
    if read < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

/// The error for a frame that is none.
pub fn malformed() -> Error {
    Error::new(ErrorKind::InvalidData, "the frame is malformed")
}

/// The fields of a frame that was read. All methods are `None` where the frame has something else.
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

    /// The value of a frame, if nothing is left over.
    pub fn end<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

#[cfg(test)]
mod tests;
