use std::collections::VecDeque;
use std::time::Duration;

use bolide_model::account_key::{AccountKey, WELL_KNOWN_KEY};
use http::StatusCode;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, yield_now};

use super::destination::POSTS;
use super::*;

const NODE: NodeId = NodeId::new(7);

fn keys() -> Keys {
    Keys::new(AccountKey::parse(WELL_KNOWN_KEY).expect("a key"))
}

type Answer = Result<Response<Bytes>, SendError>;

/// A server that is asked by hand: a request waits until the test has answered it.
#[derive(Default)]
struct Asked {
    requests: Mutex<VecDeque<(Request<Bytes>, oneshot::Sender<Answer>)>>,
    /// Proves by these keys by itself.
    proves: Mutex<Option<Keys>>,
    proofs: Mutex<usize>,
}

impl Peers for Asked {
    fn send(&self, endpoint: &str, request: Request<Bytes>) -> BoxFuture<'static, Answer> {
        assert_eq!(endpoint, "http://two:8081");
        assert_eq!(request.uri().path(), "/_bolide/forwarded-writes/0000000000000007");
        let (reply, answer) = oneshot::channel();
        if request.body().is_empty() {
            *self.proofs.lock() += 1;
            let by = self.proves.lock().clone();
            let proof = by.map(|keys| proof(&keys, request.headers(), &NODE.to_string()));
            let _ = reply.send(Ok(Response::new(proof.unwrap_or_default().into())));
        } else {
            self.requests.lock().push_back((request, reply));
        }
        Box::pin(async { answer.await.expect("the test answers") })
    }
}

struct Fixture {
    asked: Arc<Asked>,
    forwarding: Arc<Forwarding>,
    clock: Monotonic,
}

impl Fixture {
    fn new() -> Fixture {
        let (asked, clock) = (Arc::new(Asked::default()), Monotonic::manual());
        *asked.proves.lock() = Some(keys());
        Fixture {
            forwarding: Forwarding::new(asked.clone(), keys(), clock.clone()),
            asked,
            clock,
        }
    }

    /// Sends a write whose body is `id`, and lets it come to where it waits.
    async fn send(&self, id: &'static str) -> JoinHandle<Outcome> {
        let forwarding = self.forwarding.clone();
        let sent = tokio::spawn(async move {
            let (head, ()) = Request::post("/dbs/d/colls/c/docs").body(()).unwrap().into_parts();
            let to = (NODE, "http://two:8081".to_owned());
            forwarding.send(to, &head, &Bytes::from_static(id.as_bytes())).await
        });
        settle().await;
        sent
    }

    /// The next POST: the bodies in it, and where to answer.
    fn next(&self) -> (Vec<Bytes>, oneshot::Sender<Answer>) {
        let (request, reply) = self.asked.requests.lock().pop_front().expect("a POST");
        assert!(is_from_peer(
            &keys(),
            &request.clone().into_parts().0,
            &NODE.to_string()
        ));
        let requests = requests(request.into_body()).expect("requests");
        let bodies = requests.into_iter().map(Request::into_body).collect();
        (bodies, reply)
    }

    /// Sends as many writes as there are POSTs at once, and returns these.
    async fn send_many(&self) -> Vec<(Vec<Bytes>, oneshot::Sender<Answer>)> {
        let mut under_way = self.send_one_less().await;
        self.send("one more").await;
        under_way.push(self.next());
        under_way
    }

    async fn send_one_less(&self) -> Vec<(Vec<Bytes>, oneshot::Sender<Answer>)> {
        let mut under_way = Vec::new();
        for _ in 1..POSTS {
            self.send("many").await;
            under_way.push(self.next());
        }
        under_way
    }

    fn has_more(&self) -> bool {
        !self.asked.requests.lock().is_empty()
    }
}

async fn settle() {
    for _ in 0..20 {
        yield_now().await;
    }
}

/// A response for each of `bodies`, which repeats it.
fn answered(bodies: &[Bytes], status: u16) -> Answer {
    let response = || Response::builder().status(status).body(()).unwrap();
    let all: Vec<_> = bodies.iter().map(|body| (response(), body.clone())).collect();
    Ok(Response::new(responses(&all).into()))
}

fn refused(status: StatusCode) -> Answer {
    let mut response = Response::new(Bytes::from_static(b"no"));
    *response.status_mut() = status;
    Ok(response)
}

