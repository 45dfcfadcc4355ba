//! `$bitAnd`, `$bitOr`, `$bitXor`, `$bitNot` on whole numbers.

use bson::{RawBson, RawBsonRef};

use super::call::{Call, null};
use super::operand::is_nullish;
use super::operators::{Arguments, Operator};
use crate::error::{Code, Error, Result};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::eager("$bitAnd", Arguments::Any, |call| combine(call, -1, |a, b| a & b)),
    Operator::eager("$bitOr", Arguments::Any, |call| combine(call, 0, |a, b| a | b)),
    Operator::eager("$bitXor", Arguments::Any, |call| combine(call, 0, |a, b| a ^ b)),
    Operator::eager("$bitNot", Arguments::Exactly(1), complement),
];

/// An int of ints, else a long.
fn combine(call: &Call<'_>, start: i32, operation: fn(i64, i64) -> i64) -> Result<Option<RawBson>> {
    let (mut result, mut is_long, mut is_null) = (i64::from(start), false, false);
    for value in call.iter() {
        let bits = match value {
            Some(RawBsonRef::Int32(bits)) => i64::from(bits),
            Some(RawBsonRef::Int64(bits)) => {
                is_long = true;
                bits
            }
            value if is_nullish(value) => {
                is_null = true;
                continue;
            }
            _ => {
                let problem = format!("{} only supports int and long operands.", call.name());
                return Err(Error::new(Code::TYPE_MISMATCH, problem));
            }
        };
        result = operation(result, bits);
    }
    Ok(Some(match i32::try_from(result) {
        _ if is_null => RawBson::Null,
        Ok(result) if !is_long => RawBson::Int32(result),
        _ => RawBson::Int64(result),
    }))
}

fn complement(call: &Call<'_>) -> Result<Option<RawBson>> {
    match call.non_null(0) {
        None => null(),
        Some(RawBsonRef::Int32(bits)) => Ok(Some(RawBson::Int32(!bits))),
        Some(RawBsonRef::Int64(bits)) => Ok(Some(RawBson::Int64(!bits))),
        Some(_) => {
            let problem = format!("$bitNot only supports int and long, not: {}.", call.type_name(0));
            Err(Error::new(Code::TYPE_MISMATCH, problem))
        }
    }
}
