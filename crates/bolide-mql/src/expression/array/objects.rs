//! `$arrayToObject` and `$objectToArray`.

use std::collections::HashMap;

use bson::raw::cstr;
use bson::{RawArray, RawBson, RawBsonRef, RawDocument};

use super::super::build::{self, ArrayBuilder, DocumentBuilder, elements, fields};
use super::super::call::{Call, null};
use super::super::operand::type_name;
use super::super::operators::{Arguments, Operator};
use crate::error::{Error, Result};

pub(in crate::expression) const OPERATORS: &[Operator] = &[
    Operator::eager("$arrayToObject", Arguments::Exactly(1), array_to_object),
    Operator::eager("$objectToArray", Arguments::Exactly(1), object_to_array),
];

/// The form of the elements of an array that becomes a document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `[key, value]`.
    Array,
    /// `{k: key, v: value}`.
    Object,
}

/// A repeated key keeps its first place and has its last value.
fn array_to_object(call: &Call<'_>) -> Result<Option<RawBson>> {
    let text = "$arrayToObject requires an array input, found: ";
    let Some(array) = call.array(0, 40386, text)? else {
        return null();
    };
    let (mut form, mut places, mut pairs) = (None, HashMap::new(), Vec::new());
    for element in elements(array) {
        call.scope.step(1)?;
        let (name, value) = pair(element?, &mut form)?;
        let place = *places.entry(name).or_insert(pairs.len());
        match pairs.get_mut(place) {
            Some(pair) => *pair = (name, value),
            None => pairs.push((name, value)),
        }
    }
    let mut document = DocumentBuilder::new(call.scope);
    for (name, value) in pairs {
        document.append(&build::key(name, 4_940_400)?, value)?;
    }
    Ok(Some(RawBson::Document(document.finish())))
}

/// The key and value of an element; all elements have the form of the first.
fn pair<'v>(element: RawBsonRef<'v>, form: &mut Option<Form>) -> Result<(&'v str, RawBsonRef<'v>)> {
    let found = type_name(Some(element));
    match (element, *form) {
        (RawBsonRef::Array(pair), None | Some(Form::Array)) => {
            *form = Some(Form::Array);
            of_array(pair)
        }
        (RawBsonRef::Document(pair), None | Some(Form::Object)) => {
            *form = Some(Form::Object);
            of_object(pair)
        }
        (_, None) => Err(Error::new(
            40398,
            format!("Unrecognised input type format for $arrayToObject: {found}"),
        )),
        (_, Some(form)) => {
            let (code, first) = if form == Form::Array {
                (40396, "Array")
            } else {
                (40391, "Object")
            };
            Err(Error::new(
                code,
                format!(
                    "$arrayToObject requires a consistent input format. Elements must all be arrays or all be objects. {first} was detected, now found: {found}"
                ),
            ))
        }
    }
}

fn of_array(pair: &RawArray) -> Result<(&str, RawBsonRef<'_>)> {
    let parts: Vec<RawBsonRef<'_>> = elements(pair).collect::<Result<_>>()?;
    match parts.as_slice() {
        [RawBsonRef::String(key), value] => Ok((*key, *value)),
        [key, _] => {
            let found = type_name(Some(*key));
            Err(Error::new(
                40395,
                format!(
                    "$arrayToObject requires an array of key-value pairs, where the key must be of type string. Found key type: {found}"
                ),
            ))
        }
        _ => Err(Error::new(
            40397,
            format!(
                "$arrayToObject requires an array of size 2 arrays,found array of size: {}",
                parts.len()
            ),
        )),
    }
}

fn of_object(pair: &RawDocument) -> Result<(&str, RawBsonRef<'_>)> {
    let count = fields(pair).count();
    if count != 2 {
        return Err(Error::new(
            40392,
            format!("$arrayToObject requires an object keys of 'k' and 'v'. Found incorrect number of keys:{count}"),
        ));
    }
    match (build::field(pair, "k")?, build::field(pair, "v")?) {
        (Some(RawBsonRef::String(key)), Some(value)) => Ok((key, value)),
        (Some(key), Some(_)) => {
            let found = type_name(Some(key));
            Err(Error::new(
                40394,
                format!(
                    "$arrayToObject requires an object with keys 'k' and 'v', where the value of 'k' must be of type string. Found type: {found}"
                ),
            ))
        }
        _ => {
            let shown = crate::value::text::render(RawBsonRef::Document(pair));
            Err(Error::new(
                40393,
                format!(
                    "$arrayToObject requires an object with keys 'k' and 'v'. Missing either or both keys from: {shown}"
                ),
            ))
        }
    }
}

fn object_to_array(call: &Call<'_>) -> Result<Option<RawBson>> {
    let document = match call.non_null(0) {
        None => return null(),
        Some(RawBsonRef::Document(document)) => document,
        Some(_) => {
            let found = call.type_name(0);
            return Err(Error::new(
                40390,
                format!("$objectToArray requires a document input, found: {found}"),
            ));
        }
    };
    let mut array = ArrayBuilder::new(call.scope);
    for field in fields(document) {
        let (name, value) = field?;
        let mut pair = DocumentBuilder::new(call.scope);
        pair.append(cstr!("k"), RawBsonRef::String(name.as_str()))?;
        pair.append(cstr!("v"), value)?;
        array.push(RawBsonRef::Document(&pair.finish()))?;
    }
    Ok(Some(array.finish()))
}
