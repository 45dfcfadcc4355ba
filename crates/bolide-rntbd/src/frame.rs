//! Frames: the head with its tokens, and the payload.
//!
//! Source: rntbd.md §3.1, §3.2.

use bytes::Bytes;

use crate::token::{Malformed, TokenWriter, Tokens};

/// Bytes of a head without tokens.
pub const HEAD_BYTES: usize = 24;
/// Bytes of a length.
pub const LENGTH_BYTES: usize = 4;

/// The 16 bytes that a request names itself with. They are sent back as they are: clients write them in different orders.
pub type ActivityId = [u8; 16];

/// Reads the length of a head, with which a frame begins: how many bytes of it follow after the length itself.
///
/// # Errors
/// It is shorter than a head can be, or longer than `most`.
pub fn head_rest(length: [u8; LENGTH_BYTES], most: usize) -> Result<usize, Malformed> {
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    if (HEAD_BYTES..=most).contains(&length) {
        return Ok(length - LENGTH_BYTES);
    }
    Err(Malformed::Length {
        length,
        least: HEAD_BYTES,
        most,
    })
}

/// The head of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// What is between the length and the activity id: of a request the types of resource and operation, of a response the status.
    word: [u8; 4],
    /// See [`ActivityId`].
    pub activity_id: ActivityId,
    /// The tokens.
    pub tokens: Tokens,
}

impl Head {
    /// Reads a head without its length; see [`head_rest`]. Its tokens are parts of `bytes`, without a copy.
    ///
    /// # Errors
    /// See [`Malformed`].
    pub fn read(mut bytes: Bytes) -> Result<Head, Malformed> {
        const REST: usize = HEAD_BYTES - LENGTH_BYTES;
        let Some(fixed) = bytes.first_chunk::<REST>().copied() else {
            return Err(Malformed::Length {
                length: bytes.len() + LENGTH_BYTES,
                least: HEAD_BYTES,
                most: usize::MAX,
            });
        };
        let _ = bytes.split_to(REST);
        let [w0, w1, w2, w3, activity_id @ ..] = fixed;
        Ok(Head {
            word: [w0, w1, w2, w3],
            activity_id,
            tokens: Tokens::read(bytes)?,
        })
    }

    /// The types of resource and operation of a request.
    pub fn operation(&self) -> (u16, u16) {
        let [r0, r1, o0, o1] = self.word;
        (u16::from_le_bytes([r0, r1]), u16::from_le_bytes([o0, o1]))
    }

    /// The status of a response.
    pub fn status(&self) -> u32 {
        u32::from_le_bytes(self.word)
    }
}

/// A frame to send.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    word: [u8; 4],
    activity_id: ActivityId,
    tokens: &'a TokenWriter,
    /// How many bytes of payload follow; `None`: no payload. The token that says so is among the tokens.
    payload_bytes: Option<usize>,
}

impl<'a> Outgoing<'a> {
    /// A request.
    pub fn request(resource: u16, operation: u16, activity_id: ActivityId, tokens: &'a TokenWriter) -> Outgoing<'a> {
        let [r0, r1] = resource.to_le_bytes();
        let [o0, o1] = operation.to_le_bytes();
        Outgoing {
            word: [r0, r1, o0, o1],
            activity_id,
            tokens,
            payload_bytes: None,
        }
    }

    /// A response.
    pub fn response(status: u32, activity_id: ActivityId, tokens: &'a TokenWriter) -> Outgoing<'a> {
        Outgoing {
            word: status.to_le_bytes(),
            activity_id,
            tokens,
            payload_bytes: None,
        }
    }

    /// With a payload of so many bytes, which is sent after [`Outgoing::write`].
    #[must_use]
    pub fn with_payload(self, bytes: usize) -> Outgoing<'a> {
        Outgoing {
            payload_bytes: Some(bytes),
            ..self
        }
    }

    /// The bytes of the frame before its payload. `None`: it is longer than a frame can be.
    pub fn write(&self) -> Option<Vec<u8>> {
        let tokens = self.tokens.bytes();
        let length = u32::try_from(HEAD_BYTES + tokens.len()).ok()?;
        let mut bytes = Vec::with_capacity(HEAD_BYTES + tokens.len() + LENGTH_BYTES);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&self.word);
        bytes.extend_from_slice(&self.activity_id);
        bytes.extend_from_slice(tokens);
        if let Some(payload) = self.payload_bytes {
            bytes.extend_from_slice(&u32::try_from(payload).ok()?.to_le_bytes());
        }
        Some(bytes)
    }
}

#[cfg(test)]
mod tests;
