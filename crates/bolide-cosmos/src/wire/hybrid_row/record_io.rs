//! RecordIO: rows with their lengths and checksums before them.

use bolide_model::{Error, Result};
use bytes::Bytes;

use super::row::{HEADER_BYTES, RowReader, RowWriter, Schema, bad};

/// Presence byte and length.
const SEGMENT_BYTES: usize = HEADER_BYTES + 5;
/// Length and checksum.
const RECORD_BYTES: usize = HEADER_BYTES + 8;

/// The rows of a stream, at most `limit` of them. There may be several segments.
///
/// # Errors
/// `BadRequest` if headers are malformed or lengths exceed the stream, if a checksum is wrong, and above the limit.
pub(super) fn rows(stream: &Bytes, limit: usize) -> Result<Vec<Bytes>> {
    let mut rows = Vec::new();
    let mut at = segment_end(stream, 0)?;
    while at < stream.len() {
        if RowReader::schema_at(stream, at)? == Schema::SEGMENT {
            at = segment_end(stream, at)?;
            continue;
        }
        let start = at + RECORD_BYTES;
        let mut header = RowReader::new(part(stream, at, start)?, Schema::RECORD)?;
        let (length, checksum) = (header.int32()?, header.uint32()?);
        let end = length_end(start, length)?;
        let row = part(stream, start, end)?;
        if crc32fast::hash(&row) != checksum {
            return Err(bad("the checksum of a record is wrong", at));
        }
        if rows.len() == limit {
            return Err(too_many(limit));
        }
        rows.push(row);
        at = end;
    }
    Ok(rows)
}

/// The end of a segment's header. Fields after its length, a comment or a schema, are ignored.
fn segment_end(stream: &Bytes, at: usize) -> Result<usize> {
    let mut header = RowReader::new(part(stream, at, at + SEGMENT_BYTES)?, Schema::SEGMENT)?;
    header.presence()?;
    let end = length_end(at, header.int32()?)?;
    if end < at + header.position() || end > stream.len() {
        return Err(bad("the length of a segment header is wrong", at));
    }
    Ok(end)
}

fn length_end(start: usize, length: i32) -> Result<usize> {
    let end = usize::try_from(length)
        .ok()
        .and_then(|length| start.checked_add(length));
    end.ok_or_else(|| bad("a length is negative", start))
}

fn part(stream: &Bytes, start: usize, end: usize) -> Result<Bytes> {
    if end > stream.len() {
        return Err(bad("cut short", stream.len()));
    }
    Ok(stream.slice(start..end))
}

fn too_many(limit: usize) -> Error {
    Error::bad_request(format!(
        "Batch request has more operations than what is supported. limit={limit}"
    ))
}

/// Begins a stream.
pub(super) fn begin(out: &mut Vec<u8>) {
    let mut header = RowWriter::new(out, Schema::SEGMENT);
    header.presence(1);
    header.int32(SEGMENT_BYTES as i32);
}

/// Adds a row to a stream.
pub(super) fn record(out: &mut Vec<u8>, row: &[u8]) {
    let mut header = RowWriter::new(out, Schema::RECORD);
    let length = i32::try_from(row.len()).expect("answers of two gigabytes are not made");
    header.int32(length);
    header.uint32(crc32fast::hash(row));
    out.extend_from_slice(row);
}
