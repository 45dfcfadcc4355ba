//! The core's errors as MongoDB's.

use bolide_model::{ErrorKind, Reason};
use bolide_mql::{Code, Error};

/// Milliseconds after which a throttled client is told to try again, at least.
const LEAST_RETRY_MS: u128 = 1;

/// Returns the error that clients get for an error of the core.
pub fn error(error: &bolide_model::Error) -> Error {
    let kind = &error.kind;
    if let Some(code) = of_reason(error) {
        return Error::new(code, error.to_string());
    }
    Error::new(code(kind), message(kind, &error.to_string()))
}

fn of_reason(error: &bolide_model::Error) -> Option<Code> {
    if error.is_of_changed_settings() {
        return Some(Code::QUERY_PLAN_KILLED);
    }
    match error.reason()? {
        Reason::WritesSealed => Some(Code::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE),
        Reason::StoreMoved => Some(Code::NOT_WRITABLE_PRIMARY),
        Reason::WriteConflict => Some(Code::WRITE_CONFLICT),
        Reason::SnapshotEnded => Some(Code::NO_SUCH_TRANSACTION),
        Reason::SnapshotTooOld => Some(Code::SNAPSHOT_TOO_OLD),
        Reason::SnapshotUnavailable => Some(Code::SNAPSHOT_UNAVAILABLE),
        Reason::OtherDatabase => Some(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION),
        Reason::HistoryLeft => Some(Code::CHANGE_STREAM_HISTORY_LOST),
        Reason::TransactionTooLarge => Some(Code::TRANSACTION_TOO_LARGE),
        _ => None,
    }
}

fn code(kind: &ErrorKind) -> Code {
    match kind {
        ErrorKind::NotFound | ErrorKind::OwnerNotFound | ErrorKind::ContainerRecreated => Code::NAMESPACE_NOT_FOUND,
        ErrorKind::Conflict | ErrorKind::UniqueKeyConflict => Code::DUPLICATE_KEY,
        ErrorKind::PreconditionFailed | ErrorKind::PatchConditionFailed | ErrorKind::RangeGone => Code::WRITE_CONFLICT,
        ErrorKind::BadRequest
        | ErrorKind::PartitionKeyMismatch
        | ErrorKind::PartitionKeyMissing
        | ErrorKind::QuerySyntax { .. }
        | ErrorKind::CrossPartitionQuery
        | ErrorKind::Forbidden
        | ErrorKind::ScriptSyntax => Code::BAD_VALUE,
        ErrorKind::TooLarge => Code::BSON_OBJECT_TOO_LARGE,
        ErrorKind::QuotaExceeded | ErrorKind::ScriptFailed { .. } | ErrorKind::StorageFull => Code::OPERATION_FAILED,
        ErrorKind::Throttled { .. } => Code::TOO_MANY_REQUESTS,
        ErrorKind::SessionNotAvailable => Code::SNAPSHOT_UNAVAILABLE,
        ErrorKind::ScriptTimeout | ErrorKind::Timeout => Code::MAX_TIME_MS_EXPIRED,
        ErrorKind::WrongMode | ErrorKind::NotSupported => Code::COMMAND_NOT_SUPPORTED,
        ErrorKind::Unavailable => Code::INTERRUPTED_AT_SHUTDOWN,
        ErrorKind::Corrupt | ErrorKind::Internal => Code::INTERNAL_ERROR,
    }
}

/// The text; that of throttling has the form that applications written for Cosmos DB search for `RetryAfterMs`.
fn message(kind: &ErrorKind, text: &str) -> String {
    match kind {
        ErrorKind::Throttled { retry_after } => {
            let ms = retry_after.as_millis().max(LEAST_RETRY_MS);
            format!("Error=16500, RetryAfterMs={ms}, Details='{text}'")
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
