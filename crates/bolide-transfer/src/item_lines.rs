//! Items as the lines of a request's body.

use std::io::{self, Read};

use crate::failure::{Failure, Result};
use crate::item::Item;

/// Reads as JSON lines what a function returns item by item, until it returns `None` or fails.
pub(crate) struct ItemLines<F> {
    next: F,
    line: Vec<u8>,
    sent: usize,
    failure: Option<Failure>,
}

impl<F: FnMut() -> Result<Option<Item>>> ItemLines<F> {
    pub fn new(next: F) -> ItemLines<F> {
        ItemLines {
            next,
            line: Vec::new(),
            sent: 0,
            failure: None,
        }
    }

    /// Why reading has failed: the error of the reader has its text only.
    pub fn into_failure(self) -> Option<Failure> {
        self.failure
    }

    fn next_line(&mut self) -> Result<bool> {
        let Some(item) = (self.next)()? else {
            return Ok(false);
        };
        self.line.clear();
        self.sent = 0;
        let written = serde_json::to_writer(&mut self.line, &item);
        written.map_err(|error| Failure::new(format!("an item cannot be written: {error}")))?;
        self.line.push(b'\n');
        Ok(true)
    }
}

impl<F: FnMut() -> Result<Option<Item>>> Read for ItemLines<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.sent == self.line.len() {
            match self.next_line() {
                Ok(true) => {}
                Ok(false) => return Ok(0),
                Err(failure) => {
                    let message = failure.to_string();
                    self.failure = Some(failure);
                    return Err(io::Error::other(message));
                }
            }
        }
        let rest = &self.line[self.sent..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.sent += count;
        Ok(count)
    }
}
