//! The position from which a sorted query continues, sent by a client that merges several ranges (cosmos-rest §6.1).

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::sort_hash;
use super::sort_value::SortValue;
use super::sorter::{Directions, SortPosition};
use crate::error::{QueryError, Result};
use crate::value::Value;

/// The member of a query's body that says where to continue. It removes rows as a filter does: TOP and OFFSET count the rows that remain.
#[derive(Debug, Clone, PartialEq)]
pub struct ResumeFilter {
    values: SmallVec<[SortValue; 2]>,
    rid: Option<u64>,
    exclude: bool,
}

impl ResumeFilter {
    /// Reads the JSON form; `item_number` returns the number of an item from the text of its resource id.
    ///
    /// # Errors
    /// [`QueryError::Refused`] for any other shape, and for unknown members.
    pub fn from_json(
        filter: &serde_json::Value,
        item_number: impl FnOnce(&str) -> Option<u64>,
    ) -> Result<ResumeFilter> {
        let members = filter.as_object().ok_or_else(|| refused("it must be an object"))?;
        if let Some(unknown) = members
            .keys()
            .find(|name| !["value", "rid", "exclude"].contains(&&***name))
        {
            return Err(refused(&format!("its member `{unknown}` is not known")));
        }
        let values = members.get("value").and_then(serde_json::Value::as_array);
        let values = values
            .ok_or_else(|| refused("its member `value` must be an array with a value for each item of ORDER BY"))?;
        let rid =
            match members.get("rid") {
                None | Some(serde_json::Value::Null) => None,
                Some(rid) => {
                    let number = rid.as_str().and_then(item_number);
                    Some(number.ok_or_else(|| {
                        refused("its member `rid` must be the resource id of an item of the container")
                    })?)
                }
            };
        let exclude = match members.get("exclude") {
            None => false,
            Some(exclude) => exclude
                .as_bool()
                .ok_or_else(|| refused("its member `exclude` must be true or false"))?,
        };
        if exclude && rid.is_some() {
            return Err(refused("it has both `rid` and `exclude`"));
        }
        Ok(ResumeFilter {
            values: values.iter().map(sort_value).collect::<Result<_>>()?,
            rid,
            exclude,
        })
    }

    /// Checks that it has a value for each of `keys` keys.
    ///
    /// # Errors
    /// [`QueryError::Refused`] if it has not.
    pub(crate) fn check(&self, keys: usize) -> Result<()> {
        match self.values.len() {
            _ if keys == 0 => Err(refused("the rows of the query are not sorted by keys")),
            values if values != keys => Err(refused(&format!(
                "it has {values} values and ORDER BY has {keys} items"
            ))),
            _ => Ok(()),
        }
    }

    /// The values of the sort keys at the position, and the number of the item if it is known.
    pub(super) fn position(&self) -> (&[SortValue], Option<u64>) {
        (&self.values, self.rid)
    }

    /// Whether a row remains.
    pub(super) fn accepts(&self, position: &SortPosition, directions: Directions) -> bool {
        match directions.compare_values(&position.values, &self.values) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal if self.exclude => false,
            Ordering::Equal => self
                .rid
                .is_none_or(|rid| directions.compare_rids(position.rid, rid).is_ge()),
        }
    }
}

/// A primitive, `[]` for undefined, or the hash of an array or object.
fn sort_value(value: &serde_json::Value) -> Result<SortValue> {
    match value {
        serde_json::Value::Array(items) if items.is_empty() => Ok(SortValue::Undefined),
        serde_json::Value::Array(_) => Err(refused("an array in `value` must be empty, which stands for undefined")),
        serde_json::Value::Object(members) => {
            let half = |name| members.get(name).map(Value::from).and_then(|half| half.as_i64());
            let (Some(low), Some(high), 3) = (half("low"), half("high"), members.len()) else {
                return Err(refused("an object in `value` has the members `type`, `low` and `high`"));
            };
            let hash = sort_hash::from_halves(low, high);
            match members.get("type").and_then(serde_json::Value::as_str) {
                Some("array") => Ok(SortValue::Array(hash)),
                Some("object") => Ok(SortValue::Object(hash)),
                _ => Err(refused("`type` in `value` must be `array` or `object`")),
            }
        }
        primitive => Ok(SortValue::new(&Value::from(primitive))),
    }
}

fn refused(why: &str) -> QueryError {
    QueryError::refused(format!("The `resumeFilter` of the query is not valid: {why}."))
}
