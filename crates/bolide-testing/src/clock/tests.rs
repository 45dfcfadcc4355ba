//! Tests of instants as milliseconds.

use super::*;

#[test]
fn instants_are_epoch_milliseconds_and_those_before_1970_negative() {
    let cases = [
        (UNIX_EPOCH, 0),
        (UNIX_EPOCH + Duration::from_micros(1_999), 1),
        (UNIX_EPOCH + Duration::from_secs(1_700_000_000), 1_700_000_000_000),
        (UNIX_EPOCH - Duration::from_secs(1), -1_000),
    ];
    for (instant, expected) in cases {
        assert_eq!(epoch_ms(instant), expected);
    }
}

#[test]
fn an_answer_without_a_time_is_an_error() {
    assert_eq!(
        instant(&json!({"nowMs": 1_500})).unwrap(),
        UNIX_EPOCH + Duration::from_millis(1_500)
    );
    for answer in [json!(null), json!({}), json!({"nowMs": "1"})] {
        assert!(matches!(instant(&answer), Err(Error::Request { status: None, .. })));
    }
}
