//! A connection in direct mode: the context, and frames each way (rntbd.md §3).

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use bolide_rntbd::frame::{Head, Outgoing, head_rest};
use bolide_rntbd::token::{Kind, TokenWriter};
use bytes::Bytes;
use serde_json::Value;

use crate::listening::{Tls, tls_over};

/// The activity id of all requests, and the same as text.
pub const ACTIVITY_ID: [u8; 16] = [7; 16];
pub const ACTIVITY_ID_TEXT: &str = "07070707-0707-0707-0707-070707070707";
/// What .NET 3.64 says of itself: its context frame has 143 bytes with it (rntbd.md §3.3).
const USER_AGENT: &str = "cosmos-netstandard-sdk/3.64.0|3.44.4|1|X64|Linux 6.8.0-generic 1|.NET 10.0.1|N|F 00001";

/// How long a test waits for an answer.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A connection after its context was negotiated, or before.
pub struct Direct {
    pub stream: Tls,
    /// The number of the last request.
    pub last: u32,
}

/// A response.
pub struct Answer {
    pub head: Head,
    pub body: Bytes,
}

/// The value of a token.
#[derive(Debug, Clone)]
pub enum Sent {
    Byte(u8),
    ULong(u32),
    LongLong(i64),
    Guid([u8; 16]),
    SmallText(String),
    Text(String),
    Bytes(Vec<u8>),
}

/// Tokens in the order of their ids, in which .NET sends them.
pub type SentTokens = BTreeMap<u16, Sent>;

impl Direct {
    /// Connects, and negotiates as .NET 3.64 does.
    pub fn connect(port: u16, pem: &[u8], version: &str) -> Direct {
        Direct::try_connect(port, pem, version, PATIENCE).expect("the server listens")
    }

    /// The same with a server that may not be there. `patience`: how long it may take for an answer.
    pub fn try_connect(port: u16, pem: &[u8], version: &str, patience: Duration) -> io::Result<Direct> {
        let mut direct = Direct::over(TcpStream::connect(("127.0.0.1", port))?, pem, patience);
        let mut tokens = TokenWriter::default();
        tokens.u_long(0, 1);
        assert!(tokens.counted(1, Kind::SmallString, version.as_bytes()));
        assert!(tokens.counted(2, Kind::SmallString, USER_AGENT.as_bytes()));
        // The caller's id, and no multiplexing of channels.
        tokens.byte(3, 0);
        tokens.byte(4, 0);
        let frame = Outgoing::request(0, 0, [1; 16], &tokens).write().expect("a frame");
        assert_eq!(frame[..8], [0x8F, 0, 0, 0, 0, 0, 0, 0]);
        direct.try_write(&frame)?;
        let answer = direct.receive()?;
        assert_eq!((answer.head.status(), answer.head.activity_id), (200, [1; 16]));
        assert_eq!((answer.text(1), answer.text(2)), (version, "bolide"));
        assert_eq!(answer.text(3), env!("CARGO_PKG_VERSION"));
        Ok(direct)
    }

    /// Connects, and says nothing.
    pub fn opened(port: u16, pem: &[u8]) -> Direct {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        Direct::over(stream, pem, PATIENCE)
    }

    fn over(stream: TcpStream, pem: &[u8], patience: Duration) -> Direct {
        stream.set_read_timeout(Some(patience)).expect("a timeout");
        // As SDKs do: a frame in two parts would wait for an acknowledgement.
        stream.set_nodelay(true).expect("a socket");
        Direct {
            stream: tls_over(stream, pem, "localhost"),
            last: 0,
        }
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.try_write(bytes).expect("the server reads");
    }

