//! `$zip`.

use bson::{RawArray, RawBson, RawBsonRef};

use super::super::Expression;
use super::super::build::{ArrayBuilder, elements};
use super::super::call::Operation;
use super::super::node::Node;
use super::super::operand::{Operand, is_nullish, render, type_name};
use super::super::operators::{self, Arguments, Named, Operator};
use super::super::parse;
use super::super::scope::{ParseScope, Scope};
use crate::error::{Error, Result};

pub(in crate::expression) const OPERATORS: &[Operator] = &[Operator::lazy("$zip", Arguments::Own(parse_zip), zip)];

const ZIP: Named = Named {
    not_object: 34460,
    unknown: 34464,
    parameters: &[("inputs", Some(34465)), ("useLongestLength", None), ("defaults", None)],
};

/// The arguments of the operation are whether the longest length counts, the inputs, then as many defaults or none.
fn parse_zip(operator: &'static Operator, value: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Node> {
    let values = parse::named_values(operator.name, &ZIP, value)?;
    let argument = |index: usize| values.get(index).copied().flatten();
    let is_longest = match argument(1) {
        None => false,
        Some(RawBsonRef::Boolean(value)) => value,
        other => {
            let found = type_name(other);
            return Err(Error::new(
                34463,
                format!("useLongestLength must be a bool, found {found}"),
            ));
        }
    };
    let inputs = expressions(argument(0), (34461, "inputs"), scope)?;
    if inputs.is_empty() {
        return Err(Error::new(34465, "$zip requires at least one input array"));
    }
    let defaults = match argument(2) {
        None => Vec::new(),
        given => expressions(given, (34462, "defaults"), scope)?,
    };
    if !defaults.is_empty() && !is_longest {
        return Err(Error::new(
            34466,
            "cannot specify defaults unless useLongestLength is true",
        ));
    }
    if !defaults.is_empty() && defaults.len() != inputs.len() {
        return Err(Error::new(34467, "defaults and inputs must have the same length"));
    }
    let mut arguments = vec![Some(Expression::constant(RawBson::Boolean(is_longest)))];
    arguments.extend(inputs.into_iter().chain(defaults).map(Some));
    let has_defaults = arguments.len() > 1 && argument(2).is_some_and(|given| !is_empty(given));
    if !has_defaults {
        let inputs = arguments.len() - 1;
        arguments.extend((0..inputs).map(|_| None));
    }
    Ok(operators::operation(operator, arguments))
}

fn is_empty(value: RawBsonRef<'_>) -> bool {
    value.as_array().is_none_or(RawArray::is_empty)
}

fn expressions(
    value: Option<RawBsonRef<'_>>,
    (code, name): (i32, &str),
    scope: &mut ParseScope,
) -> Result<Vec<Expression>> {
    let Some(RawBsonRef::Array(array)) = value else {
        let found = type_name(value);
        return Err(Error::new(
            code,
            format!("{name} must be an array of expressions, found {found}"),
        ));
    };
    elements(array).map(|element| parse::operand(element?, scope)).collect()
}

fn zip<'a>(operation: &'a Operation, scope: &Scope<'a>) -> Result<Option<Operand<'a>>> {
    let is_longest = matches!(
        operation.argument(0, scope)?.as_ref().map(Operand::as_raw),
        Some(RawBsonRef::Boolean(true))
    );
    let count = (operation.arguments.len() - 1) / 2;
    let mut inner = *scope;
    let mut inputs = Vec::with_capacity(count);
    let mut defaults = Vec::with_capacity(count);
    for index in 1..=count {
        let input = operation.argument(index, &inner)?;
        inner.hold(input.as_ref().map_or(0, Operand::owned_bytes))?;
        match input.as_ref().map(Operand::as_raw) {
            value if is_nullish(value) => return Ok(Some(Operand::Owned(RawBson::Null))),
            Some(RawBsonRef::Array(_)) => inputs.push(input),
            value => {
                let shown = render(value);
                return Err(Error::new(
                    34468,
                    format!("$zip found a non-array expression in input: {shown}"),
                ));
            }
        }
    }
    for index in count + 1..=2 * count {
        let default = operation.argument(index, &inner)?;
        inner.hold(default.as_ref().map_or(0, Operand::owned_bytes))?;
        defaults.push(default);
    }
    let rows = rows(&inputs, &defaults, is_longest, &inner)?;
    Ok(Some(Operand::Owned(rows)))
}

fn rows(
    inputs: &[Option<Operand<'_>>],
    defaults: &[Option<Operand<'_>>],
    is_longest: bool,
    scope: &Scope<'_>,
) -> Result<RawBson> {
    let arrays = inputs.iter().filter_map(|input| input.as_ref()?.as_raw().as_array());
    let mut columns: Vec<_> = arrays.map(elements).collect();
    let mut rows = ArrayBuilder::new(scope);
    loop {
        let values = columns.iter_mut().map(|column| column.next().transpose());
        let values: Vec<Option<RawBsonRef<'_>>> = values.collect::<Result<_>>()?;
        let is_end = match is_longest {
            true => values.iter().all(Option::is_none),
            false => values.iter().any(Option::is_none),
        };
        if is_end {
            return Ok(rows.finish());
        }
        let mut row = ArrayBuilder::new(scope);
        for (value, default) in values.iter().zip(defaults) {
            let default = default.as_ref().map_or(RawBsonRef::Null, Operand::as_raw);
            row.push(value.unwrap_or(default))?;
        }
        if let RawBson::Array(row) = row.finish() {
            rows.push(RawBsonRef::Array(&row))?;
        }
    }
}
