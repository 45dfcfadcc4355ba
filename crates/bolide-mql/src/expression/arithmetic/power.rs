//! `$pow` and `$log`.

use bson::RawBson;

use super::decimal;
use super::is_positive_or_nan;
use crate::error::{Error, Result};
use crate::expression::call::{Call, null};
use crate::value::number::Number;

/// Two numbers, with a code for each; `None` if one is null or missing.
fn operands(call: &Call<'_>, first: (i32, &str), second: (i32, &str)) -> Result<Option<(Number, Number)>> {
    let (Some(a), Some(b)) = (call.non_null(0), call.non_null(1)) else {
        return Ok(None);
    };
    let problem = |(code, part): (i32, &str), index: usize| {
        let text = format!(
            "{}'s {part} must be numeric, not {}",
            call.name(),
            call.type_name(index)
        );
        Error::new(code, text)
    };
    let a = Number::of(a).ok_or_else(|| problem(first, 0))?;
    let b = Number::of(b).ok_or_else(|| problem(second, 1))?;
    Ok(Some((a, b)))
}

/// `$log`: a logarithm to a base.
pub(super) fn logarithm(call: &Call<'_>) -> Result<Option<RawBson>> {
    let Some((value, base)) = operands(call, (28756, "argument"), (28757, "base"))? else {
        return null();
    };
    if !is_positive_or_nan(value) {
        let shown = call.render(0);
        return Err(Error::new(
            28758,
            format!("$log's argument must be a positive number, but is {shown}"),
        ));
    }
    if !is_positive_or_nan(base) || base.compare(Number::Int32(1)).is_eq() {
        let shown = call.render(1);
        return Err(Error::new(
            28759,
            format!("$log's base must be a positive number not equal to 1, but is {shown}"),
        ));
    }
    let result = match (value, base) {
        (Number::Decimal(_), _) | (_, Number::Decimal(_)) => {
            Number::Decimal(decimal::logarithm(value.to_decimal(), base.to_decimal()))
        }
        _ => Number::Double(value.to_f64().ln() / base.to_f64().ln()),
    };
    Ok(Some(result.into()))
}

/// `$pow`: whole numbers give a whole number if it fits.
pub(super) fn power(call: &Call<'_>) -> Result<Option<RawBson>> {
    let Some((base, exponent)) = operands(call, (28762, "base"), (28763, "exponent"))? else {
        return null();
    };
    if base.is_zero() && exponent.compare(Number::Int32(0)).is_lt() && !exponent.is_nan() {
        return Err(Error::new(
            28764,
            "$pow cannot take a base of 0 and a negative exponent",
        ));
    }
    let result = match (base, exponent) {
        (Number::Decimal(_), _) | (_, Number::Decimal(_)) => {
            Number::Decimal(decimal::power(base.to_decimal(), exponent.to_decimal()))
        }
        (Number::Double(_), _) | (_, Number::Double(_)) => double(base, exponent),
        (Number::Int32(base), Number::Int32(exponent)) => match whole(base.into(), exponent.into()) {
            Some(result) => i32::try_from(result).map_or(Number::Int64(result), Number::Int32),
            None => double(Number::Int32(base), Number::Int32(exponent)),
        },
        (base, exponent) => match base.whole().zip(exponent.whole()) {
            Some((a, b)) => whole(a, b).map_or_else(|| double(base, exponent), Number::Int64),
            None => double(base, exponent),
        },
    };
    Ok(Some(result.into()))
}

fn double(base: Number, exponent: Number) -> Number {
    Number::Double(base.to_f64().powf(exponent.to_f64()))
}

/// A power that is a whole number; `None` if it is not one or does not fit.
fn whole(base: i64, exponent: i64) -> Option<i64> {
    match (base, exponent) {
        (1, _) => Some(1),
        (-1, exponent) => Some(if exponent % 2 == 0 { 1 } else { -1 }),
        (0, exponent) if exponent > 0 => Some(0),
        (base, exponent) => base.checked_pow(u32::try_from(exponent).ok()?),
    }
}
