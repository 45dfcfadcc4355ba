//! `$densify`: the parser. See [`super::densifier`] for the documents.

use std::sync::Arc;

use bson::raw::{RawBsonRef, RawDocument};

use super::densifier::Densifier;
use super::window::DateUnit;
use crate::aggregation::options::Options;
use crate::aggregation::parser::{Parsed, Parser};
use crate::aggregation::source::BoxSource;
use crate::aggregation::stage::{Run, Stage};
use crate::error::{Error, Result};
use crate::path::field::FieldPath;
use crate::value::number::Number;
use crate::value::types;

/// The stage.
#[derive(Debug)]
pub(super) struct Densify {
    pub(super) field: FieldPath,
    pub(super) partition_by: Vec<FieldPath>,
    pub(super) step: Step,
    pub(super) bounds: Bounds,
}

/// The distance of neighbours.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// Of numbers.
    Number(Number),
    /// Of dates.
    Date(i64, DateUnit),
}

/// A value of the field.
#[derive(Debug, Clone, Copy)]
pub(super) enum Point {
    Number(Number),
    /// Milliseconds since 1970.
    Date(i64),
}

/// From where to where values are filled in.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bounds {
    /// From the least to the greatest value of all documents.
    Full,
    /// The same of each partition.
    Partition,
    /// From a value up to another, without that.
    Range(Point, Point),
}

/// Parses the stage.
pub(in crate::aggregation) fn parse(_: &'static str, spec: RawBsonRef<'_>, _: &mut Parser) -> Result<Parsed> {
    let wrong = |found: &'static str| {
        let text = format!("The $densify stage specification must be an object, found {found}");
        Error::new(5733400, text)
    };
    let options = Options::parse("$densify", spec, &["field", "partitionByFields", "range"], wrong)?;
    let field = options.required("field")?;
    let Some(field) = field.as_str() else {
        return Err(options.wrong_type("field", field, "string"));
    };
    let field = FieldPath::parse(field)?;
    let partition_by = parse_partition_by(&options, &field)?;
    let range = options.required("range")?;
    let RawBsonRef::Document(_) = range else {
        return Err(options.wrong_type("range", range, "object"));
    };
    let range = Options::parse("$densify.range", range, &["step", "unit", "bounds"], |_| {
        Error::new(5733400, "")
    })?;
    let step = parse_step(&range)?;
    let bounds = parse_bounds(range.required("bounds")?, step, !partition_by.is_empty())?;
    Ok(Parsed::stage(Densify {
        field,
        partition_by,
        step,
        bounds,
    }))
}

fn parse_partition_by(options: &Options<'_>, field: &FieldPath) -> Result<Vec<FieldPath>> {
    let mut paths = Vec::new();
    match options.get("partitionByFields")? {
        None => {}
        Some(RawBsonRef::Array(array)) => {
            for element in array {
                let element = element?;
                let RawBsonRef::String(path) = element else {
                    return Err(options.wrong_type("partitionByFields", element, "string"));
                };
                let path = FieldPath::parse(path)?;
                if path.names().starts_with(field.names()) || field.names().starts_with(path.names()) {
                    let text = "BSON field '$densify.partitionByFields' contains the field that is being densified";
                    return Err(Error::new(8993000, text));
                }
                paths.push(path);
            }
        }
        Some(other) => return Err(options.wrong_type("partitionByFields", other, "array")),
    }
    Ok(paths)
}

fn parse_step(range: &Options<'_>) -> Result<Step> {
    let step =
        Number::of(range.required("step")?).filter(|step| step.is_finite() && step.compare(Number::Int32(0)).is_gt());
    let Some(step) = step else {
        let text = "the step parameter in a range statement must be a strictly positive numeric value";
        return Err(Error::new(5733401, text));
    };
    let Some(unit) = range.string("unit")? else {
        return Ok(Step::Number(step));
    };
    let unit = DateUnit::parse(unit)?;
    match step.whole() {
        Some(step) => Ok(Step::Date(step, unit)),
        None => {
            let text = "The step parameter in a range statement must be a whole number when densifying a date range";
            Err(Error::new(6586400, text))
        }
    }
}

