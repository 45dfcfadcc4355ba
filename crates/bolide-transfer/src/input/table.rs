//! CSV: the first row has the names of the properties, each other row is an item.
//!
//! A cell is the JSON value that it spells (a number, `true`, `false`, `null`, a string in quotes, an array or object), and otherwise a string. An empty
//! cell is no property. The cell of `id` is always the string itself. So every item without an empty name survives an export and an import.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use serde_json::Value;

use super::source::{InputError, Position};
use super::{Record, Records};
use crate::item::{ITEM_TEXT_BYTES, Item};

/// Bytes that the CSV parser reads at once.
const BUFFER_BYTES: usize = 64 * 1024;

/// The rows of a file.
pub(super) struct Table<R> {
    rows: csv::Reader<Bounded<R>>,
    left: Rc<Cell<usize>>,
    from: Position,
    names: Vec<String>,
    row: csv::StringRecord,
}

/// Fails when a row is longer than an item may be: the parser of rows has no limit.
struct Bounded<R> {
    bytes: R,
    left: Rc<Cell<usize>>,
}

/// Bytes that one row may read: the parser reads ahead.
const ROW_BYTES: usize = ITEM_TEXT_BYTES + BUFFER_BYTES;

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.get() == 0 {
            return Err(io::Error::other(format!(
                "a row is longer than an item may be, {ITEM_TEXT_BYTES} bytes of text"
            )));
        }
        let most = buffer.len().min(self.left.get());
        let count = self.bytes.read(&mut buffer[..most])?;
        self.left.set(self.left.get() - count);
        Ok(count)
    }
}

impl<R: Read> Table<R> {
    /// Reads from the start of the file, where the names are, or from the end of a row with the names as `header`.
    pub fn new(bytes: R, from: Position, header: Option<Vec<String>>) -> Result<Table<R>, InputError> {
        let left = Rc::new(Cell::new(ROW_BYTES));
        let bounded = Bounded {
            bytes,
            left: left.clone(),
        };
        let rows = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(BUFFER_BYTES)
            .from_reader(bounded);
        let mut table = Table {
            rows,
            left,
            from,
            names: Vec::new(),
            row: csv::StringRecord::new(),
        };
        table.names = match header {
            Some(names) => names,
            None => table.read_names()?,
        };
        Ok(table)
    }

    pub fn into_names(self) -> Vec<String> {
        self.names
    }

    fn position(&self) -> Position {
        let at = self.rows.position();
        Position {
            offset: self.from.offset + at.byte(),
            line: self.from.line + at.line() - 1,
            column: 1,
        }
    }

    fn read_names(&mut self) -> Result<Vec<String>, InputError> {
        let start = self.position();
        if !self.read_row()? {
            return Err(InputError::new(
                start,
                "expected a header row with the names of the properties",
            ));
        }
        let mut names: Vec<String> = Vec::with_capacity(self.row.len());
        for (column, name) in self.row.iter().enumerate() {
            let name = if column == 0 {
                name.trim_start_matches('\u{FEFF}')
            } else {
                name
            };
            if name.is_empty() {
                return Err(InputError::new(start, format!("column {}: it has no name", column + 1)));
            }
            if names.iter().any(|other| other == name) {
                let message = format!("column {}: the name `{name}` is there twice", column + 1);
                return Err(InputError::new(start, message));
            }
            names.push(name.to_owned());
        }
        Ok(names)
    }

    /// Reads a row; `false` at the end of the file.
    fn read_row(&mut self) -> Result<bool, InputError> {
        let start = self.position();
        self.left.set(ROW_BYTES);
        self.rows
            .read_record(&mut self.row)
            .map_err(|error| match error.kind() {
                csv::ErrorKind::Utf8 { err, .. } => {
                    InputError::new(start, format!("column {}: not UTF-8", err.field() + 1))
                }
                csv::ErrorKind::Io(error) => InputError::new(start, error.to_string()),
                _ => InputError::new(start, error.to_string()),
            })
    }
}

impl<R: Read> Records for Table<R> {
    fn next(&mut self) -> Result<Option<Record>, InputError> {
        let before = self.position();
        if !self.read_row()? {
            return Ok(None);
        }
        // The parser skips empty lines before a row.
        let start = self.row.position().map_or(before, |at| Position {
            offset: self.from.offset + at.byte(),
            line: self.from.line + at.line() - 1,
            column: 1,
        });
        if self.row.len() != self.names.len() {
            let message = format!(
                "the row has {} cells, and the header row {}",
                self.row.len(),
                self.names.len()
            );
            return Err(InputError::new(start, message));
        }
        let mut item = Item::new();
        for (name, cell) in self.names.iter().zip(self.row.iter()) {
            if name == "id" {
                item.insert(name.clone(), Value::String(cell.to_owned()));
            } else if let Some(value) = cell_value(cell) {
                item.insert(name.clone(), value);
            }
        }
        let text = Value::Object(item.clone()).to_string().into_bytes();
        if text.len() > ITEM_TEXT_BYTES {
            return Err(super::lines::too_long(start));
        }
        Ok(Some(Record {
            item,
            text,
            start,
            end: self.position(),
        }))
    }
}

/// The value of a cell other than that of `id`; `None` for an empty one.
pub(super) fn cell_value(cell: &str) -> Option<Value> {
    let first = *cell.as_bytes().first()?;
    let may_be_json = matches!(first, b'"' | b'{' | b'[' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n');
    let is_bare = !cell.ends_with(|c: char| c.is_ascii_whitespace());
    let json = (may_be_json && is_bare)
        .then(|| serde_json::from_str(cell).ok())
        .flatten();
    Some(json.unwrap_or_else(|| Value::String(cell.to_owned())))
}

/// The cell of a property's value.
///
/// Agrees with: [`cell_value`], which gives the value again.
pub(crate) fn cell_text(name: &str, value: &Value) -> String {
    match value {
        Value::String(text) if name == "id" || cell_value(text).as_ref() == Some(value) => text.clone(),
        other => other.to_string(),
    }
}
