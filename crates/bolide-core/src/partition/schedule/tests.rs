use futures_util::FutureExt;

use super::*;

#[test]
fn commits_of_others_are_looked_at_once_a_second_and_counted_at_once_for_whoever_asks() {
    let wakeup = Arc::new(Wakeup::default());
    let schedule = Schedule::new(wakeup.clone());
    for second in [10, 11] {
        schedule.next_count.store(1_000, Ordering::SeqCst);
        wakeup.sleep_until(second + 1);
        for _ in 0..3 {
            schedule.expect_anything(second);
            assert_eq!(schedule.next_count(), i64::MIN);
            assert_eq!(schedule.counts_rest_until(), second + 1);
            assert!(
                wakeup.rung().now_or_never().is_none(),
                "it would count after each commit"
            );
        }
    }
    // One that sleeps longer is woken.
    wakeup.sleep_until(100);
    schedule.expect_anything(20);
    assert!(wakeup.rung().now_or_never().is_some());
}
