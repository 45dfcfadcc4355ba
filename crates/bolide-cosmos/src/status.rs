//! Errors in the form that Cosmos clients expect: status, sub-status and code are here, the text is in [`messages`].
//!
//! SDKs decide by sub-statuses whether to retry (cosmos-rest §12.4), so they are part of the contract like the status.

mod messages;

use std::time::Duration;

use bolide_core::OperationError;
use bolide_model::error::Detail;
use bolide_model::{Error, ErrorKind, Reason};
use http::StatusCode;

/// A status with its sub-status and the code text of the error body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status {
    /// HTTP status.
    pub http: StatusCode,
    /// `x-ms-substatus`; 0 is not sent.
    pub sub: u32,
    /// `code` of the error body: the reason phrase without spaces.
    pub code: &'static str,
}

impl Status {
    const fn new(http: StatusCode, sub: u32, code: &'static str) -> Status {
        Status { http, sub, code }
    }
}

/// A refusal before it is written as a response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    /// Status, sub-status and code.
    pub status: Status,
    /// The message for people.
    pub message: String,
    /// `additionalErrorInfo`: the query plan with 400/1004.
    pub additional: Option<String>,
    /// `x-ms-retry-after-ms`.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// A refusal from its status and message.
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Failure {
        Failure {
            status,
            message: message.into(),
            additional: None,
            retry_after: None,
        }
    }

    /// Cuts the message to a number of bytes: text echoed from a request must not make the refusal larger than the request.
    pub(crate) fn cut_to(mut self, bytes: usize) -> Failure {
        if self.message.len() > bytes {
            self.message.truncate(self.message.floor_char_boundary(bytes));
            self.message.push('…');
        }
        self
    }

    /// 400 without sub-status.
    pub(crate) fn bad_request(message: impl Into<String>) -> Failure {
        Failure::new(BAD_REQUEST, message)
    }

    /// 413 for a body with its size in bytes. A body without a length is read only until it exceeds the limit.
    pub(crate) fn too_large(size: usize, limit: usize) -> Failure {
        let message = format!("Request size is too large. bytes={size} or more, limit={limit}");
        Failure::new(TOO_LARGE, message)
    }

    /// 401 for an authorization that cannot be read.
    pub(crate) fn malformed_authorization(why: &str) -> Failure {
        Failure::new(
            MALFORMED_AUTHORIZATION,
            format!(
                "The input authorization header has an invalid format: {why}. Expected `type=master&ver=1.0&sig=<signature>`."
            ),
        )
    }
}

pub(crate) const BAD_REQUEST: Status = Status::new(StatusCode::BAD_REQUEST, 0, "BadRequest");
pub(crate) const NOT_IMPLEMENTED: Status = Status::new(StatusCode::NOT_IMPLEMENTED, 0, "NotImplemented");
pub(crate) const UNAUTHORIZED: Status = Status::new(StatusCode::UNAUTHORIZED, 0, "Unauthorized");
pub(crate) const MISDIRECTED: Status = Status::new(StatusCode::MISDIRECTED_REQUEST, 0, "MisdirectedRequest");
pub(crate) const MISSING_AUTHORIZATION: Status = Status::new(StatusCode::UNAUTHORIZED, 5000, "Unauthorized");
pub(crate) const MALFORMED_AUTHORIZATION: Status = Status::new(StatusCode::UNAUTHORIZED, 5001, "Unauthorized");
pub(crate) const FORBIDDEN: Status = Status::new(StatusCode::FORBIDDEN, 0, "Forbidden");
/// The name of the container is that of another one now; in direct mode, after which clients look it up again (rntbd.md §5).
pub(crate) const NAME_IS_STALE: Status = Status::new(StatusCode::GONE, 1000, "Gone");
/// In direct mode, after which clients look for the replica again (rntbd.md §7).
pub(crate) const GONE: Status = Status::new(StatusCode::GONE, 0, "Gone");
pub(crate) const NOT_FOUND: Status = Status::new(StatusCode::NOT_FOUND, 0, "NotFound");
pub(crate) const METHOD_NOT_ALLOWED: Status = Status::new(StatusCode::METHOD_NOT_ALLOWED, 0, "MethodNotAllowed");
pub(crate) const HEADERS_TOO_LARGE: Status = Status::new(
    StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
    0,
    "RequestHeaderFieldsTooLarge",
);
pub(crate) const URI_TOO_LONG: Status = Status::new(StatusCode::URI_TOO_LONG, 0, "UriTooLong");
pub(crate) const REQUEST_TIMEOUT: Status = Status::new(StatusCode::REQUEST_TIMEOUT, 0, "RequestTimeout");
pub(crate) const UNAVAILABLE: Status = Status::new(StatusCode::SERVICE_UNAVAILABLE, 0, "ServiceUnavailable");
/// A write while the last rows of the store are copied, and one after it has moved. The sub-statuses are MongoDB's codes for the same, because the service has
/// none for it, and because SDKs take each 403/3 for a region to leave.
pub(crate) const WRITES_SEALED: Status = Status::new(StatusCode::SERVICE_UNAVAILABLE, 11602, "ServiceUnavailable");
pub(crate) const STORE_MOVED: Status = Status::new(StatusCode::FORBIDDEN, 10107, "Forbidden");
pub(crate) const INTERNAL: Status = Status::new(StatusCode::INTERNAL_SERVER_ERROR, 0, "InternalServerError");
pub(crate) const TOO_LARGE: Status = Status::new(StatusCode::PAYLOAD_TOO_LARGE, 0, "RequestEntityTooLarge");
pub(crate) const TOO_MANY_REQUESTS: Status = Status::new(StatusCode::TOO_MANY_REQUESTS, 3200, "TooManyRequests");
pub(crate) const UNSUPPORTED_MEDIA_TYPE: Status =
    Status::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, 0, "UnsupportedMediaType");

