//! The requests of a connection that carries many at a time, over HTTP/2 or in direct mode, and whether clients take their responses.
//!
//! hyper hands a response to the HTTP/2 layer, where it waits for the client's flow control windows. To time this, a response is handed over in
//! parts, each of which records when it was handed over and reports when it was sent:
//!
//!   response ──parts──▶ HTTP/2 layer ──client's windows──▶ socket
//!                        └ a part that waits here for too long ends the connection

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

use crate::timeouts::Activity;

/// Bytes per part.
const PART_BYTES: usize = 64 * 1024;
/// Requests of one connection that may be refused for a missing key while their responses are not taken yet; further ones are reset.
const REFUSED: usize = 8;
/// Number of resets after which a connection without a key is ended.
const RESETS: usize = 64;
/// Limit of untaken refusals on all connections, as a fraction (one in this many) of the limit of requests.
const REFUSED_PART: usize = 8;
/// Number of requests that a connection may always have open, however many there are on all connections.
const ALWAYS_OPEN: usize = 4;
/// Above the limit of requests, each connection may have its share of it open, up to this multiple of the limit in total.
const MAX_SHARE_FACTOR: usize = 2;
/// A connection may be ended for others if its client has neither taken nor sent anything for this long although requests wait for it.
const SILENCE_TIMEOUT: Duration = Duration::from_millis(250);
/// Number of connections that are being ended for others at the same time.
const LEAVING: usize = 8;
/// Pause before looking again for such connections, if there was none.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);
/// While other responses of the connection progress, a part may wait for this multiple of the client's timeout.
const TIMEOUT_FACTOR: u32 = 10;

/// The open requests of a connection.
#[derive(Debug)]
pub struct Streams {
    activity: Arc<Activity>,
    refused: AtomicUsize,
    /// Number of requests that were reset because there were too many.
    resets: AtomicUsize,
    ended: Notify,
    /// The requests of all connections.
    all: Arc<OpenStreams>,
    /// The connection's number.
    number: u64,
    /// One permit: for the request whose body may wait for memory.
    waiting: Semaphore,
    state: Mutex<State>,
}

/// The open requests of all HTTP/2 connections and those in direct mode: the memory of each, besides its body and its response, is not counted anywhere else.
#[derive(Debug)]
pub struct OpenStreams {
    limit: usize,
    open: AtomicUsize,
    /// Of these, the requests of connections that are being ended for others.
    leaving: AtomicUsize,
    /// Untaken refusals of clients that have shown no key.
    refused: AtomicUsize,
    /// Number of connections with open requests.
    busy: AtomicUsize,
    connections: Mutex<Connections>,
}

#[derive(Debug, Default)]
struct Connections {
    all: BTreeMap<u64, Weak<Streams>>,
    next: u64,
    /// The last time that no connection could be ended.
    looked: Option<Instant>,
}

impl OpenStreams {
    /// No requests yet, with a limit of about `limit`.
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

    /// Whether a connection that has `own` requests open may open another one.
    fn has_room_for(&self, own: usize, now: Instant) -> bool {
        let open = self.open.load(Ordering::Relaxed);
        let open = open.saturating_sub(self.leaving.load(Ordering::Relaxed));
        let part = self.limit / self.busy.load(Ordering::Relaxed).max(1);
        open < self.limit
            || own < ALWAYS_OPEN
            || self.make_room(now)
            || (own < part && open < MAX_SHARE_FACTOR * self.limit)
    }

