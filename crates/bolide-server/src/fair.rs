//! A stream that yields to other tasks between its reads.
//!
//! If a client keeps its socket full, its connection always has work: thousands of small frames, or one request after the other. The runtime would
//! let such a task run for many reads; here it yields after each read that filled the buffer. Clients that send less are not delayed.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf, Take};

/// Bytes of one read: a few hundred frames of HTTP/2. The rest of a buffer is not offered: hyper's buffers grow with large bodies, and reads that
/// fill them delay other tasks for a second (`bolide-bench hostile --only bodies`).
const READ_BYTES: usize = 4 * 1024;

/// See the module.
#[derive(Debug)]
pub struct Fair<S> {
    /// Its limit is the limit of the next read.
    stream: Take<S>,
    /// The last read filled the buffer, so more data may be available.
    was_full: bool,
}

impl<S: AsyncRead> Fair<S> {
    /// Makes `stream` yield.
    pub fn new(stream: S) -> Fair<S> {
        Fair {
            stream: stream.take(0),
            was_full: false,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Fair<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if std::mem::take(&mut self.was_full) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buf.filled().len();
        self.stream.set_limit(READ_BYTES as u64);
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.was_full = buf.filled().len() - before == READ_BYTES;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Fair<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(self.stream.get_mut()).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.stream.get_mut()).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.get_ref().is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.stream.get_mut()).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.stream.get_mut()).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
