use std::collections::VecDeque;
use std::future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bolide_model::account_key::{AccountKey, WELL_KNOWN_KEY};
use bytes::BytesMut;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::Version;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadBuf, duplex};
use tokio::sync::{Notify, oneshot};
use tokio::task::{JoinHandle, yield_now};

use super::connection::IDLE;
use super::*;
use crate::wire::Payload;

const NODE: NodeId = NodeId::new(7);
const TIMEOUT: Duration = Duration::from_secs(25);
/// Bytes that a connection takes while its other side reads nothing.
const BUFFER: usize = 1 << 20;

fn keys() -> Keys {
    Keys::new(AccountKey::parse(WELL_KNOWN_KEY).expect("a key"))
}

fn other_keys() -> Keys {
    let key = STANDARD.encode([7; 64]);
    Keys::new(AccountKey::parse(&key).expect("a key"))
}

/// A server that carries out a write when the test answers it.
struct Other {
    clock: Monotonic,
    /// With which it shows that it is a server of the account.
    keys: Mutex<Option<Keys>>,
    behaviour: Mutex<Behaviour>,
    opened: AtomicUsize,
    buffer: AtomicUsize,
    arrived: Arc<Mutex<VecDeque<Arrived>>>,
    /// Tells it to stop.
    stop: Arc<Notify>,
    receivers: Mutex<Vec<JoinHandle<()>>>,
    /// Its ends of connections on which the test itself reads and writes.
    raw: Mutex<Vec<DuplexStream>>,
    /// Writes to streams: by the sender, and by the receiver.
    writes: [Arc<AtomicUsize>; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    Receives,
    /// The test reads and writes what goes over the connection.
    Raw,
    /// It does not answer.
    Hangs,
    /// It cannot be reached.
    Absent,
}

type Arrived = (Request<Bytes>, oneshot::Sender<Response<Payload>>);

impl Peers for Other {
    fn open<'p>(
        &'p self,
        endpoint: &'p str,
        request: Request<()>,
    ) -> BoxFuture<'p, Result<(HeaderMap, PeerStream), String>> {
        assert_eq!(endpoint, "http://two:8081");
        self.opened.fetch_add(1, Ordering::Relaxed);
        let (head, ()) = request.into_parts();
        assert!(is_opening(&head));
        let opening = Opening::of(&keys(), &head.headers).expect("it shows the key");
        assert_eq!(opening.node, "0000000000000007");
        let behaviour = *self.behaviour.lock();
        let opened = async move {
            match behaviour {
                Behaviour::Absent => return Err("refused".to_owned()),
                Behaviour::Hangs => future::pending().await,
                Behaviour::Raw | Behaviour::Receives => {}
            }
            let mut headers = HeaderMap::new();
            if let Some(keys) = self.keys.lock().as_ref() {
                headers.insert(&MARK, opening.response_mark(keys));
            }
            let (near, far) = duplex(self.buffer.load(Ordering::Relaxed));
            match behaviour {
                Behaviour::Raw => self.raw.lock().push(far),
                _ => self.receive(far),
            }
            Ok((headers, Box::new(Counted(near, self.writes[0].clone())) as PeerStream))
        };
        opened.boxed()
    }

    fn response_timeout(&self) -> Duration {
        TIMEOUT
    }
}

impl Other {
    fn receive(&self, stream: DuplexStream) {
        let arrived = self.arrived.clone();
        let handle = move |request| {
            let (reply, response) = oneshot::channel();
            arrived.lock().push_back((request, reply));
            async move {
                match response.await {
                    Ok(response) => response,
                    Err(_) => future::pending().await,
                }
            }
        };
        let stop = self.stop.clone();
        let stopped = async move { stop.notified().await };
        let stream = Counted(stream, self.writes[1].clone());
        let received = receive(stream, self.clock.clone(), stopped, handle);
        self.receivers.lock().push(tokio::spawn(received));
    }

    fn writes(&self) -> [usize; 2] {
        [0, 1].map(|side| self.writes[side].load(Ordering::Relaxed))
    }
}

/// Counts the writes to a stream.
struct Counted(DuplexStream, Arc<AtomicUsize>);

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

struct Fixture {
    other: Arc<Other>,
    forwarding: Arc<Forwarding>,
    clock: Monotonic,
}