/// When to try a write again that came while the store was sealed: usually less than half a second passes.
const SEALED_FOR: Duration = Duration::from_millis(100);

/// The statuses of every kind of error. Source: cosmos-rest §12.5 and §12.6.
pub(crate) fn of(kind: &ErrorKind) -> Status {
    match kind {
        ErrorKind::NotFound => NOT_FOUND,
        ErrorKind::OwnerNotFound => Status::new(StatusCode::NOT_FOUND, 1003, "NotFound"),
        ErrorKind::SessionNotAvailable => Status::new(StatusCode::NOT_FOUND, 1002, "NotFound"),
        ErrorKind::Conflict | ErrorKind::UniqueKeyConflict => Status::new(StatusCode::CONFLICT, 0, "Conflict"),
        ErrorKind::PreconditionFailed => Status::new(StatusCode::PRECONDITION_FAILED, 0, "PreconditionFailed"),
        ErrorKind::PatchConditionFailed => Status::new(StatusCode::PRECONDITION_FAILED, 1110, "PreconditionFailed"),
        ErrorKind::BadRequest | ErrorKind::QuerySyntax { .. } => BAD_REQUEST,
        ErrorKind::PartitionKeyMismatch => Status::new(StatusCode::BAD_REQUEST, 1001, "BadRequest"),
        ErrorKind::CrossPartitionQuery => Status::new(StatusCode::BAD_REQUEST, 1004, "BadRequest"),
        ErrorKind::PartitionKeyMissing => Status::new(StatusCode::BAD_REQUEST, 1013, "BadRequest"),
        ErrorKind::ContainerRecreated => Status::new(StatusCode::BAD_REQUEST, 1024, "BadRequest"),
        ErrorKind::Forbidden => FORBIDDEN,
        // The service's ProvisionLimitReached, which no SDK retries.
        ErrorKind::QuotaExceeded => Status::new(StatusCode::FORBIDDEN, 1005, "Forbidden"),
        ErrorKind::TooLarge => TOO_LARGE,
        ErrorKind::Throttled { .. } => TOO_MANY_REQUESTS,
        ErrorKind::RangeGone => Status::new(StatusCode::GONE, 1002, "Gone"),
        ErrorKind::ScriptSyntax => Status::new(StatusCode::BAD_REQUEST, 65535, "BadRequest"),
        ErrorKind::ScriptFailed { number } => Status::new(StatusCode::BAD_REQUEST, *number, "BadRequest"),
        // The service documents for 408: a script did not complete within its time.
        ErrorKind::ScriptTimeout => REQUEST_TIMEOUT,
        ErrorKind::WrongMode => Status::new(StatusCode::CONFLICT, 0, "Conflict"),
        ErrorKind::NotSupported => NOT_IMPLEMENTED,
        ErrorKind::Timeout => REQUEST_TIMEOUT,
        ErrorKind::StorageFull | ErrorKind::Unavailable => UNAVAILABLE,
        ErrorKind::Corrupt | ErrorKind::Internal => INTERNAL,
    }
}

/// The error that a script gets for a refused operation; for [`bolide_core::AccountOptions::script_errors`]. The number is the status that a client
/// would get. Source: cosmos-rest §11.3.
pub fn script_error(error: &Error) -> OperationError {
    let number = match error.kind {
        ErrorKind::NotFound | ErrorKind::OwnerNotFound => 404,
        ErrorKind::Conflict | ErrorKind::UniqueKeyConflict => 409,
        ErrorKind::PreconditionFailed | ErrorKind::PatchConditionFailed => 412,
        ErrorKind::TooLarge => 413,
        ErrorKind::Forbidden => 403,
        ErrorKind::ScriptTimeout => 408,
        ErrorKind::Throttled { .. } => 429,
        ErrorKind::Unavailable
        | ErrorKind::StorageFull
        | ErrorKind::Corrupt
        | ErrorKind::Internal
        | ErrorKind::Timeout => 500,
        _ => 400,
    };
    OperationError {
        number,
        message: messages::text(&error.detail).into_owned(),
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let status = match error.reason() {
            Some(Reason::WritesSealed) => WRITES_SEALED,
            Some(Reason::StoreMoved) => STORE_MOVED,
            _ => of(&error.kind),
        };
        if matches!(error.kind, ErrorKind::Internal | ErrorKind::Corrupt) {
            tracing::error!(kind = ?error.kind, "{error}");
        }
        let mut failure = Failure::new(status, messages::message(&error));
        if let ErrorKind::Throttled { retry_after } = error.kind {
            failure.retry_after = Some(retry_after);
        } else if status == WRITES_SEALED {
            failure.retry_after = Some(SEALED_FOR);
        }
        if let Detail::Reason(Reason::ClientMergeNeeded { plan }) = error.detail {
            failure.additional = Some(plan);
        }
        failure
    }
}

#[cfg(test)]
mod tests;
