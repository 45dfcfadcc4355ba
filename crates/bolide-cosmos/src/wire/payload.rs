//! Bodies of responses.

use std::fmt;

use bytes::Bytes;
use futures_util::stream::BoxStream;

/// The body of a response.
pub enum Payload {
    /// The whole body, with a known length.
    Whole(Bytes),
    /// Parts that are made while they are sent; for responses of any size. An error ends the response without its proper end, so that the client notices.
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