impl Fixture {
    fn new(behaviour: Behaviour) -> Fixture {
        let clock = Monotonic::manual();
        let other = Arc::new(Other {
            clock: clock.clone(),
            keys: Mutex::new(Some(keys())),
            behaviour: Mutex::new(behaviour),
            opened: AtomicUsize::new(0),
            buffer: AtomicUsize::new(BUFFER),
            arrived: Arc::default(),
            stop: Arc::default(),
            receivers: Mutex::default(),
            raw: Mutex::default(),
            writes: Default::default(),
        });
        Fixture {
            forwarding: Arc::new(Forwarding::new(other.clone(), keys(), clock.clone())),
            other,
            clock,
        }
    }

    fn behave(&self, behaviour: Behaviour) {
        *self.other.behaviour.lock() = behaviour;
    }

    fn opened(&self) -> usize {
        self.other.opened.load(Ordering::Relaxed)
    }

    /// Begins to send a write whose body is `id`.
    fn begin(&self, id: &str) -> JoinHandle<Outcome> {
        let (forwarding, id) = (self.forwarding.clone(), id.to_owned());
        tokio::spawn(async move {
            let head = Request::post("http://one:8081/dbs/d/colls/c/docs?x").header("x-ms-date", "today");
            let (head, ()) = head.body(()).unwrap().into_parts();
            let sent = Sent {
                head: &head,
                activity_id: "of the server",
                body: id.as_bytes(),
            };
            forwarding.send((NODE, "http://two:8081".to_owned()), sent).await
        })
    }

    /// Sends a write whose body is `id`, and lets it come to where it waits.
    async fn send(&self, id: &str) -> JoinHandle<Outcome> {
        let sent = self.begin(id);
        settle().await;
        sent
    }

    /// How a write ends that waits for nobody.
    async fn outcome(&self, id: &str) -> Outcome {
        let sent = self.send(id).await;
        assert!(sent.is_finished(), "it waits");
        sent.await.expect("it does not panic")
    }

    /// The next write that has arrived.
    fn next(&self) -> Arrived {
        self.other.arrived.lock().pop_front().expect("a write")
    }

    fn arrived(&self) -> usize {
        self.other.arrived.lock().len()
    }

    /// Answers the next write.
    fn answer(&self, status: u16) {
        let (request, reply) = self.next();
        reply.send(response(status, request.into_body())).unwrap();
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
        settle().await;
    }
}

/// Lets all tasks go on as far as they can.
async fn settle() {
    for _ in 0..50 {
        yield_now().await;
    }
}

fn response(status: u16, body: Bytes) -> Response<Payload> {
    Response::builder().status(status).body(Payload::Whole(body)).unwrap()
}

async fn answered(sent: JoinHandle<Outcome>) -> (u16, Bytes) {
    settle().await;
    assert!(sent.is_finished(), "it waits");
    match sent.await.expect("it does not panic") {
        Outcome::Answered(response) => (response.status().as_u16(), response.into_body()),
        outcome => panic!("{outcome:?}"),
    }
}

#[tokio::test]
async fn the_request_of_the_client_is_sent_and_the_response_comes_back() {
    let fixture = Fixture::new(Behaviour::Receives);
    for status in [201, 409, 503] {
        let sent = fixture.send("a").await;
        let (request, reply) = fixture.next();
        assert_eq!(request.uri(), "/dbs/d/colls/c/docs?x");
        assert_eq!(request.headers()["x-ms-date"], "today");
        assert_eq!(request.headers()["x-ms-activity-id"], "of the server");
        assert!(request.extensions().get::<FromPeer>().is_some());
        assert_eq!(request.version(), Version::HTTP_2, "its memory is counted");
        reply.send(response(status, request.into_body())).unwrap();
        assert_eq!(answered(sent).await, (status, Bytes::from_static(b"a")));
    }
    assert_eq!(fixture.opened(), 1);
}

#[tokio::test]
async fn what_is_refused_for_its_sender_is_judged_again_where_it_arrived() {
    let fixture = Fixture::new(Behaviour::Receives);
    for status in [401, 403, 421] {
        let sent = fixture.send("a").await;
        fixture.answer(status);
        assert!(matches!(sent.await.unwrap(), Outcome::NotSent), "{status}");
    }
}

#[tokio::test]
async fn no_write_is_shown_to_what_has_no_key_of_the_account() {
    let fixture = Fixture::new(Behaviour::Raw);
    for wrong in [None, Some(other_keys())] {
        *fixture.other.keys.lock() = wrong;
        assert!(matches!(fixture.outcome("a").await, Outcome::NotSent));
        let mut stream = fixture.other.raw.lock().pop().expect("a connection");
        let mut seen = Vec::new();
        stream.read_to_end(&mut seen).await.unwrap();
        assert_eq!(seen, b"");
        fixture.pass(Duration::from_secs(60)).await;
    }
}

