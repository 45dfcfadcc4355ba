use super::*;

#[test]
fn continuations_say_what_was_consumed() {
    let place = |range, next| Place { range, next: Lsn(next) };
    assert_eq!(encode(&[place(0, 58)]), "57");
    assert_eq!(decode("\"57\""), Ok(vec![place(0, 58)]));
    assert_eq!(encode(&[place(0, 58), place(2, 1)]), "0:57,2:0");
    assert_eq!(decode("0:57,2:0"), Ok(vec![place(0, 58), place(2, 1)]));
    for text in ["", "x", "-1", "1:", ":1", "1:2,", "18446744073709551615"] {
        assert!(decode(text).is_err(), "{text}");
    }
}
