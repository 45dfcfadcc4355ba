//! The smallest client of the MongoDB wire protocol: one connection, one command at a time, as OP_MSG with one section.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bson::{Bson, Document, doc};

use crate::Result;

/// The operation code of OP_MSG.
const OP_MSG: i32 = 2013;

/// Bytes of a message header: length, request, response, operation code; `i32` each.
const HEADER_BYTES: usize = 16;

/// The longest message that a server may send, as `maxMessageSizeBytes` of hello.
const MESSAGE_LIMIT: usize = 48_000_000;

/// Far above the time of any step; a server that hangs fails the case and not the whole run.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A connection.
pub struct Client {
    stream: TcpStream,
    requests: i32,
}

impl Client {
    /// Connects to `address`, such as `127.0.0.1:10255`.
    ///
    /// # Errors
    /// If nothing listens there.
    pub fn connect(address: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).map_err(|error| format!("{address}: {error}"))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, requests: 0 })
    }

    /// Sends a command and returns the reply, also if it is an error of the command.
    ///
    /// # Errors
    /// If the connection breaks, or the reply is not one message with one document.
    pub fn run(&mut self, database: &str, mut command: Document) -> Result<Document> {
        command.insert("$db", database);
        self.requests += 1;
        self.stream.write_all(&message(self.requests, &command)?)?;
        let mut header = [0; HEADER_BYTES];
        self.stream.read_exact(&mut header)?;
        let length = field(&header, 0)?;
        let length = usize::try_from(length)
            .ok()
            .filter(|length| (HEADER_BYTES..=MESSAGE_LIMIT).contains(length))
            .ok_or_else(|| format!("a reply has an impossible length. length={length}"))?;
        let mut body = vec![0; length - HEADER_BYTES];
        self.stream.read_exact(&mut body)?;
        reply(&header, &body, self.requests)
    }

    /// Sends a command that must succeed.
    ///
    /// # Errors
    /// As [`Client::run`], and if the reply is an error.
    pub fn succeed(&mut self, database: &str, command: Document) -> Result<Document> {
        let what = command.keys().next().cloned().unwrap_or_default();
        let reply = self.run(database, command)?;
        match reply.get("ok") {
            Some(Bson::Double(ok)) if *ok == 1.0 => Ok(reply),
            _ => {
                let message = reply.get_str("errmsg").unwrap_or("an error without a message");
                Err(format!("{what}: {message}").into())
            }
        }
    }

    /// Reads every document of a cursor that a command opens.
    ///
    /// # Errors
    /// As [`Client::succeed`], and if a reply has no cursor.
    pub fn read_all(&mut self, database: &str, collection: &str, command: Document) -> Result<Vec<Document>> {
        let mut reply = self.succeed(database, command)?;
        let mut documents = Vec::new();
        loop {
            let cursor = reply.get_document("cursor")?;
            let batch = cursor
                .get_array("firstBatch")
                .or_else(|_| cursor.get_array("nextBatch"))?;
            documents.extend(batch.iter().filter_map(Bson::as_document).cloned());
            let id = cursor.get_i64("id")?;
            if id == 0 {
                return Ok(documents);
            }
            reply = self.succeed(database, doc! { "getMore": id, "collection": collection })?;
        }
    }
}

/// The bytes of a command.
fn message(request: i32, command: &Document) -> Result<Vec<u8>> {
    let document = command.to_vec()?;
    // Flags without any bit, and a section of kind 0.
    let length = HEADER_BYTES + 4 + 1 + document.len();
    let mut message = Vec::with_capacity(length);
    for number in [i32::try_from(length)?, request, 0, OP_MSG, 0] {
        message.extend(number.to_le_bytes());
    }
    message.push(0);
    message.extend(document);
    Ok(message)
}

/// The document of a reply to `request`.
fn reply(header: &[u8], body: &[u8], request: i32) -> Result<Document> {
    let (answered, code) = (field(header, 8)?, field(header, 12)?);
    if answered != request || code != OP_MSG {
        return Err(format!("the reply is of another kind. responseTo={answered} opCode={code}").into());
    }
    let flags = field(body, 0)?;
    match body.get(4..).and_then(<[u8]>::split_first) {
        Some((0, document)) if flags == 0 => Ok(Document::from_reader(document)?),
        _ => Err(format!("the reply is not a single section. flags={flags}").into()),
    }
}

/// A little-endian number at `offset`.
fn field(bytes: &[u8], offset: usize) -> Result<i32> {
    let bytes = bytes.get(offset..).and_then(|rest| rest.first_chunk());
    Ok(i32::from_le_bytes(*bytes.ok_or("a message is too short")?))
}

#[cfg(test)]
mod tests;