#[tokio::test]
async fn what_comes_at_the_same_time_is_written_together_and_answered_in_any_order() {
    let fixture = Fixture::new(Behaviour::Receives);
    let first = fixture.send("first").await;
    fixture.answer(201);
    answered(first).await;
    let before = fixture.other.writes();
    let ids: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    let sent: Vec<_> = ids.iter().map(|id| fixture.begin(id)).collect();
    settle().await;
    assert_eq!(fixture.arrived(), 20);
    let arrived: Vec<_> = fixture.other.arrived.lock().drain(..).collect();
    for (request, reply) in arrived.into_iter().rev() {
        reply.send(response(201, request.into_body())).unwrap();
    }
    for (id, sent) in ids.iter().zip(sent) {
        assert_eq!(answered(sent).await.1, id.as_bytes());
    }
    assert_eq!(fixture.other.writes(), before.map(|writes| writes + 1));
}

#[tokio::test]
async fn a_server_that_fails_is_left_alone_for_a_while() {
    let fixture = Fixture::new(Behaviour::Absent);
    for (times, pause) in [5, 10, 20, 40, 60, 60].into_iter().enumerate() {
        let is_reached = times % 2 == 1;
        fixture.behave(if is_reached { Behaviour::Raw } else { Behaviour::Absent });
        let sent = fixture.send("a").await;
        fixture.other.raw.lock().clear();
        settle().await;
        let outcome = sent.await.unwrap();
        assert_eq!(matches!(outcome, Outcome::Unknown), is_reached, "{outcome:?}");
        fixture.pass(Duration::from_millis(pause * 1_000 - 1)).await;
        assert!(matches!(fixture.outcome("b").await, Outcome::NotSent), "{pause} s");
        assert_eq!(fixture.opened(), times + 1);
        fixture.pass(Duration::from_millis(1)).await;
    }
    // Once it has answered, it is trusted as before.
    fixture.behave(Behaviour::Receives);
    let sent = fixture.send("c").await;
    fixture.answer(201);
    answered(sent).await;
    let lost = fixture.send("d").await;
    fixture.pass(TIMEOUT).await;
    assert!(matches!(lost.await.unwrap(), Outcome::Unknown));
    fixture.pass(Duration::from_secs(5)).await;
    let _sent = fixture.send("e").await;
    assert_eq!(fixture.arrived(), 2);
}

#[tokio::test]
async fn writes_that_fail_together_are_one_failure() {
    let fixture = Fixture::new(Behaviour::Raw);
    let first = fixture.send("a").await;
    let sent = [first, fixture.send("b").await, fixture.send("c").await];
    assert_eq!(fixture.opened(), 1);
    fixture.other.raw.lock().clear();
    for sent in sent {
        assert!(matches!(sent.await.unwrap(), Outcome::Unknown));
    }
    fixture.pass(Duration::from_secs(5)).await;
    let _sent = fixture.send("d").await;
    assert_eq!(fixture.opened(), 2);
}

#[tokio::test]
async fn nobody_waits_for_a_connection_but_who_opens_it_and_that_not_for_long() {
    let fixture = Fixture::new(Behaviour::Hangs);
    let first = fixture.send("a").await;
    assert!(matches!(fixture.outcome("b").await, Outcome::NotSent));
    fixture.pass(Duration::from_millis(500)).await;
    assert!(matches!(first.await.unwrap(), Outcome::NotSent));
    fixture.pass(Duration::from_secs(60)).await;
    // The client of the one that opens it has gone.
    fixture.send("c").await.abort();
    settle().await;
    fixture.behave(Behaviour::Receives);
    let _sent = fixture.send("d").await;
    assert_eq!(fixture.arrived(), 1);
}

#[tokio::test]
async fn so_many_writes_are_under_way_to_a_server_and_no_more() {
    let fixture = Fixture::new(Behaviour::Receives);
    let mut sent = vec![fixture.send("first").await];
    sent.extend((1..UNDER_WAY).map(|number| fixture.begin(&number.to_string())));
    settle().await;
    assert_eq!(fixture.arrived(), UNDER_WAY);
    assert!(matches!(fixture.outcome("one more").await, Outcome::NotSent));
    // One whose client has gone is still carried out.
    sent.pop().expect("one of them").abort();
    settle().await;
    assert!(matches!(fixture.outcome("one more").await, Outcome::NotSent));
    fixture.answer(201);
    settle().await;
    let _sent = fixture.send("another").await;
    assert_eq!(fixture.arrived(), UNDER_WAY);
}

