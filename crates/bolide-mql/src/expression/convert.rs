//! Conversions: `$convert`, `$toInt` and the like, `$type`, `$isNumber`.

mod binary;
mod numbers;
mod text;

use bson::{DateTime, RawBson, RawBsonRef};

pub(super) use self::text::to_text;
use super::build;
use super::call::{Call, Operation, null};
use super::date::{self, read};
use super::node::Node;
use super::operand::{Operand, is_nullish, render, type_name};
use super::operators::{self, Arguments, Named, Operator};
use super::parse;
use super::scope::{ParseScope, Scope};
use crate::error::{Code, Error, Result};
use crate::value::number::{self, Number};
use crate::value::{self, types};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::lazy("$convert", Arguments::Named(&CONVERT), convert),
    short("$toBool"),
    short("$toDate"),
    short("$toDecimal"),
    short("$toDouble"),
    short("$toInt"),
    short("$toLong"),
    short("$toObjectId"),
    short("$toString"),
    short("$toUUID"),
    Operator::eager("$type", Arguments::Exactly(1), |call| {
        Ok(Some(RawBson::String(call.type_name(0).to_owned())))
    }),
    Operator::eager("$isNumber", Arguments::Exactly(1), |call| {
        Ok(Some(RawBson::Boolean(call.get(0).and_then(Number::of).is_some())))
    }),
];

const CONVERT: Named = Named {
    not_object: 9,
    unknown: 9,
    parameters: &[
        ("input", Some(9)),
        ("to", Some(9)),
        ("onError", None),
        ("onNull", None),
        ("format", None),
    ],
};

/// What a value is converted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Double,
    String,
    /// With the number of its subtype.
    Binary(u8),
    ObjectId,
    Bool,
    Date,
    Int,
    Long,
    Decimal,
    /// A type that nothing is converted to.
    Other(&'static str),
}

const TARGETS: [(&str, Target); 9] = [
    ("double", Target::Double),
    ("string", Target::String),
    ("binData", Target::Binary(0)),
    ("objectId", Target::ObjectId),
    ("bool", Target::Bool),
    ("date", Target::Date),
    ("int", Target::Int),
    ("long", Target::Long),
    ("decimal", Target::Decimal),
];

impl Target {
    fn name(self) -> &'static str {
        match self {
            Target::Other(name) => name,
            Target::Binary(_) => "binData",
            known => TARGETS
                .iter()
                .find(|(_, target)| *target == known)
                .map_or("", |(name, _)| name),
        }
    }

    fn of_name(name: &'static str) -> Target {
        let known = TARGETS.iter().find(|(known, _)| *known == name);
        known.map_or(Target::Other(name), |(_, target)| *target)
    }

    /// Reads the argument `to`: an alias or number of a type, or a document with `type` and `subtype`; `None` if it is null.
    fn parse(value: Option<RawBsonRef<'_>>) -> Result<Option<Target>> {
        let failed = |problem: String| Err(Error::new(Code::FAILED_TO_PARSE, problem));
        match value {
            value if is_nullish(value) => Ok(None),
            Some(RawBsonRef::String(alias)) => match types::alias(alias) {
                Some(name) => Ok(Some(Target::of_name(name))),
                None => Err(Error::bad_value(format!("Unknown type name: {alias}"))),
            },
            Some(RawBsonRef::Document(document)) => {
                let Some(target) = Target::parse(build::field(document, "type")?)? else {
                    return Ok(None);
                };
                let subtype = build::field(document, "subtype")?;
                Target::with_subtype(target, subtype).map(Some)
            }
            Some(given) => match Number::of(given).map(Number::whole) {
                None => failed(format!(
                    "$convert's 'to' argument must be a string or number, but is {}",
                    type_name(value)
                )),
                Some(None) => failed("In $convert, numeric 'to' argument is not an integer".to_owned()),
                Some(Some(code)) => match i32::try_from(code).ok().and_then(types::name_of_code) {
                    Some(name) => Ok(Some(Target::of_name(name))),
                    None => failed(format!(
                        "In $convert, numeric value for 'to' does not correspond to a BSON type: {code}"
                    )),
                },
            },
            None => Ok(None),
        }
    }

    fn with_subtype(target: Target, subtype: Option<RawBsonRef<'_>>) -> Result<Target> {
        match (target, subtype) {
            (Target::Binary(_), Some(subtype)) => {
                let number = number::whole(subtype).and_then(|subtype| u8::try_from(subtype).ok());
                let invalid = || {
                    let problem = "In $convert, numeric 'subtype' argument is not a valid binData subtype";
                    Error::new(4_341_107, problem)
                };
                number.map(Target::Binary).ok_or_else(invalid)
            }
            (target, _) => Ok(target),
        }
    }
}

/// A short form such as `$toInt`.
const fn short(name: &'static str) -> Operator {
    Operator::eager(name, Arguments::Own(parse_short), short_form)
}

