//! A stream whose first bytes were looked at.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bolide_rntbd::context;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

/// Bytes that tell the protocols after TLS apart.
const FIRST_BYTES: usize = 8;

/// See the module.
#[derive(Debug)]
pub struct Begun<S> {
    stream: S,
    first: [u8; FIRST_BYTES],
    /// Which of them are there and were not read yet.
    from: usize,
    to: usize,
}

impl<S: AsyncRead + Unpin> Begun<S> {
    /// Reads until the protocol is known: requests over HTTP begin with two letters at least. The first byte alone does not tell: it is the low byte of
    /// a length in a frame, whose second byte is never a letter.
    ///
    /// # Errors
    /// The connection ends before that.
    pub async fn read(mut stream: S) -> io::Result<Begun<S>> {
        let (mut first, mut to) = ([0; FIRST_BYTES], 0);
        while to < FIRST_BYTES && !(to >= 2 && first[..2].iter().all(u8::is_ascii_alphabetic)) {
            match stream.read(&mut first[to..]).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                bytes => to += bytes,
            }
        }
        Ok(Begun {
            stream,
            first,
            from: 0,
            to,
        })
    }

    /// Whether frames of direct mode follow.
    pub fn is_direct(&self) -> bool {
        self.to == FIRST_BYTES && context::begins(self.first)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Begun<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.from == self.to {
            return Pin::new(&mut self.stream).poll_read(cx, buf);
        }
        let bytes = buf.remaining().min(self.to - self.from);
        buf.put_slice(&self.first[self.from..self.from + bytes]);
        self.from += bytes;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Begun<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
