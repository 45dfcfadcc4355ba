//! `$bit`.

use bson::{RawBson, RawBsonRef};

use super::operator::{Change, Target};
use super::text::shown;
use crate::error::{Error, Result};
use crate::value;

/// `$bit` with its operations, in order.
#[derive(Debug)]
pub(super) struct Bit {
    operations: Vec<(Function, Integer)>,
}

#[derive(Debug, Clone, Copy)]
enum Function {
    And,
    Or,
    Xor,
}

/// An integer of one of the two widths.
#[derive(Debug, Clone, Copy)]
enum Integer {
    Narrow(i32),
    Wide(i64),
}

impl Integer {
    fn of(value: RawBsonRef<'_>) -> Option<Integer> {
        match value {
            RawBsonRef::Int32(value) => Some(Integer::Narrow(value)),
            RawBsonRef::Int64(value) => Some(Integer::Wide(value)),
            _ => None,
        }
    }

    fn wide(self) -> i64 {
        match self {
            Integer::Narrow(value) => i64::from(value),
            Integer::Wide(value) => value,
        }
    }
}

impl Bit {
    /// Parses `{and: 1, or: 2, xor: 4}`.
    ///
    /// # Errors
    /// `BadValue`: not a document, an empty one, an unknown operation, or an operand that is not an integer.
    pub(super) fn parse(argument: RawBsonRef<'_>) -> Result<Bit> {
        let RawBsonRef::Document(document) = argument else {
            return Err(Error::bad_value(format!(
                "The $bit modifier is not compatible with a {}. You must pass in an embedded document: {{$bit: {{field: {{and/or/xor: #}}}}",
                value::types::name(argument)
            )));
        };
        let mut operations = Vec::new();
        for field in document {
            let (name, operand) = field?;
            operations.push(parse_operation(name.as_str(), operand)?);
        }
        if operations.is_empty() {
            return Err(Error::bad_value(
                "You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}",
            ));
        }
        Ok(Bit { operations })
    }

    /// Changes an integer.
    ///
    /// # Errors
    /// `BadValue`: the value is not an integer.
    pub(super) fn change(&self, current: RawBsonRef<'_>, target: &Target<'_>) -> Result<Change> {
        let current = Integer::of(current).ok_or_else(|| {
            Error::bad_value(format!(
                "Cannot apply $bit to a value of non-integral type.{} has the field {} of non-integer type {}",
                target.id(),
                target.name,
                value::types::name(current)
            ))
        })?;
        Ok(Change::Value(self.calculate(current)))
    }

    /// Returns the value where there was none: the operations on zero.
    pub(super) fn create(&self) -> RawBson {
        self.calculate(Integer::Narrow(0))
    }

    fn calculate(&self, start: Integer) -> RawBson {
        let result = self
            .operations
            .iter()
            .fold(start, |left, (function, right)| match (left, *right) {
                (Integer::Narrow(left), Integer::Narrow(right)) => Integer::Narrow(match function {
                    Function::And => left & right,
                    Function::Or => left | right,
                    Function::Xor => left ^ right,
                }),
                (left, right) => Integer::Wide(match function {
                    Function::And => left.wide() & right.wide(),
                    Function::Or => left.wide() | right.wide(),
                    Function::Xor => left.wide() ^ right.wide(),
                }),
            });
        match result {
            Integer::Narrow(value) => RawBson::Int32(value),
            Integer::Wide(value) => RawBson::Int64(value),
        }
    }
}

fn parse_operation(name: &str, operand: RawBsonRef<'_>) -> Result<(Function, Integer)> {
    let function = match name {
        "and" => Function::And,
        "or" => Function::Or,
        "xor" => Function::Xor,
        _ => {
            let operand = shown(operand);
            return Err(Error::bad_value(format!(
                "The $bit modifier only supports 'and', 'or', and 'xor', not '{name}' which is an unknown operator: {{{name}: {operand}}}"
            )));
        }
    };
    let operand = Integer::of(operand).ok_or_else(|| {
        Error::bad_value(format!(
            "The $bit modifier field must be an Integer(32/64 bit); a '{}' is not supported here: {{{name}: {}}}",
            value::types::name(operand),
            shown(operand)
        ))
    })?;
    Ok((function, operand))
}
