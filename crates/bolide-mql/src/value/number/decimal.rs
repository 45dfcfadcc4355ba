//! Decimal128: its two encodings, arithmetic, exact comparison.
//!
//! BSON stores the coefficient as a binary number, the arithmetic library as packed decimal digits; both hold the same numbers.

use std::cmp::Ordering;

use bolide_index::decimal::Decimal as ExactDecimal;
use dec::{Context, Decimal128};

/// A decimal floating-point number of 34 digits. Results are rounded half to even.
#[derive(Debug, Clone, Copy)]
pub struct Decimal(Decimal128);

/// What a decimal is.
#[derive(Debug, Clone, Copy)]
pub enum Parts {
    /// Not a number.
    NaN,
    /// An infinity.
    Infinity {
        /// Whether it is below zero.
        negative: bool,
    },
    /// A number.
    Finite(ExactDecimal),
}

const SIGN_BIT: u128 = 1 << 127;
const SPECIAL_BITS: u128 = 0b1111 << 123;
const INFINITY_BITS: u128 = 0b11110 << 122;
const NAN_BITS: u128 = 0b11111 << 122;
/// Set in the form with a large coefficient, which has no valid coefficient in Decimal128 and stands for zero.
const LARGE_FORM_BITS: u128 = 0b11 << 125;
const EXPONENT_SHIFT: u32 = 113;
const EXPONENT_MASK: u128 = (1 << 14) - 1;
const EXPONENT_BIAS: i32 = 6176;
const COEFFICIENT_LIMIT: u128 = 10_u128.pow(34);

impl From<bson::Decimal128> for Decimal {
    fn from(value: bson::Decimal128) -> Decimal {
        match parts_of(value) {
            Parts::NaN => Decimal(Decimal128::NAN),
            Parts::Infinity { negative: false } => literal("Infinity"),
            Parts::Infinity { negative: true } => literal("-Infinity"),
            Parts::Finite(number) => Decimal::from(number),
        }
    }
}

impl From<Decimal> for bson::Decimal128 {
    fn from(value: Decimal) -> bson::Decimal128 {
        let bits = match value.parts() {
            Parts::NaN => NAN_BITS,
            Parts::Infinity { negative } => INFINITY_BITS | if negative { SIGN_BIT } else { 0 },
            Parts::Finite(number) => {
                let biased = (number.exponent + EXPONENT_BIAS).unsigned_abs();
                let sign = if number.negative { SIGN_BIT } else { 0 };
                sign | u128::from(biased) << EXPONENT_SHIFT | number.coefficient
            }
        };
        bson::Decimal128::from_bytes(bits.to_le_bytes())
    }
}

impl From<ExactDecimal> for Decimal {
    /// Rounds a coefficient of more than 34 digits.
    fn from(number: ExactDecimal) -> Decimal {
        let mut context = Context::<Decimal128>::default();
        let mut result = match (number.coefficient, number.negative) {
            // Arithmetic makes no negative zero of this.
            (0, true) => literal("-0").0,
            (coefficient, false) => context.from_u128(coefficient),
            (coefficient, true) => -context.from_u128(coefficient),
        };
        let exponent = number.exponent.saturating_add(result.exponent());
        context.set_exponent(&mut result, exponent);
        Decimal(result)
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Decimal {
        Decimal(Decimal128::from(value))
    }
}

impl From<Decimal128> for Decimal {
    fn from(value: Decimal128) -> Decimal {
        Decimal(value)
    }
}

impl From<Decimal> for Decimal128 {
    fn from(value: Decimal) -> Decimal128 {
        value.0
    }
}

impl std::fmt::Display for Decimal {
    /// The text of the specification of BSON Decimal128: `1.50`, `1E+3`, `NaN`, `-Infinity`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        bson::Decimal128::from(*self).fmt(f)
    }
}

