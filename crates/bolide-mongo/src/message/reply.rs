//! The bytes of replies.

use bson::RawDocument;

use super::header::{Header, OpCode};

/// `responseFlags` of OP_REPLY: the server can wait for data.
const AWAIT_CAPABLE: i32 = 8;

/// Returns an OP_MSG with one document.
pub fn op_msg(request_id: i32, response_to: i32, flags: u32, body: &RawDocument) -> Vec<u8> {
    let body = body.as_bytes();
    let length = Header::BYTES + 4 + 1 + body.len();
    let mut bytes = Vec::with_capacity(length);
    let header = Header {
        length,
        request_id,
        response_to,
        op_code: OpCode::Msg.number(),
    };
    header.write(&mut bytes);
    bytes.extend_from_slice(&flags.to_le_bytes());
    bytes.push(0);
    bytes.extend_from_slice(body);
    bytes
}

/// Returns an OP_REPLY with one document.
pub fn op_reply(request_id: i32, response_to: i32, body: &RawDocument) -> Vec<u8> {
    let body = body.as_bytes();
    let length = Header::BYTES + 20 + body.len();
    let mut bytes = Vec::with_capacity(length);
    let header = Header {
        length,
        request_id,
        response_to,
        op_code: OpCode::Reply.number(),
    };
    header.write(&mut bytes);
    bytes.extend_from_slice(&AWAIT_CAPABLE.to_le_bytes());
    // No cursor, starting from 0, one document.
    bytes.extend_from_slice(&0_i64.to_le_bytes());
    bytes.extend_from_slice(&0_i32.to_le_bytes());
    bytes.extend_from_slice(&1_i32.to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}
