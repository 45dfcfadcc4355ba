use bolide_model::time::Monotonic;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Returns a pacer whose users are active and whose first items, removed without rests, are gone.
fn beside_users(clock: &Monotonic) -> PurgePacer {
    let mut pacer = PurgePacer::new(None, clock.now());
    pacer.look_for_users(1, clock.now());
    pacer.take(UNRESTED_ITEMS, clock.now());
    pacer
}

#[test]
fn beside_users_the_first_items_go_at_once() {
    // TTL-250, TTL-265
    let clock = Monotonic::manual();
    let mut pacer = PurgePacer::new(None, clock.now());
    pacer.look_for_users(1, clock.now());
    pacer.look_at_backlog(1_000_000);
    let took = Duration::from_millis(2);
    assert_eq!(pacer.rest_after(clock.now(), took), Duration::ZERO);
    assert_eq!(pacer.items(clock.now()), UNRESTED_STEP_ITEMS, "but not in one step");
    assert_eq!(pacer.counted(clock.now()), COUNTED_BESIDE_USERS);
    pacer.take(UNRESTED_ITEMS, clock.now());
    assert_ne!(pacer.rest_after(clock.now(), took), Duration::ZERO);
    pacer.drained();
    assert_eq!(pacer.rest_after(clock.now(), took), Duration::ZERO, "a new backlog");
}

#[test]
fn beside_users_a_step_waits_for_a_users_write() {
    // TTL-265
    let clock = Monotonic::manual();
    let mut pacer = beside_users(&clock);
    assert_eq!(
        pacer.patience(clock.now()),
        Duration::ZERO,
        "no step has taken long yet"
    );
    // Half of the rest, if that is long: 60 times 500 us.
    let took = Duration::from_micros(500);
    assert_eq!(pacer.rest_after(clock.now(), took), Duration::from_millis(15));
    assert_eq!(pacer.patience(clock.now()), MAX_PATIENCE);
    // 10 items in 5 ms, or 25 in 12.5 ms.
    pacer.look_at_backlog(840_000);
    assert_eq!(pacer.rest_after(clock.now(), 2 * took), Duration::from_millis(2));
    assert_eq!(pacer.patience(clock.now()), Duration::from_micros(9_500));
    // Later than the pace already.
    pacer.look_at_backlog(8_400_000);
    assert_eq!(pacer.rest_after(clock.now(), 2 * took), Duration::ZERO);
    assert_eq!(pacer.patience(clock.now()), Duration::ZERO);
}

#[test]
fn beside_users_a_step_makes_up_for_the_wait_of_the_one_before() {
    // TTL-265
    let clock = Monotonic::manual();
    let mut pacer = beside_users(&clock);
    // 10 items in 5 ms.
    pacer.look_at_backlog(840_000);
    pacer.rest_after(clock.now(), Duration::from_millis(1));
    let mut items_after = |wait| {
        clock.advance(wait);
        pacer.look_for_users(pacer.users.calls() + 1, clock.now());
        pacer.take(10, clock.now());
        pacer.items(clock.now())
    };
    assert_eq!(items_after(Duration::from_millis(5)), 10);
    assert!((15..=17).contains(&items_after(Duration::from_millis(8))));
    assert_eq!(items_after(Duration::from_millis(2)), 10, "the rests are long enough");
    assert_eq!(
        items_after(Duration::from_millis(100)),
        25,
        "a user's write waits for it"
    );
}

