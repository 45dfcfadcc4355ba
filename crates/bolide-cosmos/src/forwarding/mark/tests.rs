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
    let (nonce, receiver) = (&opening.nonce, opening.receiver_mac(&keys()));
    for wrong in [
        String::new(),
        format!("8 {nonce} {mac}"),
        format!("7 other {mac}"),
        format!("7 {nonce} {receiver}"),
        format!("7 {nonce} {mac} more"),
        format!("7 {nonce}"),
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
