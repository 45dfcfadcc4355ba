//! Arithmetic: `$add`, `$subtract` and the like, powers and logarithms.

pub(super) mod dates;
pub(super) mod decimal;
pub(super) mod power;
pub(super) mod rounding;

use bson::{RawBson, RawBsonRef};

use self::decimal::Unary;
use super::accumulate::total::Total;
use super::call::{Call, null};
use super::operand::{is_nullish, type_name};
use super::operators::{Arguments, Operator};
use crate::error::{Code, Error, Result};
use crate::value::number::{Decimal, Number};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::eager("$add", Arguments::Any, add),
    Operator::eager("$subtract", Arguments::Exactly(2), subtract),
    Operator::eager("$multiply", Arguments::Any, multiply),
    Operator::eager("$divide", Arguments::Exactly(2), divide),
    Operator::eager("$mod", Arguments::Exactly(2), remainder),
    Operator::eager("$abs", Arguments::Exactly(1), absolute),
    Operator::eager("$exp", Arguments::Exactly(1), exponential),
    Operator::eager("$ln", Arguments::Exactly(1), natural_logarithm),
    Operator::eager("$log10", Arguments::Exactly(1), decimal_logarithm),
    Operator::eager("$log", Arguments::Exactly(2), power::logarithm),
    Operator::eager("$pow", Arguments::Exactly(2), power::power),
    Operator::eager("$sqrt", Arguments::Exactly(1), square_root),
    Operator::eager("$sigmoid", Arguments::Exactly(1), sigmoid),
];

/// The number of an operand that can be null; `None` for null.
///
/// # Errors
/// 28765: another type.
pub(super) fn number(call: &Call<'_>) -> Result<Option<Number>> {
    let Some(value) = call.non_null(0) else {
        return Ok(None);
    };
    let problem = || format!("{} only supports numeric types, not {}", call.name(), call.type_name(0));
    Number::of(value).map(Some).ok_or_else(|| Error::new(28765, problem()))
}

/// The sum; with one date among the operands it is a date.
fn add(call: &Call<'_>) -> Result<Option<RawBson>> {
    let mut total = Total::default();
    let mut date = None;
    for value in call.iter() {
        call.scope.step(1)?;
        match value {
            value if is_nullish(value) => return null(),
            Some(RawBsonRef::DateTime(_)) if date.is_some() => {
                return Err(Error::new(16612, "only one date allowed in an $add expression"));
            }
            Some(RawBsonRef::DateTime(value)) => date = Some(value),
            value => match value.and_then(Number::of) {
                Some(number) => total.add(number),
                None => {
                    let found = type_name(value);
                    let problem = format!("$add only supports numeric or date types, not {found}");
                    return Err(Error::new(Code::TYPE_MISMATCH, problem));
                }
            },
        }
    }
    match date {
        Some(date) => Ok(Some(dates::shifted(date, total.value(), "$add")?)),
        None => Ok(Some(total.value().into())),
    }
}

fn subtract(call: &Call<'_>) -> Result<Option<RawBson>> {
    let (Some(a), Some(b)) = (call.non_null(0), call.non_null(1)) else {
        return null();
    };
    let difference = match (a, b) {
        (RawBsonRef::DateTime(a), RawBsonRef::DateTime(b)) => dates::difference(a, b)?,
        (RawBsonRef::DateTime(a), b) => match Number::of(b) {
            Some(b) => dates::shifted_back(a, b)?,
            None => return Err(cannot_subtract(call)),
        },
        (a, b) => match (Number::of(a), Number::of(b)) {
            (Some(a), Some(b)) => a.sub(b).into(),
            _ => return Err(cannot_subtract(call)),
        },
    };
    Ok(Some(difference))
}

fn cannot_subtract(call: &Call<'_>) -> Error {
    let (a, b) = (call.type_name(0), call.type_name(1));
    Error::new(Code::TYPE_MISMATCH, format!("can't $subtract {b} from {a}"))
}

fn multiply(call: &Call<'_>) -> Result<Option<RawBson>> {
    let mut product = Number::Int32(1);
    for value in call.iter() {
        call.scope.step(1)?;
        if is_nullish(value) {
            return null();
        }
        let Some(factor) = value.and_then(Number::of) else {
            let found = type_name(value);
            return Err(Error::new(
                Code::TYPE_MISMATCH,
                format!("$multiply only supports numeric types, not {found}"),
            ));
        };
        product = product.mul(factor);
    }
    Ok(Some(product.into()))
}

