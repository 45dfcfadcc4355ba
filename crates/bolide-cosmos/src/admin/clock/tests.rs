use super::*;

#[test]
fn a_clock_shows_times_from_1970_to_9999() {
    for at in [0, 1_700_000_000_000, LAST_MILLIS] {
        assert_eq!(instant(Some(at)), Ok(UnixMillis(at)));
    }
    for at in [Some(-1), Some(i64::MIN), Some(LAST_MILLIS + 1), Some(i64::MAX), None] {
        assert!(instant(at).is_err(), "{at:?}");
    }
}

#[test]
fn instants_are_written_in_utc_with_their_milliseconds() {
    assert_eq!(
        rfc3339(UnixMillis(1_700_000_000_250)).as_deref(),
        Some("2023-11-14T22:13:20.25Z")
    );
    assert_eq!(rfc3339(UnixMillis(i64::MAX)), None);
}
