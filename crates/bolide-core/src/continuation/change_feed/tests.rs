use super::*;

#[test]
fn continuations_say_what_was_consumed() {
    let position = |range, next| ChangeFeedPosition { range, next: Lsn(next) };
    assert_eq!(encode(&[position(0, 58)]), "57");
    assert_eq!(decode("\"57\""), Ok(vec![position(0, 58)]));
    assert_eq!(encode(&[position(0, 58), position(2, 1)]), "0:57,2:0");
    assert_eq!(decode("0:57,2:0"), Ok(vec![position(0, 58), position(2, 1)]));
    for text in ["", "x", "-1", "1:", ":1", "1:2,", "18446744073709551615"] {
        assert!(decode(text).is_err(), "{text}");
    }
}
