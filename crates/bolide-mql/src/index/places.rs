//! Values in the fields of geospatial indexes: which of them a document may have.
//!
//! The indexes have no keys yet, but a document that MongoDB would refuse is refused.

use bson::raw::{RawBsonRef, RawDocument};

use super::definition::IndexDefinition;
use super::pattern::{Kind, Order};
use crate::error::{Error, Result};
use crate::geo::Geometry;
use crate::value;
use crate::value::number::Number;

const NO_GEOMETRY: i32 = 16755;
const NO_LOCATION: i32 = 16804;
const OUT_OF_RANGE: i32 = 13027;

/// The range of coordinates of a 2d index without `min` and `max`.
const DEFAULT_RANGE: f64 = 180.0;

/// Checks the values in the geospatial fields of an index.
///
/// # Errors
/// 16755 for what is no geometry in a 2dsphere index; 16804 and 13027 for what is no point, or out of range, in a 2d index.
pub fn check(definition: &IndexDefinition, document: &RawDocument) -> Result<()> {
    let special = definition
        .key
        .fields()
        .iter()
        .filter(|field| field.order == Order::Special);
    for field in special {
        visit(
            RawBsonRef::Document(document),
            &field.path,
            &mut |value| match definition.kind() {
                Kind::Plane => check_flat(definition, value),
                _ => check_sphere(document, value),
            },
        )?;
    }
    Ok(())
}

/// Calls `check` with all values at a path; arrays on the way are opened, one at its end is not. The depth is bounded by the path.
fn visit(value: RawBsonRef<'_>, path: &[Box<str>], check: &mut dyn FnMut(RawBsonRef<'_>) -> Result<()>) -> Result<()> {
    let Some((name, rest)) = path.split_first() else {
        return check(value);
    };
    match value {
        RawBsonRef::Document(object) => match object.get(&**name).ok().flatten() {
            Some(inner) => visit(inner, rest, check),
            None => Ok(()),
        },
        RawBsonRef::Array(items) => {
            let objects = items.into_iter().flatten().filter(|item| item.as_document().is_some());
            for object in objects {
                visit(object, path, check)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Null, undefined and an empty array count as missing.
fn is_nothing(value: RawBsonRef<'_>) -> bool {
    match value {
        RawBsonRef::Null | RawBsonRef::Undefined => true,
        RawBsonRef::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn check_sphere(document: &RawDocument, value: RawBsonRef<'_>) -> Result<()> {
    if is_nothing(value) {
        return Ok(());
    }
    Geometry::of_field(value).map(drop).map_err(|error| {
        Error::new(
            NO_GEOMETRY,
            format!(
                "Can't extract geo keys: {}  {}",
                value::text::render_document(document),
                error.message
            ),
        )
    })
}

/// A point, or an array of points.
fn check_flat(definition: &IndexDefinition, value: RawBsonRef<'_>) -> Result<()> {
    if is_nothing(value) {
        return Ok(());
    }
    let mut values = elements(value)?.into_iter();
    let first = values.next();
    if first.is_some_and(|first| Number::of(first).is_some()) {
        return check_point(definition, value);
    }
    for point in first.into_iter().chain(values) {
        check_point(definition, point)?;
    }
    Ok(())
}

fn elements(value: RawBsonRef<'_>) -> Result<Vec<RawBsonRef<'_>>> {
    match value {
        RawBsonRef::Array(items) => Ok(items.into_iter().flatten().collect()),
        RawBsonRef::Document(object) => Ok(object.iter().flatten().map(|(_, value)| value).collect()),
        _ => Err(Error::new(
            NO_LOCATION,
            "location object expected, location array not in correct format",
        )),
    }
}

fn check_point(definition: &IndexDefinition, point: RawBsonRef<'_>) -> Result<()> {
    let limit = |name: &str, default: f64| {
        let number = definition.numbers.get(name).ok().flatten().and_then(Number::of);
        number.map_or(default, Number::to_f64)
    };
    let range = limit("min", -DEFAULT_RANGE)..=limit("max", DEFAULT_RANGE);
    let coordinates: Vec<Option<f64>> = elements(point)?
        .into_iter()
        .take(2)
        .map(|number| Number::of(number).map(Number::to_f64))
        .collect();
    let [Some(x), Some(y)] = coordinates[..] else {
        return Err(Error::new(
            NO_LOCATION,
            "location object expected, location array not in correct format",
        ));
    };
    if range.contains(&x) && range.contains(&y) {
        return Ok(());
    }
    let [min, max] = [range.start(), range.end()];
    Err(Error::new(
        OUT_OF_RANGE,
        format!("point not in interval of [ {min}, {max} ] :: caused by :: [ {x}, {y} ]"),
    ))
}

#[cfg(test)]
mod tests;
