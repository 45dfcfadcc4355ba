use super::*;

#[test]
fn a_few_do_not_wait_and_many_do() {
    let (pace, now) = (RateLimit::default(), Monotonic::manual().now());
    let waits: Vec<Duration> = (0..10_000).map(|_| pace.reserve(now)).collect();
    let free = waits.iter().take_while(|wait| wait.is_zero()).count();
    assert_eq!(free, BURST as usize + 1);
    assert_eq!(waits[free], STEP);
    assert!(waits.is_sorted());
    assert_eq!(waits.last(), Some(&MAX_DELAY));
}

#[test]
fn the_queue_is_empty_after_a_pause() {
    let (pace, now) = (RateLimit::default(), Monotonic::manual().now());
    for _ in 0..10_000 {
        pace.reserve(now);
    }
    assert_eq!(pace.reserve(now + 2 * MAX_DELAY), Duration::ZERO);
}
