//! The results of a batch, one per operation and in their order, in the format of the request.

use std::fmt::Write as _;

use bolide_core::{OperationDone, OperationResult};
use bolide_model::{Error, ErrorKind, RequestUnits, charge, limits};
use http::StatusCode;
use serde_json::json;

use super::from_wire::Sent;
use crate::request::Call;
use crate::status::Failure;
use crate::wire::hybrid_row::{self, ResultRow};
use crate::wire::{Reply, headers};

/// For an operation that was not carried out because of another (cosmos-rest §5.8).
const FAILED_DEPENDENCY: u16 = 424;
/// For an operation that was not carried out because the response has reached its maximum size. .NET's bulk sends such operations again, in another request.
const TOO_LARGE: u16 = 413;
const RESPONSE_SIZE_EXCEEDED: u32 = 3402;

/// The results so far.
pub(super) struct Results {
    form: Form,
    written: usize,
    /// Bytes of the items in them.
    bytes: usize,
    /// For each operation, whether the client does not want its item in the response.
    minimal: Vec<bool>,
    has_failed: bool,
    /// Whether nothing was changed because an item does not exist.
    is_of_missing: bool,
}

/// The format of the results.
enum Form {
    /// A JSON array, not closed yet.
    Json(Vec<u8>),
    /// .NET's binary format. It has no messages.
    Rows(hybrid_row::Results),
}

impl Results {
    pub fn new(call: &Call<'_>, sent: &[Sent]) -> Results {
        let all_minimal = headers::prefers_minimal(call.headers());
        let minimal: Vec<bool> = sent.iter().map(|sent| all_minimal || sent.is_minimal).collect();
        let form = if hybrid_row::is_rows(call.body) {
            Form::Rows(hybrid_row::Results::new())
        } else {
            Form::Json(vec![b'['])
        };
        Results {
            form,
            written: 0,
            bytes: 0,
            minimal,
            has_failed: false,
            is_of_missing: false,
        }
    }

    /// Whether an operation has failed so far.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// For each operation, whether the client wants the written item in the response.
    pub fn answers_written(&self) -> Vec<bool> {
        self.minimal.iter().map(|is_minimal| !is_minimal).collect()
    }

    /// Whether the response has reached its maximum size, so that no more operations are carried out.
    pub fn is_full(&self) -> bool {
        self.bytes >= limits::PAGE_BYTES
    }

    /// Adds the result of an operation that was carried out.
    pub fn done(&mut self, result: &OperationResult) {
        let charge = result.charge.rounded().0;
        let (status, etag, body) = match &result.done {
            OperationDone::Written(written) => {
                let status = if written.created { 201 } else { 200 };
                let body = (!self.is_minimal()).then(|| written.item.to_json());
                (status, Some(written.item.etag()), body)
            }
            OperationDone::Read(item) => (200, Some(item.etag()), Some(item.to_json())),
            OperationDone::NotModified { etag } => (304, Some(*etag), None),
            OperationDone::Deleted => (204, None, None),
        };
        let etag = etag.map(|etag| etag.to_string());
        let row = ResultRow {
            status,
            etag: etag.as_deref(),
            body: body.as_deref(),
            charge: Some(charge),
            ..ResultRow::default()
        };
        self.push(&row, None);
    }

    /// Adds an error.
    pub fn refused(&mut self, error: Error, charge: RequestUnits) {
        let failure = Failure::from(error);
        let retry_after = failure.retry_after;
        let row = ResultRow {
            status: failure.status.http.as_u16(),
            sub_status: failure.status.sub,
            retry_after_ms: retry_after.map(|after| u32::try_from(after.as_millis()).unwrap_or(u32::MAX)),
            charge: Some(charge.rounded().0),
            ..ResultRow::default()
        };
        self.has_failed = true;
        self.push(&row, Some(&failure.message));
    }

    /// Adds an operation that was not carried out because its result does not fit.
    pub fn too_large(&mut self) {
        let row = ResultRow {
            status: TOO_LARGE,
            sub_status: RESPONSE_SIZE_EXCEEDED,
            charge: Some(0.0),
            ..ResultRow::default()
        };
        self.has_failed = true;
        self.push(
            &row,
            Some("The response is too large for more results; send this operation again."),
        );
    }

    /// Adds an operation that was not carried out because of another.
    pub fn failed_dependency(&mut self) {
        let row = ResultRow {
            status: FAILED_DEPENDENCY,
            charge: Some(0.0),
            ..ResultRow::default()
        };
        self.push(&row, None);
    }

    /// Adds the results of a batch that was rolled back because of the operation at `at`.
    pub fn rolled_back(&mut self, at: usize, error: Error) {
        for _ in 0..at {
            self.failed_dependency();
        }
        self.is_of_missing = error.kind == ErrorKind::NotFound;
        self.refused(error, charge::point_read(0));
        for _ in at + 1..self.minimal.len() {
            self.failed_dependency();
        }
    }

    pub fn into_reply(self, status: StatusCode) -> Reply {
        let names_container = !self.is_of_missing;
        let mut reply = match self.form {
            Form::Json(mut json) => {
                json.push(b']');
                Reply::json(status, json)
            }
            Form::Rows(rows) => {
                let mut reply = Reply::json(status, rows.finish());
                reply.fixed(&headers::CONTENT_TYPE, "application/octet-stream");
                reply
            }
        };
        reply.names_container = names_container;
        reply
    }

    fn is_minimal(&self) -> bool {
        self.minimal.get(self.written).copied().unwrap_or(false)
    }

    fn push(&mut self, result: &ResultRow<'_>, message: Option<&str>) {
        match &mut self.form {
            Form::Json(json) => {
                if self.written > 0 {
                    json.push(b',');
                }
                push_json(json, result, message);
            }
            Form::Rows(rows) => rows.push(result),
        }
        self.written += 1;
        self.bytes += result.body.map_or(0, <[u8]>::len);
    }
}

/// An item's JSON is inserted as stored, so the object around it is written by hand.
fn push_json(json: &mut Vec<u8>, result: &ResultRow<'_>, message: Option<&str>) {
    let charge = result.charge.unwrap_or_default();
    let mut head = format!("{{\"statusCode\":{},\"requestCharge\":{charge}", result.status);
    let mut member = |name: &str, value: String| {
        write!(head, ",\"{name}\":{value}").expect("writing to a String cannot fail");
    };
    if let Some(message) = message {
        member("message", json!(message).to_string());
    }
    if result.sub_status != 0 {
        member("subStatusCode", result.sub_status.to_string());
    }
    if let Some(retry_after_ms) = result.retry_after_ms {
        member("retryAfterMilliseconds", retry_after_ms.to_string());
    }
    if let Some(etag) = result.etag {
        member("eTag", json!(etag).to_string());
    }
    json.extend_from_slice(head.as_bytes());
    if let Some(body) = result.body {
        json.extend_from_slice(b",\"resourceBody\":");
        json.extend_from_slice(body);
    }
    json.push(b'}');
}
