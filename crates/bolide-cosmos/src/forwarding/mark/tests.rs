use base64::engine::general_purpose::STANDARD;
use bolide_model::account_key::{AccountKey, WELL_KNOWN_KEY};

use super::*;

fn keys() -> Keys {
    Keys::new(AccountKey::parse(WELL_KNOWN_KEY).expect("a key"))
}

fn other_keys() -> Keys {
    let key = STANDARD.encode([7; 64]);
    Keys::new(AccountKey::parse(&key).expect("a key"))
}

fn marked(mark: HeaderValue) -> HeaderMap {
    HeaderMap::from_iter([(MARK.clone(), mark)])
}

#[test]
fn only_a_holder_of_the_key_opens_a_connection() {
    let opening = Opening::to("7".to_owned());
    let sent = marked(opening.request_mark(&keys()));
    assert_eq!(Opening::of(&keys(), &sent), Ok(opening.clone()));
    assert_eq!(Opening::of(&other_keys(), &sent), Err(NotFromPeer));
    assert_eq!(Opening::of(&keys(), &HeaderMap::new()), Err(NotFromPeer));

    let mac = opening.sender_mac(&keys());
    let at = opening.at.0;
    let (nonce, receiver) = (&opening.nonce, opening.receiver_mac(&keys()));
    for wrong in [
        String::new(),
        format!("8 {at} {nonce} {mac}"),
        format!("7 {} {nonce} {mac}", at + 1),
        format!("7 now {nonce} {mac}"),
        format!("7 {at} other {mac}"),
        format!("7 {at} {nonce} {receiver}"),
        format!("7 {at} {nonce} {mac} more"),
        format!("7 {at} {nonce}"),
    ] {
        let sent = marked(HeaderValue::try_from(wrong.clone()).unwrap());
        assert_eq!(Opening::of(&keys(), &sent), Err(NotFromPeer), "{wrong}");
    }
}

#[test]
fn only_a_holder_of_the_key_answers_and_that_to_this_opening() {
    let (opening, other) = (Opening::to("7".to_owned()), Opening::to("7".to_owned()));
    assert!(opening.is_shown(&keys(), &marked(opening.response_mark(&keys()))));
    for wrong in [
        HeaderMap::new(),
        marked(opening.response_mark(&other_keys())),
        marked(other.response_mark(&keys())),
        // What the opener has shown itself.
        marked(HeaderValue::try_from(opening.sender_mac(&keys())).unwrap()),
    ] {
        assert!(!opening.is_shown(&keys(), &wrong), "{wrong:?}");
    }
}

#[test]
fn an_opening_is_accepted_once_and_not_late() {
    let openings = Openings::default();
    let opening = Opening::to("7".to_owned());
    let after = |seconds: i64| UnixSeconds(opening.at.0 + seconds);
    assert!(openings.accept_at(&opening, after(900)));
    for seconds in [-900, 0, 900, 901] {
        assert!(!openings.accept_at(&opening, after(seconds)), "{seconds}");
    }
    let other = Opening::to("7".to_owned());
    assert!(!openings.accept_at(&other, after(-902)), "it is ahead");
    assert!(!openings.accept_at(&other, after(902)), "it is old");
    assert!(openings.accept_at(&other, after(-1)));
}

#[test]
fn no_more_openings_are_remembered_than_there_is_room_for() {
    let openings = Openings::default();
    let opening = Opening::to("7".to_owned());
    let numbered = |number: usize, later: i64| Opening {
        node: "7".to_owned(),
        at: UnixSeconds(opening.at.0 + later),
        nonce: number.to_string(),
    };
    for number in 0..NONCES {
        assert!(openings.accept_at(&numbered(number, 0), opening.at));
    }
    assert!(!openings.accept_at(&opening, opening.at));
    // Those before are too old to be repeated.
    assert!(openings.accept_at(&numbered(0, 901), UnixSeconds(opening.at.0 + 901)));
}