impl Decimal {
    /// Returns the number that a text of digits, point and exponent, or `NaN`, `Infinity`, stands for; `None` if it is none, or has to be rounded to fit.
    pub fn parse(text: &str) -> Option<Decimal> {
        let mut context = Context::<Decimal128>::default();
        let number = context.parse(text).ok()?;
        let status = context.status();
        (!status.conversion_syntax() && !status.inexact() && !status.overflow() && !number.is_signaling_nan())
            .then_some(Decimal(number))
    }

    /// Returns a double rounded to 15 digits, all of which are kept: 2.5 gives 2.50000000000000.
    pub fn from_f64(value: f64) -> Decimal {
        if value == 0.0 {
            return literal(if value.is_sign_negative() { "-0" } else { "0" });
        }
        let text = if value.is_finite() {
            format!("{value:.14e}")
        } else {
            value.to_string()
        };
        literal(&text)
    }

    /// Takes the number apart.
    pub fn parts(self) -> Parts {
        let negative = self.0.is_signed();
        if self.0.is_nan() {
            Parts::NaN
        } else if self.0.is_infinite() {
            Parts::Infinity { negative }
        } else {
            Parts::Finite(ExactDecimal {
                negative,
                coefficient: self.0.coefficient().unsigned_abs(),
                exponent: self.0.exponent(),
            })
        }
    }

    /// Compares by value. NaN is below every other number and equal to itself.
    pub fn compare(self, other: Decimal) -> Ordering {
        match (self.parts(), other.parts()) {
            (Parts::Finite(a), Parts::Finite(b)) => a.compare(&b),
            (a, b) => a.class().cmp(&b.class()),
        }
    }

    /// Compares with a double, without rounding either.
    pub fn compare_f64(self, other: f64) -> Ordering {
        match self.parts() {
            Parts::Finite(_) if other.is_nan() => Ordering::Greater,
            Parts::Finite(number) => number.compare_f64(other),
            parts => {
                let other = match other {
                    other if other.is_nan() => Class::NaN,
                    f64::NEG_INFINITY => Class::NegativeInfinity,
                    f64::INFINITY => Class::Infinity,
                    _ => Class::Finite,
                };
                parts.class().cmp(&other)
            }
        }
    }

    /// Compares with a whole number.
    pub fn compare_i64(self, other: i64) -> Ordering {
        match self.parts() {
            Parts::Finite(number) => number.compare(&other.into()),
            parts => parts.class().cmp(&Class::Finite),
        }
    }

    /// Tells whether the number is zero, of any sign.
    pub fn is_zero(self) -> bool {
        self.0.is_zero()
    }

    /// Tells whether the number is NaN.
    pub fn is_nan(self) -> bool {
        self.0.is_nan()
    }

    /// Tells whether the number is neither NaN nor infinite.
    pub fn is_finite(self) -> bool {
        self.0.is_finite()
    }

    /// Returns the value as an `i64`, if it is a whole number that fits.
    pub fn whole(self) -> Option<i64> {
        let truncated = self.truncated()?;
        (self.compare_i64(truncated) == Ordering::Equal).then_some(truncated)
    }

    /// Returns the value as an `i64` with the fraction cut off, if it fits.
    pub fn truncated(self) -> Option<i64> {
        let Parts::Finite(number) = self.parts() else {
            return None;
        };
        if number.coefficient == 0 {
            return Some(0);
        }
        let scale = 10_u128.checked_pow(number.exponent.unsigned_abs());
        let magnitude = if number.exponent >= 0 {
            number.coefficient.checked_mul(scale?)?
        } else {
            scale.map_or(0, |scale| number.coefficient / scale)
        };
        let magnitude = i128::try_from(magnitude).ok()?;
        i64::try_from(if number.negative { -magnitude } else { magnitude }).ok()
    }

