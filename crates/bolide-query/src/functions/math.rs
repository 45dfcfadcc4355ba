//! Mathematical functions (cosmos-sql §18.1).

use super::{Call, Function};
use crate::number::Number;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::strict("ABS", 1, 1, abs),
    Function::strict("ACOS", 1, 1, |c| one(c, f64::acos)),
    Function::strict("ASIN", 1, 1, |c| one(c, f64::asin)),
    Function::strict("ATAN", 1, 1, |c| one(c, f64::atan)),
    Function::strict("ATN2", 2, 2, |c| two(c, f64::atan2)),
    Function::strict("CEILING", 1, 1, |c| whole(c, f64::ceil)),
    Function::strict("COS", 1, 1, |c| one(c, f64::cos)),
    Function::strict("COT", 1, 1, |c| one(c, |x| 1.0 / x.tan())),
    Function::strict("DEGREES", 1, 1, |c| one(c, f64::to_degrees)),
    Function::strict("EXP", 1, 1, |c| one(c, f64::exp)),
    Function::strict("FLOOR", 1, 1, |c| whole(c, f64::floor)),
    Function::strict("LOG", 1, 2, log),
    Function::strict("LOG10", 1, 1, |c| one(c, f64::log10)),
    Function::strict("NUMBERBIN", 1, 2, number_bin),
    Function::strict("PI", 0, 0, |_| Value::float(std::f64::consts::PI)),
    Function::strict("POWER", 2, 2, |c| two(c, f64::powf)),
    Function::strict("RADIANS", 1, 1, |c| one(c, f64::to_radians)),
    Function::volatile("RAND", 0, 0, |c| Value::float(c.session.random())),
    Function::strict("ROUND", 1, 1, |c| whole(c, f64::round)),
    Function::strict("SIGN", 1, 1, |c| one(c, |x| if x == 0.0 { 0.0 } else { x.signum() })),
    Function::strict("SIN", 1, 1, |c| one(c, f64::sin)),
    Function::strict("SQRT", 1, 1, |c| one(c, f64::sqrt)),
    Function::strict("SQUARE", 1, 1, |c| one(c, |x| x * x)),
    Function::strict("TAN", 1, 1, |c| one(c, f64::tan)),
    Function::strict("TRUNC", 1, 1, |c| whole(c, f64::trunc)),
];

fn one<'a>(call: &Call<'_, 'a>, compute: fn(f64) -> f64) -> Value<'a> {
    call.f64(0).map_or(Value::Undefined, |x| Value::float(compute(x)))
}

fn two<'a>(call: &Call<'_, 'a>, compute: fn(f64, f64) -> f64) -> Value<'a> {
    match (call.f64(0), call.f64(1)) {
        (Some(x), Some(y)) => Value::float(compute(x, y)),
        _ => Value::Undefined,
    }
}

/// A rounding that does not change 64-bit integers.
fn whole<'a>(call: &Call<'_, 'a>, round: fn(f64) -> f64) -> Value<'a> {
    match call.arg(0).as_number() {
        Some(Number::Int(value)) => Value::int(value),
        Some(Number::Float(value)) => Value::float(round(value)),
        None => Value::Undefined,
    }
}

fn abs<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    match call.arg(0).as_number() {
        Some(Number::Int(value)) => value.checked_abs().map_or(Value::float(-(value as f64)), Value::int),
        Some(Number::Float(value)) => Value::float(value.abs()),
        None => Value::Undefined,
    }
}

fn log<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    if call.args.len() == 1 {
        one(call, f64::ln)
    } else {
        two(call, |x, base| x.ln() / base.ln())
    }
}

fn number_bin<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let size = if call.args.len() == 1 { Some(1.0) } else { call.f64(1) };
    match (call.f64(0), size) {
        (Some(x), Some(size)) if size != 0.0 => Value::float(tidied((x / size).floor() * size)),
        _ => Value::Undefined,
    }
}

/// Removes rounding errors in the last digits: 37.7, not 37.7 and a small fraction (cosmos-sql §18.1).
fn tidied(value: f64) -> f64 {
    if !value.is_finite() {
        return value;
    }
    format!("{value:.14e}").parse().unwrap_or(value)
}
