use super::*;

#[test]
fn timestamps_grow_with_server_time() {
    let of = |millis| {
        let Timestamp { time, increment } = timestamp(UnixMillis(millis));
        (time, increment)
    };
    assert_eq!(of(0), (0, 1));
    assert_eq!(of(1_700_000_000_999), (1_700_000_000, 1000));
    assert_eq!(of(1_700_000_001_000), (1_700_000_001, 1));
    assert_eq!(of(-1), (0, 1000));
}

#[test]
fn process_ids_of_later_starts_are_later() {
    let (a, b) = (process_id(UnixMillis(1_000_000)), process_id(UnixMillis(2_000_000)));
    assert!(a.bytes() < b.bytes());
    assert_ne!(process_id(UnixMillis(1_000_000)), a);
}
