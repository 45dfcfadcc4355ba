//! The one public error.

mod reason;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

pub use reason::{BadContinuation, HistoryStart, Reason, Resource};

/// A result with our error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong: a kind that says what the caller can do, and the details.
///
/// Front ends map every kind and every [`Reason`] in an exhaustive `match`, so a new one is a compile-time question to each of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    /// What the caller can do.
    pub kind: ErrorKind,
    /// What was found.
    pub detail: Detail,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Detail {
    /// Data, which each front end tells in the words of its protocol.
    #[error(transparent)]
    Reason(Reason),
    /// A text that every front end tells as it is: what was found, what was expected, variables last. It is of a language that its caller
    /// writes (a query, a definition, a document, a script), or of Bolide itself.
    #[error("{0}")]
    Text(String),
    /// What was being done, and what went wrong there.
    #[error("{context}: {cause}")]
    Context {
        /// What was being done.
        context: String,
        /// What went wrong.
        cause: Box<Detail>,
    },
}

/// One kind for each thing a caller would do differently.
#[derive(Debug, Clone, PartialEq)]
pub enum ErrorKind {
    /// The target is absent or expired.
    NotFound,
    /// A database or container on the way to the target is absent.
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
    /// The query needs a client-side merge over several ranges; its plan is in [`Reason::ClientMergeNeeded`].
    CrossPartitionQuery,
    /// The caller knows a container that has been deleted and created again.
    ContainerRecreated,
    /// What cannot be changed after creation would change.
    Forbidden,
    /// The item, request or result is over a limit; the message names both sizes.
    TooLarge,
    /// The account holds as much as it may. Delete something, or raise the limit that the message names.
    QuotaExceeded,
    /// Over the provisioned throughput. Retry after this time.
    Throttled {
        /// How long to wait.
        retry_after: Duration,
    },
    /// The partition key range was split. Resolve ranges again.
    RangeGone,
    /// The replica has not yet seen what the session has seen.
    SessionNotAvailable,
    /// A script does not compile. The message has the exception.
    ScriptSyntax,
    /// A script threw, and nothing it did was kept.
    ScriptFailed {
        /// The number of its error; 0 without one.
        number: u32,
    },
    /// A script did not end in time, and nothing it did was kept.
    ScriptTimeout,
    /// Not in this mode of the server.
    WrongMode,
    /// Not supported; the message names the feature.
    NotSupported,
    /// The outcome of the write is unknown. Read, then decide.
    Timeout,
    /// The storage refuses writes for now (disk full, store poisoned); reads go on.
    StorageFull,
    /// The engine cannot be reached. Retry.
    Unavailable,
    /// Stored bytes differ from what was written. Stop and look.
    Corrupt,
    /// A bug; the message is for us.
    Internal,
}

impl Error {
    /// An error from its kind and a text.
    pub fn new(kind: ErrorKind, text: impl Into<String>) -> Error {
        Error {
            kind,
            detail: Detail::Text(text.into()),
        }
    }

    /// Says what was being done when the error occurred. The kind stays.
    #[must_use]
    pub fn context(self, context: impl Into<String>) -> Error {
        Error {
            kind: self.kind,
            detail: Detail::Context {
                context: context.into(),
                cause: Box::new(self.detail),
            },
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

    /// A resource that is absent: its name, or its resource id.
    pub fn missing(resource: Resource, name: &(impl ToString + ?Sized)) -> Error {
        let name = name.to_string();
        Reason::ResourceMissing { resource, name }.into()
    }

    /// A name that another resource of the kind has.
    pub fn name_taken(resource: Resource, name: &(impl ToString + ?Sized)) -> Error {
        let name = name.to_string();
        Reason::NameTaken { resource, name }.into()
    }

    /// A feature that is not there; the message must name it.
    pub fn not_supported(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::NotSupported, message)
    }

    /// A bug of ours.
    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Internal, message)
    }

    /// Whether it is [`ErrorKind::Throttled`].
    pub fn is_throttled(&self) -> bool {
        matches!(self.kind, ErrorKind::Throttled { .. })
    }
}

/// As much of a caller's text as a message should quote: its first 100 characters, and `…` if there are more.
pub fn excerpt(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(100) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.detail.fmt(f)
    }
}

impl std::error::Error for Error {}

impl From<BadContinuation> for Error {
    fn from(why: BadContinuation) -> Error {
        Reason::BadContinuation(why).into()
    }
}

impl From<Reason> for Error {
    fn from(reason: Reason) -> Error {
        Error {
            kind: reason.kind(),
            detail: Detail::Reason(reason),
        }
    }
}
