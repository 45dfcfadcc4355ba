//! `$push` with `$each`, `$position`, `$sort` and `$slice`.

use std::cmp::Ordering;

use bson::{RawBson, RawBsonRef, RawDocument};

use super::operator::{Change, Target, array_of, elements_of};
use crate::collation::Collation;
use crate::error::{Error, Result};
use crate::value;

/// What `$push` does with an array, in this order: insert, sort, cut.
#[derive(Debug, Default)]
pub(super) struct Push {
    values: Vec<RawBson>,
    /// Counted from the end if negative.
    position: Option<i64>,
    sort: Option<Sort>,
    /// Number of elements that stay: the first ones, or the last ones if negative.
    slice: Option<i64>,
}

#[derive(Debug)]
enum Sort {
    /// The elements themselves.
    Elements(Direction),
    /// Fields of the elements.
    Fields(Vec<(Vec<String>, Direction)>),
}

#[derive(Debug, Clone, Copy)]
enum Direction {
    Ascending,
    Descending,
}

impl Push {
    /// Parses a value, or a document with `$each`.
    ///
    /// # Errors
    /// `BadValue`: a modifier with a wrong type, or an unknown one.
    pub(super) fn parse(argument: RawBsonRef<'_>) -> Result<Push> {
        match argument {
            RawBsonRef::Document(modifiers) if modifiers.get("$each")?.is_some() => Push::parse_modifiers(modifiers),
            value => Ok(Push {
                values: vec![value.into()],
                ..Push::default()
            }),
        }
    }

    fn parse_modifiers(modifiers: &RawDocument) -> Result<Push> {
        let mut push = Push::default();
        for field in modifiers {
            let (name, argument) = field?;
            match name.as_str() {
                "$each" => push.values = parse_each(argument)?,
                "$position" => push.position = Some(parse_position(argument)?),
                "$slice" => push.slice = Some(parse_slice(argument)?),
                "$sort" => push.sort = Some(Sort::parse(argument)?),
                name => return Err(Error::bad_value(format!("Unrecognized clause in $push: {name}"))),
            }
        }
        Ok(push)
    }

    /// Changes an array.
    ///
    /// # Errors
    /// `BadValue`: the value is not an array.
    pub(super) fn change(&self, current: RawBsonRef<'_>, target: &Target<'_>) -> Result<Change> {
        let RawBsonRef::Array(array) = current else {
            return Err(Error::bad_value(format!(
                "The field '{}' must be an array but is of type {} in document {{{}}}",
                target.path,
                value::types::name(current),
                target.id()
            )));
        };
        let old = elements_of(array)?;
        let position = position(self.position, old.len());
        let mut elements = old.clone();
        elements.splice(position..position, self.values.iter().map(RawBson::as_raw_bson_ref));
        if let Some(sort) = &self.sort {
            target.ctx.interrupt.check(elements.len() as u64)?;
            sort.apply(&mut elements, target.ctx.collation.as_deref());
        }
        let kept = slice(self.slice, elements.len());
        let is_append = self.sort.is_none() && position == old.len() && kept.start == 0 && kept.end >= old.len();
        let result = array_of(elements[kept].iter().copied());
        if is_append {
            let first = old.len();
            return Ok(Change::Append { array: result, first });
        }
        Ok(Change::Value(RawBson::Array(result)))
    }

    /// Returns the array where there was none.
    pub(super) fn create(&self, target: &Target<'_>) -> Result<RawBson> {
        let empty = array_of([]);
        Ok(match self.change(RawBsonRef::Array(&empty), target)? {
            Change::Append { array, .. } => RawBson::Array(array),
            Change::Value(array) => array,
            Change::None | Change::Remove => RawBson::Array(empty),
        })
    }
}

fn position(position: Option<i64>, length: usize) -> usize {
    match position {
        None => length,
        Some(position) => {
            let distance = usize::try_from(position.unsigned_abs())
                .unwrap_or(usize::MAX)
                .min(length);
            if position < 0 { length - distance } else { distance }
        }
    }
}