async fn body_of(sent: JoinHandle<Outcome>) -> Bytes {
    match sent.await.unwrap() {
        Outcome::Answered(response) => response.into_body(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn writes_that_come_while_many_are_under_way_share_a_post() {
    let fixture = Fixture::new();
    let under_way = fixture.send_many().await;
    let (c, d) = (fixture.send("c").await, fixture.send("d").await);
    assert!(!fixture.has_more());
    let (bodies, reply) = under_way.into_iter().next().expect("one of them");
    reply.send(answered(&bodies, 201)).unwrap();
    settle().await;
    let (together, reply) = fixture.next();
    assert_eq!(together, ["c", "d"]);
    reply.send(answered(&together, 201)).unwrap();
    for (sent, body) in [(c, "c"), (d, "d")] {
        assert_eq!(body_of(sent).await, body);
    }
    assert_eq!(*fixture.asked.proofs.lock(), 1);
}

#[tokio::test]
async fn nothing_is_shown_to_what_has_no_key_of_the_account() {
    let fixture = Fixture::new();
    let other = "C3y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
    for wrong in [
        None,
        Some(Keys::new(
            AccountKey::parse(&other.replace("C3y6", "AAAA")).expect("a key"),
        )),
    ] {
        *fixture.asked.proves.lock() = wrong;
        assert!(matches!(fixture.send("a").await.await.unwrap(), Outcome::NotSent));
        fixture.clock.advance(Duration::from_secs(60));
    }
    assert!(!fixture.has_more());
}

#[tokio::test]
async fn a_server_that_fails_is_left_alone_for_a_while() {
    let fixture = Fixture::new();
    // Each failure, and whether the write may have been carried out.
    let failures: [(Answer, bool); 5] = [
        (Err(SendError::NotSent("refused".to_owned())), false),
        (refused(StatusCode::MISDIRECTED_REQUEST), false),
        (refused(StatusCode::SERVICE_UNAVAILABLE), false),
        (refused(StatusCode::INTERNAL_SERVER_ERROR), true),
        (Err(SendError::NoResponse("cut".to_owned())), true),
    ];
    for (pause, (failure, may_be_done)) in [5, 10, 20, 40, 60].into_iter().zip(failures) {
        let sent = fixture.send("a").await;
        let (_, reply) = fixture.next();
        reply.send(failure).unwrap();
        match sent.await.unwrap() {
            Outcome::NotSent => assert!(!may_be_done),
            Outcome::Unknown => assert!(may_be_done),
            answered => panic!("{answered:?}"),
        }
        fixture.clock.advance(Duration::from_millis(pause * 1_000 - 1));
        assert!(
            matches!(fixture.send("b").await.await.unwrap(), Outcome::NotSent),
            "{pause} s"
        );
        assert!(!fixture.has_more());
        fixture.clock.advance(Duration::from_millis(1));
    }
    let sent = fixture.send("c").await;
    let (bodies, reply) = fixture.next();
    reply.send(answered(&bodies, 201)).unwrap();
    assert_eq!(body_of(sent).await, "c");
}

#[tokio::test]
async fn responses_to_fewer_writes_than_were_sent_tell_nothing() {
    let fixture = Fixture::new();
    let sent = fixture.send("a").await;
    let (_, reply) = fixture.next();
    reply.send(answered(&[], 201)).unwrap();
    assert!(matches!(sent.await.unwrap(), Outcome::Unknown));
}

#[tokio::test]
async fn a_write_that_waits_too_long_to_be_sent_is_not_sent() {
    let fixture = Fixture::new();
    let a = fixture.send("a").await;
    let (bodies, reply) = fixture.next();
    let _others = fixture.send_one_less().await;
    let late = fixture.send("late").await;
    fixture.clock.advance(Duration::from_millis(250));
    assert!(matches!(late.await.unwrap(), Outcome::NotSent));
    // One that was sent is waited for.
    reply.send(answered(&bodies, 201)).unwrap();
    assert_eq!(body_of(a).await, "a");
    settle().await;
    assert!(!fixture.has_more());
}

#[tokio::test]
async fn what_waits_for_a_server_that_fails_is_not_sent() {
    let fixture = Fixture::new();
    let under_way = fixture.send_many().await;
    let waiting = fixture.send("c").await;
    let (_, reply) = under_way.into_iter().next().expect("one of them");
    reply.send(Err(SendError::NoResponse("cut".to_owned()))).unwrap();
    assert!(matches!(waiting.await.unwrap(), Outcome::NotSent));
}

#[tokio::test]
async fn posts_that_fail_together_are_one_failure() {
    let fixture = Fixture::new();
    for (_, reply) in fixture.send_many().await {
        reply.send(Err(SendError::NoResponse("cut".to_owned()))).unwrap();
    }
    settle().await;
    fixture.clock.advance(Duration::from_secs(5));
    fixture.send("a").await;
    assert_eq!(fixture.next().0, ["a"]);
}

#[test]
fn only_a_holder_of_the_key_forwards_and_only_to_the_named_server() {
    let head = |sent: &str| {
        let request = Request::post("/_bolide/forwarded-writes/7").header("authorization", sent);
        request.body(()).unwrap().into_parts().0
    };
    let mac = sender_mac(&keys(), "7");
    assert!(is_from_peer(&keys(), &head(&mac), "7"));
    assert!(!is_from_peer(&keys(), &head(&mac), "8"));
    assert!(!is_from_peer(&keys(), &head(&format!("Bearer {WELL_KNOWN_KEY}")), "7"));
    let receiver = receiver_mac(&keys(), "7", b"");
    assert!(
        !is_from_peer(&keys(), &head(&format!("type=peer&sig={receiver}")), "7"),
        "a proof is no MAC of a sender"
    );
}
