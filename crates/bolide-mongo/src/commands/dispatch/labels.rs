//! The labels of errors: what a client may send again.
//!
//! Source: mongo.md §7.

use bolide_mql::Code;

/// Codes after which a client may send a retryable write again.
const RETRYABLE: [i32; 13] = [6, 7, 89, 91, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436];
/// Codes after which a client may try a whole transaction again.
const TRANSIENT: [Code; 4] = [
    Code::NO_SUCH_TRANSACTION,
    Code::SNAPSHOT_TOO_OLD,
    Code::SNAPSHOT_UNAVAILABLE,
    Code::WRITE_CONFLICT,
];
/// Codes after which a client may resume a change stream.
const RESUMABLE: [i32; 18] = [
    6, 7, 43, 63, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602, 13388, 13435, 13436,
];

/// What determines the labels of an error.
#[derive(Debug, Default)]
pub(super) struct Labels {
    pub is_retryable_write: bool,
    pub is_in_transaction: bool,
    /// Whether the command is `commitTransaction` or `abortTransaction`, which may be sent again.
    pub ends_transaction: bool,
    /// Whether the command is a `getMore` of a change stream.
    pub is_change_stream: bool,
    /// Set by a fail point: these instead.
    pub given: Option<Vec<String>>,
}

impl Labels {
    /// Returns the labels of an error.
    pub fn of(&self, code: Code) -> Vec<&str> {
        if let Some(given) = &self.given {
            return given.iter().map(String::as_str).collect();
        }
        if [Code::CHANGE_STREAM_FATAL_ERROR, Code::CHANGE_STREAM_HISTORY_LOST].contains(&code) {
            return vec!["NonResumableChangeStreamError"];
        }
        if self.is_change_stream && RESUMABLE.contains(&code.0) {
            return vec!["ResumableChangeStreamError"];
        }
        let is_retryable = RETRYABLE.contains(&code.0);
        // The end of a transaction may be sent again; before it, only the whole transaction may be tried again.
        let is_transient = TRANSIENT.contains(&code) || (is_retryable && !self.ends_transaction);
        if self.is_in_transaction && is_transient {
            return vec!["TransientTransactionError"];
        }
        self.if_retryable(code)
    }

    /// The labels of a write that succeeded but was not acknowledged as asked. It never makes a transaction start again.
    pub fn of_write_concern(&self, code: Code) -> Vec<&str> {
        match &self.given {
            Some(given) => given.iter().map(String::as_str).collect(),
            None => self.if_retryable(code),
        }
    }

    fn if_retryable(&self, code: Code) -> Vec<&str> {
        if (self.is_retryable_write || self.ends_transaction) && RETRYABLE.contains(&code.0) {
            return vec!["RetryableWriteError"];
        }
        Vec::new()
    }
}
