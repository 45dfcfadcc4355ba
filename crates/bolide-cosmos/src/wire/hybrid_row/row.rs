//! One row, column by column in the order of its schema.

use bolide_model::{Error, Result};
use bytes::Bytes;

use super::VERSION;

/// The id of a row's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Schema(pub i32);

impl Schema {
    pub const SEGMENT: Schema = Schema(0x7FFF_D8F0);
    pub const RECORD: Schema = Schema(0x7FFF_D8F1);
    pub const OPERATION: Schema = Schema(0x7FE1_5470);
    pub const RESULT: Schema = Schema(0x7FE1_5471);
}

/// Length of the part before the columns: version and schema id.
pub(super) const HEADER_BYTES: usize = 5;

/// Type codes of sparse fields in these schemas.
mod code {
    pub const NULL: u8 = 1;
    pub const FALSE: u8 = 2;
    pub const TRUE: u8 = 3;
    pub const INT32: u8 = 7;
    pub const UINT32: u8 = 11;
    pub const FLOAT64: u8 = 16;
    pub const UTF8: u8 = 20;
}

/// Reads a row. Its methods are called in the order of the schema's columns.
#[derive(Debug)]
pub(super) struct RowReader {
    row: Bytes,
    at: usize,
}

/// The value of a sparse field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sparse {
    Null,
    Bool(bool),
    Int32(i32),
    Text(String),
}

impl RowReader {
    /// Begins with a row of this schema.
    ///
    /// # Errors
    /// `BadRequest` if it has another schema, or is not a row.
    pub fn new(row: Bytes, schema: Schema) -> Result<RowReader> {
        let mut reader = RowReader { row, at: 0 };
        let found = reader.header()?;
        if found != schema {
            return Err(bad(
                &format!("schema id {} in place of {}", found.0, schema.0),
                reader.at,
            ));
        }
        Ok(reader)
    }

    /// The schema of the row at a position of a stream.
    pub fn schema_at(stream: &Bytes, at: usize) -> Result<Schema> {
        let mut reader = RowReader {
            row: stream.clone(),
            at,
        };
        reader.header()
    }

    fn header(&mut self) -> Result<Schema> {
        let version = self.byte()?;
        if version != VERSION {
            return Err(bad(&format!("version 0x{version:02X} of a row"), self.at - 1));
        }
        self.int32().map(Schema)
    }

    /// The number of bytes read.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The presence bits of up to eight columns.
    pub fn presence(&mut self) -> Result<u8> {
        self.byte()
    }

    pub fn int32(&mut self) -> Result<i32> {
        self.array().map(i32::from_le_bytes)
    }

    pub fn uint32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// A variable column, or a value in the same format.
    pub fn binary(&mut self) -> Result<Bytes> {
        let length = self.number()?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let end = self.at.checked_add(length).filter(|end| *end <= self.row.len());
        let end = end.ok_or_else(|| bad("a value ends after its row", self.at))?;
        let bytes = self.row.slice(self.at..end);
        self.at = end;
        Ok(bytes)
    }

    /// As [`RowReader::binary`], for UTF-8.
    pub fn text(&mut self) -> Result<String> {
        let bytes = self.binary()?;
        let text = std::str::from_utf8(&bytes).map_err(|_| bad("a text is not UTF-8", self.at))?;
        Ok(text.to_owned())
    }

    /// The next sparse field, with the number of its column; `None` at the end of the row.
    pub fn sparse(&mut self) -> Result<Option<(u64, Sparse)>> {
        if self.at == self.row.len() {
            return Ok(None);
        }
        let code = self.byte()?;
        let column = self.number()?;
        let value = match code {
            code::NULL => Sparse::Null,
            code::FALSE => Sparse::Bool(false),
            code::TRUE => Sparse::Bool(true),
            code::INT32 => Sparse::Int32(self.int32()?),
            code::UTF8 => Sparse::Text(self.text()?),
            _ => {
                return Err(bad(
                    &format!("type code {code} of a sparse field is not known"),
                    self.at,
                ));
            }
        };
        Ok(Some((column, value)))
    }

    /// A number of seven bits per byte, low ones first; the top bit means that more follow.
    fn number(&mut self) -> Result<u64> {
        let start = self.at;
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(bad("a number does not fit 64 bits", start))
    }

    fn byte(&mut self) -> Result<u8> {
        self.array().map(|[byte]: [u8; 1]| byte)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let rest = self.row.get(self.at..).unwrap_or_default();
        let bytes = rest.first_chunk().ok_or_else(|| bad("cut short", self.at))?;
        self.at += N;
        Ok(*bytes)
    }
}

/// Writes a row at the end of a buffer, column by column.
#[derive(Debug)]
pub(super) struct RowWriter<'o>(&'o mut Vec<u8>);

impl RowWriter<'_> {
    /// Begins a row.
    pub fn new(out: &mut Vec<u8>, schema: Schema) -> RowWriter<'_> {
        out.push(VERSION);
        out.extend_from_slice(&schema.0.to_le_bytes());
        RowWriter(out)
    }

    pub fn presence(&mut self, bits: u8) {
        self.0.push(bits);
    }

    pub fn int32(&mut self, value: i32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub fn uint32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub fn binary(&mut self, value: &[u8]) {
        self.number(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    pub fn sparse_uint32(&mut self, column: u64, value: u32) {
        self.0.push(code::UINT32);
        self.number(column);
        self.uint32(value);
    }

    pub fn sparse_float64(&mut self, column: u64, value: f64) {
        self.0.push(code::FLOAT64);
        self.number(column);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7F) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// The error for a malformed body. `at` counts bytes from the start of the row.
pub(super) fn bad(what: &str, at: usize) -> Error {
    Error::bad_request(format!("malformed HybridRow body: {what}. byte={at}"))
}
