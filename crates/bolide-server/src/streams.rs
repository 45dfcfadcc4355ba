//! The requests of an HTTP/2 connection, and whether their answers are taken.
//!
//! hyper hands an answer to the HTTP/2 layer, where it lies until the client's windows let it go. So an answer is handed over in parts that know
//! when they were handed over, and tell when they are gone:
//!
//!   answer ──parts──▶ HTTP/2 layer ──client's windows──▶ socket
//!                       └ a part that lies here for too long ends the connection

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use parking_lot::Mutex;

use crate::patience::Pulse;

/// What is handed over at a time.
const PART_BYTES: usize = 64 * 1024;
/// While others of the connection go on, a part may lie for this many times what a client has for it.
const PATIENCE: u32 = 10;

/// The open requests of a connection.
#[derive(Debug)]
pub struct Streams {
    pulse: Arc<Pulse>,
    refused: AtomicUsize,
    state: Mutex<State>,
}

/// What is open, and the parts that were handed over and have not gone.
#[derive(Debug)]
struct State {
    open: usize,
    /// Whether there has been any request.
    has_begun: bool,
    since: BTreeMap<u64, Instant>,
    next: u64,
    /// When one went, or the first came.
    progress: Instant,
    rests_since: Instant,
}

impl Streams {
    /// A connection without requests.
    pub fn new(pulse: Arc<Pulse>) -> Arc<Streams> {
        pulse.rest();
        let now = Instant::now();
        Arc::new(Streams {
            pulse,
            refused: AtomicUsize::new(0),
            state: Mutex::new(State {
                open: 0,
                has_begun: false,
                since: BTreeMap::new(),
                next: 0,
                progress: now,
                rests_since: now,
            }),
        })
    }

    /// A request has come.
    pub fn open(self: &Arc<Self>) -> Arc<Stream> {
        let mut state = self.state.lock();
        if state.open == 0 {
            self.pulse.begin();
        }
        state.open += 1;
        state.has_begun = true;
        drop(state);
        Arc::new(Stream {
            streams: self.clone(),
            is_refused: AtomicBool::new(false),
        })
    }

    /// Whether no request has been open for `idle`, or for `request` and there never was one: a client that connects is expected to speak.
    pub fn is_resting_too_long(&self, now: Instant, request: Duration, idle: Duration) -> bool {
        let state = self.state.lock();
        let limit = if state.has_begun { idle } else { request };
        state.open == 0 && now.saturating_duration_since(state.rests_since) > limit
    }

    /// Whether the client does not take its answers: none at all for `request`, or one of them for many times that.
    pub fn is_overdue(&self, now: Instant, request: Duration) -> bool {
        let state = self.state.lock();
        state.since.first_key_value().is_some_and(|(_, since)| {
            now.saturating_duration_since(state.progress) > request
                || now.saturating_duration_since(*since) > request * PATIENCE
        })
    }

    fn hand_over(&self) -> u64 {
        let mut state = self.state.lock();
        let now = Instant::now();
        if state.since.is_empty() {
            state.progress = now;
        }
        let number = state.next;
        state.next += 1;
        state.since.insert(number, now);
        number
    }

    fn gone(&self, number: u64) {
        let mut state = self.state.lock();
        state.since.remove(&number);
        state.progress = Instant::now();
    }
}

/// One request, until the last part of its answer is gone.
#[derive(Debug)]
pub struct Stream {
    streams: Arc<Streams>,
    is_refused: AtomicBool,
}

