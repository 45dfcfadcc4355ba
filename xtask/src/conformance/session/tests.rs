use super::*;

#[test]
fn the_clock_is_set_or_advanced_with_milliseconds_on_top() {
    let set = Clock {
        set: Some(1_700_000_000),
        advance: None,
        ms: 0,
    };
    assert_eq!(set.applied_to(5), 1_700_000_000_000);
    let advance = Clock {
        set: None,
        advance: Some(2),
        ms: 500,
    };
    assert_eq!(advance.applied_to(1_700_000_000_250), 1_700_000_002_750);
    let back = Clock {
        set: None,
        advance: Some(-10),
        ms: 0,
    };
    assert_eq!(back.applied_to(1_700_000_000_000), 1_699_999_990_000);
}
