use std::time::Duration;

use super::*;

fn session(number: u128, user: Option<&str>) -> SessionId {
    SessionId {
        id: Uuid::from_u128(number),
        user: user.map(Arc::from),
    }
}

#[test]
fn a_session_ends_after_thirty_minutes_without_use() {
    let clock = Monotonic::manual();
    let sessions = Sessions::new(clock.clone());
    let (a, b) = (session(1, None), session(2, None));
    sessions.touch(&a).expect("there is room");
    sessions.touch(&b).expect("there is room");
    clock.advance(Duration::from_secs(1799));
    sessions.touch(&b).expect("it exists");
    assert!(sessions.is_open(&a));
    clock.advance(Duration::from_secs(1));
    assert!(!sessions.is_open(&a));
    assert_eq!(sessions.expire(), [a]);
    assert!(sessions.is_open(&b));
    assert_eq!(sessions.count(), 1);
}

#[test]
fn users_have_their_own_sessions() {
    let sessions = Sessions::new(Monotonic::manual());
    let (ada, bob) = (session(1, Some("ada")), session(1, Some("bob")));
    sessions.touch(&ada).expect("there is room");
    assert!(!sessions.end(&bob));
    sessions.touch(&bob).expect("there is room");
    assert_eq!(sessions.end_all(|session| session.is_of("admin", "ada")), [ada]);
    assert_eq!(sessions.end_all(|_| true), [bob]);
}

#[test]
fn the_number_of_sessions_is_bounded_and_idle_ones_make_room() {
    let clock = Monotonic::manual();
    let sessions = Sessions::new(clock.clone());
    for number in 0..limits::SESSIONS as u128 {
        sessions.touch(&session(number, None)).expect("there is room");
    }
    let one_more = session(u128::MAX, None);
    assert_eq!(sessions.touch(&one_more).expect_err("full").code, Code(261));
    assert!(sessions.touch(&session(0, None)).is_ok());
    clock.advance(limits::SESSION_IDLE);
    sessions.touch(&one_more).expect("the idle ones are gone");
    assert_eq!(sessions.count(), 1);
}
