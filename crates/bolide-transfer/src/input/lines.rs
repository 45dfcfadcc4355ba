//! Lines of JSON.

use std::io::Read;

use super::source::{InputError, Position, Source};
use super::{Record, Records, parse};
use crate::item::ITEM_TEXT_BYTES;

/// The lines of a file.
pub(super) struct Lines<R> {
    source: Source<R>,
}

impl<R: Read> Lines<R> {
    pub fn new(bytes: R, from: Position) -> Lines<R> {
        Lines {
            source: Source::new(bytes, from),
        }
    }

    /// Reads a line with its end into `line`; `false` at the end of the file.
    fn read(&mut self, line: &mut Vec<u8>) -> Result<bool, InputError> {
        let start = self.source.position();
        loop {
            let buffered = self.source.buffered()?;
            if buffered.is_empty() {
                return Ok(!line.is_empty());
            }
            let end = memchr::memchr(b'\n', buffered);
            let count = end.map_or(buffered.len(), |end| end + 1);
            if line.len() + count > ITEM_TEXT_BYTES {
                return Err(too_long(start));
            }
            self.source.take(count, line);
            if end.is_some() {
                return Ok(true);
            }
        }
    }
}

/// An item is larger than any server stores.
pub(super) fn too_long(start: Position) -> InputError {
    InputError::new(
        start,
        format!("longer than an item may be, {ITEM_TEXT_BYTES} bytes of text"),
    )
}

impl<R: Read> Records for Lines<R> {
    fn next(&mut self) -> Result<Option<Record>, InputError> {
        loop {
            self.source.buffered()?;
            let start = self.source.position();
            let mut line = Vec::new();
            if !self.read(&mut line)? {
                return Ok(None);
            }
            let blank = line.len() - line.trim_ascii_start().len();
            let text = line.trim_ascii();
            if text.is_empty() {
                continue;
            }
            let start = start.after(&line[..blank]);
            return Ok(Some(Record {
                item: parse::item(text, start)?,
                text: text.to_vec(),
                start,
                end: self.source.position(),
            }));
        }
    }
}
