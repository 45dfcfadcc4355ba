//! Bodies of answers.

use std::fmt;

use bytes::Bytes;
use futures_util::stream::BoxStream;

/// The body of an answer.
pub enum Payload {
    /// All of it at once, with a length that is known before the first byte.
    Whole(Bytes),
    /// Chunks that are made while they are sent; for answers of any size. An error ends the answer without its proper end, so
    /// that the client notices.
    Pages(BoxStream<'static, bolide_model::Result<Bytes>>),
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Payload::Whole(bytes) => write!(f, "Whole({} bytes)", bytes.len()),
            Payload::Pages(_) => f.write_str("Pages(…)"),
        }
    }
}