fn slice(slice: Option<i64>, length: usize) -> std::ops::Range<usize> {
    match slice {
        None => 0..length,
        Some(slice) => {
            let count = usize::try_from(slice.unsigned_abs()).unwrap_or(usize::MAX).min(length);
            if slice < 0 { length - count..length } else { 0..count }
        }
    }
}

fn parse_each(argument: RawBsonRef<'_>) -> Result<Vec<RawBson>> {
    let RawBsonRef::Array(each) = argument else {
        return Err(Error::bad_value(format!(
            "The argument to $each in $push must be an array but it was of type: {}",
            value::types::name(argument)
        )));
    };
    Ok(elements_of(each)?.into_iter().map(RawBson::from).collect())
}

fn parse_position(argument: RawBsonRef<'_>) -> Result<i64> {
    value::number::whole(argument).ok_or_else(|| {
        Error::bad_value(format!(
            "The value for $position must be an integer value, not of type: {}",
            value::types::name(argument)
        ))
    })
}

fn parse_slice(argument: RawBsonRef<'_>) -> Result<i64> {
    value::number::whole(argument).ok_or_else(|| {
        Error::bad_value(format!(
            "The value for $slice must be an integer value but was given type: {}",
            value::types::name(argument)
        ))
    })
}

impl Sort {
    fn parse(argument: RawBsonRef<'_>) -> Result<Sort> {
        match argument {
            RawBsonRef::Document(pattern) => Sort::parse_pattern(pattern),
            _ if value::number::Number::of(argument).is_some() => Ok(Sort::Elements(Direction::parse(argument)?)),
            _ => Err(Error::bad_value(
                "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields",
            )),
        }
    }

    fn parse_pattern(pattern: &RawDocument) -> Result<Sort> {
        let mut fields = Vec::new();
        for field in pattern {
            let (path, direction) = field?;
            let direction = Direction::parse(direction)?;
            if path.is_empty() {
                return Err(Error::bad_value("The $sort field cannot be empty"));
            }
            let path: Vec<_> = path.as_str().split('.').map(str::to_owned).collect();
            if path.iter().any(String::is_empty) {
                return Err(Error::bad_value(format!(
                    "The $sort field is a dotted field but has an empty part: {}",
                    path.join(".")
                )));
            }
            fields.push((path, direction));
        }
        if fields.is_empty() {
            return Err(Error::bad_value(
                "The $sort pattern is empty when it should be a set of fields.",
            ));
        }
        Ok(Sort::Fields(fields))
    }

    fn apply(&self, elements: &mut [RawBsonRef<'_>], collation: Option<&Collation>) {
        match self {
            Sort::Elements(direction) => {
                elements.sort_by(|left, right| direction.of(value::compare_with(*left, *right, collation)));
            }
            Sort::Fields(fields) => elements.sort_by(|left, right| {
                let mut orders = fields.iter().map(|(path, direction)| {
                    let order = value::compare_with(value_at(*left, path), value_at(*right, path), collation);
                    direction.of(order)
                });
                orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
            }),
        }
    }
}

impl Direction {
    fn parse(argument: RawBsonRef<'_>) -> Result<Direction> {
        match value::number::whole(argument) {
            Some(1) => Ok(Direction::Ascending),
            Some(-1) => Ok(Direction::Descending),
            _ => Err(Error::bad_value("The $sort element value must be either 1 or -1")),
        }
    }

    fn of(self, order: Ordering) -> Ordering {
        match self {
            Direction::Ascending => order,
            Direction::Descending => order.reverse(),
        }
    }
}

/// Returns the value at a path: of an array on the way, the array itself; null if there is none.
fn value_at<'v>(mut value: RawBsonRef<'v>, path: &[String]) -> RawBsonRef<'v> {
    for (depth, name) in path.iter().enumerate() {
        value = match value {
            RawBsonRef::Document(document) => match document.get(name) {
                Ok(Some(value)) => value,
                _ => return RawBsonRef::Null,
            },
            RawBsonRef::Array(_) if depth > 0 => return value,
            _ => return RawBsonRef::Null,
        };
    }
    value
}
