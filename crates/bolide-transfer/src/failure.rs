//! Why a transfer ended.

use std::fmt;

/// Why a transfer ended early, in one line for its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(String);

const OF_OTHER: &str = "ended by another failure";

/// The result of a step of a transfer.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure with its line.
    pub fn new(line: impl Into<String>) -> Failure {
        Failure(line.into())
    }

    /// What a thread reports that ended because of the failure of another.
    pub(crate) fn of_other() -> Failure {
        Failure(OF_OTHER.to_owned())
    }

    /// Whether the cause is the failure of another thread.
    pub(crate) fn is_of_other(&self) -> bool {
        self.0 == OF_OTHER
    }

    /// A failure of a file: its name, and what the system says.
    pub fn of_file(path: &std::path::Path, error: &std::io::Error) -> Failure {
        Failure(format!("{}: {error}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}