fn parse_short(operator: &'static Operator, argument: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Node> {
    let arguments = parse::positional(operator, argument, scope)?;
    if arguments.len() != 1 {
        let (name, count) = (operator.name, arguments.len());
        let problem = format!("{name} requires a single argument, got {count}");
        return Err(Error::new(50723, problem));
    }
    Ok(operators::operation(operator, arguments))
}

fn short_form(call: &Call<'_>) -> Result<Option<RawBson>> {
    let Some(value) = call.non_null(0) else {
        return null();
    };
    let (target, format) = match call.name() {
        "$toBool" => (Target::Bool, None),
        "$toDate" => (Target::Date, None),
        "$toDecimal" => (Target::Decimal, None),
        "$toDouble" => (Target::Double, None),
        "$toInt" => (Target::Int, None),
        "$toLong" => (Target::Long, None),
        "$toObjectId" => (Target::ObjectId, None),
        "$toUUID" => (Target::Binary(binary::UUID), Some("uuid")),
        _ => (Target::String, Some("auto")),
    };
    converted(value, target, format).map(Some)
}

/// Positions in the table of arguments.
const ON_ERROR: usize = 2;
const ON_NULL: usize = 3;
const FORMAT: usize = 4;

fn convert<'a>(operation: &'a Operation, scope: &Scope<'a>) -> Result<Option<Operand<'a>>> {
    let to = operation.argument(1, scope)?;
    let target = Target::parse(to.as_ref().map(Operand::as_raw))?;
    let input = operation.argument(0, scope)?;
    let format = operation.argument(FORMAT, scope)?;
    let Some(value) = input
        .as_ref()
        .map(Operand::as_raw)
        .filter(|value| !is_nullish(Some(*value)))
    else {
        return match operation.is_given(ON_NULL) {
            true => operation.argument(ON_NULL, scope),
            false => Ok(Some(Operand::Owned(RawBson::Null))),
        };
    };
    let Some(target) = target else {
        return Ok(Some(Operand::Owned(RawBson::Null)));
    };
    let format = match format.as_ref().map(Operand::as_raw) {
        value if is_nullish(value) => None,
        Some(RawBsonRef::String(format)) => Some(format),
        value => {
            return Err(Error::new(
                Code::FAILED_TO_PARSE,
                format!(
                    "$convert requires that 'format' be a string, found: {} with value {}",
                    type_name(value),
                    render(value)
                ),
            ));
        }
    };
    match converted(value, target, format) {
        Err(error) if error.code == Code::CONVERSION_FAILURE && operation.is_given(ON_ERROR) => {
            operation.argument(ON_ERROR, scope)
        }
        result => Ok(Some(Operand::Owned(result?))),
    }
}

/// An error that `onError` answers.
fn failure(problem: impl Into<String>) -> Error {
    Error::new(Code::CONVERSION_FAILURE, problem)
}

fn unsupported(value: RawBsonRef<'_>, target: Target) -> Error {
    let (from, to) = (types::name(value), target.name());
    failure(format!(
        "Unsupported conversion from {from} to {to} in $convert with no onError value"
    ))
}

/// Converts a value that is not null.
fn converted(value: RawBsonRef<'_>, target: Target, format: Option<&str>) -> Result<RawBson> {
    match target {
        Target::Bool => Ok(RawBson::Boolean(value::is_truthy(value))),
        Target::Double => numbers::to_double(value),
        Target::Int => numbers::to_int(value),
        Target::Long => numbers::to_long(value),
        Target::Decimal => numbers::to_decimal(value),
        Target::String => text::to_string(value, format),
        Target::ObjectId => to_object_id(value),
        Target::Date => to_date(value),
        Target::Binary(subtype) => binary::to_binary(value, subtype, format),
        Target::Other(_) => Err(unsupported(value, target)),
    }
}

fn to_object_id(value: RawBsonRef<'_>) -> Result<RawBson> {
    match value {
        RawBsonRef::ObjectId(id) => Ok(RawBson::ObjectId(id)),
        RawBsonRef::String(text) => {
            let parsed = bson::oid::ObjectId::parse_str(text);
            parsed.map(RawBson::ObjectId).map_err(|_| {
                let reason = match text.len() {
                    24 => "Invalid character found in hex string".to_owned(),
                    length => format!("Invalid string length for parsing to OID, expected 24 but found {length}"),
                };
                failure(format!(
                    "Failed to parse objectId '{text}' in $convert with no onError value: {reason}"
                ))
            })
        }
        other => Err(unsupported(other, Target::ObjectId)),
    }
}

fn to_date(value: RawBsonRef<'_>) -> Result<RawBson> {
    let millis = match value {
        RawBsonRef::DateTime(date) => date.timestamp_millis(),
        RawBsonRef::ObjectId(_) | RawBsonRef::Timestamp(_) => date::instant(Some(value))?.unwrap_or_default(),
        RawBsonRef::String(text) => read::free(text, None)?,
        RawBsonRef::Int64(_) | RawBsonRef::Double(_) | RawBsonRef::Decimal128(_) => numbers::truncated(value)?,
        other => return Err(unsupported(other, Target::Date)),
    };
    Ok(RawBson::DateTime(DateTime::from_millis(millis)))
}
