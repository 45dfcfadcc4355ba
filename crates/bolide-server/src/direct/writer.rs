//! The writing half of a connection: responses one after the other, several short ones together.

use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt as _, WriteHalf};

use crate::streams::Streams;

/// A payload up to this size is sent together with its head.
const SMALL_BYTES: usize = 8 * 1024;
/// Bytes that are sent together, at most, and of a long payload before the client counts as taking it.
const CHUNK_BYTES: usize = 64 * 1024;
/// Memory that is kept for the next responses, after those of some frames that came together.
const KEPT_BYTES: usize = 16 * 1024;

/// See the module.
pub struct Writer<S> {
    stream: WriteHalf<S>,
    /// What was not sent yet.
    out: Vec<u8>,
    /// How much of it was sent nevertheless, by a flush that was cancelled.
    sent: usize,
    /// A long payload was sent in part, by what was cancelled: nothing may follow it.
    is_broken: bool,
}

impl<S: AsyncWrite> Writer<S> {
    /// Nothing is sent yet.
    pub fn new(stream: WriteHalf<S>) -> Writer<S> {
        Writer {
            stream,
            out: Vec::new(),
            sent: 0,
            is_broken: false,
        }
    }

    /// Adds a frame. A long one is sent.
    ///
    /// # Errors
    /// The client has left.
    pub async fn add(&mut self, head: &[u8], payload: &[u8], streams: &Streams) -> io::Result<()> {
        self.check()?;
        if payload.len() <= SMALL_BYTES {
            self.out.extend_from_slice(head);
            self.out.extend_from_slice(payload);
            if self.out.len() < CHUNK_BYTES {
                return Ok(());
            }
            return self.flush(streams).await;
        }
        self.is_broken = true;
        self.out.extend_from_slice(head);
        self.send(streams).await?;
        let _waiting = streams.wait();
        for chunk in payload.chunks(CHUNK_BYTES) {
            self.stream.write_all(chunk).await?;
            streams.taken();
        }
        self.stream.flush().await?;
        self.is_broken = false;
        Ok(())
    }

    /// Sends what was added. What is left of it after a cancellation is sent by the next call.
    ///
    /// # Errors
    /// The client has left.
    pub async fn flush(&mut self, streams: &Streams) -> io::Result<()> {
        self.check()?;
        self.send(streams).await
    }

    async fn send(&mut self, streams: &Streams) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        let _waiting = streams.wait();
        while let Some(rest) = self.out.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                bytes => self.sent += bytes,
            }
        }
        self.sent = 0;
        self.out.clear();
        self.out.shrink_to(KEPT_BYTES);
        self.stream.flush().await
    }

    fn check(&self) -> io::Result<()> {
        match self.is_broken {
            false => Ok(()),
            true => Err(io::Error::other("a response was sent in part")),
        }
    }

    /// Tells the client that nothing follows.
    ///
    /// # Errors
    /// It has left.
    pub async fn shutdown(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }
}
