//! A light HTTP/1.1 client: one keep-alive connection, requests as prepared bytes.
//!
//! It supports only what the servers measured here send: a head, then a body of `content-length` bytes, in chunks, or none.

use std::net::SocketAddr;

use memchr::memmem;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Result;

const HEAD_END: &[u8] = b"\r\n\r\n";
/// As hyper writes it.
const CONTENT_LENGTH: &[u8] = b"\r\ncontent-length: ";
const MAX_HEADERS: usize = 64;

/// A connection that is kept alive.
pub struct Connection<S = TcpStream> {
    stream: S,
    buffer: Vec<u8>,
    /// The body of a response in chunks, without their frames.
    joined: Vec<u8>,
}

/// A response as received.
#[derive(Debug)]
pub struct HttpResponse<'a> {
    pub status: u16,
    /// From the status line to the empty line, both included.
    pub head: &'a [u8],
    pub body: &'a [u8],
}

impl HttpResponse<'_> {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = std::str::from_utf8(self.head).ok()?.split("\r\n");
        lines.find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

impl Connection {
    /// Connects.
    pub async fn open(address: SocketAddr) -> Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Connection::over(stream))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// A connection over a stream that is there already.
    pub fn over(stream: S) -> Connection<S> {
        Connection {
            stream,
            buffer: Vec::with_capacity(16 * 1024),
            joined: Vec::new(),
        }
    }

    /// Sends a request and waits for the whole response.
    pub async fn ask(&mut self, request: &[u8]) -> Result<HttpResponse<'_>> {
        self.stream.write_all(request).await?;
        self.stream.flush().await?;
        self.buffer.clear();
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("the server closed the connection".into());
            }
            let Some(shape) = Shape::of(&self.buffer)? else {
                continue;
            };
            let is_whole = match shape.end {
                Some(end) => self.buffer.len() >= end,
                None => join_chunks(&self.buffer[shape.body_at..], &mut self.joined)?,
            };
            if is_whole {
                let body = match shape.end {
                    Some(end) => &self.buffer[shape.body_at..end],
                    None => &self.joined,
                };
                return Ok(HttpResponse {
                    status: shape.status,
                    head: &self.buffer[..shape.body_at],
                    body,
                });
            }
        }
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
    /// `None` for a body in chunks.
    end: Option<usize>,
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
            Some(at) => {
                let value = head[at + CONTENT_LENGTH.len()..].split(|byte| *byte == b'\r').next();
                Some(value.and_then(decimal).ok_or("a malformed content length")?)
            }
            None => length_of_peer(head)?,
        };
        Ok(Some(Shape {
            status: u16::try_from(status)?,
            body_at,
            end: length.map(|length| body_at + length),
        }))
    }
}

/// The length of the body after a head of another server than hyper; `None` for a body in chunks, 0 for no body.
fn length_of_peer(head: &[u8]) -> Result<Option<usize>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    response.parse(head)?;
    let value = |name: &str| {
        let mut headers = response.headers.iter();
        headers
            .find(|header| header.name.eq_ignore_ascii_case(name))
            .map(|header| header.value)
    };
    if let Some(length) = value("content-length") {
        return Ok(Some(decimal(length).ok_or("a malformed content length")?));
    }
    let is_chunked = value("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked"));
    Ok((!is_chunked).then_some(0))
}

/// Copies the data of all chunks; returns whether the last one is there. Trailers are not supported.
fn join_chunks(mut bytes: &[u8], joined: &mut Vec<u8>) -> Result<bool> {
    const LINE_END: usize = 2;
    joined.clear();
    loop {
        let size = httparse::parse_chunk_size(bytes).map_err(|_| "a malformed chunk")?;
        let httparse::Status::Complete((data_at, size)) = size else {
            return Ok(false);
        };
        let end = data_at + usize::try_from(size)?;
        let Some(data) = bytes.get(data_at..end).filter(|_| bytes.len() >= end + LINE_END) else {
            return Ok(false);
        };
        if size == 0 {
            return Ok(true);
        }
        joined.extend_from_slice(data);
        bytes = &bytes[end + LINE_END..];
    }
}

fn decimal(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
