use super::*;

#[test]
fn durations_are_milliseconds_with_three_decimal_places() {
    for (micros, shown) in [
        (0, "0.000"),
        (7, "0.007"),
        (1_050, "1.050"),
        (123_456_789, "123456.789"),
        (u64::MAX, "18446744073709551.615"),
    ] {
        assert_eq!(milliseconds(Duration::from_micros(micros)), shown);
    }
}
