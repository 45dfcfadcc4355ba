use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Full};

use bolide_model::time::Monotonic;

use super::*;
use crate::clock::ServerClock;

const LIMIT: Duration = Duration::from_secs(10);

fn clock() -> ServerClock {
    ServerClock::new(Monotonic::manual())
}

fn activity() -> Arc<Activity> {
    Activity::new(&clock())
}

async fn part(body: &mut InParts<Full<Bytes>>) -> Bytes {
    let frame = body.frame().await.expect("a part").expect("no error");
    frame.into_data().expect("data")
}

#[tokio::test]
async fn an_answer_comes_in_parts_and_is_open_until_the_last_is_gone() {
    let streams = Streams::new(activity(), OpenStreams::new(100));
    let answer = Bytes::from(vec![b'x'; PART_BYTES + 1]);
    let mut body = InParts::new(Full::new(answer), streams.open().expect("there is room"));
    let (first, last) = (part(&mut body).await, part(&mut body).await);
    assert_eq!((first.len(), last.len()), (PART_BYTES, 1));
    assert!(body.is_end_stream());
    drop((body, first));
    let later = streams.now() + 2 * LIMIT;
    assert!(!streams.is_idle_too_long(later, LIMIT, LIMIT));
    drop(last);
    assert!(streams.is_idle_too_long(later, LIMIT, LIMIT));
}

