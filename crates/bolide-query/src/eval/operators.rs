//! Unary and binary operators (cosmos-sql §6).

use std::cmp::Ordering;
use std::sync::Arc;

use crate::error::Result;
use crate::number::Number;
use crate::session::Session;
use crate::text::ast::{BinaryOp, UnaryOp};
use crate::value::{Value, compare, equals, truth};

/// Applies a unary operator.
pub fn unary<'a>(op: UnaryOp, operand: &Value<'a>) -> Value<'a> {
    match (op, operand) {
        (UnaryOp::Not, _) => truth(operand).map_or(Value::Undefined, |value| Value::Bool(!value)),
        (UnaryOp::Plus, Value::Number(_)) => operand.clone(),
        (UnaryOp::Minus, Value::Number(Number::Int(value))) if *value != 0 => {
            value.checked_neg().map_or(Value::float(-(*value as f64)), Value::int)
        }
        (UnaryOp::Minus, Value::Number(number)) => Value::float(-number.as_f64()),
        (UnaryOp::BitNot, Value::Number(number)) => Value::int(i64::from(!to_int32(number.as_f64()))),
        _ => Value::Undefined,
    }
}

/// Applies a binary operator.
///
/// # Errors
/// If a string becomes too long, or there is no fuel left.
pub fn binary<'a>(op: BinaryOp, left: &Value<'a>, right: &Value<'a>, session: &Session) -> Result<Value<'a>> {
    if let (Value::String(a), Value::String(b)) = (left, right) {
        session.fuel.burn(a.as_str().len().min(b.as_str().len()) as u64 / 8)?;
    }
    Ok(match op {
        BinaryOp::Equal => equals(left, right, &session.fuel).map_or(Value::Undefined, Value::Bool),
        BinaryOp::NotEqual => equals(left, right, &session.fuel).map_or(Value::Undefined, |same| Value::Bool(!same)),
        BinaryOp::Less => compared(left, right, Ordering::is_lt),
        BinaryOp::LessOrEqual => compared(left, right, Ordering::is_le),
        BinaryOp::Greater => compared(left, right, Ordering::is_gt),
        BinaryOp::GreaterOrEqual => compared(left, right, Ordering::is_ge),
        BinaryOp::Concat => return concat(left, right, session),
        _ => match (left.as_f64(), right.as_f64()) {
            (Some(a), Some(b)) => Value::Number(arithmetic(op, a, b)),
            _ => Value::Undefined,
        },
    })
}

fn compared<'a>(left: &Value<'_>, right: &Value<'_>, test: fn(Ordering) -> bool) -> Value<'a> {
    match compare(left, right) {
        Some(order) => Value::Bool(test(order)),
        // NaN is a number like any other here: the comparison is defined, and its result is false.
        None if left.as_number().is_some() && right.as_number().is_some() => Value::Bool(false),
        None => Value::Undefined,
    }
}

fn concat<'a>(left: &Value<'_>, right: &Value<'_>, session: &Session) -> Result<Value<'a>> {
    let (Some(a), Some(b)) = (left.as_str(), right.as_str()) else {
        return Ok(Value::Undefined);
    };
    session.memory.check_bytes(a.len() + b.len())?;
    session.fuel.burn((a.len() + b.len()) as u64 / 4)?;
    Ok(Value::string(Arc::from([a, b].concat())))
}

fn arithmetic(op: BinaryOp, a: f64, b: f64) -> Number {
    match op {
        BinaryOp::Add => Number::Float(a + b),
        BinaryOp::Subtract => Number::Float(a - b),
        BinaryOp::Multiply => Number::Float(a * b),
        BinaryOp::Divide => Number::Float(a / b),
        BinaryOp::Remainder => Number::Float(a % b),
        BinaryOp::BitAnd => Number::Int(i64::from(to_int32(a) & to_int32(b))),
        BinaryOp::BitOr => Number::Int(i64::from(to_int32(a) | to_int32(b))),
        BinaryOp::BitXor => Number::Int(i64::from(to_int32(a) ^ to_int32(b))),
        BinaryOp::ShiftLeft => Number::Int(i64::from(to_int32(a).wrapping_shl(shift_count(b)))),
        BinaryOp::ShiftRight => Number::Int(i64::from(to_int32(a).wrapping_shr(shift_count(b)))),
        BinaryOp::ShiftRightUnsigned => Number::Int(i64::from((to_int32(a) as u32).wrapping_shr(shift_count(b)))),
        other => unreachable!("not arithmetic: {other:?}"),
    }
}

fn shift_count(value: f64) -> u32 {
    (to_int32(value) as u32) & 31
}

/// JavaScript's ToInt32: drops the fraction, then modulo 2^32.
fn to_int32(value: f64) -> i32 {
    const MODULUS: f64 = 4_294_967_296.0;
    if !value.is_finite() {
        return 0;
    }
    value.trunc().rem_euclid(MODULUS) as u32 as i32
}
