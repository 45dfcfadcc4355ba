//! Operations of a batch, as rows.
//!
//! ```text
//!   presence bit, fixed      0 operationType i32 · 1 resourceType i32
//!   presence bit, variable   2 partitionKey text · 3 effectivePartitionKey bytes · 4 id text · 5 binaryId bytes · 6 resourceBody bytes
//!   column number, sparse    8 indexingDirective text · 9 ifMatch text · 10 ifNoneMatch text · 11 timeToLiveInSeconds i32
//!                            12 minimalReturnPreference bool
//! ```

use bolide_model::{Error, Result};
use bytes::Bytes;

use super::record_io;
use super::row::{RowReader, Schema, Sparse, bad};

/// `resourceType` of an item.
const ITEM: i32 = 2;

/// One operation from its row. Absent members were not sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Operation {
    /// `Create`, `Upsert` …, as in the JSON format; the number itself if it is unknown.
    pub kind: String,
    /// JSON array; only in bulk.
    pub partition_key: Option<String>,
    pub id: Option<String>,
    /// The item or the patch, as JSON text or binary JSON.
    pub body: Option<Bytes>,
    pub if_match: Option<String>,
    pub if_none_match: Option<String>,
    pub is_minimal: bool,
    /// The name of a column that only parts of the service may send.
    pub internal: Option<&'static str>,
}

/// Reads a stream of operations, at most `limit` of them.
///
/// # Errors
/// `BadRequest` if the stream or a row in it is malformed, or if there are more operations.
pub(crate) fn operations(body: &Bytes, limit: usize) -> Result<Vec<Operation>> {
    record_io::rows(body, limit)?.into_iter().map(operation).collect()
}

fn operation(row: Bytes) -> Result<Operation> {
    let mut row = RowReader::new(row, Schema::OPERATION)?;
    let mut operation = Operation::default();
    schematized(&mut row, &mut operation)?;
    while let Some((column, value)) = row.sparse()? {
        sparse(&mut operation, column, value, row.position())?;
    }
    Ok(operation)
}

fn schematized(row: &mut RowReader, operation: &mut Operation) -> Result<()> {
    let presence = row.presence()?;
    let has = |bit: u8| presence & 1 << bit != 0;
    let (kind, resource) = (row.int32()?, row.int32()?);
    if !has(0) {
        return Err(bad("`operationType` is missing", row.position()));
    }
    if !has(1) || resource != ITEM {
        return Err(bad("`resourceType` must be 2", row.position()));
    }
    operation.kind = spelled(kind);
    if has(2) {
        operation.partition_key = Some(row.text()?);
    }
    if has(3) {
        row.binary()?;
        operation.internal = Some("effectivePartitionKey");
    }
    if has(4) {
        operation.id = Some(row.text()?);
    }
    if has(5) {
        row.binary()?;
        operation.internal = Some("binaryId");
    }
    if has(6) {
        operation.body = Some(row.binary()?);
    }
    Ok(())
}

fn sparse(operation: &mut Operation, column: u64, value: Sparse, at: usize) -> Result<()> {
    match (column, value) {
        // An indexing directive has no effect visible to clients; the JSON format of a batch ignores it too.
        (8, Sparse::Text(_)) | (8..=12, Sparse::Null) => {}
        (9, Sparse::Text(etag)) => operation.if_match = Some(etag),
        (10, Sparse::Text(etag)) => operation.if_none_match = Some(etag),
        (11, Sparse::Int32(_)) => operation.internal = Some("timeToLiveInSeconds"),
        (12, Sparse::Bool(is_minimal)) => operation.is_minimal = is_minimal,
        (8..=12, _) => return Err(bad(&format!("sparse column {column} has another type"), at)),
        _ => return Err(bad(&format!("sparse column {column} is not known"), at)),
    }
    Ok(())
}

/// The JSON format's name of a number of the .NET SDK's `OperationType`.
fn spelled(kind: i32) -> String {
    let known = match kind {
        0 => "Create",
        1 => "Patch",
        2 => "Read",
        4 => "Delete",
        5 => "Replace",
        20 => "Upsert",
        other => return other.to_string(),
    };
    known.to_owned()
}

impl Operation {
    /// Refuses columns with which parts of the service override an item.
    ///
    /// # Errors
    /// `NotSupported`, with the name of the column.
    pub(crate) fn check(&self) -> Result<()> {
        self.internal.map_or(Ok(()), |column| {
            Err(Error::not_supported(format!(
                "this server does not support `{column}` of a batch operation"
            )))
        })
    }
}