#[test]
fn a_connection_without_any_request_has_a_shorter_idle_timeout() {
    let streams = Streams::new(activity(), OpenStreams::new(100));
    let later = streams.now() + 2 * LIMIT;
    let idle = 10 * LIMIT;
    assert!(streams.is_idle_too_long(later, LIMIT, idle));
    drop(streams.open().expect("there is room"));
    assert!(!streams.is_idle_too_long(later, LIMIT, idle));
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_overdue() {
    let streams = Streams::new(activity(), OpenStreams::new(100));
    let mut body = InParts::new(
        Full::new(Bytes::from(vec![b'x'; 2 * PART_BYTES])),
        streams.open().expect("there is room"),
    );
    let now = streams.now();
    assert!(!streams.is_overdue(now + 2 * LIMIT, LIMIT), "nothing to take yet");
    let first = part(&mut body).await;
    assert!(streams.is_overdue(now + 2 * LIMIT, LIMIT));
    let second = part(&mut body).await;
    drop(second);
    assert!(
        streams.is_overdue(streams.now() + 11 * LIMIT, LIMIT),
        "one part stays behind"
    );
    drop(first);
    assert!(!streams.is_overdue(streams.now() + 11 * LIMIT, LIMIT));
}

fn open(streams: &Arc<Streams>) -> Arc<Stream> {
    streams.open().expect("there is room")
}

#[test]
fn a_few_refusals_may_be_unread() {
    let streams = Streams::new(activity(), OpenStreams::new(100));
    let mut few: Vec<Arc<Stream>> = (0..REFUSED).map(|_| open(&streams)).collect();
    // Refusing twice makes no difference.
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

fn admitted(all: &Arc<OpenStreams>) -> Arc<Streams> {
    admitted_by(&clock(), all)
}

fn admitted_by(clock: &ServerClock, all: &Arc<OpenStreams>) -> Arc<Streams> {
    let streams = Streams::new(Activity::new(clock), all.clone());
    streams.activity.admit();
    streams
}

fn open_all(streams: &Arc<Streams>) -> Vec<Arc<Stream>> {
    std::iter::from_fn(|| streams.open()).take(1000).collect()
}

#[test]
fn a_connection_may_open_its_part_when_there_are_too_many() {
    let all = OpenStreams::new(100);
    let connections: Vec<Arc<Streams>> = (0..40).map(|_| admitted(&all)).collect();
    let held: Vec<Vec<Arc<Stream>>> = connections.iter().map(open_all).collect();
    let lengths: Vec<usize> = held.iter().map(Vec::len).collect();
    assert_eq!(lengths[..3], [100, 50, 33]);
    // Twice the limit is the maximum; a few may always be open.
    assert_eq!(lengths[5..], [ALWAYS_OPEN; 35]);
    drop(held);
    assert_eq!(open_all(&connections[0]).len(), 100);
}

#[test]
fn unread_refusals_without_a_key_are_limited_over_all_connections() {
    let all = OpenStreams::new(80);
    let refused = || {
        let streams = Streams::new(activity(), all.clone());
        let refused: Vec<Arc<Stream>> = (0..5).map(|_| open(&streams)).collect();
        let taken = refused.iter().filter(|one| one.refuse()).count();
        (refused, taken)
    };
    let (first, second, third) = (refused(), refused(), refused());
    assert_eq!([first.1, second.1, third.1], [5, 5, 0]);
    drop(first);
    assert!(!third.0[0].is_one_refused_too_many());
    let known = admitted(&all);
    let one = open(&known);
    assert!(one.refuse(), "a key was shown on its connection");
}

#[test]
fn who_is_silent_makes_room() {
    let (all, clock) = (OpenStreams::new(20), clock());
    let connection = || admitted_by(&clock, &all);
    let (silent, older, at_work) = (connection(), connection(), connection());
    let mut held = Vec::new();
    for (one, age) in [(&older, SILENCE_TIMEOUT), (&silent, 2 * SILENCE_TIMEOUT)] {
        let waiting = [open(one), open(one)];
        waiting.iter().for_each(|one| one.await_client());
        held.extend(waiting);
        clock.monotonic().advance(age);
    }
    let working: Vec<Arc<Stream>> = (held.len()..20).map(|_| open(&at_work)).collect();
    clock.monotonic().advance(3 * SILENCE_TIMEOUT);
    let honest = connection();
    let opened = open_all(&honest);
    for one in [&silent, &older] {
        assert!(one.must_end().now_or_never().is_some());
        assert!(one.open().is_none(), "it is ending");
    }
    assert!(
        at_work.must_end().now_or_never().is_none(),
        "its client waits for the server"
    );
    assert!(opened.len() >= ALWAYS_OPEN);
    drop((held, working, opened));
    for count in [&all.open, &all.leaving, &all.busy, &all.refused] {
        assert_eq!(count.load(Ordering::Relaxed), 0);
    }
    assert_eq!(open_all(&honest).len(), 20);
}

#[tokio::test]
async fn a_client_that_reads_or_sends_is_not_silent() {
    let (all, clock) = (OpenStreams::new(100), clock());
    let streams = admitted_by(&clock, &all);
    let (answered, sending) = (open(&streams), open(&streams));
    clock.monotonic().advance(SILENCE_TIMEOUT);
    assert_eq!(streams.silent_since(clock.now()), None, "all are worked at");
    sending.await_client();
    assert_eq!(streams.silent_since(clock.now()), None, "it has just begun to wait");
    clock.monotonic().advance(SILENCE_TIMEOUT);
    assert!(streams.silent_since(clock.now()).is_some());
    sending.progress();
    assert_eq!(streams.silent_since(clock.now()), None);
    let mut answer = InParts::new(Full::from(vec![0; 2 * PART_BYTES]), answered);
    let first = part(&mut answer).await;
    clock.monotonic().advance(2 * SILENCE_TIMEOUT);
    assert!(streams.silent_since(clock.now()).is_some());
    drop(first);
    assert_eq!(streams.silent_since(clock.now()), None);
}

#[tokio::test]
async fn a_connection_ends_that_makes_the_server_reset_its_requests_and_has_shown_no_key() {
    let pulses = [activity(), activity()];
    pulses[1].admit();
    let [unknown, known] = pulses.map(|activity| Streams::new(activity, OpenStreams::new(100)));
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
fn a_connection_can_be_ended_while_all_of_its_requests_wait_for_their_client() {
    let activity = activity();
    activity.admit();
    let streams = Streams::new(activity.clone(), OpenStreams::new(100));
    let (one, other) = (open(&streams), open(&streams));
    one.await_client();
    assert_eq!(activity.eviction_rank(), None, "the server is at work for one");
    other.await_client();
    assert!(activity.eviction_rank().is_some());
    one.work();
    assert_eq!(activity.eviction_rank(), None);
    drop((one, other));
    assert!(activity.eviction_rank().is_some(), "it rests");
}
