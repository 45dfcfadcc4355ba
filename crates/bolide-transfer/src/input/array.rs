//! One JSON array, of any length: the items are found by counting brackets, and parsed one by one.

use std::io::Read;

use super::lines::too_long;
use super::source::{InputError, Position, Source};
use super::{Record, Records, parse};
use crate::item::ITEM_TEXT_BYTES;

/// The items of an array.
pub(super) struct Array<R> {
    source: Source<R>,
    state: State,
}

/// What comes next, besides white space.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The opening bracket.
    Open,
    /// An item, or the closing bracket.
    First,
    /// A comma, or the closing bracket.
    Next,
    /// An item, after a comma.
    Item,
    /// Nothing.
    End,
}

impl<R: Read> Array<R> {
    /// Reads from the start of the file, or from the end of an item.
    pub fn new(bytes: R, from: Position) -> Array<R> {
        Array {
            source: Source::new(bytes, from),
            state: if from.offset == 0 { State::Open } else { State::Next },
        }
    }

    /// The next byte that is not white space, not taken yet.
    fn peek(&mut self) -> Result<Option<u8>, InputError> {
        loop {
            let buffered = self.source.buffered()?;
            if buffered.is_empty() {
                return Ok(None);
            }
            match buffered.iter().position(|byte| !byte.is_ascii_whitespace()) {
                Some(at) => {
                    let byte = buffered[at];
                    self.source.skip(at);
                    return Ok(Some(byte));
                }
                None => {
                    let count = buffered.len();
                    self.source.skip(count);
                }
            }
        }
    }

    fn refuse<T>(&self, expected: &str, found: Option<u8>) -> Result<T, InputError> {
        let found = match found {
            Some(byte) => format!("found `{}`", byte.escape_ascii()),
            None => "the file ends here".to_owned(),
        };
        Err(InputError::new(
            self.source.position(),
            format!("expected {expected}: {found}"),
        ))
    }

    /// Takes the text of an item, which begins with a brace.
    fn take_item(&mut self) -> Result<Vec<u8>, InputError> {
        let start = self.source.position();
        let (mut text, mut nesting) = (Vec::new(), Nesting::default());
        loop {
            let buffered = self.source.buffered()?;
            if buffered.is_empty() {
                return self.refuse("the end of an item", None);
            }
            let end = buffered.iter().position(|byte| nesting.ends_at(*byte));
            let count = end.map_or(buffered.len(), |end| end + 1);
            if text.len() + count > ITEM_TEXT_BYTES {
                return Err(too_long(start));
            }
            self.source.take(count, &mut text);
            if end.is_some() {
                return Ok(text);
            }
        }
    }
}

/// The brackets that are open.
#[derive(Default)]
struct Nesting {
    depth: usize,
    is_string: bool,
    is_escaped: bool,
}

impl Nesting {
    /// Counts a byte; `true` if it closes the first bracket.
    fn ends_at(&mut self, byte: u8) -> bool {
        if self.is_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.is_string = false,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' => self.is_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }
}

impl<R: Read> Records for Array<R> {
    fn next(&mut self) -> Result<Option<Record>, InputError> {
        loop {
            let byte = self.peek()?;
            match (self.state, byte) {
                (State::Open, Some(b'[')) => self.state = State::First,
                (State::Open, _) => return self.refuse("`[`, the start of an array of items", byte),
                (State::First | State::Next, Some(b']')) => self.state = State::End,
                (State::Next, Some(b',')) => self.state = State::Item,
                (State::Next, _) => return self.refuse("`,` or `]` after an item", byte),
                (State::First | State::Item, Some(b'{')) => {
                    let start = self.source.position();
                    let text = self.take_item()?;
                    self.state = State::Next;
                    return Ok(Some(Record {
                        item: parse::item(&text, start)?,
                        text,
                        start,
                        end: self.source.position(),
                    }));
                }
                (State::First | State::Item, _) => return self.refuse("`{`, the start of an item", byte),
                (State::End, None) => return Ok(None),
                (State::End, Some(_)) => return self.refuse("the end of the file after `]`", byte),
            }
            self.source.skip(1);
        }
    }
}
