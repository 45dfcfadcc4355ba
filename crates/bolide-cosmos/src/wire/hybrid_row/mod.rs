//! HybridRow, the binary format in which .NET sends batches and reads their results (cosmos-rest §5.9).
//!
//! A body is a RecordIO stream: a segment header, then for each operation or result a record header and a row. Headers are rows too.
//! All integers are little-endian.
//!
//! ```text
//!   row             81 · schema id i32 · presence bits · fixed columns · variable columns · sparse fields, to the end of the row
//!   segment header  schema 7FFFD8F0 · one presence bit · length i32 of this very row (10, more with a comment)
//!   record header   schema 7FFFD8F1 · no presence bits · length i32 of the row that follows · its CRC-32 u32
//!   operation       schema 7FE15470, see `operation`
//!   result          schema 7FE15471, see `result`
//! ```
//!
//! A fixed column takes its space whether or not its presence bit is set; a variable one is present only if it is: its length as a number of seven
//! bits per byte, low ones first, then its bytes. A sparse field is a type code, the number of its column counted from 1, and a value.
//!
//! Not supported: types and nesting that these four schemas do not use.
//!
//! Source: the HybridRow grammar and the batch schemas of the .NET SDK.

mod operation;
mod record_io;
mod result;
mod row;

pub(crate) use operation::{Operation, operations};
pub(crate) use result::{ResultRow, Results};

use bytes::Bytes;

/// The version at the start of every row. Neither JSON text nor binary JSON begins with it.
const VERSION: u8 = 0x81;

/// Whether a body is a RecordIO stream of rows.
pub(crate) fn is_rows(body: &Bytes) -> bool {
    body.first() == Some(&VERSION)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::batch_of;
