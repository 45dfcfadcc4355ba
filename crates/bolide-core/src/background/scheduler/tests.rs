use super::*;

#[test]
fn beside_users_the_purge_rests_less_the_older_its_backlog_is() {
    // TTL-265, and a backlog must end even beside users who never pause.
    let began = Instant::now();
    let after = |seconds| began + Duration::from_secs(seconds);
    let pace = Pace {
        items_per_second: None,
        hold: Duration::ZERO,
        is_purging: true,
    };
    let mut restraint = Restraint::new(pace);
    restraint.look_for_users(1, began);
    assert_eq!(
        (restraint.rests(began), restraint.items(began)),
        (0, u64::MAX),
        "the first items go at once"
    );
    restraint.take(UNRESTED_ITEMS, began);
    assert_eq!(restraint.rests(began), RESTS_BESIDE_USERS);
    assert_eq!(restraint.items(began), ITEMS_BESIDE_USERS);
    restraint.look_for_users(2, after(150));
    assert_eq!(restraint.rests(after(150)), 7);
    restraint.look_for_users(3, after(301));
    assert_eq!(
        (restraint.rests(after(301)), restraint.items(after(301))),
        (0, u64::MAX)
    );
    restraint.drained();
    assert_eq!(restraint.rests(after(301)), 0, "a new backlog");
}

#[test]
fn users_are_there_between_their_requests() {
    // TTL-265: a step is shorter than the time between two requests of a user who sends hundreds in a second.
    let began = Instant::now();
    let after = |millis| began + Duration::from_millis(millis);
    let mut restraint = Restraint::new(Pace {
        items_per_second: None,
        hold: Duration::ZERO,
        is_purging: true,
    });
    assert!(!restraint.is_beside_users(began), "nobody has asked for anything");
    restraint.look_for_users(1, began);
    restraint.look_for_users(1, after(500));
    assert!(
        restraint.is_beside_users(after(500)),
        "no request since, and half a second ago one"
    );
    restraint.look_for_users(1, after(1_500));
    assert!(!restraint.is_beside_users(after(1_500)), "the user is gone");
    restraint.look_for_users(2, after(1_600));
    assert!(restraint.is_beside_users(after(1_600)));
}

#[test]
fn a_step_of_more_than_a_day_holds_the_purge() {
    // TTL-204
    let hold = Duration::from_secs(600);
    let mut watch = ClockWatch::default();
    assert!(!watch.look(UnixMillis(0), hold));
    assert!(
        !watch.look(UnixMillis(3_600_000), hold),
        "an hour is a pause of the machine"
    );
    assert!(watch.look(UnixMillis(3_600_000 + 25 * 3_600_000), hold));
    assert!(
        watch.look(UnixMillis(3_600_000 + 25 * 3_600_000), hold),
        "still within the hold"
    );
    assert!(!ClockWatch::default().look(UnixMillis(i64::MAX), Duration::ZERO));
}
