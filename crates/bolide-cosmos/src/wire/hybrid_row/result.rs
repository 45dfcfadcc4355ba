//! Results of a batch, as rows.
//!
//! ```text
//!   presence bit, fixed      0 statusCode i32 · 1 subStatusCode i32
//!   presence bit, variable   2 eTag text · 3 resourceBody bytes
//!   column number, sparse    5 retryAfterMilliseconds u32 · 6 requestCharge f64
//! ```

use super::record_io;
use super::row::{RowWriter, Schema};

/// The result of one operation.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ResultRow<'r> {
    pub status: u16,
    pub sub_status: u32,
    pub etag: Option<&'r str>,
    /// The item's JSON text.
    pub body: Option<&'r [u8]>,
    pub retry_after_ms: Option<u32>,
    pub charge: Option<f64>,
}

impl ResultRow<'_> {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64 + self.body.map_or(0, <[u8]>::len));
        let mut row = RowWriter::new(&mut bytes, Schema::RESULT);
        row.presence(0b11 | u8::from(self.etag.is_some()) << 2 | u8::from(self.body.is_some()) << 3);
        row.int32(i32::from(self.status));
        row.int32(i32::try_from(self.sub_status).unwrap_or_default());
        if let Some(etag) = self.etag {
            row.binary(etag.as_bytes());
        }
        if let Some(body) = self.body {
            row.binary(body);
        }
        if let Some(retry_after_ms) = self.retry_after_ms {
            row.sparse_uint32(5, retry_after_ms);
        }
        if let Some(charge) = self.charge {
            row.sparse_float64(6, charge);
        }
        bytes
    }
}

/// A stream of results, to which more can be added.
#[derive(Debug)]
pub(crate) struct Results(Vec<u8>);

impl Results {
    pub fn new() -> Results {
        let mut stream = Vec::new();
        record_io::begin(&mut stream);
        Results(stream)
    }

    pub fn push(&mut self, result: &ResultRow<'_>) {
        record_io::record(&mut self.0, &result.encode());
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}
