//! The one public error.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// A result with our error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error: a kind that says what the caller can do, and a message with the details.
///
/// Front ends map every kind in one exhaustive `match`, so a new kind does not compile until each of them handles it.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    /// What the caller can do.
    pub kind: ErrorKind,
    /// Lower-case prose: what was found, what was expected, variables last.
    pub message: String,
}

/// One kind for each different reaction of a caller.
#[derive(Debug, Clone, PartialEq)]
pub enum ErrorKind {
    /// The target is absent or expired.
    NotFound,
    /// A parent of the target, a database or container, is absent.
    OwnerNotFound,
    /// Something with this identity exists.
    Conflict,
    /// A live item holds the same unique key.
    UniqueKeyConflict,
    /// A condition the caller set does not hold. Read again, then decide.
    PreconditionFailed,
    /// The condition of a patch is false. Read again, then decide.
    PatchConditionFailed,
    /// The request is malformed; the message says where.
    BadRequest,
    /// The partition key given differs from the item's, or has the wrong number of components.
    PartitionKeyMismatch,
    /// A container definition without a partition key.
    PartitionKeyMissing,
    /// The query does not compile; `body` is the service's JSON list of errors.
    QuerySyntax {
        /// `{"errors":[…]}` as cosmos-rest §6.9 has it.
        body: String,
    },
    /// The query needs a client-side merge over several ranges; `plan` is its plan.
    CrossPartitionQuery {
        /// The query plan as JSON text.
        plan: String,
    },
    /// The container was deleted and created again since the caller read it.
    ContainerRecreated,
    /// The request would change something that cannot change after creation.
    Forbidden,
    /// The item, request or result is over a limit; the message names both sizes.
    TooLarge,
    /// The account has reached its limit. Delete something, or raise the limit that the message names.
    QuotaExceeded,
    /// Over the provisioned throughput. Retry after this time.
    Throttled {
        /// How long to wait.
        retry_after: Duration,
    },
    /// The partition key range was split. Resolve ranges again.
    RangeGone,
    /// The replica has not yet applied what the session has read.
    SessionNotAvailable,
    /// A script does not compile. The message has the exception.
    ScriptSyntax,
    /// A script threw an exception; its changes were not kept.
    ScriptFailed {
        /// The number of its error; 0 without one.
        number: u32,
    },
    /// A script did not end in time; its changes were not kept.
    ScriptTimeout,
    /// Not available in this mode of the server.
    WrongMode,
    /// Not supported; the message names the feature.
    NotSupported,
    /// The outcome of the write is unknown. Read, then decide.
    Timeout,
    /// The storage refuses writes for now (disk full, store failed); reads continue.
    StorageFull,
    /// The engine cannot be reached. Retry.
    Unavailable,
    /// Stored bytes differ from what was written. An operator must look at it.
    Corrupt,
    /// A bug; the message is for us.
    Internal,
}

impl Error {
    /// An error from its parts.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error {
            kind,
            message: message.into(),
        }
    }

    /// A malformed request.
    pub fn bad_request(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::BadRequest, message)
    }

    /// An absent or expired target.
    pub fn not_found(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::NotFound, message)
    }

    /// Something with this identity exists.
    pub fn conflict(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Conflict, message)
    }

    /// An unsupported feature; the message must name it.
    pub fn not_supported(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::NotSupported, message)
    }

    /// A bug.
    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Internal, message)
    }

    /// Whether it is [`ErrorKind::Throttled`].
    pub fn is_throttled(&self) -> bool {
        matches!(self.kind, ErrorKind::Throttled { .. })
    }
}

/// The part of a caller's text that a message quotes: its first 100 characters, with `…` if there are more.
pub fn excerpt(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(100) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
