//! `$ceil`, `$floor`, `$round`, `$trunc`.

use bson::RawBson;

use super::decimal::{self, Rounding};
use super::number;
use crate::error::{Error, Result};
use crate::expression::call::{Call, null};
use crate::expression::operators::{Arguments, Operator};
use crate::value::number::{Decimal, Number};

pub(in crate::expression) const OPERATORS: &[Operator] = &[
    Operator::eager("$ceil", Arguments::Exactly(1), |call| {
        whole(call, f64::ceil, Rounding::Up)
    }),
    Operator::eager("$floor", Arguments::Exactly(1), |call| {
        whole(call, f64::floor, Rounding::Down)
    }),
    Operator::eager("$round", Arguments::Between(1, 2), |call| {
        places(call, f64::round_ties_even, Rounding::HalfEven)
    }),
    Operator::eager("$trunc", Arguments::Between(1, 2), |call| {
        places(call, f64::trunc, Rounding::TowardZero)
    }),
];

fn whole(call: &Call<'_>, of_double: fn(f64) -> f64, rounding: Rounding) -> Result<Option<RawBson>> {
    match number(call)? {
        None => null(),
        Some(number) => Ok(Some(to_whole(number, of_double, rounding).into())),
    }
}

fn to_whole(number: Number, of_double: fn(f64) -> f64, rounding: Rounding) -> Number {
    match number {
        Number::Double(value) => Number::Double(of_double(value)),
        Number::Decimal(value) => Number::Decimal(decimal::rounded(value, 0, rounding)),
        whole => whole,
    }
}

/// Rounds to a number of digits behind the point, from −20 to 100.
fn places(call: &Call<'_>, of_double: fn(f64) -> f64, rounding: Rounding) -> Result<Option<RawBson>> {
    let Some(value) = call.non_null(0) else {
        return null();
    };
    let Some(number) = Number::of(value) else {
        let problem = format!("{} only supports numeric types, not {}", call.name(), call.type_name(0));
        return Err(Error::new(51081, problem));
    };
    if !call.is_given(1) {
        return Ok(Some(to_whole(number, of_double, rounding).into()));
    }
    let Some(precision) = call.non_null(1) else {
        return null();
    };
    let Some(precision) = Number::of(precision).and_then(Number::whole) else {
        let problem = format!("precision argument to  {} must be a integral value", call.name());
        return Err(Error::new(51082, problem));
    };
    let precision = i32::try_from(precision).unwrap_or(i32::MAX);
    if !(-20..=100).contains(&precision) {
        let problem = format!(
            "cannot apply {} with precision value {precision} value must be in [-20, 100]",
            call.name()
        );
        return Err(Error::new(51083, problem));
    }
    let rounded = match number {
        number if precision == 0 => to_whole(number, of_double, rounding),
        Number::Double(value) => Number::Double(double(value, precision, rounding)),
        Number::Decimal(value) => Number::Decimal(decimal::rounded(value, precision, rounding)),
        number if precision > 0 => number,
        number => whole_to_places(number, precision, rounding, call)?,
    };
    Ok(Some(rounded.into()))
}

/// Rounds a double by way of its first 34 decimal digits.
fn double(value: f64, places: i32, rounding: Rounding) -> f64 {
    if !value.is_finite() {
        return value;
    }
    match Decimal::parse(&format!("{value:.33e}")) {
        Some(exact) => decimal::rounded(exact, places, rounding).to_f64(),
        None => value,
    }
}

/// Rounds a whole number to tens and above.
fn whole_to_places(number: Number, places: i32, rounding: Rounding, call: &Call<'_>) -> Result<Number> {
    let rounded = decimal::rounded(number.to_decimal(), places, rounding).whole();
    let Some(rounded) = rounded else {
        return Err(Error::new(
            51080,
            format!(
                "invalid conversion from Decimal128 result in {} resulting from arguments: [{}, {places}]",
                call.name(),
                call.render(0)
            ),
        ));
    };
    Ok(match (number, i32::try_from(rounded)) {
        (Number::Int32(_), Ok(rounded)) => Number::Int32(rounded),
        _ => Number::Int64(rounded),
    })
}
