//! An operator with its arguments, before and after they are computed.

use bson::{RawArray, RawBson, RawBsonRef};

use super::array::order::SortPattern;
use super::node::Expression;
use super::operand::{Operand, is_nullish, render, type_name};
use super::operators::Operator;
use super::scope::Scope;
use crate::error::{Error, Result};
use crate::value::regex::Regex;

/// An operator in an expression.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) operator: &'static Operator,
    /// The arguments by position, or in the order of the operator's table of names; `None` was not given.
    pub(super) arguments: Vec<Option<Expression>>,
    /// The names of the variables that it binds.
    pub(super) names: Vec<String>,
    /// What is computed once, at parsing.
    pub(super) prepared: Prepared,
}

/// Parts of an operation that do not depend on the document.
#[derive(Debug)]
pub(super) enum Prepared {
    Nothing,
    Regex(Box<Regex>),
    Sort(SortPattern),
}

impl Operation {
    pub(super) fn new(operator: &'static Operator, arguments: Vec<Option<Expression>>) -> Operation {
        Operation {
            operator,
            arguments,
            names: Vec::new(),
            prepared: Prepared::Nothing,
        }
    }

    /// The arguments that were given.
    pub(super) fn given(&self) -> impl Iterator<Item = &Expression> {
        self.arguments.iter().flatten()
    }

    pub(super) fn is_given(&self, index: usize) -> bool {
        self.arguments.get(index).is_some_and(Option::is_some)
    }

    /// Computes one argument; `None` if it was not given or is missing.
    pub(super) fn argument<'a>(&'a self, index: usize, scope: &Scope<'a>) -> Result<Option<Operand<'a>>> {
        match self.arguments.get(index) {
            Some(Some(argument)) => argument.operand(scope),
            _ => Ok(None),
        }
    }

    /// The name of the variable with this number.
    pub(super) fn variable(&self, index: usize) -> &str {
        self.names.get(index).map_or("", String::as_str)
    }
}

/// An operator and the values of its arguments.
pub(super) struct Call<'c> {
    pub(super) operation: &'c Operation,
    pub(super) scope: &'c Scope<'c>,
    pub(super) values: &'c [Option<Operand<'c>>],
}

impl<'c> Call<'c> {
    /// The operator, such as `$add`.
    pub(super) fn name(&self) -> &'static str {
        self.operation.operator.name
    }

    /// An argument; `None` if it is missing or was not given.
    pub(super) fn get(&self, index: usize) -> Option<RawBsonRef<'c>> {
        let values: &'c [Option<Operand<'c>>] = self.values;
        values.get(index)?.as_ref().map(Operand::as_raw)
    }

    /// An argument; `None` also if it is null or undefined.
    pub(super) fn non_null(&self, index: usize) -> Option<RawBsonRef<'c>> {
        self.get(index).filter(|value| !is_nullish(Some(*value)))
    }

    /// All arguments.
    pub(super) fn iter(&self) -> impl Iterator<Item = Option<RawBsonRef<'c>>> {
        let values: &'c [Option<Operand<'c>>] = self.values;
        values.iter().map(|value| value.as_ref().map(Operand::as_raw))
    }

    /// Whether the operator was written with this argument, even if its value is missing.
    pub(super) fn is_given(&self, index: usize) -> bool {
        self.operation.is_given(index)
    }

    /// The name of the type of an argument, or `missing`.
    pub(super) fn type_name(&self, index: usize) -> &'static str {
        type_name(self.get(index))
    }

    /// An argument as error texts show it.
    pub(super) fn render(&self, index: usize) -> String {
        render(self.get(index))
    }

    /// An argument that must be an array; `None` if it is null or missing.
    ///
    /// # Errors
    /// The given code with the given text, to which the type is added.
    pub(super) fn array(&self, index: usize, code: i32, text: &str) -> Result<Option<&'c RawArray>> {
        match self.non_null(index) {
            None => Ok(None),
            Some(RawBsonRef::Array(array)) => Ok(Some(array)),
            Some(other) => Err(Error::new(code, format!("{text}{}", type_name(Some(other))))),
        }
    }
}

/// The result null.
pub(super) fn null() -> Result<Option<RawBson>> {
    Ok(Some(RawBson::Null))
}
