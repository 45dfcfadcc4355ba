use super::*;

fn ms(millis: i64) -> UnixMillis {
    UnixMillis(millis)
}

fn has_ended(rules: &[DateRule], rule: u32, date: i64, now: i64) -> bool {
    let horizon = DateRules::new(rules.to_vec()).horizon(ms(now));
    horizon.has_ended(Deadline {
        rule: RuleId(rule),
        date: ms(date),
    })
}

#[test]
fn a_version_ends_in_the_millisecond_of_its_date_and_the_seconds_after_it() {
    let at_once = DateRule::new(RuleId(1), 0);
    let later = DateRule::new(RuleId(2), 10);
    for (rule, date, end) in [
        (at_once, 5_001, 5_001),
        (later, 5_001, 15_001),
        (later, -20_000, -10_000),
    ] {
        assert!(!has_ended(&[rule], rule.id.0, date, end - 1), "{rule:?} {date}");
        assert!(has_ended(&[rule], rule.id.0, date, end), "{rule:?} {date}");
        assert_eq!(rule.ends_at(ms(date)), Some(ms(end)));
    }
}

#[test]
fn a_rule_that_ended_keeps_what_it_had_ended_and_nothing_more() {
    let ended = DateRule::new(RuleId(1), 10).change(None, ms(20_000));
    assert!(has_ended(&[ended], 1, 10_000, 1_000_000));
    assert!(!has_ended(&[ended], 1, 10_001, 1_000_000));
    assert_eq!(ended.ends_at(ms(10_001)), None);
}

#[test]
fn a_rule_that_ends_twice_keeps_the_higher_floor() {
    let ended = DateRule::new(RuleId(1), 10)
        .change(None, ms(20_000))
        .change(None, ms(90_000));
    assert_eq!(ended.floor, 10_000);
}

#[test]
fn a_longer_rule_keeps_what_the_shorter_one_had_ended() {
    let longer = DateRule::new(RuleId(1), 10).change(Some(1_000), ms(20_000));
    for (date, now, expected) in [
        (10_000, 20_000, true),
        (10_001, 1_010_000, false),
        (10_001, 1_010_001, true),
    ] {
        assert_eq!(has_ended(&[longer], 1, date, now), expected, "{date} at {now}");
    }
    assert_eq!(longer.ends_at(ms(10_001)), Some(ms(1_010_001)));
}

#[test]
fn other_rules_and_unknown_rules_end_nothing() {
    let rules = [DateRule::new(RuleId(7), 0), DateRule::new(RuleId(3), 100)];
    assert!(has_ended(&rules, 7, 1_000, 2_000));
    assert!(!has_ended(&rules, 3, 1_000, 2_000));
    assert!(!has_ended(&rules, 4, 1_000, 2_000));
    assert!(!has_ended(&[], 7, 1_000, 2_000));
}

#[test]
fn extreme_dates_do_not_overflow() {
    let rule = DateRule::new(RuleId(1), 2_147_483_647);
    assert!(has_ended(&[rule], 1, i64::MIN, 0));
    assert!(!has_ended(&[rule], 1, i64::MAX, i64::MAX - 1));
    assert_eq!(rule.ends_at(ms(i64::MAX)), Some(ms(i64::MAX)));
}

#[test]
fn what_earlier_settings_ended_is_dated_by_the_shortest_time_to_live_before() {
    let dropped = DateRule::new(RuleId(1), 10).change(None, ms(20_000));
    assert_eq!(dropped.ends_at(ms(9_000)), Some(ms(19_000)));
    let weakened = DateRule::new(RuleId(1), 100)
        .change(Some(10), ms(20_000))
        .change(Some(1_000), ms(30_000));
    assert_eq!(weakened.ends_at(ms(20_000)), Some(ms(30_000)));
    assert_eq!(weakened.ends_at(ms(20_001)), Some(ms(1_020_001)));
}

#[test]
fn what_a_change_ends_is_dated_by_the_change() {
    let shorter = DateRule::new(RuleId(1), 20).change(Some(1), ms(50_000));
    for (date, end) in [(30_000, 50_000), (30_001, 50_000), (49_000, 50_000), (49_001, 50_001)] {
        assert_eq!(shorter.ends_at(ms(date)), Some(ms(end)), "{date}");
    }
}

#[test]
fn the_rules_of_a_container_know_when_a_version_ends() {
    let rules = DateRules::new(vec![DateRule::new(RuleId(2), 5)]);
    let deadline = |rule| Deadline {
        rule: RuleId(rule),
        date: ms(1_500),
    };
    assert_eq!(rules.ends_at(deadline(2)), Some(ms(6_500)));
    assert_eq!(rules.ends_at(deadline(3)), None);
}
