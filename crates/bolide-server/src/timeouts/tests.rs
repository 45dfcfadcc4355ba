use bolide_model::time::Monotonic;

use super::*;

const LIMIT: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_secs(3600);

fn clock() -> ServerClock {
    ServerClock::new(Monotonic::manual())
}

fn is_overdue_after(seconds: u64, phase: u8, request: Duration, idle: Duration) -> bool {
    let clock = clock();
    let (activity, mut seen) = (Activity::new(&clock), Seen::opened(clock.now()));
    activity.phase.store(phase, Ordering::Relaxed);
    clock.monotonic().advance(Duration::from_secs(seconds));
    activity.is_overdue(&mut seen, clock.now(), request, idle)
}

#[test]
fn each_phase_has_its_limit() {
    for phase in [READING, ANSWERING] {
        assert!(is_overdue_after(11, phase, LIMIT, LONG));
        assert!(!is_overdue_after(10, phase, LIMIT, LONG));
    }
    assert!(is_overdue_after(11, RESTING, LONG, LIMIT));
    assert!(!is_overdue_after(11, RESTING, LIMIT, LONG));
    assert!(!is_overdue_after(11, BUSY, LIMIT, LIMIT));
}

#[test]
fn connections_without_a_key_end_first_then_those_waiting_longest_for_their_client() {
    let activity = |is_admitted, phase, since| {
        let activity = Activity::new(&clock());
        activity.is_admitted.store(is_admitted, Ordering::Relaxed);
        activity.phase.store(phase, Ordering::Relaxed);
        activity.idle_since.store(since, Ordering::Relaxed);
        activity.eviction_rank()
    };
    let in_order = [
        activity(false, READING, 5),
        activity(false, RESTING, 6),
        activity(false, BUSY, 7),
        activity(true, RESTING, 1),
        activity(true, BODY, 2),
        activity(true, RESTING, 3),
        activity(true, ANSWERING, 4),
        activity(true, READING, 5),
    ];
    assert!(in_order.is_sorted(), "{in_order:?}");
    assert!(in_order.iter().all(Option::is_some));
    assert_eq!(activity(true, BUSY, 0), None);
}

#[test]
fn only_so_many_connections_read_large_heads_at_a_time() {
    let large_heads = Arc::new(Semaphore::new(1));
    let reader = || Watched::new((), Activity::new(&clock()), large_heads.clone());
    let (mut one, mut other) = (reader(), reader());
    assert!(one.read(LARGE_HEAD_BYTES + 1).is_ok());
    assert!(other.read(LARGE_HEAD_BYTES).is_ok());
    assert!(other.read(1).is_err());
    drop(one);
    assert!(other.read(1).is_ok());
}

#[test]
fn a_new_phase_starts_its_own_time() {
    let clock = clock();
    let opened = clock.now();
    let after = |seconds| opened + Duration::from_secs(seconds);
    let (activity, mut seen) = (Activity::new(&clock), Seen::opened(opened));
    activity.enter(ANSWERING);
    assert!(!activity.is_overdue(&mut seen, after(11), LIMIT, LONG));
    assert!(!activity.is_overdue(&mut seen, after(21), LIMIT, LONG));
    assert!(activity.is_overdue(&mut seen, after(22), LIMIT, LONG));
}

#[test]
fn a_client_that_takes_its_answer_slowly_is_not_slow() {
    let clock = clock();
    let opened = clock.now();
    let after = |seconds| opened + Duration::from_secs(seconds);
    let (activity, mut seen) = (Activity::new(&clock), Seen::opened(opened));
    for seconds in [11, 22, 33] {
        activity.enter(ANSWERING);
        assert!(!activity.is_overdue(&mut seen, after(seconds), LIMIT, LONG));
    }
}
