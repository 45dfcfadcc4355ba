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
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const RESTING: u8 = 0;
const READING: u8 = 1;
const BUSY: u8 = 2;
const ANSWERING: u8 = 3;

/// What a connection is doing, and since when.
#[derive(Debug)]
pub struct Pulse {
    opened: Instant,
    phase: AtomicU8,
    /// Milliseconds after `opened`.
    since: AtomicU64,
}

impl Pulse {
    /// A connection that was just opened: it is expected to speak.
    pub fn new() -> Arc<Pulse> {
        Arc::new(Pulse {
            opened: Instant::now(),
            phase: AtomicU8::new(READING),
            since: AtomicU64::new(0),
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

    /// Whether the client has kept us waiting for too long.
    pub fn is_overdue(&self, request: Duration, idle: Duration) -> bool {
        let limit = match self.phase.load(Ordering::Relaxed) {
            RESTING => idle,
            READING | ANSWERING => request,
            _ => return false,
        };
        let since = Duration::from_millis(self.since.load(Ordering::Relaxed));
        self.opened.elapsed().saturating_sub(since) > limit
    }

    fn enter(&self, phase: u8) {
        self.phase.store(phase, Ordering::Relaxed);
        let now = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.since.store(now, Ordering::Relaxed);
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

    const NONE: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_secs(3600);

    fn pulse_in(phase: u8) -> Pulse {
        let opened = Instant::now() - Duration::from_secs(10);
        Pulse {
            opened,
            phase: AtomicU8::new(phase),
            since: AtomicU64::new(0),
        }
    }

    #[test]
    fn each_phase_has_its_limit() {
        assert!(pulse_in(READING).is_overdue(NONE, LONG));
        assert!(pulse_in(ANSWERING).is_overdue(NONE, LONG));
        assert!(pulse_in(RESTING).is_overdue(LONG, NONE));
        assert!(!pulse_in(RESTING).is_overdue(NONE, LONG));
        assert!(!pulse_in(BUSY).is_overdue(NONE, NONE));
    }

    #[test]
    fn a_new_phase_starts_its_own_time() {
        let pulse = pulse_in(RESTING);
        pulse.enter(READING);
        assert!(!pulse.is_overdue(Duration::from_secs(5), NONE));
    }
}
