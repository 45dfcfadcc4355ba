//! `$literal`, `$rand`, `$binarySize`, `$bsonSize`, `$meta`.

use std::hash::{BuildHasher, RandomState};

use bson::{RawBson, RawBsonRef};

use super::build;
use super::call::{Call, null};
use super::node::{Expression, Node};
use super::operators::{self, Arguments, Operator};
use super::scope::ParseScope;
use crate::error::{Error, Result};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::eager("$literal", Arguments::Own(parse_literal), |call| {
        Ok(call.get(0).map(RawBson::from))
    }),
    Operator::eager("$const", Arguments::Own(parse_literal), |call| {
        Ok(call.get(0).map(RawBson::from))
    }),
    Operator::eager("$rand", Arguments::Own(parse_rand), |_| {
        Ok(Some(RawBson::Double(random())))
    }),
    Operator::eager("$binarySize", Arguments::Exactly(1), binary_size),
    Operator::eager("$bsonSize", Arguments::Exactly(1), bson_size),
    Operator::eager("$meta", Arguments::Own(parse_meta), meta),
];

/// The argument is a value and not an expression.
fn parse_literal(_: &'static Operator, argument: RawBsonRef<'_>, _: &mut ParseScope) -> Result<Node> {
    Ok(Node::Constant(argument.into()))
}

fn parse_rand(operator: &'static Operator, argument: RawBsonRef<'_>, _: &mut ParseScope) -> Result<Node> {
    let is_empty = match argument {
        RawBsonRef::Document(document) => document.is_empty(),
        RawBsonRef::Array(array) => array.is_empty(),
        _ => {
            let found = crate::value::types::name(argument);
            let problem = format!("invalid parameter: expected an object ($rand), found {found}");
            return Err(Error::new(10065, problem));
        }
    };
    if !is_empty {
        return Err(Error::new(3_040_501, "$rand does not currently accept arguments"));
    }
    Ok(operators::operation(operator, Vec::new()))
}

/// A number from 0 up to and without 1. Each hasher of the standard library has other random keys, so the hash of nothing is random.
#[expect(clippy::cast_precision_loss, reason = "53 bits are a double without loss")]
fn random() -> f64 {
    const BITS: u32 = 53;
    let bits = RandomState::new().hash_one(()) >> (u64::BITS - BITS);
    bits as f64 / (1_u64 << BITS) as f64
}

fn size(bytes: usize) -> Result<Option<RawBson>> {
    Ok(Some(RawBson::Int32(i32::try_from(bytes).unwrap_or(i32::MAX))))
}

fn binary_size(call: &Call<'_>) -> Result<Option<RawBson>> {
    match call.non_null(0) {
        None => null(),
        Some(RawBsonRef::String(text)) => size(text.len()),
        Some(RawBsonRef::Binary(binary)) => size(binary.bytes.len()),
        Some(_) => {
            let found = call.type_name(0);
            Err(Error::new(
                51276,
                format!("$binarySize requires a string or BinData argument, found: {found}"),
            ))
        }
    }
}

fn bson_size(call: &Call<'_>) -> Result<Option<RawBson>> {
    match call.non_null(0) {
        None => null(),
        Some(RawBsonRef::Document(document)) => size(document.as_bytes().len()),
        Some(_) => {
            let found = call.type_name(0);
            Err(Error::new(
                31393,
                format!("$bsonSize requires a document input, found: {found}"),
            ))
        }
    }
}

/// What `$meta` can ask for.
const METADATA: [&str; 11] = [
    "textScore",
    "randVal",
    "searchScore",
    "searchHighlights",
    "geoNearDistance",
    "geoNearPoint",
    "recordId",
    "indexKey",
    "sortKey",
    "vectorSearchScore",
    "searchScoreDetails",
];

fn parse_meta(operator: &'static Operator, argument: RawBsonRef<'_>, _: &mut ParseScope) -> Result<Node> {
    match argument {
        RawBsonRef::String(name) if METADATA.contains(&name) => {
            let name = Expression::constant(RawBson::String(name.to_owned()));
            Ok(operators::operation(operator, vec![Some(name)]))
        }
        RawBsonRef::String(name) => Err(Error::new(17308, format!("Unsupported argument to $meta: {name}"))),
        _ => Err(Error::new(17307, "$meta only supports string arguments")),
    }
}

/// The metadata of the document; missing if there is none of this name.
fn meta(call: &Call<'_>) -> Result<Option<RawBson>> {
    let (Some(metadata), Some(RawBsonRef::String(name))) = (call.scope.metadata(), call.get(0)) else {
        return Ok(None);
    };
    Ok(build::field(metadata, name)?.map(RawBson::from))
}
