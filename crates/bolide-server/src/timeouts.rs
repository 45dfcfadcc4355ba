//! How long a connection may keep the server waiting.
//!
//! A client is slow if the head of a request does not arrive whole in time after its first byte, or if it does not take the answer.
//! Resting between requests is allowed for much longer. hyper has one limit for both, so the stream is watched here:
//!
//!   Resting ──first byte──▶ Reading ──head complete──▶ Busy ──answer made──▶ Answering ──flushed──▶ Resting
//!                                                      │  ▲
//!                                                     Body: a part of it is waited for
//!
//! Bodies have limits of their own, see [`crate::body`]; while the server itself is busy, nobody is slow. Over HTTP/2 a connection rests while no
//! request is open; see [`crate::streams`].

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::clock::ServerClock;

/// Time for sending the next part of a body, and for taking that of an answer, while others wait for memory.
pub const SHORT_PATIENCE: Duration = Duration::from_secs(2);

const RESTING: u8 = 0;
const READING: u8 = 1;
const BUSY: u8 = 2;
const ANSWERING: u8 = 3;
const BODY: u8 = 4;
/// So much of an answer must be taken at least in the time that a client has for a part of it.
const PART_BYTES: usize = 256 * 1024;
/// Heads above this size need a permit: without it, a client without a key could make every connection hold the largest.
const LARGE_HEAD_BYTES: usize = 16 * 1024;

/// What a connection is doing.
///
/// Phases are counted, not timed: a request goes through four, and whoever looks from time to time knows by the count since when one lasts.
#[derive(Debug)]
pub struct Pulse {
    clock: ServerClock,
    phase: AtomicU8,
    changes: AtomicU32,
    /// When the connection was opened, or its last answer was made, in nanoseconds.
    rests_since: AtomicU64,
    /// Whether a request was let in: its sender holds a key.
    is_admitted: AtomicBool,
}

/// Why a connection can be spared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dispensable {
    /// It has shown no key.
    Unknown,
    /// It is between requests, sends slowly, or takes its answer slowly.
    Awaited,
}

/// What was seen of a [`Pulse`], and since when it has been so.
#[derive(Debug)]
pub struct Seen {
    changes: u32,
    since: Instant,
}

impl Seen {
    /// A connection that was opened at `now`.
    pub fn opened(now: Instant) -> Seen {
        Seen { changes: 0, since: now }
    }
}

impl Pulse {
    /// A connection that was just opened: it is expected to speak.
    pub fn new(clock: &ServerClock) -> Arc<Pulse> {
        Arc::new(Pulse {
            clock: clock.clone(),
            phase: AtomicU8::new(READING),
            changes: AtomicU32::new(0),
            rests_since: AtomicU64::new(clock.nanos()),
            is_admitted: AtomicBool::new(false),
        })
    }

    /// The clock by which the connection is timed.
    pub fn clock(&self) -> &ServerClock {
        &self.clock
    }

    /// Nothing is going on until the next request; over HTTP/2.
    pub fn rest(&self) {
        self.rests_since.store(self.clock.nanos(), Ordering::Relaxed);
        self.enter(RESTING);
    }

    /// The rest of a body that nobody wanted has been read: what was read was no head.
    pub fn drained(&self) {
        if self.is(READING) {
            self.enter(RESTING);
        }
    }

    /// A request was let in.
    pub fn admit(&self) {
        if !self.is_admitted() {
            self.is_admitted.store(true, Ordering::Relaxed);
        }
    }

    /// Whether any request was let in.
    pub fn is_admitted(&self) -> bool {
        self.is_admitted.load(Ordering::Relaxed)
    }

    /// Which of several connections is ended first, when one must be: the least. `None` for one that the server is at work for.
    ///
    /// Those who have not shown a key come first, whatever they do, then those whom the server waits for; of each, whose last request was answered
    /// the longest time ago.
    pub fn dispensability(&self) -> Option<(Dispensable, u64)> {
        let kind = match self.phase.load(Ordering::Relaxed) {
            _ if !self.is_admitted() => Dispensable::Unknown,
            RESTING | READING | BODY | ANSWERING => Dispensable::Awaited,
            _ => return None,
        };
        Some((kind, self.rests_since.load(Ordering::Relaxed)))
    }