fn parse_bounds(bounds: RawBsonRef<'_>, step: Step, has_partitions: bool) -> Result<Bounds> {
    let array = match bounds {
        RawBsonRef::String("full") => return Ok(Bounds::Full),
        RawBsonRef::String("partition") if has_partitions => return Ok(Bounds::Partition),
        RawBsonRef::String("partition") => {
            let text = "one may not specify the bounds as 'partition' without specifying a non-empty array of partitionByFields. You may \
                        have meant to specify 'full' bounds.";
            return Err(Error::new(5733408, text));
        }
        RawBsonRef::Array(array) => array,
        RawBsonRef::String(_) => {
            return Err(Error::new(
                5946802,
                "Bounds string must either be 'full' or 'partition'",
            ));
        }
        _ => {
            let text = "the bounds in a range statement must be the string 'full', 'partition', or an ascending array of two numbers or \
                        two dates";
            return Err(Error::new(5946800, text));
        }
    };
    let elements = array.into_iter().take(3).collect::<bson::error::Result<Vec<_>>>()?;
    let [low, high] = elements.as_slice() else {
        return Err(Error::new(
            5733403,
            "a bounding array in a range statement must have exactly two elements",
        ));
    };
    let wrong = || {
        Error::new(
            5733402,
            "a bounding array must be an ascending array of either two dates or two numbers",
        )
    };
    let (Some(low), Some(high)) = (point(*low), point(*high)) else {
        return Err(Error::new(5946800, "Explicit bounds must be numeric or dates"));
    };
    match (low, high, step) {
        (Point::Number(low), Point::Number(high), Step::Number(_)) if low.compare(high).is_le() => {}
        (Point::Date(low), Point::Date(high), Step::Date(..)) if low <= high => {}
        (Point::Number(_), Point::Number(_), Step::Date(..)) => {
            return Err(Error::new(5733409, "numeric bounds may not have unit parameter"));
        }
        (Point::Date(_), Point::Date(_), Step::Number(_)) => {
            return Err(Error::new(5733410, "a bounding array of dates must specify a unit"));
        }
        (Point::Number(_), Point::Number(_), _) | (Point::Date(_), Point::Date(_), _) => return Err(wrong()),
        _ => {
            let text = "A bounding array must contain either both dates or both numeric types";
            return Err(Error::new(5733405, text));
        }
    }
    Ok(Bounds::Range(low, high))
}

/// Returns a number or date.
fn point(value: RawBsonRef<'_>) -> Option<Point> {
    match value {
        RawBsonRef::DateTime(date) => Some(Point::Date(date.timestamp_millis())),
        other => Number::of(other).filter(|number| !number.is_nan()).map(Point::Number),
    }
}

impl Densify {
    /// Returns the value of the field; `None` if it is missing or null.
    ///
    /// # Errors
    /// 5733201, 6053600, 6053601 for a value of a type that does not go with the step.
    pub(super) fn point(&self, document: &RawDocument) -> Result<Option<Point>> {
        let value = match super::nested::get(document, self.field.names())? {
            None | Some(RawBsonRef::Null | RawBsonRef::Undefined) => return Ok(None),
            Some(value) => value,
        };
        match (point(value), self.step) {
            (Some(number @ Point::Number(_)), Step::Number(_)) => Ok(Some(number)),
            (Some(date @ Point::Date(_)), Step::Date(..)) => Ok(Some(date)),
            (Some(Point::Number(_)), Step::Date(..)) => {
                let text = "Encountered numeric densify value in collection when step has a date unit.";
                Err(Error::new(6053600, text))
            }
            (Some(Point::Date(_)), Step::Number(_)) => {
                let text = "Encountered date densify value in collection when step does not have a date unit.";
                Err(Error::new(6053601, text))
            }
            (None, _) => {
                let found = types::name(value);
                let text = format!("Densify field type must be numeric or a date, but found {found}");
                Err(Error::new(5733201, text))
            }
        }
    }
}

impl Stage for Densify {
    fn open(self: Arc<Self>, input: BoxSource, run: &Arc<Run>) -> Result<BoxSource> {
        Ok(Box::new(Densifier::new(self, input, run)))
    }
}
