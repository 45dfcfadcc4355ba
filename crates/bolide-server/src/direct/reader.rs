//! The reading half of a connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf, ReadHalf};

/// Bytes that are read at a time.
const READ_BYTES: usize = 16 * 1024;

/// A stream of which a byte can be read ahead: so it is noticed that the client has left while something else is waited for.
pub struct Reader<S> {
    stream: ReadHalf<S>,
    ahead: Option<u8>,
}

impl<S: AsyncRead> Reader<S> {
    /// Nothing is read yet.
    pub fn new(stream: ReadHalf<S>) -> Reader<S> {
        Reader { stream, ahead: None }
    }

    /// Resolves when the client has left, and never otherwise.
    pub async fn left(&mut self) -> io::Error {
        if self.ahead.is_none() {
            match self.stream.read_u8().await {
                Ok(byte) => self.ahead = Some(byte),
                Err(error) => return error,
            }
        }
        std::future::pending().await
    }
}

impl<S: AsyncRead> AsyncRead for Reader<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if buf.remaining() > 0
            && let Some(byte) = self.ahead.take()
        {
            buf.put_slice(&[byte]);
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

/// A payload that is read part by part.
pub struct Arriving<'r, S> {
    reader: &'r mut Reader<S>,
    left: usize,
    part: BytesMut,
}

impl<S> Arriving<'_, S> {
    /// The next bytes of the connection.
    pub fn new(reader: &mut Reader<S>, bytes: usize) -> Arriving<'_, S> {
        Arriving {
            reader,
            left: bytes,
            part: BytesMut::new(),
        }
    }

    /// How many of them are still to come.
    pub fn left(&self) -> usize {
        self.left
    }
}

impl<S: AsyncRead> Body for Arriving<'_, S> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let Arriving { reader, left, part } = &mut *self;
        if part.is_empty() {
            part.resize((*left).min(READ_BYTES), 0);
        }
        let mut read = ReadBuf::new(part);
        ready!(Pin::new(&mut **reader).poll_read(cx, &mut read))?;
        let bytes = read.filled().len();
        if bytes == 0 {
            return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())));
        }
        *left -= bytes;
        let mut whole = std::mem::take(part);
        whole.truncate(bytes);
        Poll::Ready(Some(Ok(Frame::data(whole.freeze()))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

#[cfg(test)]
mod tests;