/// Two numbers; `None` if one is null or missing.
pub(super) fn two_numbers(call: &Call<'_>, code: impl Into<Code>) -> Result<Option<(Number, Number)>> {
    let (Some(a), Some(b)) = (call.non_null(0), call.non_null(1)) else {
        return Ok(None);
    };
    match (Number::of(a), Number::of(b)) {
        (Some(a), Some(b)) => Ok(Some((a, b))),
        _ => {
            let (name, a, b) = (call.name(), call.type_name(0), call.type_name(1));
            let problem = format!("{name} only supports numeric types, not {a} and {b}");
            Err(Error::new(code, problem))
        }
    }
}

fn divide(call: &Call<'_>) -> Result<Option<RawBson>> {
    let Some((a, b)) = two_numbers(call, Code::TYPE_MISMATCH)? else {
        return null();
    };
    let quotient = a.div(b).ok_or_else(|| Error::bad_value("can't $divide by zero"))?;
    Ok(Some(quotient.into()))
}

fn remainder(call: &Call<'_>) -> Result<Option<RawBson>> {
    let Some((a, b)) = two_numbers(call, 16611)? else {
        return null();
    };
    let divisor = match (a, b) {
        // A whole double as divisor leaves a whole number whole.
        (Number::Int32(_) | Number::Int64(_), Number::Double(_)) => {
            let whole = b.whole().and_then(|whole| i32::try_from(whole).ok());
            whole.map_or(b, Number::Int32)
        }
        _ => b,
    };
    let remainder = a.rem(divisor).ok_or_else(|| Error::new(16610, "can't $mod by zero"))?;
    Ok(Some(remainder.into()))
}

fn absolute(call: &Call<'_>) -> Result<Option<RawBson>> {
    let magnitude = match number(call)? {
        None => return null(),
        Some(Number::Int32(value)) => match value.checked_abs() {
            Some(value) => Number::Int32(value),
            None => Number::Int64(i64::from(value).abs()),
        },
        Some(Number::Int64(value)) => {
            let too_large = || Error::new(28680, "can't take $abs of long long min");
            Number::Int64(value.checked_abs().ok_or_else(too_large)?)
        }
        Some(Number::Double(value)) => Number::Double(value.abs()),
        Some(Number::Decimal(value)) => Number::Decimal(decimal::absolute(value)),
    };
    Ok(Some(magnitude.into()))
}

/// Computes a function of one number: a decimal of a decimal, else a double.
fn unary(number: Number, of_double: fn(f64) -> f64, of_decimal: Unary) -> RawBson {
    let result = match number {
        Number::Decimal(value) => Number::Decimal(decimal::unary(of_decimal, value)),
        other => Number::Double(of_double(other.to_f64())),
    };
    result.into()
}

fn exponential(call: &Call<'_>) -> Result<Option<RawBson>> {
    match number(call)? {
        None => null(),
        Some(number) => Ok(Some(unary(number, f64::exp, Unary::Exponential))),
    }
}

/// Whether a number is above zero, or NaN.
pub(super) fn is_positive_or_nan(number: Number) -> bool {
    number.is_nan() || number.compare(Number::Int32(0)).is_gt()
}

fn natural_logarithm(call: &Call<'_>) -> Result<Option<RawBson>> {
    match number(call)? {
        None => null(),
        Some(number) if is_positive_or_nan(number) => Ok(Some(unary(number, f64::ln, Unary::NaturalLogarithm))),
        Some(_) => Err(Error::new(
            28766,
            format!("$ln's argument must be a positive number, but is {}", call.render(0)),
        )),
    }
}

fn decimal_logarithm(call: &Call<'_>) -> Result<Option<RawBson>> {
    match number(call)? {
        None => null(),
        Some(number) if is_positive_or_nan(number) => Ok(Some(unary(number, f64::log10, Unary::DecimalLogarithm))),
        Some(_) => Err(Error::new(
            28761,
            format!("$log10's argument must be a positive number, but is {}", call.render(0)),
        )),
    }
}

fn square_root(call: &Call<'_>) -> Result<Option<RawBson>> {
    match number(call)? {
        None => null(),
        Some(number) if number.is_zero() || is_positive_or_nan(number) => {
            Ok(Some(unary(number, f64::sqrt, Unary::SquareRoot)))
        }
        Some(_) => Err(Error::new(28714, "$sqrt's argument must be greater than or equal to 0")),
    }
}

/// `1 / (1 + e^-x)`, of MongoDB 8.1.
fn sigmoid(call: &Call<'_>) -> Result<Option<RawBson>> {
    let sigmoid = match number(call)? {
        None => return null(),
        Some(Number::Decimal(value)) => {
            let one = Decimal::from(1_i64);
            let power = decimal::unary(Unary::Exponential, Decimal::from(0_i64).sub(value));
            Number::Decimal(one.div(one.add(power)))
        }
        Some(other) => Number::Double(1.0 / (1.0 + (-other.to_f64()).exp())),
    };
    Ok(Some(sigmoid.into()))
}
