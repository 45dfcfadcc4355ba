//! A light HTTP/1.1 client: one keep-alive connection, requests as prepared bytes.
//!
//! It supports only what the servers measured here send: a head, then a body of `content-length` bytes or none.

use std::net::SocketAddr;

use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Result;

const HEAD_END: &[u8] = b"\r\n\r\n";
/// As hyper writes it.
const CONTENT_LENGTH: &[u8] = b"\r\ncontent-length: ";

/// A connection that is kept alive.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// A response as received.
#[derive(Debug)]
pub struct HttpResponse<'a> {
    pub status: u16,
    /// From the status line to the empty line, both included.
    pub head: &'a [u8],
    pub body: &'a [u8],
}

impl Connection {
    /// Connects.
    pub async fn open(address: SocketAddr) -> Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection {
            stream,
            buffer: Vec::with_capacity(16 * 1024),
        })
    }

    /// Sends a request and waits for the whole response.
    pub async fn ask(&mut self, request: &[u8]) -> Result<HttpResponse<'_>> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let shape = loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("the server closed the connection".into());
            }
            match Shape::of(&self.buffer)? {
                Some(shape) if self.buffer.len() >= shape.end => break shape,
                _ => {}
            }
        };
        Ok(HttpResponse {
            status: shape.status,
            head: &self.buffer[..shape.body_at],
            body: &self.buffer[shape.body_at..shape.end],
        })
    }

    /// As [`Connection::ask`], and any other status than `expected` is an error.
    pub async fn expect(&mut self, expected: u16, request: &[u8]) -> Result<HttpResponse<'_>> {
        let response = self.ask(request).await?;
        if response.status == expected {
            return Ok(response);
        }
        Err(format!("status {}: {}", response.status, String::from_utf8_lossy(response.body)).into())
    }
}

/// The positions of the parts of a response.
#[derive(Debug, PartialEq, Eq)]
struct Shape {
    status: u16,
    body_at: usize,
    end: usize,
}

impl Shape {
    /// `None` while the head is incomplete.
    fn of(bytes: &[u8]) -> Result<Option<Shape>> {
        let Some(head_end) = memmem::find(bytes, HEAD_END) else {
            return Ok(None);
        };
        let body_at = head_end + HEAD_END.len();
        let head = &bytes[..body_at];
        let status = head.get(9..12).and_then(decimal).ok_or("a malformed status line")?;
        let length = match memmem::find(head, CONTENT_LENGTH) {
            None => 0,
            Some(at) => {
                let value = head[at + CONTENT_LENGTH.len()..].split(|byte| *byte == b'\r').next();
                value.and_then(decimal).ok_or("a malformed content length")?
            }
        };
        Ok(Some(Shape {
            status: u16::try_from(status)?,
            body_at,
            end: body_at + length,
        }))
    }
}

fn decimal(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
