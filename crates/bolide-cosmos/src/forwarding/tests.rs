use std::collections::VecDeque;
use std::time::Duration;

use bolide_model::account_key::{AccountKey, WELL_KNOWN_KEY};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, yield_now};

use super::destination::UNDER_WAY;
use super::*;

const NODE: NodeId = NodeId::new(7);

fn keys() -> Keys {
    Keys::new(AccountKey::parse(WELL_KNOWN_KEY).expect("a key"))
}

fn other_keys() -> Keys {
    let key = STANDARD.encode([7; 64]);
    Keys::new(AccountKey::parse(&key).expect("a key"))
}

type Answer = Result<Response<Bytes>, SendError>;

/// A server that is asked by hand: a write waits until the test has answered it. It proves by itself that it has these keys, once it is asked.
struct Asked {
    requests: Mutex<VecDeque<(Request<Bytes>, oneshot::Sender<Answer>)>>,
    keys: Mutex<Option<Keys>>,
    proofs: Mutex<usize>,
    /// Whether it leaves the next question for its proof without an answer.
    hangs: Mutex<Option<oneshot::Sender<Answer>>>,
    is_hanging: Mutex<bool>,
}

impl Peers for Asked {
    fn send<'p>(&'p self, endpoint: &'p str, request: Request<Bytes>) -> BoxFuture<'p, Answer> {
        assert_eq!(endpoint, "http://two:8081");
        let (reply, answer) = oneshot::channel();
        if request.uri().path() != "/_bolide/health" {
            self.requests.lock().push_back((request, reply));
        } else if *self.is_hanging.lock() {
            *self.hangs.lock() = Some(reply);
        } else {
            *self.proofs.lock() += 1;
            let _ = reply.send(Ok(self.response(&request, 200)));
        }
        Box::pin(async { answer.await.expect("the test answers") })
    }
}

impl Asked {
    /// The response to a request, marked if it has keys.
    fn response(&self, request: &Request<Bytes>, status: u16) -> Response<Bytes> {
        let mut response = Response::builder()
            .status(status)
            .header("date", "today")
            .body(request.body().clone())
            .unwrap();
        if let Some(keys) = self.keys.lock().as_ref()
            && let Ok(Some(forwarded)) = Forwarded::of(&self::keys(), request.headers())
        {
            assert_eq!(forwarded.node, "0000000000000007");
            forwarded.mark(keys, response.headers_mut());
        }
        response
    }
}

struct Fixture {
    asked: Arc<Asked>,
    forwarding: Arc<Forwarding>,
    clock: Monotonic,
}

impl Fixture {
    fn new() -> Fixture {
        let clock = Monotonic::manual();
        let asked = Arc::new(Asked {
            requests: Mutex::default(),
            keys: Mutex::new(Some(keys())),
            proofs: Mutex::default(),
            hangs: Mutex::default(),
            is_hanging: Mutex::default(),
        });
        Fixture {
            forwarding: Arc::new(Forwarding::new(asked.clone(), keys(), clock.clone())),
            asked,
            clock,
        }
    }

    /// Sends a write whose body is `id`, and lets it come to where it waits.
    async fn send(&self, id: &'static str) -> JoinHandle<Outcome> {
        let forwarding = self.forwarding.clone();
        let sent = tokio::spawn(async move {
            let head = Request::post("http://one:8081/dbs/d/colls/c/docs?x")
                .header("content-length", "9")
                .header("x-ms-date", "today");
            let (head, ()) = head.body(()).unwrap().into_parts();
            let to = (NODE, "http://two:8081".to_owned());
            forwarding.send(to, &head, &Bytes::from_static(id.as_bytes())).await
        });
        for _ in 0..20 {
            yield_now().await;
        }
        sent
    }

    /// The next write that has arrived.
    fn next(&self) -> (Request<Bytes>, oneshot::Sender<Answer>) {
        self.asked.requests.lock().pop_front().expect("a write")
    }

    /// Answers the next write.
    fn answer(&self, status: u16) {
        let (request, reply) = self.next();
        reply.send(Ok(self.asked.response(&request, status))).unwrap();
    }

    fn has_more(&self) -> bool {
        !self.asked.requests.lock().is_empty()
    }
}

#[tokio::test]
async fn the_request_of_the_client_is_sent_and_the_response_comes_back() {
    let fixture = Fixture::new();
    for status in [201, 409, 503] {
        let sent = fixture.send("a").await;
        let (request, reply) = fixture.next();
        assert_eq!(request.uri(), "/dbs/d/colls/c/docs?x");
        assert_eq!(request.headers()["x-ms-date"], "today");
        assert!(
            !request.headers().contains_key("content-length"),
            "it is that of the connection"
        );
        reply.send(Ok(fixture.asked.response(&request, status))).unwrap();
        let Outcome::Answered(response) = sent.await.unwrap() else {
            panic!("it was answered");
        };
        assert_eq!(
            (response.status().as_u16(), response.body().as_ref()),
            (status, &b"a"[..])
        );
        assert_eq!(response.headers().len(), 0, "the mark and the date are not for clients");
    }
    assert_eq!(*fixture.asked.proofs.lock(), 1);
}

#[tokio::test]
async fn what_is_refused_for_its_sender_is_judged_again_where_it_arrived() {
    let fixture = Fixture::new();
    for status in [401, 403, 421] {
        let sent = fixture.send("a").await;
        fixture.answer(status);
        assert!(matches!(sent.await.unwrap(), Outcome::NotSent), "{status}");
    }
}

