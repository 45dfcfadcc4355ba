//! What can go wrong.

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no binary, or what was named is not an executable file.
    #[error("{0}")]
    NoBinary(String),
    /// The server did not start: it ended, or it took too long. The text has the end of what it wrote to standard error.
    #[error("{0}")]
    Start(String),
    /// The server did not end with status 0; it has ended in any case. The text has the end of what it wrote to standard error.
    #[error("{0}")]
    Stop(String),
    /// The server refused a request of the admin API, or did not answer.
    #[error("{message}")]
    Request {
        /// The HTTP status, if there was an answer.
        status: Option<u16>,
        /// The request and the server's message.
        message: String,
    },
}
