//! `$cond`, `$ifNull`, `$switch`.

use bson::RawBsonRef;

use super::build::{elements, fields};
use super::call::Operation;
use super::node::Node;
use super::operand::{Operand, is_nullish};
use super::operators::{self, Arguments, Named, Operator};
use super::scope::{ParseScope, Scope};
use super::{boolean, parse};
use crate::error::{Error, Result};
use crate::value;

pub(super) const OPERATORS: &[Operator] = &[
    Operator::lazy("$cond", Arguments::Own(parse_cond), cond),
    Operator::lazy("$ifNull", Arguments::AtLeast(2, 1_257_300), if_null),
    Operator::lazy("$switch", Arguments::Own(parse_switch), switch),
];

const COND: Named = Named {
    not_object: 17083,
    unknown: 17083,
    parameters: &[("if", Some(17080)), ("then", Some(17081)), ("else", Some(17082))],
};

/// `$cond` takes a document of named arguments or an array of three.
fn parse_cond(operator: &'static Operator, argument: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Node> {
    let arguments = match argument {
        RawBsonRef::Document(_) => parse::named(operator.name, &COND, argument, scope)?,
        _ => parse::exactly(3, operator, argument, scope)?,
    };
    Ok(operators::operation(operator, arguments))
}

fn cond<'a>(operation: &'a Operation, scope: &Scope<'a>) -> Result<Option<Operand<'a>>> {
    let condition = operation.argument(0, scope)?;
    let branch = if boolean::is_true(&condition) { 1 } else { 2 };
    operation.argument(branch, scope)
}

/// The first argument that is not null or missing, or the last one.
fn if_null<'a>(operation: &'a Operation, scope: &Scope<'a>) -> Result<Option<Operand<'a>>> {
    let last = operation.arguments.len().saturating_sub(1);
    for index in 0..last {
        let value = operation.argument(index, scope)?;
        if !is_nullish(value.as_ref().map(Operand::as_raw)) {
            return Ok(value);
        }
    }
    operation.argument(last, scope)
}

/// The arguments of the operation are case, then, case, then, …, default.
fn parse_switch(operator: &'static Operator, argument: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Node> {
    let RawBsonRef::Document(document) = argument else {
        let found = value::types::name(argument);
        return Err(Error::new(
            40060,
            format!("$switch requires an object as an argument, found: {found}"),
        ));
    };
    let (mut arguments, mut default) = (Vec::new(), None);
    for field in fields(document) {
        let (key, value) = field?;
        match key.as_str() {
            "branches" => arguments = branches(value, scope)?,
            "default" => default = Some(parse::operand(value, scope)?),
            other => return Err(Error::new(40067, format!("$switch found an unknown argument: {other}"))),
        }
    }
    if arguments.is_empty() {
        return Err(Error::new(40068, "$switch requires at least one branch."));
    }
    arguments.push(default);
    Ok(operators::operation(operator, arguments))
}

type SwitchArguments = Vec<Option<super::Expression>>;

fn branches(value: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<SwitchArguments> {
    let RawBsonRef::Array(array) = value else {
        let found = value::types::name(value);
        return Err(Error::new(
            40061,
            format!("$switch expected an array for 'branches', found: {found}"),
        ));
    };
    let mut arguments = Vec::new();
    for branch in elements(array) {
        let (case, then) = self::branch(branch?, scope)?;
        arguments.extend([Some(case), Some(then)]);
    }
    Ok(arguments)
}

fn branch(value: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<(super::Expression, super::Expression)> {
    let RawBsonRef::Document(document) = value else {
        let found = value::types::name(value);
        return Err(Error::new(
            40062,
            format!("$switch expected each branch to be an object, found: {found}"),
        ));
    };
    let (mut case, mut then) = (None, None);
    for field in fields(document) {
        let (key, value) = field?;
        match key.as_str() {
            "case" => case = Some(parse::operand(value, scope)?),
            "then" => then = Some(parse::operand(value, scope)?),
            other => {
                let problem = format!("$switch found an unknown argument to a branch: {other}");
                return Err(Error::new(40063, problem));
            }
        }
    }
    let case = case.ok_or_else(|| Error::new(40064, "$switch requires each branch have a 'case' expression"))?;
    let then = then.ok_or_else(|| Error::new(40065, "$switch requires each branch have a 'then' expression."))?;
    Ok((case, then))
}

fn switch<'a>(operation: &'a Operation, scope: &Scope<'a>) -> Result<Option<Operand<'a>>> {
    let default = operation.arguments.len().saturating_sub(1);
    for case in (0..default).step_by(2) {
        if boolean::is_true(&operation.argument(case, scope)?) {
            return operation.argument(case + 1, scope);
        }
    }
    if !operation.is_given(default) {
        return Err(Error::new(
            40066,
            "$switch could not find a matching branch for an input, and no default was specified.",
        ));
    }
    operation.argument(default, scope)
}
