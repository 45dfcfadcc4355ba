//! 64-bit integer functions (cosmos-sql §18.1). Results wrap modulo 2^64.

use super::{Call, Function};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::strict("INTADD", 2, 2, |c| two(c, |a, b| Some(a.wrapping_add(b)))),
    Function::strict("INTSUB", 2, 2, |c| two(c, |a, b| Some(a.wrapping_sub(b)))),
    Function::strict("INTMUL", 2, 2, |c| two(c, |a, b| Some(a.wrapping_mul(b)))),
    Function::strict("INTDIV", 2, 2, |c| two(c, divide)),
    Function::strict("INTMOD", 2, 2, |c| two(c, remainder)),
    Function::strict("INTBITAND", 2, 2, |c| two(c, |a, b| Some(a & b))),
    Function::strict("INTBITOR", 2, 2, |c| two(c, |a, b| Some(a | b))),
    Function::strict("INTBITXOR", 2, 2, |c| two(c, |a, b| Some(a ^ b))),
    Function::strict("INTBITNOT", 1, 1, bit_not),
    Function::strict("INTBITLEFTSHIFT", 2, 2, |c| two(c, shift_left)),
    Function::strict("INTBITRIGHTSHIFT", 2, 2, |c| two(c, shift_right)),
    // The names that the SDK uses.
    Function::strict("IntBitwiseAnd", 2, 2, |c| two(c, |a, b| Some(a & b))),
    Function::strict("IntBitwiseOr", 2, 2, |c| two(c, |a, b| Some(a | b))),
    Function::strict("IntBitwiseXor", 2, 2, |c| two(c, |a, b| Some(a ^ b))),
    Function::strict("IntBitwiseNot", 1, 1, bit_not),
    Function::strict("IntBitwiseLeftShift", 2, 2, |c| two(c, shift_left)),
    Function::strict("IntBitwiseRightShift", 2, 2, |c| two(c, shift_right)),
];

fn two<'a>(call: &Call<'_, 'a>, compute: fn(i64, i64) -> Option<i64>) -> Value<'a> {
    match (call.i64(0), call.i64(1)) {
        (Some(a), Some(b)) => compute(a, b).map_or(Value::Undefined, Value::int),
        _ => Value::Undefined,
    }
}

fn bit_not<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    call.i64(0).map_or(Value::Undefined, |a| Value::int(!a))
}

fn divide(a: i64, b: i64) -> Option<i64> {
    (b != 0).then(|| a.wrapping_div(b))
}

fn remainder(a: i64, b: i64) -> Option<i64> {
    (b != 0).then(|| a.wrapping_rem(b))
}

/// Shift counts are taken modulo 64.
fn shift_left(a: i64, b: i64) -> Option<i64> {
    Some(a.wrapping_shl((b & 63) as u32))
}

fn shift_right(a: i64, b: i64) -> Option<i64> {
    Some(a.wrapping_shr((b & 63) as u32))
}
