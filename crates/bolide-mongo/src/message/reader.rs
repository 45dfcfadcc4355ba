//! Reads little-endian numbers, strings and documents from bytes.

use std::ops::Range;

use bolide_mql::value;

use super::error::MessageError;

/// A position in bytes.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from `at` on.
    pub fn new(bytes: &'a [u8], at: usize) -> Reader<'a> {
        Reader { bytes, at }
    }

    /// The number of bytes read so far.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Whether everything is read.
    pub fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Takes one byte.
    pub fn u8(&mut self) -> Result<u8, MessageError> {
        self.take::<1>().map(|[byte]| byte)
    }

    /// Takes an `i32`.
    pub fn i32(&mut self) -> Result<i32, MessageError> {
        self.take().map(i32::from_le_bytes)
    }

    /// Takes a `u32`.
    pub fn u32(&mut self) -> Result<u32, MessageError> {
        self.take().map(u32::from_le_bytes)
    }

    /// Takes a text that ends with a NUL.
    pub fn cstring(&mut self) -> Result<&'a str, MessageError> {
        let rest = self.rest();
        let end = rest.iter().position(|byte| *byte == 0);
        let end = end.ok_or_else(|| MessageError::protocol("a string in the message has no end"))?;
        self.at += end + 1;
        std::str::from_utf8(&rest[..end]).map_err(|_| MessageError::protocol("a string in the message is not UTF-8"))
    }

    /// Takes a document, validated completely; returns its position.
    pub fn document(&mut self) -> Result<Range<usize>, MessageError> {
        let rest = self.rest();
        let length = rest.first_chunk().copied().map(i32::from_le_bytes);
        let length = length.and_then(|length| usize::try_from(length).ok());
        let bytes = length.and_then(|length| rest.get(..length));
        let bytes = bytes.ok_or_else(|| MessageError::bson("the length of a document is not that of its bytes"))?;
        value::validate(bytes).map_err(MessageError)?;
        let start = self.at;
        self.at += bytes.len();
        Ok(start..self.at)
    }

    /// All that is not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let taken = self.rest().first_chunk::<N>();
        let taken = taken.ok_or_else(|| MessageError::protocol("the message ends too early"))?;
        self.at += N;
        Ok(*taken)
    }
}
