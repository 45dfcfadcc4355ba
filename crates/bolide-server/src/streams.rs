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
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use crate::patience::Pulse;

/// What is handed over at a time.
const PART_BYTES: usize = 64 * 1024;
/// Requests of one connection that may be refused for want of a key and have not taken their refusals; further ones are reset.
const REFUSED: usize = 8;
/// Resets after which a connection ends that has shown no key.
const RESETS: usize = 64;
/// Requests that a connection may have open however many there are on all connections.
const ALWAYS_OPEN: usize = 4;
/// While others of the connection go on, a part may lie for this many times what a client has for it.
const PATIENCE: u32 = 10;

/// The open requests of a connection.
#[derive(Debug)]
pub struct Streams {
    pulse: Arc<Pulse>,
    refused: AtomicUsize,
    /// Requests that were reset because there were too many.
    resets: AtomicUsize,
    ended: Notify,
    /// Of all connections.
    all: Arc<OpenStreams>,
    /// Whose body may wait for memory.
    waiting: Semaphore,
    state: Mutex<State>,
}

/// The open requests of all HTTP/2 connections: what each takes in memory besides its body and its answer is not counted anywhere else.
#[derive(Debug)]
pub struct OpenStreams {
    limit: usize,
    open: AtomicUsize,
}

impl OpenStreams {
    /// None yet, and at most about `limit`.
    pub fn new(limit: usize) -> Arc<OpenStreams> {
        Arc::new(OpenStreams {
            limit,
            open: AtomicUsize::new(0),
        })
    }
}

/// What is open, and the parts that were handed over and have not gone.
#[derive(Debug)]
struct State {
    open: usize,
    /// Of these, how many the server is at work for; the others wait for their clients.
    working: usize,
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
    pub fn new(pulse: Arc<Pulse>, all: Arc<OpenStreams>) -> Arc<Streams> {
        pulse.rest();
        let now = Instant::now();
        Arc::new(Streams {
            pulse,
            refused: AtomicUsize::new(0),
            resets: AtomicUsize::new(0),
            ended: Notify::new(),
            all,
            waiting: Semaphore::new(1),
            state: Mutex::new(State {
                open: 0,
                working: 0,
                has_begun: false,
                since: BTreeMap::new(),
                next: 0,
                progress: now,
                rests_since: now,
            }),
        })
    }

    /// A request has come. `None` if there are too many.
    pub fn open(self: &Arc<Self>) -> Option<Arc<Stream>> {
        let mut state = self.state.lock();
        if state.open >= ALWAYS_OPEN && self.all.open.load(Ordering::Relaxed) >= self.all.limit {
            return None;
        }
        self.all.open.fetch_add(1, Ordering::Relaxed);
        if state.working == 0 {
            self.pulse.begin();
        }
        state.open += 1;
        state.working += 1;
        state.has_begun = true;
        drop(state);
        Some(Arc::new(Stream {
            streams: self.clone(),
            is_refused: AtomicBool::new(false),
            is_working: AtomicBool::new(true),
        }))
    }

    /// Whether a request need not be looked at: as many refusals as may lie there do, and the connection has shown no key in any request.
    pub fn only_refuses(&self) -> bool {
        self.refused.load(Ordering::Relaxed) >= REFUSED && !self.pulse.is_admitted()
    }

    /// A request was reset. Whoever has shown no key may make the server do that a few times.
    pub fn reset(&self) {
        let resets = self.resets.fetch_add(1, Ordering::Relaxed);
        if resets >= RESETS && !self.pulse.is_admitted() {
            self.ended.notify_one();
        }
    }

    /// Resolves when the connection must end: see [`Streams::reset`].
    pub async fn must_end(&self) {
        self.ended.notified().await;
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
    is_working: AtomicBool,
}

impl Stream {
    /// Its sender has not shown a key. `false` if it will be reset, as too many refusals of the connection have not been taken.
    pub fn refuse(&self) -> bool {
        if !self.is_refused.swap(true, Ordering::Relaxed) {
            self.streams.refused.fetch_add(1, Ordering::Relaxed);
        }
        !self.is_one_refused_too_many()
    }

    /// Whether it was refused, and too many refusals of the connection have not been taken.
    pub fn is_one_refused_too_many(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed) && self.streams.refused.load(Ordering::Relaxed) > REFUSED
    }

    /// The server is at work for it.
    pub fn work(&self) {
        if !self.is_working.swap(true, Ordering::Relaxed) {
            let mut state = self.streams.state.lock();
            if state.working == 0 {
                self.streams.pulse.begin();
            }
            state.working += 1;
        }
    }

