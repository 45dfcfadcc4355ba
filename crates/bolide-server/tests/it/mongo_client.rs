//! A small client of MongoDB's protocol: commands as OP_MSG over any stream.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bson::RawDocumentBuf;

/// A connection.
pub struct MongoClient<S = TcpStream> {
    stream: S,
}

impl MongoClient {
    /// Connects; fails if the server is gone.
    pub fn connect(port: u16) -> io::Result<MongoClient> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        // Requests are small and wait for their replies.
        stream.set_nodelay(true)?;
        Ok(MongoClient { stream })
    }
}

impl<S: Read + Write> MongoClient<S> {
    /// A client over a stream.
    pub fn over(stream: S) -> MongoClient<S> {
        MongoClient { stream }
    }

    /// Sends a command; returns the reply.
    pub fn run(&mut self, command: &RawDocumentBuf) -> io::Result<RawDocumentBuf> {
        self.send(command)?;
        self.receive()
    }

    /// Sends a command without waiting for its reply.
    pub fn send(&mut self, command: &RawDocumentBuf) -> io::Result<()> {
        self.stream.write_all(&op_msg(command.as_bytes()))
    }

    /// Sends bytes that need not be a message.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Returns the next reply.
    pub fn receive(&mut self) -> io::Result<RawDocumentBuf> {
        let mut head = [0; 21];
        self.stream.read_exact(&mut head)?;
        let length = i32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let rest = usize::try_from(length)
            .ok()
            .and_then(|length| length.checked_sub(head.len()));
        let mut body = vec![0; rest.expect("a reply is longer than its head")];
        self.stream.read_exact(&mut body)?;
        Ok(RawDocumentBuf::from_bytes(body).expect("a document"))
    }

    /// The stream, for what no client should do.
    pub fn stream(&mut self) -> &mut S {
        &mut self.stream
    }
}

/// An OP_MSG with one document, which need not be one.
pub fn op_msg(document: &[u8]) -> Vec<u8> {
    message(2013, &[&[0, 0, 0, 0, 0], document].concat())
}

/// A message with the right length.
pub fn message(op_code: i32, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16 + body.len());
    for number in [i32::try_from(16 + body.len()).expect("short"), 1, 0, op_code] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(body);
    bytes
}
