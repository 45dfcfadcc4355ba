//! The requests of an HTTP/2 connection, and whether their answers are taken.
//!
//! hyper hands an answer to the HTTP/2 layer, where it lies until the client's windows let it go. So an answer is handed over in parts that know
//! when they were handed over, and tell when they are gone:
//!
//!   answer ──parts──▶ HTTP/2 layer ──client's windows──▶ socket
//!                       └ a part that lies here for too long ends the connection

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use crate::timeouts::Pulse;

/// What is handed over at a time.
const PART_BYTES: usize = 64 * 1024;
/// Requests of one connection that may be refused for want of a key and have not taken their refusals; further ones are reset.
const REFUSED: usize = 8;
/// Resets after which a connection ends that has shown no key.
const RESETS: usize = 64;
/// Refusals on all connections that may lie there: one of so many parts of the room for requests.
const REFUSED_PART: usize = 8;
/// Requests that a connection may have open however many there are on all connections.
const ALWAYS_OPEN: usize = 4;
/// Beyond the limit, connections may have open what is their part of it, until there are this many times as many.
const CROWD: usize = 2;
/// A connection makes room for others when its client has neither taken nor sent anything for so long although requests wait for it.
const SILENCE: Duration = Duration::from_millis(250);
/// Connections that make room at a time.
const LEAVING: usize = 8;
/// Rest before another look for such connections, when there was none.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
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
    /// Among those of all connections.
    number: u64,
    /// Whose body may wait for memory.
    waiting: Semaphore,
    state: Mutex<State>,
}

/// The open requests of all HTTP/2 connections: what each takes in memory besides its body and its answer is not counted anywhere else.
#[derive(Debug)]
pub struct OpenStreams {
    limit: usize,
    open: AtomicUsize,
    /// Of these, those of connections that are ending to make room.
    leaving: AtomicUsize,
    /// Refusals of those who have shown no key.
    refused: AtomicUsize,
    /// Connections with open requests.
    busy: AtomicUsize,
    connections: Mutex<Connections>,
}

#[derive(Debug, Default)]
struct Connections {
    all: BTreeMap<u64, Weak<Streams>>,
    next: u64,
    /// When none could be found that makes room.
    looked: Option<Instant>,
}

impl OpenStreams {
    /// None yet, and at most about `limit`.
    pub fn new(limit: usize) -> Arc<OpenStreams> {
        Arc::new(OpenStreams {
            limit,
            open: AtomicUsize::new(0),
            leaving: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            connections: Mutex::default(),
        })
    }

    /// Whether a connection that has `own` requests open may open another.
    fn has_room_for(&self, own: usize, now: Instant) -> bool {
        let open = self.open.load(Ordering::Relaxed);
        let open = open.saturating_sub(self.leaving.load(Ordering::Relaxed));
        let part = self.limit / self.busy.load(Ordering::Relaxed).max(1);
        open < self.limit || own < ALWAYS_OPEN || self.make_room(now) || (own < part && open < CROWD * self.limit)
    }

    /// Ends the connections whose clients have been silent the longest. `false` if there is none.
    fn make_room(&self, now: Instant) -> bool {
        let all: Vec<Arc<Streams>> = {
            let connections = self.connections.lock();
            let is_soon = |looked| now.saturating_duration_since(looked) < LOOK_AGAIN;
            if connections.looked.is_some_and(is_soon) {
                return false;
            }
            connections.all.values().filter_map(Weak::upgrade).collect()
        };
        // Not under the lock, which the last holder of a connection takes.
        let silent = all.iter().filter_map(|one| Some((one.silent_since(now)?, one)));
        let mut silent: Vec<(Instant, &Arc<Streams>)> = silent.collect();
        silent.sort_by_key(|(since, _)| *since);
        silent.iter().take(LEAVING).for_each(|(_, one)| one.leave());
        self.connections.lock().looked = silent.is_empty().then_some(now);
        !silent.is_empty()
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
    /// When the client has taken or sent something, or the first request began to wait for it.
    heard: Instant,
    rests_since: Instant,
    /// It is ending to make room.
    is_leaving: bool,
}

impl Streams {
    /// A connection without requests.
    pub fn new(pulse: Arc<Pulse>, all: Arc<OpenStreams>) -> Arc<Streams> {
        pulse.rest();
        let now = pulse.clock().now();
        let mut connections = all.connections.lock();
        let number = connections.next;
        connections.next += 1;
        let streams = Arc::new(Streams {
            pulse,
            refused: AtomicUsize::new(0),
            resets: AtomicUsize::new(0),
            ended: Notify::new(),
            all: all.clone(),
            number,
            waiting: Semaphore::new(1),
            state: Mutex::new(State {
                open: 0,
                working: 0,
                has_begun: false,
                since: BTreeMap::new(),
                next: 0,
                progress: now,
                heard: now,
                rests_since: now,
                is_leaving: false,
            }),
        });
        connections.all.insert(number, Arc::downgrade(&streams));
        drop(connections);
        streams
    }