#[test]
fn beside_users_a_backlog_is_removed_in_time_at_an_even_pace() {
    // TTL-265; and a backlog must end even if users are always active.
    let clock = Monotonic::manual();
    let mut pacer = beside_users(&clock);
    let took = Duration::from_millis(1);
    let rest = |pacer: &mut PurgePacer, clock: &Monotonic| {
        pacer.look_for_users(pacer.users.calls() + 1, clock.now());
        pacer.rest_after(clock.now(), took) + waiting_part(pacer.rest(clock.now()))
    };
    pacer.look_at_backlog(10);
    assert_eq!(rest(&mut pacer, &clock), took * MAX_RESTS, "a small one has time");
    // 42,000 steps of 10 items in 420 s are one in 10 ms.
    pacer.look_at_backlog(420_000);
    assert_eq!(rest(&mut pacer, &clock), Duration::from_millis(9));
    assert_eq!(pacer.items(clock.now()), ITEMS_BESIDE_USERS);
    clock.advance(210 * SECOND);
    pacer.look_at_backlog(210_000);
    assert_eq!(rest(&mut pacer, &clock), Duration::from_millis(9), "it is in time");
    pacer.look_at_backlog(420_000);
    assert_eq!(rest(&mut pacer, &clock), Duration::from_millis(4), "it is late");
    pacer.look_at_backlog(3_000_000);
    assert_eq!(rest(&mut pacer, &clock), Duration::ZERO);
    assert_eq!(pacer.items(clock.now()), u64::MAX, "small steps are too slow");
    // Items become due as fast as they are removed: a step of 10 items in 10 ms of the 30,000 that become due in 30 s.
    clock.advance(3_600 * SECOND);
    pacer.look_at_backlog(30_000);
    assert_eq!(rest(&mut pacer, &clock), Duration::from_millis(9));
}

#[test]
fn users_are_there_between_their_requests() {
    // TTL-265: a step is shorter than the time between two requests of a user who sends hundreds in a second.
    let clock = Monotonic::manual();
    let mut pacer = PurgePacer::new(None, clock.now());
    assert!(!pacer.is_beside_users(clock.now()), "nobody has asked for anything");
    pacer.look_for_users(1, clock.now());
    clock.advance(SECOND / 2);
    pacer.look_for_users(1, clock.now());
    assert!(
        pacer.is_beside_users(clock.now()),
        "no request since, and half a second ago one"
    );
    clock.advance(SECOND);
    pacer.look_for_users(1, clock.now());
    assert!(!pacer.is_beside_users(clock.now()), "the user is gone");
    pacer.look_for_users(2, clock.now());
    assert!(pacer.is_beside_users(clock.now()));
}

#[test]
fn the_highest_rate_is_kept_to_the_item() {
    let clock = Monotonic::manual();
    let mut pacer = PurgePacer::new(Some(50), clock.now());
    assert_eq!(pacer.items(clock.now()), 0, "nothing has gathered yet");
    clock.advance(SECOND / 10);
    assert_eq!(pacer.items(clock.now()), 5);
    pacer.take(3, clock.now());
    assert_eq!(pacer.items(clock.now()), 2);
    clock.advance(3600 * SECOND);
    assert_eq!(pacer.items(clock.now()), 10, "no more than of a tick");
    let mut slow = PurgePacer::new(Some(1), clock.now());
    clock.advance(SECOND / 2);
    assert_eq!(slow.items(clock.now()), 0);
    clock.advance(SECOND / 2);
    assert_eq!(
        slow.items(clock.now()),
        1,
        "a rate below one of a tick still lets one go"
    );
}

#[test]
fn a_step_of_more_than_a_day_holds_the_purge() {
    // TTL-204
    const HOUR_MS: i64 = 3_600_000;
    let (hold, clock) = (600 * SECOND, Monotonic::manual());
    let mut watch = ClockWatch::default();
    assert!(!watch.look(UnixMillis(0), clock.now(), hold));
    assert!(
        !watch.look(UnixMillis(HOUR_MS), clock.now(), hold),
        "an hour is a pause of the machine"
    );
    assert!(watch.look(UnixMillis(26 * HOUR_MS), clock.now(), hold));
    clock.advance(599 * SECOND);
    assert!(
        watch.look(UnixMillis(26 * HOUR_MS), clock.now(), hold),
        "still within the hold"
    );
    clock.advance(SECOND);
    assert!(!watch.look(UnixMillis(26 * HOUR_MS), clock.now(), hold));
    let mut never = ClockWatch::default();
    never.look(UnixMillis(0), clock.now(), Duration::ZERO);
    assert!(!never.look(UnixMillis(26 * HOUR_MS), clock.now(), Duration::ZERO));
}

#[test]
fn days_that_pass_on_both_clocks_are_no_step() {
    let (hold, clock) = (600 * SECOND, Monotonic::manual());
    let mut watch = ClockWatch::default();
    watch.look(UnixMillis(0), clock.now(), hold);
    clock.advance(3 * STEP_HOLDS);
    let now = UnixMillis(3 * STEP_HOLDS.as_millis() as i64);
    assert!(!watch.look(now, clock.now(), hold));
}
