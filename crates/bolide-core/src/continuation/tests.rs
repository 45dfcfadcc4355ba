use super::*;

#[test]
fn a_continuation_comes_back_only_to_its_owner_and_undamaged() {
    let text = encode(&[b"container", b"feed"], b"place");
    assert_eq!(decode(&[b"container", b"feed"], &text).as_deref(), Ok(&b"place"[..]));
    assert!(decode(&[b"other", b"feed"], &text).is_err());
    assert!(decode(&[b"containerf", b"eed"], &text).is_err());
    for at in 0..text.len() {
        let mut damaged = text.clone().into_bytes();
        damaged[at] = if damaged[at] == b'A' { b'B' } else { b'A' };
        let damaged = String::from_utf8(damaged).expect("ASCII");
        assert!(decode(&[b"container", b"feed"], &damaged).is_err(), "{damaged}");
    }
    for text in ["", "A", "!", "AAAAAAAAAAAAAAAA"] {
        assert!(decode(&[], text).is_err(), "{text}");
    }
}
