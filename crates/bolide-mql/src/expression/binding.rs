//! Operators that bind variables: `$let`, `$map`, `$filter`, `$reduce`.

use bson::{RawArray, RawBson, RawBsonRef};

use super::build::{self, ArrayBuilder, elements};
use super::call::Operation;
use super::node::{Expression, Node};
use super::operand::{Operand, is_nullish, render, type_name};
use super::operators::{Arguments, Named, Operator};
use super::scope::{ParseScope, Scope};
use super::variables::check_name_for_write;
use super::{boolean, parse};
use crate::error::{Code, Error, Result};
use crate::value::number;

pub(super) const OPERATORS: &[Operator] = &[
    Operator::lazy("$let", Arguments::Own(parse_let), evaluate_let),
    Operator::lazy("$map", Arguments::Own(parse_map), map),
    Operator::lazy("$filter", Arguments::Own(parse_filter), filter),
    Operator::lazy("$reduce", Arguments::Own(parse_reduce), reduce),
];

/// Most variables of one `$let`; each use of a variable looks through their names.
const MAX_VARIABLES: usize = 1000;

/// Deepest nesting of a value that `$reduce` makes, that of documents.
const MAX_VALUE_DEPTH: usize = 200;

const LET: Named = Named {
    not_object: 16874,
    unknown: 16875,
    parameters: &[("vars", Some(16876)), ("in", Some(16877))],
};

const MAP: Named = Named {
    not_object: 16878,
    unknown: 16879,
    parameters: &[("input", Some(16880)), ("as", None), ("in", Some(16882))],
};

const FILTER: Named = Named {
    not_object: 28646,
    unknown: 28647,
    parameters: &[
        ("input", Some(28648)),
        ("as", None),
        ("cond", Some(28650)),
        ("limit", None),
    ],
};

const REDUCE: Named = Named {
    not_object: 40075,
    unknown: 40076,
    parameters: &[
        ("input", Some(40077)),
        ("initialValue", Some(40078)),
        ("in", Some(40079)),
    ],
};

/// Makes an operation that binds variables.
fn node(operator: &'static Operator, arguments: Vec<Option<Expression>>, names: Vec<String>) -> Node {
    let mut operation = Operation::new(operator, arguments);
    operation.names = names;
    Node::Operation(Box::new(operation))
}

