use super::*;

fn grant(is_clock_running: bool) -> Grant {
    Grant {
        limits: Limits::default(),
        random_seed: 0,
        now_ms: 1_000,
        is_clock_running,
        time: Duration::from_secs(5),
        cancel: Cancel::default(),
    }
}

#[test]
fn a_script_is_over_when_its_time_is_and_not_before() {
    let clock = Monotonic::manual();
    let deadline = Deadline::start(&grant(true), &Cancel::default(), &clock);
    clock.advance(Duration::from_millis(4_999));
    assert!(!deadline.is_over());
    assert_eq!(deadline.now_ms(), 5_999);
    clock.advance(Duration::from_millis(1));
    assert!(deadline.is_over());
    deadline.restart(Duration::from_secs(1));
    assert!(!deadline.is_over(), "the next call has its own time");
}

#[test]
fn the_date_of_a_script_stands_still_where_the_clock_of_the_server_does() {
    let clock = Monotonic::manual();
    let deadline = Deadline::start(&grant(false), &Cancel::default(), &clock);
    clock.advance(Duration::from_secs(3));
    assert_eq!(deadline.now_ms(), 1_000);
}

#[test]
fn a_script_ends_when_its_caller_or_its_process_is_cancelled() {
    let (grant, place) = (grant(true), Cancel::default());
    let start = || Deadline::start(&grant, &place, &Monotonic::manual());
    let (first, second) = (start(), start());
    assert!(!first.is_over());
    place.cancel();
    assert!(first.is_over() && second.is_over());
    let alone = Deadline::start(&grant, &Cancel::default(), &Monotonic::manual());
    assert!(!alone.is_over());
    grant.cancel.cancel();
    assert!(alone.is_over());
}
