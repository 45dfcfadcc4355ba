//! A stream that lets others go on between its reads.
//!
//! A client that keeps its socket full gives its connection always something to do: thousands of small frames, or one request behind the
//! other. The runtime takes such a task from its thread only after many reads; here it goes to the back of the line after each that was
//! full. Who sends less is not held up.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf, Take};

/// Bytes of one read: a few hundred frames of HTTP/2. The rest of a buffer is not offered: hyper's grow with large bodies, and reads that
/// fill them let others wait for a second (`bolide-bench hostile --only bodies`).
const READ_BYTES: usize = 4 * 1024;

/// See the module.
#[derive(Debug)]
pub struct Fair<S> {
    /// Its limit is that of the next read.
    stream: Take<S>,
    /// The last read was full: more may be there.
    was_full: bool,
}

impl<S: AsyncRead> Fair<S> {
    /// Makes `stream` fair.
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
mod tests {
    use super::*;

    #[tokio::test]
    async fn others_go_on_between_full_reads() {
        let sent = vec![7; 3 * READ_BYTES];
        let mut stream = Fair::new(&sent[..]);
        let (mut others, mut received) = (0, 0);
        while received < sent.len() {
            let mut room = [0; 2 * READ_BYTES];
            let mut reading = std::pin::pin!(stream.read(&mut room));
            received += std::future::poll_fn(|cx| {
                let polled = reading.as_mut().poll(cx);
                others += u32::from(polled.is_pending());
                polled
            })
            .await
            .expect("bytes in memory can be read");
        }
        assert_eq!(others, 2, "between three reads");
    }

    #[tokio::test]
    async fn who_sends_less_is_not_held_up() {
        let sent = vec![7; READ_BYTES - 1];
        let mut stream = Fair::new(&sent[..]);
        let mut received = Vec::new();
        let mut reading = std::pin::pin!(stream.read_to_end(&mut received));
        let polled = std::future::poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx).is_ready())).await;
        assert!(polled);
    }
}