    /// A request's head is complete.
    pub fn begin(&self) {
        self.enter(BUSY);
    }

    /// Its body is waited for; over HTTP/1.1. [`Pulse::begin`] when it has come.
    pub fn wait_for_body(&self) {
        self.enter(BODY);
    }

    /// Over HTTP/2: every open request waits for more of its body, or until its answer is taken.
    pub fn wait_for_client(&self) {
        self.rests_since.store(self.clock.nanos(), Ordering::Relaxed);
        self.enter(BODY);
    }

    /// Its answer is made. From now on the connection counts as resting: what follows is the client's to do.
    pub fn answer(&self) {
        self.rests_since.store(self.clock.nanos(), Ordering::Relaxed);
        self.enter(ANSWERING);
    }

    /// Whether a request is being answered: what is written meanwhile belongs to it.
    pub fn has_begun(&self) -> bool {
        matches!(self.phase.load(Ordering::Relaxed), BUSY | BODY | ANSWERING)
    }

    /// Whether the client is to take an answer.
    pub fn is_answering(&self) -> bool {
        self.is(ANSWERING)
    }

    /// Whether the client has kept us waiting for too long, as far as can be told from what was seen before.
    pub fn is_overdue(&self, seen: &mut Seen, now: Instant, request: Duration, idle: Duration) -> bool {
        let changes = self.changes.load(Ordering::Relaxed);
        if changes != seen.changes {
            *seen = Seen { changes, since: now };
        }
        let limit = match self.phase.load(Ordering::Relaxed) {
            RESTING => idle,
            READING | ANSWERING => request,
            _ => return false,
        };
        now.duration_since(seen.since) > limit
    }

    fn enter(&self, phase: u8) {
        self.phase.store(phase, Ordering::Relaxed);
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    fn is(&self, phase: u8) -> bool {
        self.phase.load(Ordering::Relaxed) == phase
    }
}

/// A stream that keeps the pulse of its connection.
#[derive(Debug)]
pub struct Watched<S> {
    stream: S,
    pulse: Arc<Pulse>,
    /// Bytes of the answer that were taken since its last part was.
    taken: usize,
    /// Bytes of the head that is being read.
    head: usize,
    /// Kept to the connection's end, as the buffer is.
    large_head: Option<OwnedSemaphorePermit>,
    large_heads: Arc<Semaphore>,
}

impl<S> Watched<S> {
    /// Watches `stream`; `large_heads` has a permit for each connection that may read one at a time.
    pub fn new(stream: S, pulse: Arc<Pulse>, large_heads: Arc<Semaphore>) -> Watched<S> {
        Watched {
            stream,
            pulse,
            taken: 0,
            head: 0,
            large_head: None,
            large_heads,
        }
    }

    /// Counts what was read of a head.
    fn read(&mut self, bytes: usize) -> io::Result<()> {
        if self.pulse.has_begun() {
            self.head = 0;
            return Ok(());
        }
        if self.pulse.is(RESTING) {
            self.head = 0;
            self.pulse.enter(READING);
        }
        self.head += bytes;
        if self.head > LARGE_HEAD_BYTES && self.large_head.is_none() {
            let permit = self.large_heads.clone().try_acquire_owned();
            self.large_head = Some(permit.map_err(|_| io::Error::other("too many large request heads at a time"))?);
        }
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(cx, buf);
        let bytes = buf.filled().len() - before;
        if bytes > 0
            && let Err(error) = self.read(bytes)
        {
            return Poll::Ready(Err(error));
        }
        poll
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.written(poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.written(poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(cx);
        if poll.is_ready() && self.pulse.is(ANSWERING) {
            self.taken = 0;
            self.pulse.enter(RESTING);
        }
        poll
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S> Watched<S> {
    /// A client that takes a part of a long answer is not slow.
    fn written(&mut self, poll: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &poll {
            self.taken += *bytes;
            if self.taken >= PART_BYTES && self.pulse.is(ANSWERING) {
                self.taken = 0;
                self.pulse.enter(ANSWERING);
            }
        }
        poll
    }
}

#[cfg(test)]
mod tests;
