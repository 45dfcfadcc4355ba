//! An HTTP/2 client that can do what no library would: it writes frames itself (RFC 9113, RFC 7541).

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::server::Server;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const SETTINGS: u8 = 4;
pub const GOAWAY: u8 = 7;
const PING: u8 = 6;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:status 200` in the static table of RFC 7541.
pub const STATUS_200: u8 = 0x88;
pub const STATUS_400: u8 = 0x8c;

pub struct Http2 {
    stream: TcpStream,
}

/// A frame, without its length.
#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Http2 {
    /// Connects; the streams of responses begin with a window of `window` bytes.
    pub fn connect(server: &Server, window: u32) -> Http2 {
        let stream = TcpStream::connect(("127.0.0.1", server.port())).expect("the server listens");
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .expect("a timeout can be set");
        let mut client = Http2 { stream };
        client
            .stream
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .expect("sent");
        // SETTINGS_INITIAL_WINDOW_SIZE
        let window = [&[0, 4][..], &window.to_be_bytes()].concat();
        client.send(SETTINGS, 0, 0, &window);
        client
    }

    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.try_send(kind, flags, stream, payload).expect("sent");
    }

    fn try_send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        let length = u32::try_from(payload.len()).expect("a small frame").to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        self.stream.write_all(&[&head, payload].concat())
    }

    /// Sends a request without a body.
    pub fn get(&mut self, stream: u32, path: &str, authority: &str) {
        self.try_get(stream, path, authority).expect("sent");
    }

    /// As [`Http2::get`], on a connection that may have ended.
    pub fn try_get(&mut self, stream: u32, path: &str, authority: &str) -> io::Result<()> {
        // GET and http by index, then path and authority as literals that are not indexed.
        let mut block = vec![0x82, 0x86];
        for (name, text) in [(0x04, path), (0x01, authority)] {
            block.extend([name, u8::try_from(text.len()).expect("a short text")]);
            block.extend(text.as_bytes());
        }
        self.try_send(HEADERS, END_STREAM | END_HEADERS, stream, &block)
    }

    pub fn receive(&mut self) -> io::Result<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        self.stream.read_exact(&mut payload)?;
        // Answers pings, so that the server knows that the client is there.
        if (head[3], head[4]) == (PING, 0) {
            self.try_send(PING, ACK, 0, &payload)?;
        }
        Ok(Frame {
            kind: head[3],
            flags: head[4],
            stream: u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
            payload,
        })
    }

    /// The next frame of a type; others are skipped.
    pub fn receive_kind(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.receive().expect("the connection is open");
            if frame.kind == kind {
                return frame;
            }
        }
    }

    /// All frames until the connection ends.
    pub fn receive_all(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            match self.receive() {
                Ok(frame) => frames.push(frame),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => panic!("the connection does not end"),
                Err(_) => return frames,
            }
        }
    }
}