    /// Returns the nearest `i64`, half to even; `None` for NaN, infinities and numbers that do not fit.
    pub fn rounded(self) -> Option<i64> {
        let below = self.truncated()?;
        let rest = self.sub(Decimal::from(below));
        let (from_half, away) = match rest.compare_i64(0) {
            Ordering::Less => (rest.compare_f64(-0.5).reverse(), below.checked_sub(1)),
            _ => (rest.compare_f64(0.5), below.checked_add(1)),
        };
        match from_half {
            Ordering::Less => Some(below),
            Ordering::Equal if below % 2 == 0 => Some(below),
            _ => away,
        }
    }

    /// Returns the nearest double; an infinity beyond its range.
    pub fn to_f64(self) -> f64 {
        match self.parts() {
            Parts::NaN => f64::NAN,
            Parts::Infinity { negative: false } => f64::INFINITY,
            Parts::Infinity { negative: true } => f64::NEG_INFINITY,
            Parts::Finite(number) => {
                let text = format!("{}e{}", number.coefficient, number.exponent);
                let magnitude: f64 = text.parse().unwrap_or(f64::NAN);
                if number.negative { -magnitude } else { magnitude }
            }
        }
    }

    /// Adds.
    #[expect(clippy::should_implement_trait, reason = "beside the operations of Number")]
    pub fn add(self, other: Decimal) -> Decimal {
        Decimal(Context::<Decimal128>::default().add(self.0, other.0))
    }

    /// Subtracts.
    #[expect(clippy::should_implement_trait, reason = "beside the operations of Number")]
    pub fn sub(self, other: Decimal) -> Decimal {
        Decimal(Context::<Decimal128>::default().sub(self.0, other.0))
    }

    /// Multiplies.
    #[expect(clippy::should_implement_trait, reason = "beside the operations of Number")]
    pub fn mul(self, other: Decimal) -> Decimal {
        Decimal(Context::<Decimal128>::default().mul(self.0, other.0))
    }

    /// Divides; by zero gives an infinity or NaN.
    #[expect(clippy::should_implement_trait, reason = "beside the operations of Number")]
    pub fn div(self, other: Decimal) -> Decimal {
        Decimal(Context::<Decimal128>::default().div(self.0, other.0))
    }

    /// Returns the remainder, with the sign of the dividend; NaN for a divisor of zero.
    #[expect(clippy::should_implement_trait, reason = "beside the operations of Number")]
    pub fn rem(self, other: Decimal) -> Decimal {
        Decimal(Context::<Decimal128>::default().rem(self.0, other.0))
    }
}

/// The order of what is not finite around what is.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    NaN,
    NegativeInfinity,
    Finite,
    Infinity,
}

impl Parts {
    fn class(&self) -> Class {
        match self {
            Parts::NaN => Class::NaN,
            Parts::Infinity { negative: true } => Class::NegativeInfinity,
            Parts::Finite(_) => Class::Finite,
            Parts::Infinity { negative: false } => Class::Infinity,
        }
    }
}

/// Returns the number of a text that is known to be one.
fn literal(text: &str) -> Decimal {
    let parsed = Context::<Decimal128>::default().parse(text);
    Decimal(parsed.unwrap_or(Decimal128::NAN))
}

fn parts_of(value: bson::Decimal128) -> Parts {
    let bits = u128::from_le_bytes(value.bytes());
    let negative = bits & SIGN_BIT != 0;
    if bits & SPECIAL_BITS == SPECIAL_BITS {
        return if bits & NAN_BITS == NAN_BITS {
            Parts::NaN
        } else {
            Parts::Infinity { negative }
        };
    }
    let (coefficient, exponent) = if bits & LARGE_FORM_BITS == LARGE_FORM_BITS {
        (0, bits >> (EXPONENT_SHIFT - 2))
    } else {
        (bits & ((1 << EXPONENT_SHIFT) - 1), bits >> EXPONENT_SHIFT)
    };
    let exponent = i32::try_from(exponent & EXPONENT_MASK).unwrap_or(0) - EXPONENT_BIAS;
    Parts::Finite(ExactDecimal {
        negative,
        coefficient: if coefficient < COEFFICIENT_LIMIT {
            coefficient
        } else {
            0
        },
        exponent,
    })
}