#[tokio::test]
async fn what_is_too_large_is_not_sent() {
    let fixture = Fixture::new(Behaviour::Receives);
    assert!(matches!(
        fixture.outcome(&"x".repeat(frame::FRAME_BYTES)).await,
        Outcome::NotSent
    ));
    let sent = fixture.send("a").await;
    fixture.answer(201);
    answered(sent).await;
}

/// Writes to a server that stops are carried out by it or not sent to it.
#[tokio::test]
async fn a_server_that_stops_answers_what_it_has_got_and_gets_nothing_more() {
    let fixture = Fixture::new(Behaviour::Receives);
    let sent = [fixture.send("a").await, fixture.send("b").await];
    fixture.other.stop.notify_one();
    settle().await;
    fixture.behave(Behaviour::Absent);
    assert!(matches!(fixture.outcome("c").await, Outcome::NotSent));
    assert_eq!(fixture.arrived(), 2);
    let receiver = fixture.other.receivers.lock().pop().expect("a receiver");
    assert!(!receiver.is_finished(), "it has not answered yet");
    for sent in sent {
        fixture.answer(201);
        answered(sent).await;
    }
    assert!(receiver.is_finished());
}

#[tokio::test]
async fn what_was_not_written_when_the_connection_broke_is_carried_out_where_it_arrived() {
    let fixture = Fixture::new(Behaviour::Raw);
    fixture.other.buffer.store(8, Ordering::Relaxed);
    let written = fixture.send("a").await;
    let unwritten = fixture.send("b").await;
    fixture.other.raw.lock().clear();
    assert!(matches!(written.await.unwrap(), Outcome::Unknown));
    assert!(matches!(unwritten.await.unwrap(), Outcome::NotSent));
}

#[tokio::test]
async fn a_write_without_a_response_in_time_does_not_end_the_others() {
    let fixture = Fixture::new(Behaviour::Receives);
    let late = fixture.send("late").await;
    fixture.pass(Duration::from_secs(1)).await;
    let in_time = fixture.send("in time").await;
    fixture.pass(TIMEOUT - Duration::from_secs(1)).await;
    assert!(matches!(late.await.unwrap(), Outcome::Unknown));
    let (_request, _reply) = fixture.next();
    fixture.answer(201);
    assert_eq!(answered(in_time).await.0, 201);
    assert!(matches!(fixture.outcome("next").await, Outcome::NotSent));
}

#[tokio::test]
async fn a_connection_that_is_not_used_ends_and_the_next_write_opens_another() {
    let fixture = Fixture::new(Behaviour::Receives);
    for opened in [1, 2] {
        let sent = fixture.send("a").await;
        fixture.answer(201);
        answered(sent).await;
        assert_eq!(fixture.opened(), opened);
        let receiver = fixture.other.receivers.lock().pop().expect("a receiver");
        fixture.pass(IDLE).await;
        fixture.pass(IDLE).await;
        assert!(receiver.is_finished());
    }
}

