//! The content of messages: compressed or not.

use bytes::Bytes;

use super::Refusal;
use crate::limits;
use crate::message::{Compressed, Compressor, Header, MORE_TO_COME, MessageError, OpMsg};

/// The flags of an OP_MSG; none if it is too short to have any.
pub(super) fn flags_of(message: &[u8]) -> u32 {
    let flags = message.get(Header::BYTES..).and_then(|rest| rest.first_chunk());
    flags.copied().map_or(0, u32::from_le_bytes)
}

/// A reply, compressed as its request was, unless it is small. Long ones are compressed on a thread of their own. `None` if that fails.
pub(super) async fn compressed(bytes: Vec<u8>, compressor: Option<Compressor>) -> Option<Vec<u8>> {
    let Some(compressor) = compressor.filter(|_| bytes.len() > limits::SMALL_REPLY_BYTES) else {
        return Some(bytes);
    };
    let is_long = bytes.len() >= limits::LONG_MESSAGE_BYTES;
    let compress = move || compressor.compress(&bytes).unwrap_or(bytes);
    if is_long {
        return tokio::task::spawn_blocking(compress).await.ok();
    }
    Some(compress())
}

/// An OP_MSG that is not parsed yet.
pub(super) enum Content {
    Plain(Bytes),
    Compressed(Compressed),
}

impl Content {
    /// Decompresses and validates it; if it is long, on a thread of its own.
    pub async fn parse(self) -> Result<OpMsg, Refusal> {
        let length = match &self {
            Content::Plain(bytes) => bytes.len(),
            Content::Compressed(compressed) => compressed.length,
        };
        if length < limits::LONG_MESSAGE_BYTES {
            return self.parse_here();
        }
        let parsed = tokio::task::spawn_blocking(|| self.parse_here()).await;
        parsed.unwrap_or_else(|_| Err(MessageError::protocol("the message cannot be parsed").into()))
    }

    fn parse_here(self) -> Result<OpMsg, Refusal> {
        let bytes = match self {
            Content::Plain(bytes) => bytes,
            Content::Compressed(compressed) => compressed.decompress()?.1,
        };
        let is_answered = flags_of(&bytes) & MORE_TO_COME == 0;
        OpMsg::parse(bytes).map_err(|error| Refusal { error, is_answered })
    }
}
