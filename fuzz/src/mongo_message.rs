//! A message of MongoDB's protocol: a byte that selects the kind, then the message without its header, which is made here, so that its length is right.
//!
//! A message that can be read has valid documents, and says the same when it is compressed and read again.

use bolide_mongo::limits;
use bolide_mongo::message::{Compressed, Compressor, Header, OpCode, OpMsg, OpQuery};
use bytes::Bytes;

/// Reads the bytes as a message.
pub fn run(data: &[u8]) {
    let Some((kind, body)) = data.split_first() else {
        return;
    };
    let op_code = match kind % 3 {
        0 => OpCode::Msg,
        1 => OpCode::Query,
        _ => OpCode::Compressed,
    };
    let mut message = Vec::new();
    let header = Header {
        length: Header::BYTES + body.len(),
        request_id: 1,
        response_to: 0,
        op_code: op_code.number(),
    };
    header.write(&mut message);
    message.extend_from_slice(body);
    let message = Bytes::from(message);
    match op_code {
        OpCode::Msg => read(&message),
        OpCode::Query => {
            if let Ok(query) = OpQuery::parse(&message) {
                walk(query.command.as_bytes());
            }
        }
        _ => {
            let compressed = Compressed::parse(header, message, limits::UNAUTHENTICATED_MESSAGE_BYTES);
            if let Ok((header, inner)) = compressed.and_then(|compressed| compressed.decompress()) {
                assert_eq!(header.length, inner.len());
                assert!(inner.len() <= limits::UNAUTHENTICATED_MESSAGE_BYTES);
                read(&inner);
            }
        }
    }
}

fn read(message: &Bytes) {
    let Ok(parsed) = OpMsg::parse(message.clone()) else {
        return;
    };
    walk(parsed.command().as_bytes());
    for sequence in parsed.sequences() {
        let documents = parsed.documents(&sequence.identifier).expect("it is listed");
        let count = documents.map(|document| walk(document.as_bytes())).count();
        assert_eq!(count, sequence.count);
    }
    for compressor in [Compressor::Snappy, Compressor::Zlib, Compressor::Zstd] {
        if let Some(bytes) = compressor.compress(message) {
            assert!(bytes.len() < message.len());
            let header = Header::parse(&bytes, bytes.len()).expect("it was written");
            let compressed = Compressed::parse(header, bytes.into(), message.len()).expect("it was written");
            let (_, again) = compressed.decompress().expect("it was written");
            assert_eq!(again, message);
        }
    }
}

/// A document of a message is valid.
fn walk(bytes: &[u8]) {
    bolide_mql::value::validate(bytes).expect("documents were validated");
}
