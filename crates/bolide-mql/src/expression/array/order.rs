//! `$sortArray`.

use std::cmp::Ordering;

use bson::{RawBson, RawBsonRef};

use super::super::build::{self, ArrayBuilder, elements, fields};
use super::super::call::{Operation, Prepared};
use super::super::comparison::compare;
use super::super::node::Node;
use super::super::operand::{Operand, is_nullish, type_name};
use super::super::operators::{Arguments, Named, Operator};
use super::super::parse;
use super::super::scope::{ParseScope, Scope};
use crate::error::{Code, Error, Result};
use crate::value::number;

pub(in crate::expression) const OPERATORS: &[Operator] = &[Operator::lazy(
    "$sortArray",
    Arguments::Own(parse_sort_array),
    sort_array,
)];

const SORT_ARRAY: Named = Named {
    not_object: 2_942_500,
    unknown: 2_942_501,
    parameters: &[("input", Some(2_942_502)), ("sortBy", Some(2_942_503))],
};

/// Most keys of a sort pattern, as of an index.
const MAX_KEYS: usize = 32;

/// The order of elements.
#[derive(Debug)]
pub(in crate::expression) enum SortPattern {
    /// By the elements themselves; `true` for descending.
    Whole(bool),
    /// By the values at paths in the elements, each with `true` for descending.
    Paths(Vec<(Vec<String>, bool)>),
}

impl SortPattern {
    fn parse(value: RawBsonRef<'_>) -> Result<SortPattern> {
        let RawBsonRef::Document(document) = value else {
            let is_descending = is_descending(value)
                .ok_or_else(|| Error::new(2_942_507, "The $sortArray 'sortBy' must be an object, 1, or -1"))?;
            return Ok(SortPattern::Whole(is_descending));
        };
        let mut paths = Vec::new();
        for field in fields(document) {
            let (name, value) = field?;
            let is_descending = is_descending(value).ok_or_else(|| {
                Error::new(
                    15975,
                    "$sort key ordering must be 1 (for ascending) or -1 (for descending)",
                )
            })?;
            let names: Vec<String> = name.as_str().split('.').map(str::to_owned).collect();
            names
                .iter()
                .try_for_each(|name| super::super::field_path::check_name(name))?;
            paths.push((names, is_descending));
        }
        if paths.is_empty() {
            return Err(Error::new(15976, "$sortArray must have at least one sort key"));
        }
        if paths.len() > MAX_KEYS {
            let problem = format!("$sortArray must have at most {MAX_KEYS} sort keys");
            return Err(Error::new(Code::BAD_VALUE, problem));
        }
        Ok(SortPattern::Paths(paths))
    }

    fn compare(&self, a: RawBsonRef<'_>, b: RawBsonRef<'_>, scope: &Scope<'_>) -> Ordering {
        let directed = |order: Ordering, is_descending: bool| if is_descending { order.reverse() } else { order };
        match self {
            SortPattern::Whole(is_descending) => directed(compare(Some(a), Some(b), scope), *is_descending),
            SortPattern::Paths(paths) => paths.iter().fold(Ordering::Equal, |order, (path, is_descending)| {
                order.then_with(|| {
                    let order = compare(Some(at_path(a, path)), Some(at_path(b, path)), scope);
                    directed(order, *is_descending)
                })
            }),
        }
    }
}

/// A direction: 1 or −1 of any numeric type.
fn is_descending(value: RawBsonRef<'_>) -> Option<bool> {
    match number::whole(value) {
        Some(1) => Some(false),
        Some(-1) => Some(true),
        _ => None,
    }
}

/// The value at a path, of which a number is a position in an array; a missing one counts as null.
fn at_path<'v>(value: RawBsonRef<'v>, path: &[String]) -> RawBsonRef<'v> {
    let mut found = value;
    for name in path {
        let next = match found {
            RawBsonRef::Document(document) => build::field(document, name).ok().flatten(),
            RawBsonRef::Array(array) => name.parse().ok().and_then(|index| array.get(index).ok().flatten()),
            _ => None,
        };
        match next {
            Some(next) => found = next,
            None => return RawBsonRef::Null,
        }
    }
    found
}

fn parse_sort_array(operator: &'static Operator, value: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Node> {
    let values = parse::named_values(operator.name, &SORT_ARRAY, value)?;
    let (Some(Some(input)), Some(Some(sort_by))) = (values.first(), values.get(1)) else {
        return Err(Error::new(2_942_502, "$sortArray requires 'input' to be specified"));
    };
    let input = parse::operand(*input, scope)?;
    let mut operation = Operation::new(operator, vec![Some(input)]);
    operation.prepared = Prepared::Sort(SortPattern::parse(*sort_by)?);
    Ok(Node::Operation(Box::new(operation)))
}

fn sort_array<'a>(operation: &'a Operation, scope: &Scope<'a>) -> Result<Option<Operand<'a>>> {
    let value = operation.argument(0, scope)?;
    let input = value.as_ref().map(Operand::as_raw);
    if is_nullish(input) {
        return Ok(Some(Operand::Owned(RawBson::Null)));
    }
    let (Some(RawBsonRef::Array(array)), Prepared::Sort(pattern)) = (input, &operation.prepared) else {
        let found = type_name(input);
        return Err(Error::new(
            2_942_504,
            format!("The input argument to $sortArray must be an array, but was of type: {found}"),
        ));
    };
    let mut all: Vec<RawBsonRef<'_>> = elements(array).collect::<Result<_>>()?;
    scope.step(all.len())?;
    all.sort_by(|a, b| pattern.compare(*a, *b, scope));
    let mut sorted = ArrayBuilder::new(scope);
    all.into_iter().try_for_each(|element| sorted.push(element))?;
    Ok(Some(Operand::Owned(sorted.finish())))
}