    pub fn try_write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    pub fn receive(&mut self) -> io::Result<Answer> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut head = vec![0; head_rest(length, 1 << 20).map_err(io::Error::other)?];
        self.stream.read_exact(&mut head)?;
        let head = Head::read(head.into()).map_err(io::Error::other)?;
        // The first answer has other tokens: a payload follows if it is an error.
        let is_first = head.tokens.get(0x35).is_none();
        let has_payload = match is_first {
            true => head.status() >= 400,
            false => head.tokens.required(0x00).expect("a token").whole() == Ok(1),
        };
        let mut body = Vec::new();
        if has_payload {
            self.stream.read_exact(&mut length)?;
            body = vec![0; usize::try_from(u32::from_le_bytes(length)).expect("short")];
            self.stream.read_exact(&mut body)?;
        }
        Ok(Answer {
            head,
            body: body.into(),
        })
    }

    /// Sends a request with these tokens and its number, and receives its answer.
    pub fn exchange(&mut self, resource: u16, operation: u16, tokens: &SentTokens, body: &[u8]) -> Answer {
        let answer = self.try_exchange(resource, operation, tokens, body);
        answer.expect("an answer")
    }

    /// The same over a connection that may end.
    pub fn try_exchange(
        &mut self,
        resource: u16,
        operation: u16,
        tokens: &SentTokens,
        body: &[u8],
    ) -> io::Result<Answer> {
        let frame = self.frame(resource, operation, tokens, body);
        self.try_write(&frame)?;
        let answer = self.receive()?;
        assert_eq!(
            (answer.number(0x35), answer.head.activity_id),
            (self.last.into(), ACTIVITY_ID)
        );
        Ok(answer)
    }

    /// The frame of the next request, with its number and its payload.
    pub fn frame(&mut self, resource: u16, operation: u16, tokens: &SentTokens, body: &[u8]) -> Vec<u8> {
        self.last += 1;
        let mut tokens = tokens.clone();
        tokens.insert(0x02, Sent::Byte(u8::from(!body.is_empty())));
        tokens.insert(0x4D, Sent::ULong(self.last));
        let written = written(&tokens);
        let frame = Outgoing::request(resource, operation, ACTIVITY_ID, &written);
        let frame = match body.is_empty() {
            true => frame.write(),
            false => frame.with_payload(body.len()).write(),
        };
        [&frame.expect("a frame")[..], body].concat()
    }

    /// Whether the server closes the connection, long before a timeout of its own.
    pub fn is_closed(&mut self) -> bool {
        let patience = Some(Duration::from_secs(5));
        self.stream.sock.set_read_timeout(patience).expect("a timeout");
        match self.stream.read(&mut [0]) {
            Ok(bytes) => bytes == 0,
            Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut),
        }
    }
}

/// The bytes of tokens.
pub fn written(tokens: &SentTokens) -> TokenWriter {
    let mut writer = TokenWriter::default();
    for (id, value) in tokens {
        let fits = match value {
            Sent::Byte(value) => {
                writer.byte(*id, *value);
                true
            }
            Sent::ULong(value) => {
                writer.u_long(*id, *value);
                true
            }
            Sent::LongLong(value) => {
                writer.long_long(*id, *value);
                true
            }
            Sent::Guid(value) => {
                writer.guid(*id, *value);
                true
            }
            Sent::SmallText(text) => writer.counted(*id, Kind::SmallString, text.as_bytes()),
            Sent::Text(text) => writer.counted(*id, Kind::String, text.as_bytes()),
            Sent::Bytes(bytes) => writer.counted(*id, Kind::Bytes, bytes),
        };
        assert!(fits, "token {id:#06x} is too long");
    }
    writer
}

impl Answer {
    pub fn number(&self, id: u16) -> i128 {
        let token = self.head.tokens.required(id).expect("a token");
        token.whole().expect("a number")
    }

    pub fn text(&self, id: u16) -> &str {
        let token = self.head.tokens.required(id).expect("a token");
        token.text().expect("text")
    }

    /// The text of a token; `None` without it.
    pub fn find(&self, id: u16) -> Option<&str> {
        self.head.tokens.get(id)?.text().ok()
    }

    /// The number of a token; `None` without it.
    pub fn find_number(&self, id: u16) -> Option<i128> {
        self.head.tokens.get(id)?.whole().ok()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    pub fn sub_status(&self) -> u32 {
        let sub = self.find_number(0x1C).unwrap_or(0);
        u32::try_from(sub).expect("32 bits")
    }

    /// Checks the status, and what each answer has (rntbd.md §1.7).
    pub fn expect(self, status: u32) -> Answer {
        assert_eq!(self.head.status(), status, "{}", String::from_utf8_lossy(&self.body));
        for lsn in [0x13, 0x1A, 0x29, 0x32, 0x3A, 0x3B, 0x3C] {
            assert!(self.number(lsn) >= 1, "{lsn:#04x}");
        }
        assert!(self.text(0x3E).starts_with("-1#"), "{}", self.text(0x3E));
        assert!(!self.text(0x21).is_empty());
        self
    }
}
