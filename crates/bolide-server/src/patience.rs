//! How long a connection may keep the server waiting.
//!
//! A client is slow if the head of a request does not arrive whole in time after its first byte, or if it does not take the answer.
//! Resting between requests is allowed for much longer. hyper has one limit for both, so the stream is watched here:
//!
//!   Resting ──first byte──▶ Reading ──head complete──▶ Busy ──answer made──▶ Answering ──flushed──▶ Resting
//!
//! Bodies have limits of their own, see [`crate::body`]; while the server itself is busy, nobody is slow.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const RESTING: u8 = 0;
const READING: u8 = 1;
const BUSY: u8 = 2;
const ANSWERING: u8 = 3;

/// What a connection is doing.
///
/// Phases are counted, not timed: a request goes through four, and whoever looks from time to time knows by the count since when one lasts.
#[derive(Debug)]
pub struct Pulse {
    phase: AtomicU8,
    changes: AtomicU32,
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
    pub fn new() -> Arc<Pulse> {
        Arc::new(Pulse {
            phase: AtomicU8::new(READING),
            changes: AtomicU32::new(0),
        })
    }

    /// A request's head is complete.
    pub fn begin(&self) {
        self.enter(BUSY);
    }

    /// Its answer is made.
    pub fn answer(&self) {
        self.enter(ANSWERING);
    }

    /// Whether a request is being answered: what is written meanwhile belongs to it.
    pub fn has_begun(&self) -> bool {
        matches!(self.phase.load(Ordering::Relaxed), BUSY | ANSWERING)
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
}

impl<S> Watched<S> {
    /// Watches `stream`.
    pub fn new(stream: S, pulse: Arc<Pulse>) -> Watched<S> {
        Watched { stream, pulse }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let poll = Pin::new(&mut self.stream).poll_read(cx, buf);
        if buf.filled().len() > before && self.pulse.is(RESTING) {
            self.pulse.enter(READING);
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
            self.pulse.enter(RESTING);
        }
        poll
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S> Watched<S> {
    /// A client that takes something of a long answer is not slow.
    fn written(&self, poll: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if poll.is_ready() && self.pulse.is(ANSWERING) {
            self.pulse.enter(ANSWERING);
        }
        poll
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);
    const LONG: Duration = Duration::from_secs(3600);

    fn is_overdue_after(seconds: u64, phase: u8, request: Duration, idle: Duration) -> bool {
        let opened = Instant::now();
        let pulse = Pulse {
            phase: AtomicU8::new(phase),
            changes: AtomicU32::new(0),
        };
        let now = opened + Duration::from_secs(seconds);
        pulse.is_overdue(&mut Seen::opened(opened), now, request, idle)
    }

    #[test]
    fn each_phase_has_its_limit() {
        for phase in [READING, ANSWERING] {
            assert!(is_overdue_after(11, phase, LIMIT, LONG));
            assert!(!is_overdue_after(10, phase, LIMIT, LONG));
        }
        assert!(is_overdue_after(11, RESTING, LONG, LIMIT));
        assert!(!is_overdue_after(11, RESTING, LIMIT, LONG));
        assert!(!is_overdue_after(11, BUSY, LIMIT, LIMIT));
    }

    #[test]
    fn a_new_phase_starts_its_own_time() {
        let opened = Instant::now();
        let after = |seconds| opened + Duration::from_secs(seconds);
        let (pulse, mut seen) = (Pulse::new(), Seen::opened(opened));
        pulse.enter(ANSWERING);
        assert!(!pulse.is_overdue(&mut seen, after(11), LIMIT, LONG));
        assert!(!pulse.is_overdue(&mut seen, after(21), LIMIT, LONG));
        assert!(pulse.is_overdue(&mut seen, after(22), LIMIT, LONG));
    }

    #[test]
    fn a_client_that_takes_its_answer_slowly_is_not_slow() {
        let opened = Instant::now();
        let after = |seconds| opened + Duration::from_secs(seconds);
        let (pulse, mut seen) = (Pulse::new(), Seen::opened(opened));
        for seconds in [11, 22, 33] {
            pulse.enter(ANSWERING);
            assert!(!pulse.is_overdue(&mut seen, after(seconds), LIMIT, LONG));
        }
    }
}
