use super::*;

struct Nothing;

impl CursorSource for Nothing {
    fn next_batch<'a>(&'a mut self, _: &'a BatchRequest) -> BoxFuture<'a, Result<Batch>> {
        Box::pin(async { Ok(Batch::default()) })
    }
}

fn namespace(collection: &str) -> Namespace {
    Namespace::new("db", collection).expect("a name")
}

fn cursor(user: Option<&str>, session: Option<&SessionId>) -> Cursor {
    Cursor {
        namespace: namespace("c"),
        user: user.map(Arc::from),
        session: session.cloned(),
        has_no_timeout: false,
        time_left: None,
        is_change_stream: false,
        source: Box::new(Nothing),
    }
}

fn code(result: Result<Taken<'_>>) -> i32 {
    result.map(|_| 0).unwrap_or_else(|error| error.code.0)
}

#[test]
fn a_cursor_belongs_to_its_user_session_and_collection() {
    let cursors = Cursors::new(Monotonic::manual());
    let session = |number| SessionId {
        id: Uuid::from_u128(number),
        user: Some(Arc::from("ada")),
    };
    let (one, two) = (session(1), session(2));
    let id = cursors.open(cursor(Some("ada"), Some(&one))).expect("there is room");
    let c = namespace("c");
    assert_eq!(code(cursors.take(id, &c, Some("bob"), Some(&one))), 43);
    assert_eq!(code(cursors.take(id, &c, None, Some(&one))), 43);
    assert_eq!(code(cursors.take(id, &namespace("d"), Some("ada"), Some(&one))), 13);
    assert_eq!(code(cursors.take(id, &c, Some("ada"), Some(&two))), 50738);
    assert_eq!(code(cursors.take(id, &c, Some("ada"), None)), 50737);
    assert_eq!(code(cursors.take(id + 1, &c, Some("ada"), Some(&one))), 43);
    let taken = cursors.take(id, &c, Some("ada"), Some(&one)).expect("it is hers");
    assert_eq!(code(cursors.take(id, &c, Some("ada"), Some(&one))), 12051);
    assert!(taken.put_back());
    cursors.end_session(&two);
    assert_eq!(cursors.count(), 1);
    cursors.end_session(&one);
    assert_eq!(cursors.count(), 0);
}

#[test]
fn idle_cursors_are_closed_after_ten_minutes() {
    let clock = Monotonic::manual();
    let cursors = Cursors::new(clock.clone());
    let id = cursors.open(cursor(None, None)).expect("there is room");
    let patient = Cursor {
        has_no_timeout: true,
        time_left: None,
        ..cursor(None, None)
    };
    let patient = cursors.open(patient).expect("there is room");
    clock.advance(limits::CURSOR_IDLE - Duration::from_millis(1));
    let taken = cursors.take(id, &namespace("c"), None, None).expect("it is open");
    clock.advance(limits::CURSOR_IDLE);
    assert!(taken.put_back(), "a cursor in use is not idle");
    clock.advance(limits::CURSOR_IDLE);
    assert_eq!(code(cursors.take(id, &namespace("c"), None, None)), 43);
    assert_eq!(code(cursors.take(patient, &namespace("c"), None, None)), 0);
}

#[test]
fn a_cursor_that_is_killed_while_it_is_used_does_not_come_back() {
    let cursors = Cursors::new(Monotonic::manual());
    let id = cursors.open(cursor(None, None)).expect("there is room");
    let taken = cursors.take(id, &namespace("c"), None, None).expect("it is open");
    assert!(!cursors.kill(id, Some("ada")));
    assert!(cursors.kill(id, None));
    assert!(!taken.put_back());
    assert!(!cursors.kill(id, None));
    assert_eq!(cursors.count(), 0);
}

#[test]
fn dropping_a_collection_closes_its_cursors() {
    let cursors = Cursors::new(Monotonic::manual());
    cursors.open(cursor(None, None)).expect("there is room");
    cursors.close_all_of("db", Some("d"));
    cursors.close_all_of("other", None);
    assert_eq!(cursors.count(), 1);
    cursors.close_all_of("db", None);
    assert_eq!(cursors.count(), 0);
}

#[test]
fn the_number_of_cursors_is_bounded() {
    let cursors = Cursors::new(Monotonic::manual());
    for _ in 0..limits::CURSORS {
        cursors.open(cursor(None, None)).expect("there is room");
    }
    assert!(cursors.open(cursor(None, None)).is_err());
}

#[test]
fn a_cursor_that_is_not_put_back_is_closed() {
    let cursors = Cursors::new(Monotonic::manual());
    let id = cursors.open(cursor(None, None)).expect("there is room");
    drop(cursors.take(id, &namespace("c"), None, None).expect("it is open"));
    assert_eq!(cursors.count(), 0);
}
