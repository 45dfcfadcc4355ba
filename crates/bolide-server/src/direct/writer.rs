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
}

impl<S: AsyncWrite> Writer<S> {
    /// Nothing is sent yet.
    pub fn new(stream: WriteHalf<S>) -> Writer<S> {
        Writer {
            stream,
            out: Vec::new(),
        }
    }

    /// Whether everything is sent.
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Adds a frame. A long one is sent.
    ///
    /// # Errors
    /// The client has left.
    pub async fn add(&mut self, head: &[u8], payload: &[u8], streams: &Streams) -> io::Result<()> {
        self.out.extend_from_slice(head);
        if payload.len() <= SMALL_BYTES {
            self.out.extend_from_slice(payload);
            if self.out.len() < CHUNK_BYTES {
                return Ok(());
            }
            return self.flush(streams).await;
        }
        self.flush(streams).await?;
        let _waiting = streams.wait();
        for chunk in payload.chunks(CHUNK_BYTES) {
            self.stream.write_all(chunk).await?;
            streams.taken();
        }
        self.stream.flush().await
    }

    /// Sends what was added.
    ///
    /// # Errors
    /// The client has left.
    pub async fn flush(&mut self, streams: &Streams) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        let _waiting = streams.wait();
        self.stream.write_all(&self.out).await?;
        self.out.clear();
        self.out.shrink_to(KEPT_BYTES);
        self.stream.flush().await
    }

    /// Tells the client that nothing follows.
    ///
    /// # Errors
    /// It has left.
    pub async fn shutdown(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }
}
