//! Sets: arrays whose order and repeats do not count. Numbers of different types are equal if their values are.

use std::collections::{BTreeMap, HashSet};

use bson::{RawArray, RawBson, RawBsonRef};

use super::build::{ArrayBuilder, elements};
use super::call::{Call, null};
use super::operand::{is_nullish, type_name};
use super::operators::{Arguments, Operator};
use super::scope::Scope;
use crate::error::{Error, Result};
use crate::value::{is_truthy, key};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::eager("$allElementsTrue", Arguments::Exactly(1), all_elements_true),
    Operator::eager("$anyElementTrue", Arguments::Exactly(1), any_element_true),
    Operator::eager("$setDifference", Arguments::Exactly(2), difference),
    Operator::eager("$setEquals", Arguments::AtLeast(2, 17045), equals),
    Operator::eager("$setIntersection", Arguments::Any, intersection),
    Operator::eager("$setIsSubset", Arguments::Exactly(2), is_subset),
    Operator::eager("$setUnion", Arguments::Any, union),
];

/// The bytes that are equal for equal values, under the command's collation.
pub(super) fn key_of(value: RawBsonRef<'_>, scope: &Scope<'_>) -> Result<Vec<u8>> {
    scope.step(1)?;
    let mut bytes = Vec::new();
    key::encode(value, scope.context().collation.as_deref(), &mut bytes);
    Ok(bytes)
}

fn keys(array: &RawArray, scope: &Scope<'_>) -> Result<HashSet<Vec<u8>>> {
    elements(array).map(|element| key_of(element?, scope)).collect()
}

/// An operand that must be an array, and must not be null.
fn array<'v>(value: Option<RawBsonRef<'v>>, code: i32, text: &str) -> Result<&'v RawArray> {
    match value {
        Some(RawBsonRef::Array(array)) => Ok(array),
        other => Err(Error::new(code, format!("{text}{}", type_name(other)))),
    }
}

fn all_elements_true(call: &Call<'_>) -> Result<Option<RawBson>> {
    let array = array(
        call.get(0),
        17040,
        "$allElementsTrue's argument must be an array, but is ",
    )?;
    let found = elements(array).find(|element| element.as_ref().map_or(true, |element| !is_truthy(*element)));
    Ok(Some(RawBson::Boolean(found.transpose()?.is_none())))
}

fn any_element_true(call: &Call<'_>) -> Result<Option<RawBson>> {
    let array = array(
        call.get(0),
        17041,
        "$anyElementTrue's argument must be an array, but is ",
    )?;
    let found = elements(array).find(|element| element.as_ref().map_or(true, |element| is_truthy(*element)));
    Ok(Some(RawBson::Boolean(found.transpose()?.is_some())))
}

/// The elements of the first array that are not in the second, in their order.
fn difference(call: &Call<'_>) -> Result<Option<RawBson>> {
    if is_nullish(call.get(0)) || is_nullish(call.get(1)) {
        return null();
    }
    let text = "both operands of $setDifference must be arrays. First argument is of type: ";
    let minuend = array(call.get(0), 17048, text)?;
    let text = "both operands of $setDifference must be arrays. Second argument is of type: ";
    let mut excluded = keys(array(call.get(1), 17049, text)?, call.scope)?;
    let mut rest = ArrayBuilder::new(call.scope);
    for element in elements(minuend) {
        let element = element?;
        if excluded.insert(key_of(element, call.scope)?) {
            rest.push(element)?;
        }
    }
    Ok(Some(rest.finish()))
}

fn equals(call: &Call<'_>) -> Result<Option<RawBson>> {
    let mut first: Option<HashSet<Vec<u8>>> = None;
    let mut are_equal = true;
    for (index, value) in call.iter().enumerate() {
        let text = format!(
            "All operands of $setEquals must be arrays. {}-th argument is of type: ",
            index + 1
        );
        let keys = keys(array(value, 17044, &text)?, call.scope)?;
        match &first {
            None => first = Some(keys),
            Some(first) => are_equal &= *first == keys,
        }
    }
    Ok(Some(RawBson::Boolean(are_equal)))
}

/// The elements that are in all arrays, in the order of values, as MongoDB returns them.
fn intersection(call: &Call<'_>) -> Result<Option<RawBson>> {
    let text = "All operands of $setIntersection must be arrays. One argument is of type: ";
    let mut common: Option<BTreeMap<Vec<u8>, RawBsonRef<'_>>> = None;
    for value in call.iter() {
        if is_nullish(value) {
            return null();
        }
        let array = array(value, 17047, text)?;
        match &mut common {
            None => {
                let mut first = BTreeMap::new();
                for element in elements(array) {
                    let element = element?;
                    first.entry(key_of(element, call.scope)?).or_insert(element);
                }
                common = Some(first);
            }
            Some(common) => {
                let keys = keys(array, call.scope)?;
                common.retain(|key, _| keys.contains(key));
            }
        }
    }
    let mut result = ArrayBuilder::new(call.scope);
    let common = common.unwrap_or_default();
    common.values().try_for_each(|element| result.push(*element))?;
    Ok(Some(result.finish()))
}

fn is_subset(call: &Call<'_>) -> Result<Option<RawBson>> {
    let text = "both operands of $setIsSubset must be arrays. First argument is of type: ";
    let subset = array(call.get(0), 17046, text)?;
    let text = "both operands of $setIsSubset must be arrays. Second argument is of type: ";
    let superset = keys(array(call.get(1), 17042, text)?, call.scope)?;
    let subset = keys(subset, call.scope)?;
    Ok(Some(RawBson::Boolean(subset.is_subset(&superset))))
}

/// The elements of all arrays, in the order in which they are first seen.
fn union(call: &Call<'_>) -> Result<Option<RawBson>> {
    let mut seen = HashSet::new();
    let mut result = ArrayBuilder::new(call.scope);
    for value in call.iter() {
        if is_nullish(value) {
            return null();
        }
        let text = "All operands of $setUnion must be arrays. One argument is of type: ";
        for element in elements(array(value, 17043, text)?) {
            let element = element?;
            if seen.insert(key_of(element, call.scope)?) {
                result.push(element)?;
            }
        }
    }
    Ok(Some(result.finish()))
}
