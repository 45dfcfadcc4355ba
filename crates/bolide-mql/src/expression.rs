//! Aggregation expressions (`mongo.md §13`).
//!
//! [`Expression::parse`] checks an expression of a pipeline or of `$expr` once; [`Expression::evaluate`] computes it for each document. Operators are rows
//! of tables, one table in each module; a row states the arguments of the operator and the function that computes it.
//!
//! A missing value is `None`. It differs from null: a missing value in a document leaves the field out, and it orders before null.

mod accumulate;
mod arithmetic;
mod array;
mod binding;
mod bits;
mod boolean;
mod build;
mod call;
mod comparison;
mod conditional;
mod convert;
mod date;
mod field_path;
mod hash;
mod miscellaneous;
mod node;
mod object;
mod operand;
mod operators;
mod parse;
mod scope;
mod set;
mod string;
mod trigonometry;
mod variables;

pub use accumulate::percentile::percentiles;
pub use accumulate::total::Total;
pub use node::{Expression, FieldPaths, evaluate_document};
pub use scope::{ParseScope, Scope};

pub use accumulate::deviation::Deviation;
pub use variables::check_name_for_write as check_variable_name;

/// Tells whether there is an operator of this name, with its `$`.
pub fn is_operator(name: &str) -> bool {
    operators::find(name).is_some()
}

#[cfg(test)]
mod tests;