    /// A request has come. `None` if there are too many.
    pub fn open(self: &Arc<Self>) -> Option<Arc<Stream>> {
        // Not under the lock: those who make room are looked for, this connection among them.
        let own = self.state.lock().open;
        if !self.all.has_room_for(own, self.now()) {
            return None;
        }
        let mut state = self.state.lock();
        if state.is_leaving {
            return None;
        }
        self.all.open.fetch_add(1, Ordering::Relaxed);
        if state.open == 0 {
            self.all.busy.fetch_add(1, Ordering::Relaxed);
        }
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

    /// Since when the client has let its requests wait and neither taken nor sent anything, if that is too long while others find no room.
    fn silent_since(&self, now: Instant) -> Option<Instant> {
        let state = self.state.lock();
        let is_silent = state.open > state.working && now.saturating_duration_since(state.heard) >= SILENCE;
        (is_silent && !state.is_leaving).then_some(state.heard)
    }

    /// Ends the connection to make room.
    fn leave(&self) {
        let mut state = self.state.lock();
        if !std::mem::replace(&mut state.is_leaving, true) {
            self.all.leaving.fetch_add(state.open, Ordering::Relaxed);
            self.ended.notify_one();
        }
    }

    /// Resolves when the connection must end: see [`Streams::reset`], and when it must make room.
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

    fn now(&self) -> Instant {
        self.pulse.clock().now()
    }

    fn hand_over(&self) -> u64 {
        let mut state = self.state.lock();
        let now = self.now();
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
        let now = self.now();
        (state.progress, state.heard) = (now, now);
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.all.connections.lock().all.remove(&self.number);
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
            self.streams.all.refused.fetch_add(1, Ordering::Relaxed);
        }
        !self.is_one_refused_too_many()
    }

    /// Whether it was refused, and too many refusals have not been taken: of the connection, or of all that have shown no key.
    pub fn is_one_refused_too_many(&self) -> bool {
        let (own, all) = (&self.streams, &self.streams.all);
        let is_one_of_all =
            || !own.pulse.is_admitted() && all.refused.load(Ordering::Relaxed) > all.limit / REFUSED_PART;
        self.is_refused.load(Ordering::Relaxed) && (own.refused.load(Ordering::Relaxed) > REFUSED || is_one_of_all())
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

    /// Its client has sent a part of its body.
    pub fn progress(&self) {
        let now = self.streams.now();
        self.streams.state.lock().heard = now;
    }

    /// It waits for its client: for more of its body, or until its answer is taken.
    pub fn await_client(&self) {
        if self.is_working.swap(false, Ordering::Relaxed) {
            let mut state = self.streams.state.lock();
            if state.working == state.open {
                state.heard = self.streams.now();
            }
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
            self.streams.all.refused.fetch_sub(1, Ordering::Relaxed);
        }
        let mut state = self.streams.state.lock();
        state.open -= 1;
        if state.is_leaving {
            self.streams.all.leaving.fetch_sub(1, Ordering::Relaxed);
        }
        if state.open == 0 {
            self.streams.all.busy.fetch_sub(1, Ordering::Relaxed);
            state.rests_since = self.streams.now();
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
mod tests;