    /// Ends the connections whose clients have been silent for longest. `false` if there are none.
    fn make_room(&self, now: Instant) -> bool {
        let all: Vec<Arc<Streams>> = {
            let connections = self.connections.lock();
            let is_soon = |looked| now.saturating_duration_since(looked) < RETRY_INTERVAL;
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

/// The open requests, and the parts that were handed over but not sent.
#[derive(Debug)]
struct State {
    open: usize,
    /// Of these, the number that the server is processing; the others wait for their clients.
    working: usize,
    /// Whether there has been any request.
    has_begun: bool,
    since: BTreeMap<u64, Instant>,
    next: u64,
    /// When a part was last sent, or the first one was handed over.
    progress: Instant,
    /// When the client last took or sent something, or when the first request began to wait for it.
    heard: Instant,
    idle_since: Instant,
    /// It is being ended for others.
    is_leaving: bool,
}

impl State {
    /// The client has taken something.
    fn taken(&mut self, now: Instant) {
        (self.progress, self.heard) = (now, now);
    }
}

impl Streams {
    /// A connection without requests.
    pub fn new(activity: Arc<Activity>, all: Arc<OpenStreams>) -> Arc<Streams> {
        activity.idle();
        let now = activity.clock().now();
        let mut connections = all.connections.lock();
        let number = connections.next;
        connections.next += 1;
        let streams = Arc::new(Streams {
            activity,
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
                idle_since: now,
                is_leaving: false,
            }),
        });
        connections.all.insert(number, Arc::downgrade(&streams));
        drop(connections);
        streams
    }

    /// Opens a request. `None` if there are too many.
    pub fn open(self: &Arc<Self>) -> Option<Arc<Stream>> {
        // Not under the lock: connections to end are searched for, and this may be one of them.
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
            self.activity.begin();
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

    /// Whether a request need not be processed: the maximum of refusals waits, and the connection has shown no key in any request.
    pub fn only_refuses(&self) -> bool {
        self.refused.load(Ordering::Relaxed) >= REFUSED && !self.activity.is_admitted()
    }

    /// Records that a request was reset. A client without a key may cause this only a few times.
    pub fn reset(&self) {
        let resets = self.resets.fetch_add(1, Ordering::Relaxed);
        if resets >= RESETS && !self.activity.is_admitted() {
            self.ended.notify_one();
        }
    }

    /// Since when the client has neither taken nor sent anything while its requests wait, if that is too long while others need space.
    fn silent_since(&self, now: Instant) -> Option<Instant> {
        let state = self.state.lock();
        let is_silent = state.open > state.working && now.saturating_duration_since(state.heard) >= SILENCE_TIMEOUT;
        (is_silent && !state.is_leaving).then_some(state.heard)
    }

    /// Ends the connection for others.
    fn leave(&self) {
        let mut state = self.state.lock();
        if !std::mem::replace(&mut state.is_leaving, true) {
            self.all.leaving.fetch_add(state.open, Ordering::Relaxed);
            self.ended.notify_one();
        }
    }

    /// Resolves when the connection must end: after too many resets, see [`Streams::reset`], or for others.
    pub async fn must_end(&self) {
        self.ended.notified().await;
    }

    /// Whether no request has been open for `idle`, or for `request` if there never was one: a new client must send something.
    pub fn is_idle_too_long(&self, now: Instant, request: Duration, idle: Duration) -> bool {
        let state = self.state.lock();
        let limit = if state.has_begun { idle } else { request };
        state.open == 0 && now.saturating_duration_since(state.idle_since) > limit
    }

    /// Whether the client does not take its responses: none at all for `request`, or one of them for a multiple of that.
    pub fn is_overdue(&self, now: Instant, request: Duration) -> bool {
        let state = self.state.lock();
        state.since.first_key_value().is_some_and(|(_, since)| {
            now.saturating_duration_since(state.progress) > request
                || now.saturating_duration_since(*since) > request * TIMEOUT_FACTOR
        })
    }

    /// Records that the client has taken something.
    pub fn taken(&self) {
        let now = self.now();
        self.state.lock().taken(now);
    }

    /// A response waits from now on, until what is returned is dropped.
    pub fn wait(&self) -> Waiting<'_> {
        Waiting {
            streams: self,
            number: self.hand_over(),
        }
    }

    fn now(&self) -> Instant {
        self.activity.clock().now()
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
        state.taken(now);
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.all.connections.lock().all.remove(&self.number);
    }
}

/// One request, until the last part of its response is sent.
#[derive(Debug)]
pub struct Stream {
    streams: Arc<Streams>,
    is_refused: AtomicBool,
    is_working: AtomicBool,
}

impl Stream {
    /// Records that its sender has not shown a key. `false` if it must be reset, because too many refusals of the connection are untaken.
    pub fn refuse(&self) -> bool {
        if !self.is_refused.swap(true, Ordering::Relaxed) {
            self.streams.refused.fetch_add(1, Ordering::Relaxed);
            self.streams.all.refused.fetch_add(1, Ordering::Relaxed);
        }
        !self.is_one_refused_too_many()
    }

    /// Whether it was refused and too many refusals are untaken: of the connection, or of all clients without a key.
    pub fn is_one_refused_too_many(&self) -> bool {
        let (own, all) = (&self.streams, &self.streams.all);
        let is_one_of_all =
            || !own.activity.is_admitted() && all.refused.load(Ordering::Relaxed) > all.limit / REFUSED_PART;
        self.is_refused.load(Ordering::Relaxed) && (own.refused.load(Ordering::Relaxed) > REFUSED || is_one_of_all())
    }

    /// Ends its connection.
    pub fn end_connection(&self) {
        self.streams.ended.notify_one();
    }

    /// Marks that the server is processing it.
    pub fn work(&self) {
        if !self.is_working.swap(true, Ordering::Relaxed) {
            let mut state = self.streams.state.lock();
            if state.working == 0 {
                self.streams.activity.begin();
            }
            state.working += 1;
        }
    }

    /// Permission to wait for memory for its body, if no other request of the connection has it. The part of a waiting body that has arrived uses the
    /// window of all bodies on the connection, so several could block those that already have their memory.
    pub fn try_wait(&self) -> Option<SemaphorePermit<'_>> {
        self.streams.waiting.try_acquire().ok()
    }

    /// Records that its client has sent a part of its body.
    pub fn progress(&self) {
        let now = self.streams.now();
        self.streams.state.lock().heard = now;
    }

    /// Marks that it waits for its client: for more of its body, or until its response is taken.
    pub fn await_client(&self) {
        if self.is_working.swap(false, Ordering::Relaxed) {
            let mut state = self.streams.state.lock();
            if state.working == state.open {
                state.heard = self.streams.now();
            }
            state.working -= 1;
            if state.working == 0 {
                self.streams.activity.wait_for_client();
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
            state.idle_since = self.streams.now();
            self.streams.activity.idle();
        }
    }
}

/// A response that waits for its client.
#[derive(Debug)]
pub struct Waiting<'s> {
    streams: &'s Streams,
    number: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.streams.gone(self.number);
    }
}

/// A part of a response in the HTTP/2 layer.
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

/// A response that is handed over in parts.
pub struct InParts<B> {
    body: B,
    rest: Bytes,
    stream: Arc<Stream>,
}

impl<B> InParts<B> {
    /// The response on a stream.
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
