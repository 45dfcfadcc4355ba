use super::*;

#[test]
fn process_ids_of_later_starts_are_later() {
    let (a, b) = (process_id(UnixMillis(1_000_000)), process_id(UnixMillis(2_000_000)));
    assert!(a.bytes() < b.bytes());
    assert_ne!(process_id(UnixMillis(1_000_000)), a);
}
