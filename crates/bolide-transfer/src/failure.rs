//! Why a transfer ended.

use std::fmt;

/// Why a transfer ended early, in one line for its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(String);

/// The result of a step of a transfer.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure with its line.
    pub fn new(line: impl Into<String>) -> Failure {
        Failure(line.into())
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
