use std::cmp::Ordering::{Equal, Greater, Less};

use super::Decimal;

fn decimal(coefficient: i128, exponent: i32) -> Decimal {
    Decimal {
        negative: coefficient < 0,
        coefficient: coefficient.unsigned_abs(),
        exponent,
    }
}

#[test]
fn decimals_compare_by_value() {
    let cases = [
        (decimal(110, -2), decimal(11, -1), Equal),
        (decimal(1, 3), decimal(1000, 0), Equal),
        (decimal(1, 6111), decimal(10_i128.pow(33), 6078), Equal),
        (decimal(1, -6176), decimal(2, -6176), Less),
        (decimal(-1, 0), decimal(1, -6000), Less),
        (decimal(-2, 5), decimal(-3, 5), Greater),
        (decimal(0, 100), decimal(0, -100), Equal),
        (decimal(0, 5), decimal(1, -6176), Less),
        (decimal(999, 0), decimal(1, 3), Less),
    ];
    for (a, b, expected) in cases {
        assert_eq!(a.compare(&b), expected, "{a:?} {b:?}");
        assert_eq!(b.compare(&a), expected.reverse(), "{b:?} {a:?}");
    }
}

#[test]
fn decimals_compare_with_doubles_without_rounding() {
    let cases = [
        // The double 0.1 is 0.1000000000000000055511151231257827…
        (decimal(1, -1), 0.1, Less),
        (decimal(1_000_000_000_000_000_055_511_151_231_257_827, -34), 0.1, Less),
        (
            decimal(1_000_000_000_000_000_055_511_151_231_257_828, -34),
            0.1,
            Greater,
        ),
        (decimal(5, -1), 0.5, Equal),
        (decimal(-5, -1), -0.5, Equal),
        (decimal(9_007_199_254_740_993, 0), 9_007_199_254_740_992.0, Greater),
        (decimal(1, 400), f64::MAX, Greater),
        (decimal(1, 400), f64::INFINITY, Less),
        (decimal(-1, 400), f64::NEG_INFINITY, Greater),
        (decimal(1, -400), f64::from_bits(1), Less),
        (decimal(1, -400), 0.0, Greater),
        (decimal(0, 0), -0.0, Equal),
        (decimal(1, 22), 1e22, Equal),
        (decimal(1, 23), 1e23, Greater),
    ];
    for (a, b, expected) in cases {
        assert_eq!(a.compare_f64(b), expected, "{a:?} {b:?}");
    }
}

#[test]
fn the_double_toward_zero_is_never_larger() {
    let cases = [
        (decimal(1, -1), 0.1_f64.next_down(), false),
        (decimal(5, -1), 0.5, true),
        (decimal(9_007_199_254_740_993, 0), 9_007_199_254_740_992.0, false),
        (decimal(1, 6000), f64::MAX, false),
        (decimal(1, -6000), 0.0, false),
        (decimal(4, -324), 0.0, false),
        (decimal(5, -324), f64::from_bits(1), false),
        (decimal(17, 307), f64::MAX.min(1.7e308).next_down(), false),
    ];
    for (number, expected, exact) in cases {
        let (found, is_exact) = number.magnitude_toward_zero();
        assert!(found <= expected.next_up(), "{number:?} {found:e}");
        assert_eq!(is_exact, exact, "{number:?}");
        assert_ne!(number.compare_f64(found), Less, "{number:?}");
        assert_eq!(number.compare_f64(found.next_up()), Less, "{number:?}");
    }
}
