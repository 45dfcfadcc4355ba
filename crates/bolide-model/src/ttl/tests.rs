use proptest::prelude::*;

use super::*;

fn at(seconds: i64) -> UnixSeconds {
    UnixSeconds(seconds)
}

fn is_live(settings: &Settings, written: i64, own: Own, now: i64) -> bool {
    Stamp::new(at(written), own).is_live(&settings.horizon(at(now).millis()))
}

#[test]
fn the_matrix_holds_one_second_before_at_and_after_every_end() {
    // TTL-036…044, TTL-045, TTL-101: the printed numbers, 1000 on the container and 2000 on the item.
    let policies = [Policy::Off, Policy::OwnOnly, Policy::After(1000)];
    let owns = [Own::Absent, Own::Never, Own::After(2000)];
    // Rows: policy; columns: own value; the second at which the item ends, if any.
    let ends = [
        [None, None, None],
        [None, None, Some(2000)],
        [Some(1000), None, Some(2000)],
    ];
    for (policy, row) in policies.into_iter().zip(ends) {
        for (own, end) in owns.into_iter().zip(row) {
            let settings = Settings::new(policy);
            for now in [0, 1, 999, 1000, 1001, 1999, 2000, 2001, 4_000_000_000] {
                let expected = end.is_none_or(|end| now < end);
                assert_eq!(is_live(&settings, 0, own, now), expected, "{policy:?} {own:?} at {now}");
            }
        }
    }
}

#[test]
fn worked_example_1_raising_the_default_saves_what_has_not_expired() {
    let raised = Settings::new(Policy::After(10)).change(Policy::After(1000), at(115));
    assert!(!is_live(&raised, 100, Own::Absent, 115));
    assert!(is_live(&raised, 106, Own::Absent, 1105));
    assert!(!is_live(&raised, 106, Own::Absent, 1106));
}

#[test]
fn worked_example_2_switching_off_revives_nothing() {
    let off = Settings::new(Policy::After(10)).change(Policy::Off, at(115));
    let on = off.change(Policy::After(10), at(200));
    assert!(!is_live(&off, 100, Own::Absent, 150));
    assert!(is_live(&off, 106, Own::Absent, 199));
    assert!(!is_live(&on, 106, Own::Absent, 200));
}

#[test]
fn worked_examples_3_and_4_own_values_wait_while_ttl_is_off() {
    let saved = Settings::new(Policy::OwnOnly).change(Policy::Off, at(119));
    assert!(is_live(&saved, 100, Own::After(20), 124));
    assert!(!is_live(
        &saved.change(Policy::OwnOnly, at(125)),
        100,
        Own::After(20),
        125
    ));

    let caught = Settings::new(Policy::OwnOnly).change(Policy::Off, at(120));
    assert!(!is_live(&caught, 100, Own::After(20), 121));
}

#[test]
fn worked_examples_5_and_6_a_dip_within_one_second_counts() {
    let dip = Settings::new(Policy::After(1000))
        .change(Policy::After(10), at(150))
        .change(Policy::After(1000), at(151));
    assert!(!is_live(&dip, 100, Own::Absent, 151));
    assert!(is_live(&dip, 145, Own::Absent, 1144));
    assert!(!is_live(&dip, 145, Own::Absent, 1145));

    let blink = Settings::new(Policy::Off)
        .change(Policy::After(10), at(200))
        .change(Policy::Off, at(200));
    assert!(!is_live(&blink, 100, Own::Absent, 200));
}

#[test]
fn worked_example_7_minus_one_outlives_every_change() {
    let changed = Settings::new(Policy::After(10))
        .change(Policy::OwnOnly, at(500))
        .change(Policy::After(1), at(501));
    assert!(is_live(&changed, 100, Own::Never, 1_000_000));
}

#[test]
fn setting_the_same_policy_again_changes_nothing() {
    // TTL-231
    let settings = Settings::new(Policy::After(10)).change(Policy::After(20), at(100));
    assert_eq!(settings.change(Policy::After(20), at(1_000)), settings);
}

#[test]
fn only_whole_numbers_from_1_to_2147483647_and_minus_1_are_own_values() {
    // TTL-034, TTL-212
    assert_eq!(Own::from_number(-1.0), Some(Own::Never));
    assert_eq!(Own::from_number(20.0), Some(Own::After(20)));
    assert_eq!(Own::from_number(2_147_483_647.0), Some(Own::After(2_147_483_647)));
    for unusable in [
        0.0,
        -0.0,
        -2.0,
        -10.0,
        0.5,
        20.5,
        2_147_483_648.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ] {
        assert_eq!(Own::from_number(unusable), None, "{unusable}");
    }
}

