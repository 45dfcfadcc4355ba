//! The first 16 bytes of every message.

use super::error::MessageError;
use super::reader::Reader;

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpCode {
    /// The reply to [`OpCode::Query`].
    Reply,
    /// A first hello.
    Query,
    /// One of the others, compressed.
    Compressed,
    /// Everything else.
    Msg,
}

impl OpCode {
    /// Finds an op code by its number; `None` for those of servers before 5.1 and all others.
    pub fn of(number: i32) -> Option<OpCode> {
        [OpCode::Reply, OpCode::Query, OpCode::Compressed, OpCode::Msg]
            .into_iter()
            .find(|code| code.number() == number)
    }

    /// Its number.
    pub fn number(self) -> i32 {
        match self {
            OpCode::Reply => 1,
            OpCode::Query => 2004,
            OpCode::Compressed => 2012,
            OpCode::Msg => 2013,
        }
    }
}

/// The header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the whole message, header included.
    pub length: usize,
    /// Chosen by the sender.
    pub request_id: i32,
    /// In a reply, the `request_id` of the request.
    pub response_to: i32,
    /// See [`OpCode`].
    pub op_code: i32,
}

impl Header {
    /// Its size.
    pub const BYTES: usize = 16;

    /// Reads a header, for a message of at most `max_bytes`.
    ///
    /// # Errors
    /// The length is too small or too large, so that it is unknown where the next message begins.
    pub fn parse(bytes: &[u8], max_bytes: usize) -> Result<Header, MessageError> {
        let mut reader = Reader::new(bytes, 0);
        let length = usize::try_from(reader.i32()?).unwrap_or(0);
        if !(Header::BYTES..=max_bytes).contains(&length) {
            let text = format!(
                "a message must have {} to {max_bytes} bytes. length={length}",
                Header::BYTES
            );
            return Err(MessageError::protocol(text));
        }
        Ok(Header {
            length,
            request_id: reader.i32()?,
            response_to: reader.i32()?,
            op_code: reader.i32()?,
        })
    }

    /// Appends its bytes.
    pub fn write(&self, to: &mut Vec<u8>) {
        // Messages are far smaller than 2 GiB.
        let length = i32::try_from(self.length).unwrap_or(i32::MAX);
        for number in [length, self.request_id, self.response_to, self.op_code] {
            to.extend_from_slice(&number.to_le_bytes());
        }
    }
}
