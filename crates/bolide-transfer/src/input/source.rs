//! Bytes of a file with their position.

use std::io::{self, BufRead as _, BufReader, Read};

/// A position in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Position {
    /// Bytes before it.
    pub offset: u64,
    /// From 1.
    pub line: u64,
    /// In bytes, from 1.
    pub column: u64,
}

impl Position {
    /// Before the first byte.
    pub fn start() -> Position {
        Position {
            offset: 0,
            line: 1,
            column: 1,
        }
    }

    /// The position after these bytes.
    pub fn after(self, bytes: &[u8]) -> Position {
        let breaks = memchr::memchr_iter(b'\n', bytes).count() as u64;
        let column = match memchr::memrchr(b'\n', bytes) {
            Some(at) => (bytes.len() - at) as u64,
            None => self.column + bytes.len() as u64,
        };
        Position {
            offset: self.offset + bytes.len() as u64,
            line: self.line + breaks,
            column,
        }
    }
}

/// What is wrong in a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputError {
    pub at: Position,
    pub message: String,
}

impl InputError {
    pub fn new(at: Position, message: impl Into<String>) -> InputError {
        InputError {
            at,
            message: message.into(),
        }
    }
}

/// A buffered reader that knows its position.
pub(super) struct Source<R> {
    reader: BufReader<R>,
    position: Position,
}

/// Bytes that are read from the file at once.
const BUFFER_BYTES: usize = 256 * 1024;

impl<R: Read> Source<R> {
    /// A reader whose first byte is at `position`. Skips a byte order mark at the start of the file.
    pub fn new(bytes: R, position: Position) -> Source<R> {
        Source {
            reader: BufReader::with_capacity(BUFFER_BYTES, bytes),
            position,
        }
    }

    pub fn position(&self) -> Position {
        self.position
    }

    /// The bytes that are buffered; empty at the end of the file.
    pub fn buffered(&mut self) -> Result<&[u8], InputError> {
        const MARK: &[u8] = b"\xEF\xBB\xBF";
        let at = self.position;
        let failed = |error: io::Error| InputError::new(at, format!("cannot be read: {error}"));
        let is_marked = self.position.offset == 0 && self.reader.fill_buf().map_err(failed)?.starts_with(MARK);
        if is_marked {
            self.reader.consume(MARK.len());
            self.position.offset = MARK.len() as u64;
        }
        self.reader.fill_buf().map_err(failed)
    }

    /// Takes the first `count` of the buffered bytes, and appends them to `to`.
    pub fn take(&mut self, count: usize, to: &mut Vec<u8>) {
        let taken = self.reader.buffer().get(..count).unwrap_or_default();
        to.extend_from_slice(taken);
        self.position = self.position.after(taken);
        self.reader.consume(count);
    }

    /// Takes the first `count` of the buffered bytes, and drops them.
    pub fn skip(&mut self, count: usize) {
        let taken = self.reader.buffer().get(..count).unwrap_or_default();
        self.position = self.position.after(taken);
        self.reader.consume(count);
    }
}
