//! Trigonometric functions, and conversions between degrees and radians.
//!
//! A decimal gives a decimal. Angles of more than thirty digits before the point are computed as doubles, so about 15 digits of the result are right.

mod decimal;

use bson::RawBson;

use self::decimal::Function;
use super::arithmetic::number;
use super::call::{Call, null};
use super::operators::{Arguments, Operator};
use crate::error::{Error, Result};
use crate::value::number::{Decimal, Number};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::eager("$sin", Arguments::Exactly(1), |call| {
        bounded(call, (f64::sin, Function::Sine), FINITE)
    }),
    Operator::eager("$cos", Arguments::Exactly(1), |call| {
        bounded(call, (f64::cos, Function::Cosine), FINITE)
    }),
    Operator::eager("$tan", Arguments::Exactly(1), |call| {
        bounded(call, (f64::tan, Function::Tangent), FINITE)
    }),
    Operator::eager("$asin", Arguments::Exactly(1), |call| {
        bounded(call, (f64::asin, Function::ArcSine), UNIT)
    }),
    Operator::eager("$acos", Arguments::Exactly(1), |call| {
        bounded(call, (f64::acos, Function::ArcCosine), UNIT)
    }),
    Operator::eager("$atan", Arguments::Exactly(1), |call| {
        bounded(call, (f64::atan, Function::ArcTangent), ALL)
    }),
    Operator::eager("$atan2", Arguments::Exactly(2), arc_tangent_of_two),
    Operator::eager("$sinh", Arguments::Exactly(1), |call| {
        bounded(call, (f64::sinh, Function::HyperbolicSine), ALL)
    }),
    Operator::eager("$cosh", Arguments::Exactly(1), |call| {
        bounded(call, (f64::cosh, Function::HyperbolicCosine), ALL)
    }),
    Operator::eager("$tanh", Arguments::Exactly(1), |call| {
        bounded(call, (f64::tanh, Function::HyperbolicTangent), ALL)
    }),
    Operator::eager("$asinh", Arguments::Exactly(1), |call| {
        bounded(
            call,
            (
                |value| precise(value, Function::AreaSine, f64::asinh),
                Function::AreaSine,
            ),
            ALL,
        )
    }),
    Operator::eager("$acosh", Arguments::Exactly(1), |call| {
        bounded(
            call,
            (
                |value| precise(value, Function::AreaCosine, f64::acosh),
                Function::AreaCosine,
            ),
            FROM_ONE,
        )
    }),
    Operator::eager("$atanh", Arguments::Exactly(1), |call| {
        bounded(
            call,
            (
                |value| precise(value, Function::AreaTangent, f64::atanh),
                Function::AreaTangent,
            ),
            UNIT,
        )
    }),
    Operator::eager("$degreesToRadians", Arguments::Exactly(1), |call| {
        scaled(call, RADIANS_PER_DEGREE, f64::to_radians)
    }),
    Operator::eager("$radiansToDegrees", Arguments::Exactly(1), |call| {
        scaled(call, DEGREES_PER_RADIAN, f64::to_degrees)
    }),
];

/// π/180 with the digits of a decimal.
const RADIANS_PER_DEGREE: &str = "0.01745329251994329576923690768488613";
/// 180/π with the digits of a decimal.
const DEGREES_PER_RADIAN: &str = "57.29577951308232087679815481410517";

/// Where a function is defined: a test, and the interval as error texts show it.
type Domain = (fn(f64) -> bool, &'static str);

/// A function of doubles, and of decimals.
type Functions = (fn(f64) -> f64, Function);

const ALL: Domain = (|_| true, "[-inf,inf]");
const FINITE: Domain = (f64::is_finite, "(-inf,inf)");
const UNIT: Domain = (|value| (-1.0..=1.0).contains(&value), "[-1,1]");
const FROM_ONE: Domain = (|value| value >= 1.0, "[1,inf]");

fn bounded(
    call: &Call<'_>,
    (of_double, of_decimal): Functions,
    (contains, interval): Domain,
) -> Result<Option<RawBson>> {
    let Some(number) = number(call)? else {
        return null();
    };
    let value = number.to_f64();
    if !value.is_nan() && !contains(value) {
        let (name, shown) = (call.name(), call.render(0));
        return Err(Error::new(
            50989,
            format!("cannot apply {name} to {shown}, value must be in {interval}"),
        ));
    }
    if let Number::Decimal(decimal) = number
        && let Some(result) = decimal::evaluate(of_decimal, decimal)
    {
        return Ok(Some(Number::Decimal(result).into()));
    }
    Ok(Some(like(&[number], of_double(value)).into()))
}

/// Computes a function of a double as one of a decimal: that of the standard library loses digits near the ends of the domain.
fn precise(value: f64, function: Function, of_double: fn(f64) -> f64) -> f64 {
    let decimal = Decimal::parse(&format!("{value:.33e}"));
    let result = decimal.and_then(|decimal| decimal::evaluate(function, decimal));
    result.map_or_else(|| of_double(value), Decimal::to_f64)
}

/// A result as a decimal if one of the operands is one.
fn like(operands: &[Number], result: f64) -> Number {
    let is_decimal = operands.iter().any(|operand| matches!(operand, Number::Decimal(_)));
    if is_decimal {
        Number::Decimal(Decimal::from_f64(result))
    } else {
        Number::Double(result)
    }
}

fn arc_tangent_of_two(call: &Call<'_>) -> Result<Option<RawBson>> {
    let (Some(y), Some(x)) = (call.non_null(0), call.non_null(1)) else {
        return null();
    };
    let problem = |code: i32, index: usize| {
        let found = call.type_name(index);
        Error::new(code, format!("$atan2 only supports numeric types, not {found}"))
    };
    let y = Number::of(y).ok_or_else(|| problem(51044, 0))?;
    let x = Number::of(x).ok_or_else(|| problem(51045, 1))?;
    if matches!((y, x), (Number::Decimal(_), _) | (_, Number::Decimal(_)))
        && let Some(angle) = decimal::arc_tangent_of_two(y.to_decimal(), x.to_decimal())
    {
        return Ok(Some(Number::Decimal(angle).into()));
    }
    Ok(Some(like(&[y, x], y.to_f64().atan2(x.to_f64())).into()))
}

fn scaled(call: &Call<'_>, factor: &str, of_double: fn(f64) -> f64) -> Result<Option<RawBson>> {
    let result = match number(call)? {
        None => return null(),
        Some(Number::Decimal(value)) => {
            let factor = Decimal::parse(factor).unwrap_or_else(|| Decimal::from_f64(of_double(1.0)));
            Number::Decimal(value.mul(factor))
        }
        Some(other) => Number::Double(of_double(other.to_f64())),
    };
    Ok(Some(result.into()))
}