fn argument(values: &[Option<RawBsonRef<'_>>], index: usize, scope: &mut ParseScope) -> Result<Option<Expression>> {
    let value = values.get(index).copied().flatten();
    value.map(|value| parse::operand(value, scope)).transpose()
}

/// The name that `as` gives, or `this`. What is no string counts as an empty name.
fn element_name(value: Option<RawBsonRef<'_>>) -> Result<String> {
    let name = value.map_or("this", |value| value.as_str().unwrap_or(""));
    check_name_for_write(name)?;
    Ok(name.to_owned())
}

/// The arguments of the operation are the values of the variables, then `in`.
fn parse_let(operator: &'static Operator, value: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Node> {
    let values = parse::named_values(operator.name, &LET, value)?;
    let Some(Some(RawBsonRef::Document(variables))) = values.first() else {
        return Err(Error::new(10065, "invalid parameter: expected an object (vars)"));
    };
    let (mut names, mut arguments) = (Vec::new(), Vec::new());
    for field in build::fields(variables) {
        let (name, value) = field?;
        check_name_for_write(name.as_str())?;
        arguments.push(Some(parse::operand(value, scope)?));
        names.push(name.as_str().to_owned());
    }
    if names.len() > MAX_VARIABLES {
        let problem = format!("$let with more than {MAX_VARIABLES} variables is not supported");
        return Err(Error::new(Code::NOT_IMPLEMENTED, problem));
    }
    arguments.push(scope.with(&names, |scope| argument(&values, 1, scope))?);
    Ok(node(operator, arguments, names))
}

fn evaluate_let<'a>(operation: &'a Operation, scope: &Scope<'a>) -> Result<Option<Operand<'a>>> {
    let mut outer = *scope;
    let mut values = Vec::with_capacity(operation.names.len());
    for index in 0..operation.names.len() {
        let value = operation.argument(index, &outer)?;
        outer.hold(value.as_ref().map_or(0, Operand::owned_bytes))?;
        values.push(value);
    }
    let inner = outer.with_variables(&operation.names, &values);
    let value = operation.argument(operation.names.len(), &inner)?;
    Ok(value.map(|value| Operand::Owned(value.into_owned())))
}

fn parse_map(operator: &'static Operator, value: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Node> {
    let values = parse::named_values(operator.name, &MAP, value)?;
    let names = vec![element_name(values.get(1).copied().flatten())?];
    let input = argument(&values, 0, scope)?;
    let result = scope.with(&names, |scope| argument(&values, 2, scope))?;
    Ok(node(operator, vec![input, result], names))
}

/// The input of `$map` and the like; `None` if it is null or missing.
fn input<'v>(value: &'v Option<Operand<'_>>, code: i32, operator: &str) -> Result<Option<&'v RawArray>> {
    match value.as_ref().map(Operand::as_raw) {
        Some(RawBsonRef::Array(array)) => Ok(Some(array)),
        value if is_nullish(value) => Ok(None),
        value => {
            let found = type_name(value);
            Err(Error::new(
                code,
                format!("input to {operator} must be an array not {found}"),
            ))
        }
    }
}

fn null<'a>() -> Result<Option<Operand<'a>>> {
    Ok(Some(Operand::Owned(RawBson::Null)))
}

fn map<'a>(operation: &'a Operation, scope: &Scope<'a>) -> Result<Option<Operand<'a>>> {
    let value = operation.argument(0, scope)?;
    let Some(array) = input(&value, 16883, "$map")? else {
        return null();
    };
    let mut outer = *scope;
    outer.hold(value.as_ref().map_or(0, Operand::owned_bytes))?;
    let mut mapped = ArrayBuilder::new(&outer);
    for element in elements(array) {
        let inner = outer.with_variable(operation.variable(0), Some(element?));
        let value = operation.argument(1, &inner)?;
        mapped.push(value.as_ref().map_or(RawBsonRef::Null, Operand::as_raw))?;
    }
    Ok(Some(Operand::Owned(mapped.finish())))
}

fn parse_filter(operator: &'static Operator, value: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Node> {
    let values = parse::named_values(operator.name, &FILTER, value)?;
    let names = vec![element_name(values.get(1).copied().flatten())?];
    let input = argument(&values, 0, scope)?;
    let limit = argument(&values, 3, scope)?;
    let condition = scope.with(&names, |scope| argument(&values, 2, scope))?;
    Ok(node(operator, vec![input, condition, limit], names))
}

fn filter<'a>(operation: &'a Operation, scope: &Scope<'a>) -> Result<Option<Operand<'a>>> {
    let value = operation.argument(0, scope)?;
    let Some(array) = input(&value, 28651, "$filter")? else {
        return null();
    };
    let mut outer = *scope;
    outer.hold(value.as_ref().map_or(0, Operand::owned_bytes))?;
    let mut remaining = limit(operation.argument(2, &outer)?)?;
    let mut kept = ArrayBuilder::new(&outer);
    for element in elements(array) {
        if remaining == Some(0) {
            break;
        }
        let element = element?;
        outer.step(1)?;
        let inner = outer.with_variable(operation.variable(0), Some(element));
        if boolean::is_true(&operation.argument(1, &inner)?) {
            kept.push(element)?;
            remaining = remaining.map(|remaining| remaining - 1);
        }
    }
    Ok(Some(Operand::Owned(kept.finish())))
}

/// The limit of `$filter`; null is none.
fn limit(value: Option<Operand<'_>>) -> Result<Option<i32>> {
    let value = value.as_ref().map(Operand::as_raw);
    let Some(given) = value.filter(|_| !is_nullish(value)) else {
        return Ok(None);
    };
    let Some(limit) = number::whole(given).and_then(|limit| i32::try_from(limit).ok()) else {
        return Err(Error::new(
            327_391,
            format!(
                "$filter: limit must be represented as a 32-bit integral value: {}",
                render(value)
            ),
        ));
    };
    if limit <= 0 {
        return Err(Error::new(
            327_392,
            format!("$filter: limit must be greater than 0: {limit}"),
        ));
    }
    Ok(Some(limit))
}

fn parse_reduce(operator: &'static Operator, value: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Node> {
    let values = parse::named_values(operator.name, &REDUCE, value)?;
    let names = vec!["value".to_owned(), "this".to_owned()];
    let input = argument(&values, 0, scope)?;
    let initial = argument(&values, 1, scope)?;
    let step = scope.with(&names, |scope| argument(&values, 2, scope))?;
    Ok(node(operator, vec![input, initial, step], names))
}

fn reduce<'a>(operation: &'a Operation, scope: &Scope<'a>) -> Result<Option<Operand<'a>>> {
    let value = operation.argument(0, scope)?;
    let Some(array) = input(&value, 40080, "$reduce")? else {
        return null();
    };
    let mut outer = *scope;
    outer.hold(value.as_ref().map_or(0, Operand::owned_bytes))?;
    let mut result = operation.argument(1, &outer)?;
    for element in elements(array) {
        outer.step(1)?;
        let mut step = outer;
        step.hold(result.as_ref().map_or(0, Operand::owned_bytes))?;
        let with_value = step.with_variable("value", result.as_ref().map(Operand::as_raw));
        let inner = with_value.with_variable("this", Some(element?));
        let next = operation.argument(2, &inner)?.map(Operand::into_owned);
        check_depth(next.as_ref())?;
        result = next.map(Operand::Owned);
    }
    Ok(result)
}

/// Each step of `$reduce` can nest its value once more; other operators nest no deeper than the expression is.
fn check_depth(value: Option<&RawBson>) -> Result<()> {
    match value.map(RawBson::as_raw_bson_ref) {
        Some(value) if depth(value, 0)? > MAX_VALUE_DEPTH => Err(Error::new(
            Code::OVERFLOW,
            format!("$reduce: the value is nested deeper than {MAX_VALUE_DEPTH} levels"),
        )),
        _ => Ok(()),
    }
}

/// The nesting of a value, counted at most to one more than the limit.
fn depth(value: RawBsonRef<'_>, above: usize) -> Result<usize> {
    let mut deepest = above;
    if above > MAX_VALUE_DEPTH {
        return Ok(deepest);
    }
    match value {
        RawBsonRef::Document(document) => {
            for field in build::fields(document) {
                deepest = deepest.max(depth(field?.1, above + 1)?);
            }
        }
        RawBsonRef::Array(array) => {
            for element in elements(array) {
                deepest = deepest.max(depth(element?, above + 1)?);
            }
        }
        _ => {}
    }
    Ok(deepest)
}
