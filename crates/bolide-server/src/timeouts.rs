//! Timeouts of connections.
//!
//! A client is slow if the head of a request does not arrive completely in time after its first byte, or if it does not take the response. Idle time
//! between requests may be much longer. hyper has one limit for both, so the stream is watched here:
//!
//!   Idle ──first byte──▶ Reading ──head complete──▶ Busy ──response made──▶ Answering ──flushed──▶ Idle
//!                                                      │  ▲
//!                                                     Body: waiting for a part of it
//!
//! Bodies have their own timeouts, see [`crate::body`]; while the server is processing, no timeout applies. Over HTTP/2 a connection is idle while no
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

/// Timeout for sending the next part of a body, and for taking that of a response, while others wait for memory.
pub const SHORT_TIMEOUT: Duration = Duration::from_secs(2);

const RESTING: u8 = 0;
const READING: u8 = 1;
const BUSY: u8 = 2;
const ANSWERING: u8 = 3;
const BODY: u8 = 4;
/// At least this much of a response must be taken within the timeout of a part.
const PART_BYTES: usize = 256 * 1024;
/// Heads above this size need a permit: otherwise clients without a key could make every connection use the maximum memory.
const LARGE_HEAD_BYTES: usize = 16 * 1024;

/// The state of a connection.
///
/// Phases are counted, not timed: a request has four, and a periodic check sees by the count how long the current one has lasted.
#[derive(Debug)]
pub struct Activity {
    clock: ServerClock,
    phase: AtomicU8,
    changes: AtomicU32,
    /// When the connection was opened, or its last response was made, in nanoseconds.
    idle_since: AtomicU64,
    /// Whether a request was authorized: its sender has a key.
    is_admitted: AtomicBool,
}

/// Why a connection can be ended for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EvictionClass {
    /// It has shown no key.
    Unknown,
    /// It is idle, sends slowly, or takes its response slowly.
    Awaited,
}

/// The last state seen of an [`Activity`], and since when.
#[derive(Debug)]
pub struct Seen {
    changes: u32,
    since: Instant,
}

impl Seen {
    /// The state of a connection that was opened at `now`.
    pub fn opened(now: Instant) -> Seen {
        Seen { changes: 0, since: now }
    }
}

impl Activity {
    /// A connection that was just opened: its client must send something.
    pub fn new(clock: &ServerClock) -> Arc<Activity> {
        Arc::new(Activity {
            clock: clock.clone(),
            phase: AtomicU8::new(READING),
            changes: AtomicU32::new(0),
            idle_since: AtomicU64::new(clock.nanos()),
            is_admitted: AtomicBool::new(false),
        })
    }

    /// The clock for the timeouts of the connection.
    pub fn clock(&self) -> &ServerClock {
        &self.clock
    }

    /// No request is open; over HTTP/2.
    pub fn idle(&self) {
        self.idle_since.store(self.clock.nanos(), Ordering::Relaxed);
        self.enter(RESTING);
    }

    /// The rest of an unwanted body has been read, which was not a head.
    pub fn drained(&self) {
        if self.is(READING) {
            self.enter(RESTING);
        }
    }

    /// Records that a request was authorized.
    pub fn admit(&self) {
        if !self.is_admitted() {
            self.is_admitted.store(true, Ordering::Relaxed);
        }
    }

    /// Whether any request was authorized.
    pub fn is_admitted(&self) -> bool {
        self.is_admitted.load(Ordering::Relaxed)
    }

    /// The order in which connections are ended, if one must be: the least first. `None` if the server is processing a request of it.
    ///
    /// Connections without a key come first, in any state, then those that wait for their client; among these, the one whose last request was
    /// answered longest ago.
    pub fn eviction_rank(&self) -> Option<(EvictionClass, u64)> {
        let kind = match self.phase.load(Ordering::Relaxed) {
            _ if !self.is_admitted() => EvictionClass::Unknown,
            RESTING | READING | BODY | ANSWERING => EvictionClass::Awaited,
            _ => return None,
        };
        Some((kind, self.idle_since.load(Ordering::Relaxed)))
    }

    /// A part of a request has arrived.
    pub fn read(&self) {
        self.enter(READING);
    }

    /// The head of a request is complete.
    pub fn begin(&self) {
        self.enter(BUSY);
    }

    /// Waiting for its body; over HTTP/1.1. Call [`Activity::begin`] when it has come.
    pub fn wait_for_body(&self) {
        self.enter(BODY);
    }

    /// Over HTTP/2: every open request waits for more of its body, or until its response is taken.
    pub fn wait_for_client(&self) {
        self.idle_since.store(self.clock.nanos(), Ordering::Relaxed);
        self.enter(BODY);
    }

    /// Its response is made. From now on the connection counts as idle, because the client must act next.
    pub fn answer(&self) {
        self.idle_since.store(self.clock.nanos(), Ordering::Relaxed);
        self.enter(ANSWERING);
    }

    /// Whether a request is being processed, so that output belongs to its response.
    pub fn has_begun(&self) -> bool {
        matches!(self.phase.load(Ordering::Relaxed), BUSY | BODY | ANSWERING)
    }

    /// Whether the client must take a response.
    pub fn is_answering(&self) -> bool {
        self.is(ANSWERING)
    }

    /// Whether the client has exceeded a timeout, judging by the state seen before.
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

/// A stream that updates the activity of its connection.
#[derive(Debug)]
pub struct Watched<S> {
    stream: S,
    activity: Arc<Activity>,
    /// Bytes of the response that were taken since the last complete part.
    taken: usize,
    /// Bytes of the head that is being read.
    head: usize,
    /// Held until the connection ends, as the buffer is.
    large_head: Option<OwnedSemaphorePermit>,
    large_heads: Arc<Semaphore>,
}

impl<S> Watched<S> {
    /// Watches `stream`; `large_heads` has a permit for each connection that may read a large head at the same time.
    pub fn new(stream: S, activity: Arc<Activity>, large_heads: Arc<Semaphore>) -> Watched<S> {
        Watched {
            stream,
            activity,
            taken: 0,
            head: 0,
            large_head: None,
            large_heads,
        }
    }

    /// Counts the bytes read of a head.
    fn read(&mut self, bytes: usize) -> io::Result<()> {
        if self.activity.has_begun() {
            self.head = 0;
            return Ok(());
        }
        if self.activity.is(RESTING) {
            self.head = 0;
            self.activity.enter(READING);
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
        if poll.is_ready() && self.activity.is(ANSWERING) {
            self.taken = 0;
            self.activity.enter(RESTING);
        }
        poll
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S> Watched<S> {
    /// A client that takes a part of a long response is not slow.
    fn written(&mut self, poll: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &poll {
            self.taken += *bytes;
            if self.taken >= PART_BYTES && self.activity.is(ANSWERING) {
                self.taken = 0;
                self.activity.enter(ANSWERING);
            }
        }
        poll
    }
}

#[cfg(test)]
mod tests;
