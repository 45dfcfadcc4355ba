//! The bytes of messages: what clients send, and replies.
//!
//! ```text
//!   message   length i32 · request id i32 · response to i32 · op code i32 · body
//!   OP_MSG         2013   flags u32 · sections · checksum u32?
//!   OP_QUERY       2004   only for a client's first hello
//!   OP_REPLY          1   the reply to it
//!   OP_COMPRESSED  2012   op code i32 · size i32 · compressor u8 · compressed body
//! ```
//!
//! Everything that arrives is hostile: lengths are checked before they are used, and documents are validated completely.
//!
//! Source: mongo.md §2.

mod compression;
mod error;
mod header;
mod op_msg;
mod op_query;
mod reader;
mod reply;

pub use compression::{Compressed, Compressor};
pub use error::MessageError;
pub use header::{Header, OpCode};
pub use op_msg::{CHECKSUM_PRESENT, EXHAUST_ALLOWED, MORE_TO_COME, OpMsg, Sequence};
pub use op_query::OpQuery;
pub use reply::{op_msg, op_reply};

#[cfg(test)]
mod tests;
