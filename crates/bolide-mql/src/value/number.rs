//! Numbers of the four numeric types, with MongoDB's promotions.
//!
//! The result of an operation has the wider type of its operands: i32, i64, double, decimal. A result that does not fit an i32 becomes an i64; what
//! happens when it does not fit an i64 is the caller's choice: expressions go on with a double, updates fail.

use std::cmp::Ordering;

use bson::{RawBson, RawBsonRef};

mod decimal;

pub use decimal::{Decimal, Parts};

/// A number of one of the four numeric types.
#[derive(Debug, Clone, Copy)]
pub enum Number {
    /// 32-bit whole number, "int".
    Int32(i32),
    /// 64-bit whole number, "long".
    Int64(i64),
    /// Binary floating point, "double".
    Double(f64),
    /// Decimal floating point, "decimal".
    Decimal(Decimal),
}

impl From<Number> for RawBson {
    fn from(number: Number) -> RawBson {
        match number {
            Number::Int32(value) => RawBson::Int32(value),
            Number::Int64(value) => RawBson::Int64(value),
            Number::Double(value) => RawBson::Double(value),
            Number::Decimal(value) => RawBson::Decimal128(value.into()),
        }
    }
}

impl Number {
    /// Returns the number, if the value is one.
    pub fn of(value: RawBsonRef<'_>) -> Option<Number> {
        match value {
            RawBsonRef::Int32(value) => Some(Number::Int32(value)),
            RawBsonRef::Int64(value) => Some(Number::Int64(value)),
            RawBsonRef::Double(value) => Some(Number::Double(value)),
            RawBsonRef::Decimal128(value) => Some(Number::Decimal(value.into())),
            _ => None,
        }
    }

    /// Compares by value, without rounding. NaN is below every other number and equal to itself.
    pub fn compare(self, other: Number) -> Ordering {
        use Number::{Decimal, Double, Int32, Int64};
        match (self, other) {
            (Int32(a), Int32(b)) => a.cmp(&b),
            (Double(a), Double(b)) => compare_f64(a, b),
            (Decimal(a), Decimal(b)) => a.compare(b),
            (Decimal(a), Double(b)) => a.compare_f64(b),
            (Double(a), Decimal(b)) => b.compare_f64(a).reverse(),
            (Double(a), Int32(b)) => compare_f64(a, b.into()),
            (Int32(a), Double(b)) => compare_f64(a.into(), b),
            (Double(a), Int64(b)) => compare_i64_f64(b, a).reverse(),
            (Int64(a), Double(b)) => compare_i64_f64(a, b),
            (Decimal(a), Int32(b)) => a.compare_i64(b.into()),
            (Decimal(a), Int64(b)) => a.compare_i64(b),
            (Int32(a), Decimal(b)) => b.compare_i64(a.into()).reverse(),
            (Int64(a), Decimal(b)) => b.compare_i64(a).reverse(),
            (Int32(a), Int64(b)) => i64::from(a).cmp(&b),
            (Int64(a), Int32(b)) => a.cmp(&b.into()),
            (Int64(a), Int64(b)) => a.cmp(&b),
        }
    }

    /// Tells whether the number is zero, of any sign.
    pub fn is_zero(self) -> bool {
        match self {
            Number::Int32(value) => value == 0,
            Number::Int64(value) => value == 0,
            Number::Double(value) => value == 0.0,
            Number::Decimal(value) => value.is_zero(),
        }
    }

    /// Tells whether the number is NaN.
    pub fn is_nan(self) -> bool {
        match self {
            Number::Int32(_) | Number::Int64(_) => false,
            Number::Double(value) => value.is_nan(),
            Number::Decimal(value) => value.is_nan(),
        }
    }

    /// Tells whether the number is neither NaN nor infinite.
    pub fn is_finite(self) -> bool {
        match self {
            Number::Int32(_) | Number::Int64(_) => true,
            Number::Double(value) => value.is_finite(),
            Number::Decimal(value) => value.is_finite(),
        }
    }

    /// Returns the value as an `i64`, if it is a whole number that fits.
    pub fn whole(self) -> Option<i64> {
        match self {
            Number::Int32(value) => Some(value.into()),
            Number::Int64(value) => Some(value),
            Number::Double(value) => whole_f64(value),
            Number::Decimal(value) => value.whole(),
        }
    }

    /// Returns the value as an `i64` with the fraction cut off; `None` for NaN, infinities and numbers that do not fit.
    pub fn truncated(self) -> Option<i64> {
        match self {
            Number::Int32(value) => Some(value.into()),
            Number::Int64(value) => Some(value),
            Number::Double(value) => whole_f64(value.trunc()),
            Number::Decimal(value) => value.truncated(),
        }
    }

    /// Returns the value as an `i64` in the way of MongoDB's options: NaN is 0, what is too large or too small is the largest or smallest number, the
    /// fraction of a double is cut off, a decimal is rounded half to even.
    pub fn clamped(self) -> i64 {
        let rounded = match self {
            Number::Decimal(value) => value.rounded(),
            other => other.truncated(),
        };
        rounded.unwrap_or_else(|| {
            let value = self.to_f64();
            match value.is_nan() {
                true => 0,
                false if value > 0.0 => i64::MAX,
                false => i64::MIN,
            }
        })
    }

