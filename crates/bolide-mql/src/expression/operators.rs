//! The table of operators.

use std::collections::HashMap;
use std::sync::LazyLock;

use bson::{RawBson, RawBsonRef};

use super::call::{Call, Operation};
use super::node::{Expression, Node};
use super::operand::Operand;
use super::scope::{ParseScope, Scope};
use super::{
    accumulate, arithmetic, array, binding, bits, boolean, comparison, conditional, convert, date, hash, miscellaneous,
    object, set, string, trigonometry,
};
use crate::error::Result;

/// A row of the table.
#[derive(Debug)]
pub(super) struct Operator {
    /// The name with its `$`.
    pub(super) name: &'static str,
    /// The form of the arguments.
    pub(super) arguments: Arguments,
    /// How it is computed.
    pub(super) function: Function,
}

/// The form of an operator's arguments.
#[derive(Debug, Clone, Copy)]
pub(super) enum Arguments {
    /// An array of any length; a single value stands for an array of one.
    Any,
    /// At least so many, else this code.
    AtLeast(usize, i32),
    /// So many, else 16020.
    Exactly(usize),
    /// From so many to so many, else 28667.
    Between(usize, usize),
    /// A document of named arguments.
    Named(&'static Named),
    /// Its own form.
    Own(fn(&'static Operator, RawBsonRef<'_>, &mut ParseScope) -> Result<Node>),
}

/// Named arguments. They are evaluated in the order of this table.
#[derive(Debug)]
pub(super) struct Named {
    /// The code when the argument is not a document.
    pub(super) not_object: i32,
    /// The code for an argument that is not in the table.
    pub(super) unknown: i32,
    /// The arguments, with the code when one that is required was not given.
    pub(super) parameters: &'static [(&'static str, Option<i32>)],
}

/// How an operator is computed.
#[derive(Clone, Copy)]
pub(super) enum Function {
    /// From the values of all its arguments.
    Eager(fn(&Call<'_>) -> Result<Option<RawBson>>),
    /// It computes itself the arguments that it needs.
    Lazy(LazyFunction),
}

type LazyFunction = for<'a> fn(&'a Operation, &Scope<'a>) -> Result<Option<Operand<'a>>>;

impl std::fmt::Debug for Function {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Function::Eager(_) => "Eager",
            Function::Lazy(_) => "Lazy",
        })
    }
}

impl Operator {
    pub(super) const fn eager(
        name: &'static str,
        arguments: Arguments,
        function: fn(&Call<'_>) -> Result<Option<RawBson>>,
    ) -> Operator {
        let function = Function::Eager(function);
        Operator {
            name,
            arguments,
            function,
        }
    }

    pub(super) const fn lazy(name: &'static str, arguments: Arguments, function: LazyFunction) -> Operator {
        let function = Function::Lazy(function);
        Operator {
            name,
            arguments,
            function,
        }
    }

    /// Whether equal arguments give equal values, without other input.
    pub(super) fn is_deterministic(&self) -> bool {
        !matches!(self.name, "$rand" | "$meta")
    }
}

/// All operators by name.
static OPERATORS: LazyLock<HashMap<&'static str, &'static Operator>> = LazyLock::new(|| {
    let tables = [
        accumulate::OPERATORS,
        arithmetic::OPERATORS,
        arithmetic::rounding::OPERATORS,
        array::OPERATORS,
        array::objects::OPERATORS,
        array::order::OPERATORS,
        array::slices::OPERATORS,
        array::zip::OPERATORS,
        binding::OPERATORS,
        bits::OPERATORS,
        boolean::OPERATORS,
        comparison::OPERATORS,
        conditional::OPERATORS,
        convert::OPERATORS,
        date::OPERATORS,
        hash::OPERATORS,
        miscellaneous::OPERATORS,
        object::OPERATORS,
        set::OPERATORS,
        string::OPERATORS,
        string::regex::OPERATORS,
        string::substring::OPERATORS,
        trigonometry::OPERATORS,
    ];
    let rows = tables.into_iter().flatten();
    rows.map(|operator| (operator.name, operator)).collect()
});

/// Returns the operator of this name.
pub(super) fn find(name: &str) -> Option<&'static Operator> {
    OPERATORS.get(name).copied()
}

/// An operation with these arguments as a node.
pub(super) fn operation(operator: &'static Operator, arguments: Vec<Option<Expression>>) -> Node {
    Node::Operation(Box::new(Operation::new(operator, arguments)))
}

/// The names of all operators, in order.
#[cfg(test)]
pub(super) fn names() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = OPERATORS.keys().copied().collect();
    names.sort_unstable();
    names
}