/// Its clients have given up earlier, so no write of theirs times out.
#[tokio::test]
async fn a_server_that_answers_nothing_is_noticed_although_nobody_waits() {
    let fixture = Fixture::new(Behaviour::Raw);
    fixture.send("a").await.abort();
    let mut passed = Duration::ZERO;
    while passed < TIMEOUT {
        fixture.pass(IDLE).await;
        passed += IDLE;
    }
    let mut stream = fixture.other.raw.lock().pop().expect("a connection");
    let mut seen = BytesMut::with_capacity(4096);
    stream.read_buf(&mut seen).await.unwrap();
    assert!(!seen.is_empty(), "the write");
    assert!(stream.read_u8().now_or_never().is_none(), "it is open");
    for _ in 0..3 {
        fixture.pass(IDLE).await;
    }
    let ended = stream.read_u8().now_or_never().expect("it has ended");
    assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[tokio::test]
async fn what_is_no_frame_ends_the_connection() {
    for wrong in [
        &[0; 4][..],
        b"HTTP/1.1 200 OK\r\n\r\n",
        &[9, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9],
    ] {
        let fixture = Fixture::new(Behaviour::Raw);
        let sent = fixture.send("a").await;
        let mut raw = fixture.other.raw.lock().pop().expect("a connection");
        raw.write_all(wrong).await.unwrap();
        assert!(matches!(sent.await.unwrap(), Outcome::Unknown), "{wrong:?}");

        let (mut near, far) = duplex(BUFFER);
        fixture.other.receive(far);
        near.write_all(wrong).await.unwrap();
        settle().await;
        let receiver = fixture.other.receivers.lock().pop().expect("a receiver");
        assert!(receiver.is_finished(), "{wrong:?}");
        assert_eq!(fixture.arrived(), 0);
    }
}

/// The response to a write that was not sent.
#[tokio::test]
async fn a_response_to_nothing_ends_the_connection() {
    let fixture = Fixture::new(Behaviour::Raw);
    let sent = fixture.send("a").await;
    let mut raw = fixture.other.raw.lock().pop().expect("a connection");
    let mut wrong = BytesMut::new();
    frame::put_response(&mut wrong, 2, &Response::new(Bytes::new())).unwrap();
    raw.write_all(&wrong).await.unwrap();
    assert!(matches!(sent.await.unwrap(), Outcome::Unknown));
}

#[tokio::test]
async fn a_response_that_cannot_be_sent_leaves_the_outcome_unknown_and_the_connection_in_use() {
    let fixture = Fixture::new(Behaviour::Receives);
    let large = Payload::Whole(Bytes::from(vec![b'x'; frame::FRAME_BYTES]));
    let pages = Payload::Pages(stream::empty().boxed());
    for payload in [large, pages] {
        let sent = fixture.send("a").await;
        fixture.next().1.send(Response::new(payload)).unwrap();
        assert!(matches!(sent.await.unwrap(), Outcome::Unknown));
    }
    let sent = fixture.send("b").await;
    fixture.answer(201);
    answered(sent).await;
    assert_eq!(fixture.opened(), 1);
}

/// A write on a connection that was given up earlier.
#[tokio::test]
async fn a_failure_of_an_earlier_connection_says_nothing_of_the_next() {
    let fixture = Fixture::new(Behaviour::Receives);
    let first = fixture.send("a").await;
    fixture.pass(TIMEOUT - Duration::from_secs(5)).await;
    let second = fixture.send("b").await;
    fixture.pass(Duration::from_secs(5)).await;
    assert!(matches!(first.await.unwrap(), Outcome::Unknown));
    fixture.pass(Duration::from_secs(5)).await;
    let third = fixture.send("c").await;
    assert_eq!(fixture.opened(), 2);
    fixture.pass(TIMEOUT - Duration::from_secs(10)).await;
    assert!(matches!(second.await.unwrap(), Outcome::Unknown));
    let (_a, _b) = (fixture.next(), fixture.next());
    fixture.answer(201);
    answered(third).await;
    let fourth = fixture.send("d").await;
    fixture.answer(201);
    answered(fourth).await;
    assert_eq!(fixture.opened(), 2);
}

fn request_frames(count: u64) -> BytesMut {
    let (head, ()) = Request::new(()).into_parts();
    let sent = Sent {
        head: &head,
        activity_id: "",
        body: b"",
    };
    let mut frames = BytesMut::new();
    for number in 1..=count {
        frame::put_request(&mut frames, number, sent).unwrap();
    }
    frames
}

#[tokio::test]
async fn a_receiver_carries_out_so_many_at_once_and_no_more() {
    let fixture = Fixture::new(Behaviour::Receives);
    let (mut near, far) = duplex(BUFFER);
    fixture.other.receive(far);
    near.write_all(&request_frames(UNDER_WAY as u64 + 2)).await.unwrap();
    settle().await;
    assert_eq!(fixture.arrived(), UNDER_WAY);
    fixture.answer(201);
    settle().await;
    assert_eq!(fixture.arrived(), UNDER_WAY);
}

#[tokio::test]
async fn a_receiver_waits_neither_for_requests_nor_for_its_responses_to_be_taken() {
    let fixture = Fixture::new(Behaviour::Receives);
    let (_near, far) = duplex(BUFFER);
    fixture.other.receive(far);
    let silent = fixture.other.receivers.lock().pop().expect("a receiver");
    let (mut near, far) = duplex(64);
    fixture.other.receive(far);
    let unread = fixture.other.receivers.lock().pop().expect("a receiver");
    near.write_all(&request_frames(1)).await.unwrap();
    settle().await;
    let body = Bytes::from(vec![b'x'; 100]);
    fixture.next().1.send(response(201, body)).unwrap();
    settle().await;
    fixture.pass(Duration::from_secs(59)).await;
    assert_eq!([silent.is_finished(), unread.is_finished()], [false, false]);
    for _ in 0..2 {
        fixture.pass(Duration::from_secs(60)).await;
    }
    assert_eq!([silent.is_finished(), unread.is_finished()], [true, true]);
}
