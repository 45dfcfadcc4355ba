//! The results of a batch: an array with one object for each operation, in their order.

use std::fmt::Write as _;

use bolide_core::{OperationDone, OperationResult};
use bolide_model::{Error, RequestUnits, charge};
use serde_json::json;

use super::from_wire::Sent;
use crate::service::Call;
use crate::status::Failure;
use crate::wire::headers;

/// Of an operation that was not carried out because of another (cosmos-rest §5.8).
const FAILED_DEPENDENCY: u16 = 424;

/// Results under construction.
pub(super) struct Results {
    json: Vec<u8>,
    written: usize,
    /// For each operation, whether the client does not want its item back.
    minimal: Vec<bool>,
    has_failed: bool,
}

impl Results {
    pub fn new(call: &Call<'_>, sent: &[Sent]) -> Results {
        let all_minimal = headers::prefers_minimal(call.headers());
        let minimal = sent.iter().map(|sent| all_minimal || sent.is_minimal).collect();
        Results {
            json: vec![b'['],
            written: 0,
            minimal,
            has_failed: false,
        }
    }

    /// Whether an operation was refused so far.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Adds what was carried out.
    pub fn done(&mut self, result: &OperationResult) {
        let charge = result.charge.rounded().0;
        match &result.done {
            OperationDone::Written(written) => {
                let status = if written.created { 201 } else { 200 };
                self.item(
                    status,
                    charge,
                    written.item.etag(),
                    (!self.is_minimal()).then(|| written.item.to_json()).as_deref(),
                );
            }
            OperationDone::Read(item) => self.item(200, charge, item.etag(), Some(&item.to_json())),
            OperationDone::NotModified { etag } => self.item(304, charge, *etag, None),
            OperationDone::Deleted => self.push(&json!({ "statusCode": 204, "requestCharge": charge }).to_string()),
        }
    }

    /// Adds a refusal.
    pub fn refused(&mut self, error: Error, charge: RequestUnits) {
        let failure = Failure::from(error);
        let mut result = json!({
            "statusCode": failure.status.http.as_u16(),
            "requestCharge": charge.rounded().0,
            "message": failure.message,
        });
        if failure.status.sub != 0 {
            result["subStatusCode"] = failure.status.sub.into();
        }
        if let Some(after) = failure.retry_after {
            result["retryAfterMilliseconds"] = u64::try_from(after.as_millis()).unwrap_or(u64::MAX).into();
        }
        self.has_failed = true;
        self.push(&result.to_string());
    }

    /// Adds an operation that was not carried out because of another.
    pub fn failed_dependency(&mut self) {
        self.push(&json!({ "statusCode": FAILED_DEPENDENCY, "requestCharge": 0 }).to_string());
    }

    /// Adds the results of a batch of which nothing happened, because of the operation at `at`.
    pub fn rolled_back(&mut self, at: usize, error: Error) {
        for _ in 0..at {
            self.failed_dependency();
        }
        self.refused(error, charge::point_read(0));
        for _ in at + 1..self.minimal.len() {
            self.failed_dependency();
        }
    }

    pub fn into_json(mut self) -> Vec<u8> {
        self.json.push(b']');
        self.json
    }

    fn is_minimal(&self) -> bool {
        self.minimal.get(self.written).copied().unwrap_or(false)
    }

    /// An item's JSON goes in as it is stored, so the object around it is written by hand.
    fn item(&mut self, status: u16, charge: f64, etag: bolide_core::Etag, body: Option<&[u8]>) {
        let mut head = String::new();
        let etag = json!(etag.to_string());
        write!(
            head,
            "{{\"statusCode\":{status},\"requestCharge\":{charge},\"eTag\":{etag}"
        )
        .expect("writing to a String cannot fail");
        self.separate();
        self.json.extend_from_slice(head.as_bytes());
        if let Some(body) = body {
            self.json.extend_from_slice(b",\"resourceBody\":");
            self.json.extend_from_slice(body);
        }
        self.json.push(b'}');
    }

    fn push(&mut self, result: &str) {
        self.separate();
        self.json.extend_from_slice(result.as_bytes());
    }

    fn separate(&mut self) {
        if self.written > 0 {
            self.json.push(b',');
        }
        self.written += 1;
    }
}
