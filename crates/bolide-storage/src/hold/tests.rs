//! Claims about holds and their duration.

use super::*;

const NOW: UnixMillis = UnixMillis(1_000);

fn at(ms: i64) -> UnixMillis {
    UnixMillis(NOW.0 + ms)
}

/// A snapshot, and a weak reference that tells whether it is still held.
fn snapshot() -> (Arc<String>, Weak<String>) {
    let snapshot = Arc::new("a snapshot".to_owned());
    let watched = Arc::downgrade(&snapshot);
    (snapshot, watched)
}

#[test]
fn a_snapshot_is_held_until_its_time_and_not_a_millisecond_longer() {
    let holds = Holds::default();
    let (snapshot, watched) = snapshot();
    let hold = holds.add(snapshot, at(10), NOW).unwrap();
    assert!(hold.snapshot(at(9)).is_ok());
    assert_eq!(hold.snapshot(at(10)), Err(HoldError::Expired));
    assert_eq!(watched.strong_count(), 0);
    assert_eq!(
        hold.snapshot(at(9)),
        Err(HoldError::Expired),
        "expired once is expired for good"
    );
}

#[test]
fn no_snapshot_is_held_for_longer_than_the_limit() {
    let holds = Holds::default();
    let hold = holds.add((), UnixMillis(i64::MAX), NOW).unwrap();
    assert!(hold.snapshot(at(MAX_HOLD_MS - 1)).is_ok());
    assert_eq!(hold.snapshot(at(MAX_HOLD_MS)), Err(HoldError::Expired));
}

#[test]
fn an_expired_or_released_snapshot_is_freed_although_its_reader_keeps_the_hold() {
    let holds = Holds::default();
    let (first, first_watched) = snapshot();
    let (second, second_watched) = snapshot();
    let _first = holds.add(first, at(10), NOW).unwrap();
    let hold = holds.add(second, at(20), NOW).unwrap();
    holds.expire(at(10));
    assert_eq!((first_watched.strong_count(), second_watched.strong_count()), (0, 1));
    holds.release_all();
    assert_eq!(second_watched.strong_count(), 0);
    assert_eq!(hold.snapshot(NOW), Err(HoldError::Expired));
}

#[test]
fn a_hold_that_was_dropped_frees_its_snapshot_and_its_place() {
    let holds = Holds::default();
    let mut held: Vec<_> = (0..MAX_HOLDS)
        .map(|_| holds.add(snapshot().0, at(10), NOW).unwrap())
        .collect();
    let (refused, watched) = snapshot();
    assert!(matches!(
        holds.add(refused, at(10), NOW),
        Err(EngineError::Unavailable(_))
    ));
    assert_eq!(watched.strong_count(), 0);
    held.pop();
    let (snapshot, watched) = snapshot();
    let hold = holds.add(snapshot, at(10), NOW).unwrap();
    drop(hold);
    assert_eq!(watched.strong_count(), 0);
}
