//! Error bodies for requests whose head is invalid: hyper refuses them with a status and no body, without calling the service.
//!
//! Output of hyper before a request has begun can only be such a refusal. It is replaced, on its way to the socket, by an error in the protocol's
//! format with the same status. The connection ends after it, as hyper decided. Before that, bytes that the client still sends are read and dropped,
//! within limits, because a response is lost if its connection ends with unread bytes.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bolide_cosmos::{Payload, fallback};
use bytes::{Buf as _, Bytes};
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::timeouts::Activity;

/// The beginning of hyper's own responses.
const STATUS_LINE: &[u8] = b"HTTP/1.1 ";
/// Maximum number of bytes that are dropped.
const DRAINED_BYTES: usize = 16 * 1024 * 1024;

/// A stream that replaces hyper's refusals by error responses.
#[derive(Debug)]
pub struct ErrorRewriter<S> {
    stream: S,
    activity: Arc<Activity>,
    /// The rest of an error response that replaces a refusal.
    answer: Option<Bytes>,
    drained: usize,
}

impl<S> ErrorRewriter<S> {
    /// Watches output to `stream`; `activity` tells whether a request has begun.
    pub fn new(stream: S, activity: Arc<Activity>) -> ErrorRewriter<S> {
        ErrorRewriter {
            stream,
            activity,
            answer: None,
            drained: 0,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ErrorRewriter<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ErrorRewriter<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.is_refusal(buf) {
            return self.poll_answer(cx, buf.len());
        }
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = bufs.iter().find(|buf| !buf.is_empty()).map_or(&[][..], |buf| buf);
        if self.is_refusal(first) {
            let length = bufs.iter().map(|buf| buf.len()).sum();
            return self.poll_answer(cx, length);
        }
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
        if self.answer.is_some() {
            ready!(self.poll_drain(cx));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> ErrorRewriter<S> {
    /// Whether `written` is a refusal by hyper; if so, prepares the response that replaces it.
    fn is_refusal(&mut self, written: &[u8]) -> bool {
        if self.answer.is_none() && !self.activity.has_begun() {
            self.answer = refused_status(written).map(error_response);
        }
        self.answer.is_some()
    }

    /// Writes the response; when it is complete, reports the `length` bytes of the refusal as written.
    fn poll_answer(&mut self, cx: &mut Context<'_>, length: usize) -> Poll<io::Result<usize>> {
        while let Some(answer) = self.answer.as_mut().filter(|answer| !answer.is_empty()) {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, answer))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            answer.advance(written);
        }
        Poll::Ready(Ok(length))
    }

    /// Reads until the client ends the connection, or a limit is reached.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut buffer = [0; 16 * 1024];
        while self.drained < DRAINED_BYTES {
            let mut buf = ReadBuf::new(&mut buffer);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => self.drained += buf.filled().len(),
                _ => break,
            }
        }
        Poll::Ready(())
    }
}

/// The status of a refusal; `None` for other output.
fn refused_status(written: &[u8]) -> Option<StatusCode> {
    let status = written.strip_prefix(STATUS_LINE)?.get(..3)?;
    StatusCode::from_bytes(status).ok().filter(StatusCode::is_client_error)
}

/// The whole response, as sent.
fn error_response(status: StatusCode) -> Bytes {
    let response = fallback::unreadable(status);
    let (head, payload) = response.into_parts();
    let Payload::Whole(body) = payload else {
        return Bytes::new();
    };
    let reason = status.canonical_reason().unwrap_or_default();
    let mut answer = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    for (name, value) in &head.headers {
        answer.extend_from_slice(name.as_str().as_bytes());
        answer.extend_from_slice(b": ");
        answer.extend_from_slice(value.as_bytes());
        answer.extend_from_slice(b"\r\n");
    }
    answer.extend_from_slice(format!("content-length: {}\r\nconnection: close\r\n\r\n", body.len()).as_bytes());
    answer.extend_from_slice(&body);
    answer.into()
}

#[cfg(test)]
mod tests;
