use super::*;

/// A script that has ten seconds, by a clock that is moved by hand.
fn budget(clock: &Monotonic, others_wait: bool) -> Arc<ScriptBudget> {
    let time = Duration::from_secs(10);
    ScriptBudget::start(clock, UnixMillis(0), time, false, None, Arc::new(move || others_wait))
}

#[test]
fn while_others_wait_a_script_has_a_tenth_of_its_time_from_its_first_operation_on() {
    for (since_first_ms, others_wait, is_accepted) in [
        (0, true, true),
        (999, true, true),
        (1_000, true, false),
        (7_000, true, false),
        (1_000, false, true),
        (7_000, false, true),
        (7_999, false, true),
        (8_000, false, false),
    ] {
        let clock = Monotonic::manual();
        let running = Running::new(budget(&clock, others_wait), Cancel::default());
        assert!(running.accepts(), "its first operation is, whoever waits");
        clock.advance(Duration::from_millis(since_first_ms));
        assert_eq!(
            running.accepts(),
            is_accepted,
            "{since_first_ms} ms, others wait: {others_wait}"
        );
    }
}

#[test]
fn its_first_operation_is_accepted_whenever_it_comes() {
    let clock = Monotonic::manual();
    let running = Running::new(budget(&clock, true), Cancel::default());
    clock.advance(Duration::from_secs(7));
    assert!(running.accepts());
}

#[test]
fn a_script_is_over_when_its_time_is() {
    let clock = Monotonic::manual();
    let running = Running::new(budget(&clock, false), Cancel::default());
    clock.advance(Duration::from_millis(9_999));
    assert!(!running.is_over());
    assert_eq!(running.budget.now(), UnixMillis(9_999), "its own clock goes on");
    clock.advance(Duration::from_millis(1));
    assert!(running.is_over());
    assert_eq!(running.pending(0), Some(Interrupt::DeadlineExceeded));
    assert_eq!(running.budget.timeout(), GRACE);
}