impl Stream {
    /// Its sender has not shown a key.
    pub fn refuse(&self) {
        if !self.is_refused.swap(true, Ordering::Relaxed) {
            self.streams.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether its sender has not shown a key.
    pub fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }

    /// How many such requests of the connection have answers that are not taken.
    pub fn refused_streams(&self) -> usize {
        self.streams.refused.load(Ordering::Relaxed)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.is_refused() {
            self.streams.refused.fetch_sub(1, Ordering::Relaxed);
        }
        let mut state = self.streams.state.lock();
        state.open -= 1;
        if state.open == 0 {
            state.rests_since = Instant::now();
            self.streams.pulse.rest();
        }
    }
}

/// A part of an answer in the HTTP/2 layer.
struct Part {
    bytes: Bytes,
    number: u64,
    stream: Arc<Stream>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.stream.streams.gone(self.number);
    }
}

/// An answer that is handed over in parts.
pub struct InParts<B> {
    body: B,
    rest: Bytes,
    stream: Arc<Stream>,
}

impl<B> InParts<B> {
    /// The answer on a stream.
    pub fn new(body: B, stream: Arc<Stream>) -> InParts<B> {
        InParts {
            body,
            rest: Bytes::new(),
            stream,
        }
    }

    fn part(&mut self) -> Bytes {
        let length = self.rest.len().min(PART_BYTES);
        Bytes::from_owner(Part {
            bytes: self.rest.split_to(length),
            number: self.stream.streams.hand_over(),
            stream: self.stream.clone(),
        })
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for InParts<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        while self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                end => return Poll::Ready(end),
            }
        }
        Poll::Ready(Some(Ok(Frame::data(self.part()))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut all = SizeHint::new();
        all.set_lower(hint.lower() + rest);
        if let Some(upper) = hint.upper() {
            all.set_upper(upper + rest);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    async fn part(body: &mut InParts<Full<Bytes>>) -> Bytes {
        let frame = body.frame().await.expect("a part").expect("no error");
        frame.into_data().expect("data")
    }

    #[tokio::test]
    async fn an_answer_comes_in_parts_and_is_open_until_the_last_is_gone() {
        let streams = Streams::new(Pulse::new());
        let answer = Bytes::from(vec![b'x'; PART_BYTES + 1]);
        let mut body = InParts::new(Full::new(answer), streams.open());
        let (first, last) = (part(&mut body).await, part(&mut body).await);
        assert_eq!((first.len(), last.len()), (PART_BYTES, 1));
        assert!(body.is_end_stream());
        drop((body, first));
        let later = Instant::now() + 2 * LIMIT;
        assert!(!streams.is_resting_too_long(later, LIMIT, LIMIT));
        drop(last);
        assert!(streams.is_resting_too_long(later, LIMIT, LIMIT));
    }

    #[test]
    fn a_connection_without_any_request_rests_for_less_time() {
        let streams = Streams::new(Pulse::new());
        let later = Instant::now() + 2 * LIMIT;
        let idle = 10 * LIMIT;
        assert!(streams.is_resting_too_long(later, LIMIT, idle));
        drop(streams.open());
        assert!(!streams.is_resting_too_long(later, LIMIT, idle));
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_overdue() {
        let streams = Streams::new(Pulse::new());
        let mut body = InParts::new(Full::new(Bytes::from(vec![b'x'; 2 * PART_BYTES])), streams.open());
        let now = Instant::now();
        assert!(!streams.is_overdue(now + 2 * LIMIT, LIMIT), "nothing to take yet");
        let first = part(&mut body).await;
        assert!(streams.is_overdue(now + 2 * LIMIT, LIMIT));
        let second = part(&mut body).await;
        drop(second);
        assert!(
            streams.is_overdue(Instant::now() + 11 * LIMIT, LIMIT),
            "one part stays behind"
        );
        drop(first);
        assert!(!streams.is_overdue(Instant::now() + 11 * LIMIT, LIMIT));
    }

    #[test]
    fn refusals_are_counted_while_they_lie_there() {
        let streams = Streams::new(Pulse::new());
        let (one, other) = (streams.open(), streams.open());
        one.refuse();
        one.refuse();
        assert_eq!((other.is_refused(), other.refused_streams()), (false, 1));
        drop(one);
        assert_eq!(other.refused_streams(), 0);
    }
}
