//! `$addToSet`.

use std::collections::HashSet;

use bson::{RawBson, RawBsonRef};

use super::operator::{Change, Target, array_of, elements_of};
use super::text::shown;
use crate::error::{Code, Error, Result};
use crate::value;

/// The values that `$addToSet` adds unless the array has them.
#[derive(Debug)]
pub(super) struct AddToSet {
    values: Vec<RawBson>,
}

impl AddToSet {
    /// Parses a value, or `{$each: […]}`.
    ///
    /// # Errors
    /// - `TypeMismatch`: `$each` without an array.
    /// - `BadValue`: another field after `$each`.
    pub(super) fn parse(argument: RawBsonRef<'_>) -> Result<AddToSet> {
        let Some(document) = argument.as_document() else {
            return Ok(AddToSet::of(argument));
        };
        let mut fields = document.into_iter();
        let Some((name, each)) = fields.next().transpose()? else {
            return Ok(AddToSet::of(argument));
        };
        if name.as_str() != "$each" {
            return Ok(AddToSet::of(argument));
        }
        let RawBsonRef::Array(each) = each else {
            return Err(Error::new(
                Code::TYPE_MISMATCH,
                format!(
                    "The argument to $each in $addToSet must be an array but it was of type {}",
                    value::types::name(each)
                ),
            ));
        };
        if fields.next().is_some() {
            return Err(Error::bad_value(format!(
                "Found unexpected fields after $each in $addToSet: {}",
                shown(argument)
            )));
        }
        let values = elements_of(each)?.into_iter().map(RawBson::from).collect();
        Ok(AddToSet { values })
    }

    fn of(value: RawBsonRef<'_>) -> AddToSet {
        AddToSet {
            values: vec![value.into()],
        }
    }

    /// Adds the values that the array does not have.
    ///
    /// # Errors
    /// `BadValue`: the value is not an array.
    pub(super) fn change(&self, current: RawBsonRef<'_>, target: &Target<'_>) -> Result<Change> {
        let RawBsonRef::Array(array) = current else {
            return Err(Error::bad_value(format!(
                "Cannot apply $addToSet to non-array field. Field named '{}' has non-array type {}",
                target.name,
                value::types::name(current)
            )));
        };
        let mut elements = elements_of(array)?;
        let first = elements.len();
        let collation = target.ctx.collation.as_deref();
        if let [value] = self.values.as_slice() {
            let value = value.as_raw_bson_ref();
            if !(elements.iter()).any(|element| value::equal_with(*element, value, collation)) {
                elements.push(value);
            }
        } else {
            let mut keys: HashSet<Vec<u8>> = elements
                .iter()
                .map(|element| value::key::of(*element, collation))
                .collect();
            for value in self.values.iter().map(RawBson::as_raw_bson_ref) {
                if keys.insert(value::key::of(value, collation)) {
                    elements.push(value);
                }
            }
        }
        if elements.len() == first {
            return Ok(Change::None);
        }
        let array = array_of(elements);
        Ok(Change::Append { array, first })
    }

    /// Returns the array where there was none.
    pub(super) fn create(&self, target: &Target<'_>) -> Result<RawBson> {
        let empty = array_of([]);
        Ok(match self.change(RawBsonRef::Array(&empty), target)? {
            Change::Append { array, .. } => RawBson::Array(array),
            _ => RawBson::Array(empty),
        })
    }
}
