//! Functions of decimals.
//!
//! Powers, exponentials, logarithms and roots are computed with 39 digits and rounded to the 34 of a decimal.

use dec::{Context, Decimal128};

use crate::value::number::Decimal;

/// Units of three digits of a number in a computation.
const UNITS: usize = 13;

/// Magnitudes of exponents that the functions of the library accept, and more than a decimal has.
const MAX_EXPONENT: isize = 7000;

type Wide = dec::Decimal<UNITS>;

/// A function of one decimal.
#[derive(Clone, Copy)]
pub(in crate::expression) enum Unary {
    Exponential,
    NaturalLogarithm,
    DecimalLogarithm,
    SquareRoot,
}

/// The absolute value.
pub(in crate::expression) fn absolute(value: Decimal) -> Decimal {
    let value = Decimal128::from(value);
    Decimal::from(if value.is_signed() { -value } else { value })
}

fn context() -> Context<Wide> {
    let mut context = Context::<Wide>::default();
    // Both limits are inside of those of the library, so the results are not errors.
    let _ = context.set_max_exponent(MAX_EXPONENT);
    let _ = context.set_min_exponent(-MAX_EXPONENT);
    context
}

/// Rounds to a decimal.
fn narrow(value: &Wide) -> Decimal {
    let mut context = Context::<Decimal128>::default();
    Decimal::from(context.from_decimal(value))
}

/// Computes a function of one decimal.
pub(in crate::expression) fn unary(function: Unary, value: Decimal) -> Decimal {
    let mut context = context();
    let mut result = Wide::from(Decimal128::from(value));
    match function {
        Unary::Exponential => context.exp(&mut result),
        Unary::NaturalLogarithm => context.ln(&mut result),
        Unary::DecimalLogarithm => context.log10(&mut result),
        Unary::SquareRoot => context.sqrt(&mut result),
    }
    context.reduce(&mut result);
    narrow(&result)
}

/// Raises a decimal to a power.
pub(in crate::expression) fn power(base: Decimal, exponent: Decimal) -> Decimal {
    let one = Decimal::from(1);
    if base.compare(one).is_eq() || exponent.is_zero() {
        return one;
    }
    let mut context = context();
    let mut result = Wide::from(Decimal128::from(base));
    let exponent = Wide::from(Decimal128::from(exponent));
    context.pow(&mut result, &exponent);
    context.reduce(&mut result);
    narrow(&result)
}

/// The logarithm of a decimal to a base.
pub(in crate::expression) fn logarithm(value: Decimal, base: Decimal) -> Decimal {
    let mut context = context();
    let mut result = Wide::from(Decimal128::from(value));
    let mut divisor = Wide::from(Decimal128::from(base));
    context.ln(&mut result);
    context.ln(&mut divisor);
    context.div(&mut result, &divisor);
    context.reduce(&mut result);
    narrow(&result)
}

/// How a decimal is rounded.
#[derive(Clone, Copy)]
pub(in crate::expression) enum Rounding {
    Down,
    Up,
    TowardZero,
    HalfEven,
}

/// Rounds to a number of digits behind the point; before it, if negative. What is not finite, or has too many digits for so many places, stays.
pub(in crate::expression) fn rounded(value: Decimal, places: i32, rounding: Rounding) -> Decimal {
    let value = Decimal128::from(value);
    if !value.is_finite() {
        return Decimal::from(value);
    }
    let mut context = Context::<Decimal128>::default();
    context.set_rounding(match rounding {
        Rounding::Down => dec::Rounding::Floor,
        Rounding::Up => dec::Rounding::Ceiling,
        Rounding::TowardZero => dec::Rounding::Down,
        Rounding::HalfEven => dec::Rounding::HalfEven,
    });
    let mut unit = Decimal128::from(1);
    context.set_exponent(&mut unit, -places);
    let rounded = context.quantize(value, unit);
    Decimal::from(if rounded.is_nan() { value } else { rounded })
}
