//! Documents: `$mergeObjects`, `$getField`, `$setField`, `$unsetField`.

use bson::raw::CString;
use bson::{RawBson, RawBsonRef, RawDocument};

use super::build::{self, DocumentBuilder, fields};
use super::call::{Call, Operation, null};
use super::field_path::FieldPath;
use super::node::{Expression, Node};
use super::operand::{is_nullish, render, type_name};
use super::operators::{self, Arguments, Named, Operator};
use super::parse;
use super::scope::ParseScope;
use crate::error::{Error, Result};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::eager("$mergeObjects", Arguments::Any, merge),
    Operator::eager("$getField", Arguments::Own(parse_get_field), get_field),
    Operator::eager("$setField", Arguments::Own(parse_set_field), set_field),
    Operator::eager("$unsetField", Arguments::Own(parse_set_field), set_field),
];

const GET_FIELD: Named = Named {
    not_object: 3_041_704,
    unknown: 3_041_701,
    parameters: &[("field", Some(3_041_702)), ("input", Some(3_041_703))],
};

const SET_FIELD: Named = Named {
    not_object: 4_161_100,
    unknown: 4_161_101,
    parameters: &[
        ("field", Some(4_161_102)),
        ("input", Some(4_161_109)),
        ("value", Some(4_161_103)),
    ],
};

const UNSET_FIELD: Named = Named {
    not_object: 4_161_100,
    unknown: 4_161_101,
    parameters: &[("field", Some(4_161_102)), ("input", Some(4_161_109))],
};

/// The fields of several documents; a field keeps its first place and has its last value.
fn merge(call: &Call<'_>) -> Result<Option<RawBson>> {
    let mut places = std::collections::HashMap::new();
    let mut merged: Vec<(&bson::raw::CStr, RawBsonRef<'_>)> = Vec::new();
    let only = match (call.values.len(), call.get(0)) {
        (1, Some(RawBsonRef::Array(array))) => Some(array),
        _ => None,
    };
    let values: Vec<Option<RawBsonRef<'_>>> = match only {
        Some(array) => build::elements(array)
            .map(|element| element.map(Some))
            .collect::<Result<_>>()?,
        None => call.iter().collect(),
    };
    for value in values {
        call.scope.step(1)?;
        let document = match value {
            value if is_nullish(value) => continue,
            Some(RawBsonRef::Document(document)) => document,
            value => {
                let (shown, found) = (render(value), type_name(value));
                return Err(Error::new(
                    40400,
                    format!("$mergeObjects requires object inputs, but input {shown} is of type {found}"),
                ));
            }
        };
        for field in fields(document) {
            let (name, value) = field?;
            let place = *places.entry(name.as_str()).or_insert(merged.len());
            match merged.get_mut(place) {
                Some(known) => *known = (name, value),
                None => merged.push((name, value)),
            }
        }
    }
    let mut result = DocumentBuilder::new(call.scope);
    merged
        .into_iter()
        .try_for_each(|(name, value)| result.append(name, value))?;
    Ok(Some(RawBson::Document(result.finish())))
}

/// The name of a field: a constant string, without a path.
fn field_name(name: &str, value: RawBsonRef<'_>, codes: (i32, i32, i32), scope: &mut ParseScope) -> Result<Expression> {
    if let RawBsonRef::String(text) = value
        && text.starts_with('$')
    {
        return Err(Error::new(
            codes.2,
            format!(
                "'{text}' is a field path reference which is not allowed in this context. Did you mean {{$literal: '{text}'}}?"
            ),
        ));
    }
    let field = parse::operand(value, scope)?;
    match field.as_constant() {
        Some(RawBsonRef::String(_)) => Ok(field),
        Some(other) => {
            let found = type_name(Some(other));
            Err(Error::new(
                codes.1,
                format!("{name} requires 'field' to evaluate to type String, but got {found}"),
            ))
        }
        None => Err(Error::new(
            codes.0,
            format!("{name} requires 'field' to evaluate to a constant, but got a non-constant argument"),
        )),
    }
}

/// A name, read from `$$CURRENT`, or a document with `field` and `input`.
fn parse_get_field(operator: &'static Operator, argument: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Node> {
    let is_named = |document: &RawDocument| {
        let first = document.iter().next().and_then(std::result::Result::ok);
        first.is_none_or(|(name, _)| !name.as_str().starts_with('$'))
    };
    let codes = (5_654_600, 5_654_601, 5_654_602);
    let (field, input) = match argument {
        RawBsonRef::Document(document) if is_named(document) => {
            let values = parse::named_values(operator.name, &GET_FIELD, argument)?;
            let (Some(Some(field)), Some(Some(input))) = (values.first(), values.get(1)) else {
                return Err(Error::new(3_041_703, "$getField requires 'input' to be specified"));
            };
            (
                field_name(operator.name, *field, codes, scope)?,
                parse::operand(*input, scope)?,
            )
        }
        name => {
            let node = Node::Path(FieldPath::current());
            (field_name(operator.name, name, codes, scope)?, Expression { node })
        }
    };
    Ok(operators::operation(operator, vec![Some(field), Some(input)]))
}

fn get_field(call: &Call<'_>) -> Result<Option<RawBson>> {
    let (Some(RawBsonRef::String(name)), Some(input)) = (call.get(0), call.get(1)) else {
        return Ok(None);
    };
    match input {
        RawBsonRef::Document(document) => Ok(build::field(document, name)?.map(RawBson::from)),
        RawBsonRef::Null | RawBsonRef::Undefined => null(),
        _ => Ok(None),
    }
}

fn parse_set_field(operator: &'static Operator, argument: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Node> {
    let named = if operator.name == "$setField" {
        &SET_FIELD
    } else {
        &UNSET_FIELD
    };
    let values = parse::named_values(operator.name, named, argument)?;
    let mut arguments = Vec::new();
    for (index, value) in values.into_iter().enumerate() {
        let parse = |value: RawBsonRef<'_>| match index {
            0 => field_name(operator.name, value, (4_161_106, 4_161_107, 4_161_108), scope),
            _ => parse::operand(value, scope),
        };
        arguments.push(value.map(parse).transpose()?);
    }
    Ok(Node::Operation(Box::new(Operation::new(operator, arguments))))
}

/// Replaces or adds a field, at the end; removes it if the value is missing.
fn set_field(call: &Call<'_>) -> Result<Option<RawBson>> {
    let document = match call.non_null(1) {
        None => return null(),
        Some(RawBsonRef::Document(document)) => document,
        Some(_) => {
            let (name, found) = (call.name(), call.type_name(1));
            return Err(Error::new(
                4_161_105,
                format!("{name} requires 'input' to evaluate to type Object, found {found}"),
            ));
        }
    };
    let Some(RawBsonRef::String(name)) = call.get(0) else {
        return null();
    };
    let invalid = |_| Error::new(16411, "FieldPath field names may not contain '\\0'.");
    let name = CString::try_from(name).map_err(invalid)?;
    let (value, mut is_set) = (call.get(2), false);
    let mut result = DocumentBuilder::new(call.scope);
    for field in fields(document) {
        let (key, old) = field?;
        if key.as_str() != name.as_str() {
            result.append(key, old)?;
        } else if let Some(value) = value.filter(|_| !is_set) {
            is_set = true;
            result.append(key, value)?;
        }
    }
    if let Some(value) = value.filter(|_| !is_set) {
        result.append(&name, value)?;
    }
    Ok(Some(RawBson::Document(result.finish())))
}
