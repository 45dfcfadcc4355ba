//! `$and`, `$or`, `$not`.

use bson::RawBson;

use super::call::{Call, Operation};
use super::operand::Operand;
use super::operators::{Arguments, Operator};
use super::scope::Scope;
use crate::error::Result;
use crate::value;

pub(super) const OPERATORS: &[Operator] = &[
    Operator::lazy("$and", Arguments::Any, and),
    Operator::lazy("$or", Arguments::Any, or),
    Operator::eager("$not", Arguments::Exactly(1), not),
];

/// Whether a value counts as true; a missing one does not.
pub(super) fn is_true(value: &Option<Operand<'_>>) -> bool {
    value.as_ref().is_some_and(|value| value::is_truthy(value.as_raw()))
}

fn and<'a>(operation: &'a Operation, scope: &Scope<'a>) -> Result<Option<Operand<'a>>> {
    for argument in operation.given() {
        if !argument.is_true(scope)? {
            return boolean(false);
        }
    }
    boolean(true)
}

fn or<'a>(operation: &'a Operation, scope: &Scope<'a>) -> Result<Option<Operand<'a>>> {
    for argument in operation.given() {
        if argument.is_true(scope)? {
            return boolean(true);
        }
    }
    boolean(false)
}

fn boolean<'a>(value: bool) -> Result<Option<Operand<'a>>> {
    Ok(Some(Operand::Owned(RawBson::Boolean(value))))
}

fn not(call: &Call<'_>) -> Result<Option<RawBson>> {
    let is_true = call.get(0).is_some_and(value::is_truthy);
    Ok(Some(RawBson::Boolean(!is_true)))
}
