use super::*;

fn meter(pacing: Pacing) -> Meter {
    let settings = PacingSettings {
        pacing,
        delete_ru: None,
        count_only_load: false,
    };
    Meter::new(&settings, 1, UnixSeconds(1_000))
}

#[test]
fn only_what_was_left_over_in_the_second_before_may_be_spent() {
    // TTL-259
    let mut meter = meter(Pacing::Provisioned { ru: 400.0 });
    assert_eq!(meter.credit(UnixSeconds(1_000)), Some(0.0));
    meter.consume(UnixSeconds(1_000), RequestUnits(300.0));
    assert_eq!(meter.credit(UnixSeconds(1_001)), Some(100.0));
    assert_eq!(meter.credit(UnixSeconds(1_002)), Some(400.0));
}

#[test]
fn credit_is_not_hoarded_and_debt_is_repaid() {
    let mut meter = meter(Pacing::Provisioned { ru: 400.0 });
    assert_eq!(meter.credit(UnixSeconds(9_000)), Some(400.0));
    meter.spend(UnixSeconds(9_000), RequestUnits(1_500.0));
    assert_eq!(meter.credit(UnixSeconds(9_001)), Some(-700.0));
    assert_eq!(meter.credit(UnixSeconds(9_002)), Some(-300.0));
    assert_eq!(meter.credit(UnixSeconds(9_003)), Some(100.0));
    assert_eq!(meter.credit(UnixSeconds(9_500)), Some(400.0));
}

#[test]
fn autoscale_pays_by_the_peak_of_the_clock_hour() {
    // TTL-261
    let mut meter = meter(Pacing::Autoscale { max_ru: 10_000.0 });
    meter.consume(UnixSeconds(1_000), RequestUnits(6_000.0));
    assert_eq!(meter.credit(UnixSeconds(1_001)), Some(0.0));
    assert_eq!(meter.credit(UnixSeconds(1_002)), Some(6_000.0));
    assert_eq!(
        meter.credit(UnixSeconds(3_600)),
        Some(6_000.0),
        "left over of 3599, still in the old hour"
    );
    assert_eq!(meter.credit(UnixSeconds(3_601)), Some(1_000.0));
}

#[test]
fn windows_that_have_ended_keep_the_budget_they_had() {
    let mut meter = meter(Pacing::Provisioned { ru: 400.0 });
    let more = PacingSettings {
        pacing: Pacing::Provisioned { ru: 20_000.0 },
        delete_ru: None,
        count_only_load: false,
    };
    meter.set_pacing(&more, 1, UnixSeconds(1_010));
    assert_eq!(meter.credit(UnixSeconds(1_010)), Some(400.0));
    assert_eq!(meter.credit(UnixSeconds(1_011)), Some(20_000.0));
}

#[test]
fn users_are_held_to_the_ceiling_and_nothing_of_a_refused_load_is_consumed() {
    let mut meter = meter(Pacing::Provisioned { ru: 400.0 });
    assert!(meter.try_consume(UnixSeconds(1_000), RequestUnits(400.0)));
    assert!(!meter.try_consume(UnixSeconds(1_000), RequestUnits(1.0)));
    assert_eq!(meter.admit(UnixMillis(1_000_000)), Err(1000));
    assert_eq!(meter.admit(UnixMillis(1_000_250)), Err(750), "until the next second");
    assert_eq!(meter.admit(UnixMillis(1_001_000)), Ok(()));
}
