//! Items from files: lines of JSON, one JSON array, or CSV with a header row. All are read in a bounded buffer, whatever the file's length.

mod array;
mod lines;
mod parse;
mod source;
mod table;

use std::io::Read;
use std::path::Path;

pub(crate) use self::source::{InputError, Position};
pub(crate) use self::table::cell_text;
#[cfg(test)]
use self::table::cell_value;

use crate::failure::{Failure, Result};
use crate::item::Item;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// An item in each line.
    Jsonl,
    /// One array of items.
    Json,
    /// Comma-separated values; the first row has the names of the properties.
    Csv,
}

impl Format {
    /// The format that a file's ending stands for: `.jsonl` or `.ndjson`, `.json`, `.csv`, in either case.
    ///
    /// # Errors
    /// Any other ending.
    pub fn of_file(path: &Path) -> Result<Format> {
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        match ending.to_ascii_lowercase().as_str() {
            "jsonl" | "ndjson" => Ok(Format::Jsonl),
            "json" => Ok(Format::Json),
            "csv" => Ok(Format::Csv),
            _ => Err(Failure::new(format!(
                "{}: the ending does not say the format (.jsonl, .ndjson, .json or .csv): name it with --format",
                path.display()
            ))),
        }
    }
}

/// An item of a file, and its place there.
#[derive(Debug)]
pub(crate) struct Record {
    pub item: Item,
    /// One JSON object in UTF-8, as in the file, or made from a row.
    pub text: Vec<u8>,
    /// Where it begins.
    pub start: Position,
    /// Where the rest of the file begins: a reader that starts here reads the next item.
    pub end: Position,
}

/// The items of a file in their order.
pub(crate) trait Records {
    /// The next item; `None` at the end of the file.
    ///
    /// # Errors
    /// What is wrong in the file, and where. Nothing is read after an error.
    fn next(&mut self) -> std::result::Result<Option<Record>, InputError>;
}

/// Opens a reader that starts at `from`, where `bytes` begins.
///
/// CSV has its names in the first row: `header` is that row if `from` is not the start of the file.
pub(crate) fn open<'a>(
    format: Format,
    bytes: impl Read + 'a,
    from: Position,
    header: Option<Vec<String>>,
) -> std::result::Result<Box<dyn Records + 'a>, InputError> {
    Ok(match format {
        Format::Jsonl => Box::new(lines::Lines::new(bytes, from)),
        Format::Json => Box::new(array::Array::new(bytes, from)),
        Format::Csv => Box::new(table::Table::new(bytes, from, header)?),
    })
}

/// The names in the first row of a CSV file.
pub(crate) fn header(bytes: impl Read) -> std::result::Result<Vec<String>, InputError> {
    table::Table::new(bytes, Position::start(), None).map(table::Table::into_names)
}

#[cfg(test)]
mod tests;