    /// Returns the nearest double.
    #[expect(clippy::cast_precision_loss, reason = "the nearest double is what is asked for")]
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Int32(value) => value.into(),
            Number::Int64(value) => value as f64,
            Number::Double(value) => value,
            Number::Decimal(value) => value.to_f64(),
        }
    }

    /// Returns the number as a decimal: a double is rounded to 15 digits, as MongoDB converts it.
    pub fn to_decimal(self) -> Decimal {
        match self {
            Number::Int32(value) => Decimal::from(i64::from(value)),
            Number::Int64(value) => Decimal::from(value),
            Number::Double(value) => Decimal::from_f64(value),
            Number::Decimal(value) => value,
        }
    }

    /// Adds; a sum of whole numbers beyond an `i64` becomes a double.
    #[expect(
        clippy::should_implement_trait,
        reason = "an operator would hide that the type can change"
    )]
    pub fn add(self, other: Number) -> Number {
        self.checked_add(other)
            .unwrap_or_else(|| Number::Double(self.to_f64() + other.to_f64()))
    }

    /// Adds; `None` for a sum of whole numbers beyond an `i64`.
    pub fn checked_add(self, other: Number) -> Option<Number> {
        self.combine(other, i64::checked_add, |a, b| a + b, Decimal::add)
    }

    /// Subtracts; a difference of whole numbers beyond an `i64` becomes a double.
    #[expect(
        clippy::should_implement_trait,
        reason = "an operator would hide that the type can change"
    )]
    pub fn sub(self, other: Number) -> Number {
        self.checked_sub(other)
            .unwrap_or_else(|| Number::Double(self.to_f64() - other.to_f64()))
    }

    /// Subtracts; `None` for a difference of whole numbers beyond an `i64`.
    pub fn checked_sub(self, other: Number) -> Option<Number> {
        self.combine(other, i64::checked_sub, |a, b| a - b, Decimal::sub)
    }

    /// Multiplies; a product of whole numbers beyond an `i64` becomes a double.
    #[expect(
        clippy::should_implement_trait,
        reason = "an operator would hide that the type can change"
    )]
    pub fn mul(self, other: Number) -> Number {
        self.checked_mul(other)
            .unwrap_or_else(|| Number::Double(self.to_f64() * other.to_f64()))
    }

    /// Multiplies; `None` for a product of whole numbers beyond an `i64`.
    pub fn checked_mul(self, other: Number) -> Option<Number> {
        self.combine(other, i64::checked_mul, |a, b| a * b, Decimal::mul)
    }

    /// Divides: a double, or a decimal if one of the two is; `None` if the divisor is zero.
    #[expect(
        clippy::should_implement_trait,
        reason = "an operator would hide that the type can change"
    )]
    pub fn div(self, other: Number) -> Option<Number> {
        if other.is_zero() {
            return None;
        }
        Some(if self.is_decimal() || other.is_decimal() {
            Number::Decimal(self.to_decimal().div(other.to_decimal()))
        } else {
            Number::Double(self.to_f64() / other.to_f64())
        })
    }

    /// Returns the remainder, with the sign of the dividend; `None` if the divisor is zero.
    #[expect(
        clippy::should_implement_trait,
        reason = "an operator would hide that the type can change"
    )]
    pub fn rem(self, other: Number) -> Option<Number> {
        if other.is_zero() {
            return None;
        }
        // i64::MIN by -1 leaves zero, which the processor's instruction cannot compute.
        let whole = |a: i64, b: i64| Some(a.checked_rem(b).unwrap_or(0));
        self.combine(other, whole, |a, b| a % b, Decimal::rem)
    }

    fn is_decimal(self) -> bool {
        matches!(self, Number::Decimal(_))
    }

    fn combine(
        self,
        other: Number,
        whole: impl Fn(i64, i64) -> Option<i64>,
        double: impl Fn(f64, f64) -> f64,
        decimal: impl Fn(Decimal, Decimal) -> Decimal,
    ) -> Option<Number> {
        match (self, other) {
            (Number::Decimal(_), _) | (_, Number::Decimal(_)) => {
                Some(Number::Decimal(decimal(self.to_decimal(), other.to_decimal())))
            }
            (Number::Double(_), _) | (_, Number::Double(_)) => {
                Some(Number::Double(double(self.to_f64(), other.to_f64())))
            }
            (Number::Int32(a), Number::Int32(b)) => {
                let result = whole(a.into(), b.into())?;
                Some(i32::try_from(result).map_or(Number::Int64(result), Number::Int32))
            }
            (a, b) => whole(a.whole()?, b.whole()?).map(Number::Int64),
        }
    }
}

/// Returns a number as an `i64`, if the value is a whole number of any numeric type that fits.
pub fn whole(value: RawBsonRef<'_>) -> Option<i64> {
    Number::of(value)?.whole()
}

/// Two to the power of 63: the least double above every `i64`.
const I64_END: f64 = 9_223_372_036_854_775_808.0;

fn whole_f64(value: f64) -> Option<i64> {
    let fits = (-I64_END..I64_END).contains(&value) && value.fract() == 0.0;
    #[expect(clippy::cast_possible_truncation, reason = "a whole number in the range of an i64")]
    fits.then_some(value as i64)
}

fn compare_f64(a: f64, b: f64) -> Ordering {
    // Only NaN cannot be compared; it is the least.
    a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

fn compare_i64_f64(a: i64, b: f64) -> Ordering {
    match whole_f64(b.trunc()) {
        Some(whole) => a.cmp(&whole).then_with(|| compare_f64(0.0, b.fract())),
        None if b >= I64_END => Ordering::Less,
        // NaN, or below every i64.
        None => Ordering::Greater,
    }
}
