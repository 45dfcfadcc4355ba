//! A light client of MongoDB's protocol: one connection, commands as prepared messages, no authentication.

use std::net::SocketAddr;

use bson::{RawDocument, RawDocumentBuf};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Result;
use crate::load::{Link, Worker};

const OP_MSG: i32 = 2013;
/// Length, request id, id of the request that is answered, operation.
const HEADER_BYTES: usize = 16;
/// The flags of a message, and the kind of its first section.
const PREFIX_BYTES: usize = 5;
/// Statuses of [`Link`], as those of HTTP.
pub const OK: u16 = 200;
const FAILED: u16 = 500;

/// A connection.
pub struct MongoConnection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// Returns a command as an `OP_MSG` with one section.
pub fn message(command: &RawDocument) -> Vec<u8> {
    let length = HEADER_BYTES + PREFIX_BYTES + command.as_bytes().len();
    let mut bytes = Vec::with_capacity(length);
    let length = i32::try_from(length).unwrap_or(i32::MAX);
    for number in [length, 1, 0, OP_MSG, 0] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.push(0);
    bytes.extend_from_slice(command.as_bytes());
    bytes
}

impl MongoConnection {
    /// Connects.
    pub async fn open(address: SocketAddr) -> Result<MongoConnection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(MongoConnection {
            stream,
            buffer: Vec::with_capacity(16 * 1024),
        })
    }

    /// Sends a message and waits for the reply.
    pub async fn ask(&mut self, request: &[u8]) -> Result<&RawDocument> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let length = loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("the server closed the connection".into());
            }
            let Some(length) = self.buffer.first_chunk::<4>() else {
                continue;
            };
            let length = usize::try_from(i32::from_le_bytes(*length))?;
            if self.buffer.len() >= length {
                break length;
            }
        };
        let body = self.buffer.get(HEADER_BYTES + PREFIX_BYTES..length);
        Ok(RawDocument::from_bytes(body.ok_or("a reply without a body")?)?)
    }

    /// As [`MongoConnection::ask`], and a reply with an error is an error.
    pub async fn expect(&mut self, request: &[u8]) -> Result<&RawDocument> {
        let reply = self.ask(request).await?;
        match is_ok(reply) {
            true => Ok(reply),
            false => Err(format!("{reply:?}").into()),
        }
    }

    /// Runs a command.
    pub async fn run(&mut self, command: RawDocumentBuf) -> Result<&RawDocument> {
        self.expect(&message(&command)).await
    }
}

fn is_ok(reply: &RawDocument) -> bool {
    let ok = reply.get("ok").ok().flatten();
    let is_one = ok.is_some_and(|ok| ok.as_f64() == Some(1.0) || ok.as_i32() == Some(1));
    is_one && reply.get("writeErrors").is_ok_and(|errors| errors.is_none())
}

impl Link for MongoConnection {
    async fn open(address: SocketAddr) -> Result<MongoConnection> {
        MongoConnection::open(address).await
    }

    async fn status(&mut self, request: &[u8]) -> Result<u16> {
        Ok(if is_ok(self.ask(request).await?) { OK } else { FAILED })
    }
}

/// A worker that sends commands over its own connection.
pub struct MongoClient<F> {
    pub connection: MongoConnection,
    pub next: F,
}

impl<F: FnMut() -> Vec<u8> + Send + 'static> Worker for MongoClient<F> {
    async fn step(&mut self) -> Result<()> {
        let request = (self.next)();
        self.connection.expect(&request).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
