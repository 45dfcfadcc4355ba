use std::sync::Arc;

use super::*;

#[test]
fn server_time_stands_still_while_the_wall_clock_is_behind() {
    // TTL-202
    let clock = Arc::new(Clock::virtual_at(UnixMillis(5_000)));
    let server = MonotoneClock::new(clock.clone(), UnixMillis(0));
    assert_eq!(server.now(), UnixMillis(5_000));
    clock.set(UnixMillis(3_000));
    assert_eq!(server.now(), UnixMillis(5_000));
    clock.advance(2_500);
    assert_eq!(server.now(), UnixMillis(5_500));
}

#[test]
fn seconds_are_cut_off_before_1970_too() {
    assert_eq!(UnixMillis(1_999).seconds(), UnixSeconds(1));
    assert_eq!(UnixMillis(-1).seconds(), UnixSeconds(-1));
}

#[test]
fn an_absurd_step_does_not_wrap_the_clock() {
    let clock = Clock::virtual_at(UnixMillis(1));
    clock.advance(i64::MAX);
    assert_eq!(clock.now(), UnixMillis(i64::MAX));
}
