//! What a failure of the server means for the statement that it answers.

use bolide_storage::EngineError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// Why a store cannot be opened or made.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The connection string is not one.
    #[error("the connection string cannot be read: {0}")]
    Config(#[source] Error),
    /// What to trust cannot be used.
    #[error("the certificates to trust cannot be used: {0}")]
    Authorities(String),
    /// No server answers, or it refuses the connection.
    #[error("no connection: {}", text(.0))]
    Connect(#[source] Error),
    /// The server does not answer in time.
    #[error("the server did not answer in time")]
    Timeout,
    /// A statement failed.
    #[error("the server refused a statement: {}", text(.0))]
    Statement(#[from] Error),
    /// The server is too old.
    #[error("the server is PostgreSQL {found}; {needed} or newer is needed")]
    Version {
        /// What it calls itself.
        found: String,
        /// The oldest that is supported.
        needed: u32,
    },
    /// The server follows another one.
    #[error(
        "the server is a standby, which takes no writes; name its primary, or all of them and `target_session_attrs=read-write`"
    )]
    Standby,
    /// The table is not there.
    #[error("the database has no store. `bolide init --store …` makes one")]
    NoStore,
    /// The table is somebody else's, or of another version.
    #[error("the table `bolide_kv` is not a store that this version can read. {0}")]
    Foreign(String),
    /// Rights are missing.
    #[error("the user lacks the right to {0} in the table `bolide_kv`")]
    Rights(&'static str),
}

/// What became of a statement that failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It was certainly not carried out; the same may succeed later.
    NotDone(String),
    /// Another commit came first. It was not carried out.
    Conflict,
    /// It was not carried out, and a retry will not help.
    Refused(String),
    /// It may have been carried out.
    Unknown(String),
}

/// Judges a failure by its code (distributed.md §7).
pub(crate) fn judge(error: &Error) -> Failure {
    let Some(code) = error.code() else {
        return Failure::Unknown(text(error));
    };
    if [SqlState::NOT_NULL_VIOLATION, SqlState::UNIQUE_VIOLATION].contains(code) {
        return Failure::Conflict;
    }
    let is_not_done = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
        SqlState::QUERY_CANCELED,
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::CANNOT_CONNECT_NOW,
    ]
    .contains(code);
    if is_not_done {
        return Failure::NotDone(text(error));
    }
    // Resources, limits, data, a key that is named twice, syntax and rights.
    match code.code().get(..2) {
        Some("53" | "54" | "21" | "22" | "42") => Failure::Refused(text(error)),
        _ => Failure::Unknown(text(error)),
    }
}

/// Whether the lock of a row was not given in time.
pub(crate) fn is_lock_timeout(error: &Error) -> bool {
    error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

/// Whether the connection ended, before the statement or instead of its answer.
pub(crate) fn was_closed(error: &Error) -> bool {
    let is_end = |code: &SqlState| [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN].contains(code);
    error.is_closed() || error.code().is_some_and(is_end)
}

/// A read that failed changes nothing.
pub(crate) fn unavailable(error: &Error) -> EngineError {
    EngineError::Unavailable(text(error))
}

/// The server's words, without what the library says around them.
pub(crate) fn text(error: &Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{} ({})", said.message(), said.code().code()),
        None => {
            let source = std::error::Error::source(error).map(|source| format!(": {source}"));
            format!("{error}{}", source.unwrap_or_default())
        }
    }
}
