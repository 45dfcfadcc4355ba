use super::*;

/// A thousand seconds, so that a busy machine uses up none of them; a tenth is a hundred.
fn watch(others_wait: bool) -> Arc<Watch> {
    let time = Duration::from_secs(1000);
    Watch::start(UnixMillis(0), time, true, None, Arc::new(move || others_wait))
}

#[test]
fn while_others_wait_a_script_has_a_tenth_of_its_time_from_its_first_operation_on() {
    for (since_first, others_wait, is_accepted) in [
        (0, true, true),
        (99, true, true),
        (100, true, false),
        (700, true, false),
        (100, false, true),
        (700, false, true),
    ] {
        assert_eq!(
            watch(others_wait).accepts(Duration::from_secs(since_first)),
            is_accepted,
            "{since_first} s, others wait: {others_wait}"
        );
    }
}

#[test]
fn its_first_operation_is_accepted_whoever_waits() {
    let running = Running::new(watch(true), Cancel::default());
    assert!(running.accepts());
}