#[test]
fn a_refused_default_names_the_property_the_value_and_the_range() {
    // TTL-213
    let error = Policy::from_number(Some(-10.0)).expect_err("-10 is no default");
    for part in ["defaultTtl", "-10", "2147483647", "-1"] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn arithmetic_holds_around_the_powers_of_two() {
    // TTL-210
    for written in [(1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32] {
        for seconds in [1, u32::try_from(TTL_SECONDS).expect("fits")] {
            let end = written + i64::from(seconds);
            let settings = Settings::new(Policy::OwnOnly);
            assert!(is_live(&settings, written, Own::After(seconds), end - 1));
            assert!(!is_live(&settings, written, Own::After(seconds), end));
            let inherited = Settings::new(Policy::After(seconds));
            assert!(is_live(&inherited, written, Own::Absent, end - 1));
            assert!(!is_live(&inherited, written, Own::Absent, end));
        }
    }
}

/// TTL-225 literally: keeps the whole history of settings and checks every period.
struct LiteralHistory {
    /// (start of the period, default): `None` off, −1, or n.
    periods: Vec<(i64, Option<i64>)>,
}

impl LiteralHistory {
    fn is_expired(&self, written: i64, own: Option<i64>, now: i64) -> bool {
        self.periods.iter().enumerate().any(|(i, (_, default))| {
            let end_of_period = self.periods.get(i + 1).map_or(now, |next| next.0);
            let effective_ttl = match (default, own) {
                (None, _) | (Some(_), Some(-1)) | (Some(-1), None) => None,
                (Some(_), Some(own)) => Some(own),
                (Some(default), None) => Some(*default),
            };
            effective_ttl.is_some_and(|ttl| end_of_period.min(now) >= written + ttl)
        })
    }
}

proptest! {
    /// P9: the floors agree with the history, with several changes per second included.
    #[test]
    fn the_constant_time_verdict_equals_the_definition(
        changes in prop::collection::vec((0i64..4, prop_oneof![Just(None), Just(Some(-1)), (1i64..8).prop_map(Some)]), 1..8),
        written in 0i64..20,
        own in prop_oneof![Just(None), Just(Some(-1)), (1i64..8).prop_map(Some)],
        later in 0i64..12,
    ) {
        let policy = |default: Option<i64>| Policy::from_number(default.map(|n| n as f64)).expect("valid by construction");
        let own_value = own.map_or(Own::Absent, |n| Own::from_number(n as f64).expect("valid by construction"));

        let mut now = 0;
        let mut history = LiteralHistory { periods: vec![(0, None)] };
        let mut settings = Settings::new(Policy::Off);
        let mut was_expired = false;
        for (step, default) in changes {
            now += step;
            settings = settings.change(policy(default), at(now));
            history.periods.push((now, default));
            if now >= written {
                let expired = !is_live(&settings, written, own_value, now);
                prop_assert_eq!(expired, history.is_expired(written, own, now));
                prop_assert!(expired || !was_expired, "an expired version came back");
                was_expired = expired;
            }
        }
        now = (now + later).max(written);
        prop_assert_eq!(!is_live(&settings, written, own_value, now), history.is_expired(written, own, now));
    }
}

#[test]
fn a_version_ends_at_the_earliest_of_its_ends() {
    // TTL-280, mongo.md §18.4 no. 2.
    let deadline = Deadline {
        rule: RuleId(1),
        date: UnixMillis(14_250),
    };
    let unknown = Deadline {
        rule: RuleId(2),
        date: UnixMillis(0),
    };
    let with = |policy, rules: Vec<DateRule>| Settings {
        dates: DateRules::new(rules),
        ..Settings::new(policy)
    };
    let rule = DateRule::new(RuleId(1), 1);
    for (settings, own, end) in [
        (with(Policy::Off, vec![]), Own::After(5), None),
        (with(Policy::After(5), vec![]), Own::Absent, Some(15_000)),
        (with(Policy::After(5), vec![rule]), Own::Absent, Some(15_000)),
        (with(Policy::After(5), vec![rule]), Own::Never, Some(15_250)),
        (with(Policy::After(6), vec![rule]), Own::Absent, Some(15_250)),
        (with(Policy::Off, vec![rule]), Own::Absent, Some(15_250)),
    ] {
        let stamp = Stamp::new(at(10), own);
        let ends = settings.ends_at(stamp, [deadline, unknown]);
        assert_eq!(ends, end.map(UnixMillis), "{settings:?} {own:?}");
    }
    assert!(with(Policy::Off, vec![rule]).is_on());
    let ended = rule.change(None, UnixMillis(1));
    assert!(!with(Policy::Off, vec![ended]).is_on());
}
