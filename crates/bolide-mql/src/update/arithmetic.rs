//! `$inc` and `$mul`.

use bson::raw::CStr;
use bson::{RawBson, RawBsonRef};

use super::operator::{Change, Target};
use super::text::shown;
use crate::error::{Code, Error, Result};
use crate::value;
use crate::value::number::Number;

/// `$inc` or `$mul` with its argument.
#[derive(Debug)]
pub(super) struct Arithmetic {
    function: Function,
    argument: Number,
}

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    /// `$inc`.
    Increment,
    /// `$mul`.
    Multiply,
}

impl Function {
    fn operator(self) -> &'static str {
        match self {
            Function::Increment => "$inc",
            Function::Multiply => "$mul",
        }
    }

    fn verb(self) -> &'static str {
        match self {
            Function::Increment => "increment",
            Function::Multiply => "multiply",
        }
    }
}

impl Arithmetic {
    /// Parses the argument.
    ///
    /// # Errors
    /// `TypeMismatch`: not a number.
    pub(super) fn parse(function: Function, field: &CStr, argument: RawBsonRef<'_>) -> Result<Arithmetic> {
        let number = Number::of(argument).ok_or_else(|| {
            let argument = shown(argument);
            Error::new(
                Code::TYPE_MISMATCH,
                format!(
                    "Cannot {} with non-numeric argument: {{{}: {argument}}}",
                    function.verb(),
                    field.as_str()
                ),
            )
        })?;
        Ok(Arithmetic {
            function,
            argument: number,
        })
    }

    /// Changes a number. The result has the wider of both types; 32-bit integers that overflow become 64-bit.
    ///
    /// # Errors
    /// - `TypeMismatch`: the value is not a number.
    /// - `BadValue`: 64-bit integers overflow.
    pub(super) fn change(&self, current: RawBsonRef<'_>, target: &Target<'_>) -> Result<Change> {
        let operator = self.function.operator();
        let number = Number::of(current).ok_or_else(|| {
            Error::new(
                Code::TYPE_MISMATCH,
                format!(
                    "Cannot apply {operator} to a value of non-numeric type. {{{}}} has the field '{}' of non-numeric type {}",
                    target.id(),
                    target.name,
                    value::types::name(current)
                ),
            )
        })?;
        let result = self.calculate(number).ok_or_else(|| {
            Error::bad_value(format!(
                "Failed to apply {operator} operations to current value ({}) for document {{{}}}",
                number_text(current),
                target.id()
            ))
        })?;
        // Also where the signs of zeros differ, as in MongoDB: -0.0 + 0.0 leaves -0.0.
        if result.element_type() == current.element_type() && value::equal(current, result.as_raw_bson_ref()) {
            return Ok(Change::None);
        }
        Ok(Change::Value(result))
    }

    /// Returns the value where there was none: the argument, or zero of its type.
    pub(super) fn create(&self) -> RawBson {
        let missing = Number::Int32(0);
        self.calculate(missing).unwrap_or_else(|| self.argument.into())
    }

    /// Returns the result; `None` if 64-bit integers overflow.
    fn calculate(&self, number: Number) -> Option<RawBson> {
        let result = match self.function {
            Function::Increment => number.checked_add(self.argument),
            Function::Multiply => number.checked_mul(self.argument),
        };
        result.map(RawBson::from)
    }
}

fn number_text(number: RawBsonRef<'_>) -> String {
    let kind = match number {
        RawBsonRef::Int32(_) => "NumberInt",
        RawBsonRef::Int64(_) => "NumberLong",
        RawBsonRef::Double(_) => "NumberDouble",
        _ => "NumberDecimal",
    };
    format!("({kind}){}", shown(number))
}
