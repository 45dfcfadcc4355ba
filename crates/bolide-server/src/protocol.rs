//! The protocol of a connection, by its first bytes.
//!
//!   16            a TLS handshake; HTTP/1.1 or HTTP/2 as negotiated by ALPN
//!   `PRI`         HTTP/2 without TLS, from a client that knows the server supports it (as the Rust SDK)
//!   else          HTTP/1.1

use std::time::Duration;

use tokio::net::TcpStream;

/// First byte of a TLS handshake; no HTTP request begins with it.
const TLS_HANDSHAKE: u8 = 0x16;
/// The first bytes of an HTTP/2 connection; no HTTP method begins with them.
const HTTP2_PREFACE: &[u8] = b"PRI";
/// Pause between checks of a connection whose first bytes arrive one by one: the first, and the longest.
const TRICKLE: Duration = Duration::from_millis(1);
const SLOW_TRICKLE: Duration = Duration::from_millis(500);

/// The protocol of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP over TLS.
    Tls,
    Http1,
    Http2,
}

impl Protocol {
    /// Detects the protocol from the first bytes; `None` while several are possible.
    fn of(first: &[u8]) -> Option<Protocol> {
        match first {
            [] => None,
            [TLS_HANDSHAKE, ..] => Some(Protocol::Tls),
            first if first.starts_with(HTTP2_PREFACE) => Some(Protocol::Http2),
            first if HTTP2_PREFACE.starts_with(first) => None,
            _ => Some(Protocol::Http1),
        }
    }
}

/// Peeks at the first bytes of a connection; `None` if it ends before the protocol is known.
pub async fn protocol(stream: &TcpStream) -> Option<Protocol> {
    let mut first = [0; HTTP2_PREFACE.len()];
    let mut rest = TRICKLE;
    loop {
        let seen = stream.peek(&mut first).await.ok().filter(|seen| *seen > 0)?;
        if let Some(protocol) = Protocol::of(&first[..seen]) {
            return Some(protocol);
        }
        // Readiness does not help here: the bytes already received keep the stream ready.
        tokio::time::sleep(rest).await;
        // Thousands of clients that send nothing more must not keep the processors busy.
        rest = (2 * rest).min(SLOW_TRICKLE);
    }
}

#[cfg(test)]
mod tests;