#[tokio::test]
async fn no_write_is_shown_to_what_has_no_key_of_the_account() {
    let fixture = Fixture::new();
    for wrong in [None, Some(other_keys())] {
        *fixture.asked.keys.lock() = wrong;
        assert!(matches!(fixture.send("a").await.await.unwrap(), Outcome::NotSent));
        fixture.clock.advance(Duration::from_secs(60));
    }
    assert!(!fixture.has_more());
}

/// A proxy may say that a request was refused after it has passed it on.
#[tokio::test]
async fn a_response_that_is_not_from_the_server_tells_nothing() {
    for status in [200, 401, 421, 429, 503] {
        let fixture = Fixture::new();
        let sent = fixture.send("a").await;
        *fixture.asked.keys.lock() = None;
        fixture.answer(status);
        assert!(matches!(sent.await.unwrap(), Outcome::Unknown), "{status}");
    }
}

#[tokio::test]
async fn a_server_that_fails_is_left_alone_for_a_while() {
    let fixture = Fixture::new();
    for (times, pause) in [5, 10, 20, 40, 60, 60].into_iter().enumerate() {
        let sent = fixture.send("a").await;
        let (_, reply) = fixture.next();
        match times % 2 {
            0 => reply.send(Err(SendError::NotSent("refused".to_owned()))).unwrap(),
            _ => reply.send(Err(SendError::NoResponse("cut".to_owned()))).unwrap(),
        }
        let outcome = sent.await.unwrap();
        assert_eq!(matches!(outcome, Outcome::Unknown), times % 2 == 1, "{outcome:?}");
        fixture.clock.advance(Duration::from_millis(pause * 1_000 - 1));
        assert!(
            matches!(fixture.send("b").await.await.unwrap(), Outcome::NotSent),
            "{pause} s"
        );
        assert!(!fixture.has_more());
        fixture.clock.advance(Duration::from_millis(1));
    }
    let sent = fixture.send("c").await;
    fixture.answer(201);
    assert!(matches!(sent.await.unwrap(), Outcome::Answered(_)));
    assert_eq!(
        *fixture.asked.proofs.lock(),
        7,
        "each time it had to prove that it has the key"
    );
}

#[tokio::test]
async fn writes_that_fail_together_are_one_failure() {
    let fixture = Fixture::new();
    for _ in 0..3 {
        fixture.send("a").await;
    }
    for _ in 0..3 {
        fixture
            .next()
            .1
            .send(Err(SendError::NoResponse("cut".to_owned())))
            .unwrap();
    }
    yield_now().await;
    fixture.clock.advance(Duration::from_secs(5));
    let _sent = fixture.send("a").await;
    assert!(fixture.has_more());
}

#[tokio::test]
async fn nobody_waits_for_a_proof_but_who_has_asked_and_that_not_for_long() {
    let fixture = Fixture::new();
    *fixture.asked.is_hanging.lock() = true;
    let first = fixture.send("a").await;
    assert!(matches!(fixture.send("b").await.await.unwrap(), Outcome::NotSent));
    fixture.clock.advance(Duration::from_millis(500));
    assert!(matches!(first.await.unwrap(), Outcome::NotSent));
    // Whoever has asked gives up.
    fixture.clock.advance(Duration::from_secs(60));
    fixture.send("c").await.abort();
    yield_now().await;
    *fixture.asked.is_hanging.lock() = false;
    let _sent = fixture.send("d").await;
    assert!(fixture.has_more());
}

#[tokio::test]
async fn so_many_writes_are_under_way_to_a_server_and_no_more() {
    let fixture = Fixture::new();
    let mut sent = Vec::new();
    for _ in 0..UNDER_WAY {
        sent.push(fixture.send("a").await);
    }
    assert!(matches!(fixture.send("b").await.await.unwrap(), Outcome::NotSent));
    // One whose client has gone is not under way any more.
    sent.pop().expect("one of them").abort();
    yield_now().await;
    let _sent = fixture.send("c").await;
    assert_eq!(fixture.asked.requests.lock().len(), UNDER_WAY + 1);
}

#[test]
fn only_a_holder_of_the_key_forwards() {
    let sent = |mark: &str| HeaderMap::from_iter([(MARK, HeaderValue::from_str(mark).unwrap())]);
    let of =
        |mark: &str| Forwarded::of(&keys(), &sent(mark)).map(|forwarded| forwarded.map(|forwarded| forwarded.node));
    let mac = sender_mac(&keys(), "7", "n");
    assert_eq!(of(&format!("7 n {mac}")), Ok(Some("7".to_owned())));
    assert_eq!(
        Forwarded::of(&keys(), &HeaderMap::new()).map(|forwarded| forwarded.is_none()),
        Ok(true)
    );
    let receiver = receiver_mac(&keys(), "7", "n");
    let stranger = sender_mac(&other_keys(), "7", "n");
    for wrong in [
        String::new(),
        format!("8 n {mac}"),
        format!("7 m {mac}"),
        format!("7 n {receiver}"),
        format!("7 n {stranger}"),
        format!("7 n {mac} more"),
    ] {
        assert_eq!(of(&wrong), Err(NotFromPeer), "{wrong}");
    }
}
