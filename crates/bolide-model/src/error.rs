//! The only public error type.

mod reason;

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

pub use reason::{BadContinuation, HistoryStart, ItemOperation, Reason, Resource};

/// A result with this error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error: a kind that says what the caller can do, and the details.
///
/// Front ends map every kind and every [`Reason`] in an exhaustive `match`, so a new one does not compile until each of them handles it.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    /// What the caller can do.
    pub kind: ErrorKind,
    /// What happened.
    pub detail: Detail,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Detail {
    /// Data; each front end writes its text in the terms of its protocol.
    #[error(transparent)]
    Reason(Reason),
    /// A text that every front end returns unchanged: what was found, what was expected, variables last. It is about a language that the caller
    /// writes (a query, a definition, a document, a script), or about Bolide itself.
    #[error("{0}")]
    Text(String),
    /// The operation that failed, and its error.
    #[error("{context}: {cause}")]
    Context {
        /// The operation.
        context: String,
        /// The error.
        cause: Box<Detail>,
    },
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
    /// The query needs a client-side merge over several ranges; its plan is in [`Reason::ClientMergeNeeded`].
    CrossPartitionQuery,
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
    /// An error from its kind and a text.
    pub fn new(kind: ErrorKind, text: impl Into<String>) -> Error {
        Error {
            kind,
            detail: Detail::Text(text.into()),
        }
    }

    /// Adds the operation that failed. The kind stays the same.
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

    /// Returns the error for a resource that does not exist, with its name or resource id.
    pub fn missing(resource: Resource, name: &(impl ToString + ?Sized)) -> Error {
        let name = name.to_string();
        Reason::ResourceMissing { resource, name }.into()
    }

    /// Returns the error for a name that another resource of the kind has.
    pub fn name_taken(resource: Resource, name: &(impl ToString + ?Sized)) -> Error {
        let name = name.to_string();
        Reason::NameTaken { resource, name }.into()
    }

    /// An unsupported feature; the message must name it.
    pub fn not_supported(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::NotSupported, message)
    }

    /// A bug.
    pub fn internal(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Internal, message)
    }

    /// Whether it is [`Reason::SettingsChanged`], with or without context.
    pub fn is_of_changed_settings(&self) -> bool {
        matches!(self.reason(), Some(Reason::SettingsChanged))
    }

    /// Whether it is [`Reason::WritesSealed`] or [`Reason::StoreMoved`], with or without context.
    pub fn is_of_sealed_store(&self) -> bool {
        matches!(self.reason(), Some(Reason::WritesSealed | Reason::StoreMoved))
    }

    /// The reason, with or without context.
    pub fn reason(&self) -> Option<&Reason> {
        let mut detail = &self.detail;
        while let Detail::Context { cause, .. } = detail {
            detail = cause;
        }
        match detail {
            Detail::Reason(reason) => Some(reason),
            _ => None,
        }
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