    /// The turn to wait for memory for its body, if no other of the connection has it: what came of a body that waits takes from the window of all
    /// bodies on the connection, and several could stop those that have their memory.
    pub fn try_wait(&self) -> Option<SemaphorePermit<'_>> {
        self.streams.waiting.try_acquire().ok()
    }

    /// It waits for its client: for more of its body, or until its answer is taken.
    pub fn await_client(&self) {
        if self.is_working.swap(false, Ordering::Relaxed) {
            let mut state = self.streams.state.lock();
            state.working -= 1;
            if state.working == 0 {
                self.streams.pulse.wait_for_client();
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.await_client();
        self.streams.all.open.fetch_sub(1, Ordering::Relaxed);
        if *self.is_refused.get_mut() {
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
        stream.await_client();
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
    use futures_util::FutureExt as _;
    use http_body_util::{BodyExt as _, Full};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    async fn part(body: &mut InParts<Full<Bytes>>) -> Bytes {
        let frame = body.frame().await.expect("a part").expect("no error");
        frame.into_data().expect("data")
    }

    #[tokio::test]
    async fn an_answer_comes_in_parts_and_is_open_until_the_last_is_gone() {
        let streams = Streams::new(Pulse::new(), OpenStreams::new(100));
        let answer = Bytes::from(vec![b'x'; PART_BYTES + 1]);
        let mut body = InParts::new(Full::new(answer), streams.open().expect("there is room"));
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
        let streams = Streams::new(Pulse::new(), OpenStreams::new(100));
        let later = Instant::now() + 2 * LIMIT;
        let idle = 10 * LIMIT;
        assert!(streams.is_resting_too_long(later, LIMIT, idle));
        drop(streams.open().expect("there is room"));
        assert!(!streams.is_resting_too_long(later, LIMIT, idle));
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_overdue() {
        let streams = Streams::new(Pulse::new(), OpenStreams::new(100));
        let mut body = InParts::new(
            Full::new(Bytes::from(vec![b'x'; 2 * PART_BYTES])),
            streams.open().expect("there is room"),
        );
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

    fn open(streams: &Arc<Streams>) -> Arc<Stream> {
        streams.open().expect("there is room")
    }

    #[test]
    fn a_few_refusals_may_lie_there() {
        let streams = Streams::new(Pulse::new(), OpenStreams::new(100));
        let mut few: Vec<Arc<Stream>> = (0..REFUSED).map(|_| open(&streams)).collect();
        // Saying it twice makes no difference.
        assert!(few.iter().all(|one| one.refuse() && one.refuse()));
        let (another, admitted) = (open(&streams), open(&streams));
        assert!(!another.refuse());
        assert!(another.is_one_refused_too_many() && !admitted.is_one_refused_too_many());
        few.pop();
        assert!(!another.is_one_refused_too_many(), "one was taken");
        assert!(streams.only_refuses());
        drop(another);
        assert!(!streams.only_refuses());
    }

    #[test]
    fn a_connection_may_open_few_requests_when_there_are_too_many() {
        let all = OpenStreams::new(10);
        let (greedy, modest) = (Streams::new(Pulse::new(), all.clone()), Streams::new(Pulse::new(), all));
        let mut held: Vec<Arc<Stream>> = (0..10).map(|_| open(&greedy)).collect();
        assert!(greedy.open().is_none());
        let few: Vec<Arc<Stream>> = (0..ALWAYS_OPEN).map(|_| open(&modest)).collect();
        assert!(modest.open().is_none());
        drop(few);
        held.pop();
        assert!(greedy.open().is_some());
    }

    #[tokio::test]
    async fn a_connection_ends_that_makes_the_server_reset_its_requests_and_has_shown_no_key() {
        let pulses = [Pulse::new(), Pulse::new()];
        pulses[1].admit();
        let [unknown, known] = pulses.map(|pulse| Streams::new(pulse, OpenStreams::new(100)));
        for _ in 0..RESETS {
            unknown.reset();
        }
        assert!(unknown.must_end().now_or_never().is_none());
        for streams in [&unknown, &known] {
            (0..=RESETS).for_each(|_| streams.reset());
        }
        assert!(unknown.must_end().now_or_never().is_some());
        assert!(known.must_end().now_or_never().is_none());
    }

    #[test]
    fn a_connection_can_be_spared_while_all_of_its_requests_wait_for_their_client() {
        let pulse = Pulse::new();
        pulse.admit();
        let streams = Streams::new(pulse.clone(), OpenStreams::new(100));
        let (one, other) = (open(&streams), open(&streams));
        one.await_client();
        assert_eq!(pulse.dispensability(), None, "the server is at work for one");
        other.await_client();
        assert!(pulse.dispensability().is_some());
        one.work();
        assert_eq!(pulse.dispensability(), None);
        drop((one, other));
        assert!(pulse.dispensability().is_some(), "it rests");
    }
}
