//! Arrays.

pub(super) mod objects;
pub(super) mod order;
pub(super) mod slices;
pub(super) mod zip;

use bson::{RawArray, RawBson, RawBsonRef};

use super::build::{ArrayBuilder, elements};
use super::call::{Call, null};
use super::comparison::compare;
use super::operand::{is_nullish, render, type_name};
use super::operators::{Arguments, Operator};
use super::scope::MAX_VALUE_BYTES;
use crate::error::{Code, Error, Result};
use crate::value::number::{self, Number};

pub(super) const OPERATORS: &[Operator] = &[
    Operator::eager("$arrayElemAt", Arguments::Exactly(2), element_at),
    Operator::eager("$first", Arguments::Exactly(1), |call| {
        end(call, |array| array.into_iter().next())
    }),
    Operator::eager("$last", Arguments::Exactly(1), |call| {
        end(call, |array| array.into_iter().last())
    }),
    Operator::eager("$concatArrays", Arguments::Any, concatenate),
    Operator::eager("$in", Arguments::Exactly(2), contains),
    Operator::eager("$indexOfArray", Arguments::Between(2, 4), index_of),
    Operator::eager("$isArray", Arguments::Exactly(1), |call| {
        Ok(Some(RawBson::Boolean(matches!(
            call.get(0),
            Some(RawBsonRef::Array(_))
        ))))
    }),
    Operator::eager("$range", Arguments::Between(2, 3), range),
    Operator::eager("$reverseArray", Arguments::Exactly(1), reverse),
    Operator::eager("$size", Arguments::Exactly(1), size),
];

/// An index that must be a number and fit an i32; the codes for each, and the name of the argument in texts.
fn index(call: &Call<'_>, position: usize, codes: (i32, i32), argument: &str) -> Result<i32> {
    let value = call.get(position);
    if value.and_then(Number::of).is_none() {
        let found = type_name(value);
        return Err(Error::new(
            codes.0,
            format!("{argument} must be a numeric value, but is {found}"),
        ));
    }
    let index = value
        .and_then(number::whole)
        .and_then(|index| i32::try_from(index).ok());
    index.ok_or_else(|| {
        let shown = render(value);
        let problem = format!("{argument} must be representable as a 32-bit integer: {shown}");
        Error::new(codes.1, problem)
    })
}

/// A position counted from the start, or from the end if it is negative; `None` outside of the array.
fn position_in(array: &RawArray, index: i32) -> Result<Option<usize>> {
    if let Ok(index) = usize::try_from(index) {
        return Ok(Some(index));
    }
    let mut count = 0_usize;
    for element in elements(array) {
        element?;
        count += 1;
    }
    let from_end = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
    Ok(count.checked_sub(from_end))
}

fn element_at(call: &Call<'_>) -> Result<Option<RawBson>> {
    if is_nullish(call.get(0)) || is_nullish(call.get(1)) {
        return null();
    }
    let text = "$arrayElemAt's first argument must be an array, but is ";
    let Some(array) = call.array(0, 28689, text)? else {
        return null();
    };
    let index = index(call, 1, (28690, 28691), "$arrayElemAt's second argument")?;
    let Some(position) = position_in(array, index)? else {
        return Ok(None);
    };
    Ok(elements(array).nth(position).transpose()?.map(RawBson::from))
}

type Element<'a> = Option<bson::error::Result<RawBsonRef<'a>>>;

/// The first or last element; missing of an empty array.
fn end(call: &Call<'_>, find: for<'a> fn(&'a RawArray) -> Element<'a>) -> Result<Option<RawBson>> {
    let text = format!("{}'s argument must be an array, but is ", call.name());
    let Some(array) = call.array(0, 28689, &text)? else {
        return null();
    };
    let found = find(array).transpose();
    let found = found.map_err(Error::malformed)?;
    Ok(found.map(RawBson::from))
}

fn concatenate(call: &Call<'_>) -> Result<Option<RawBson>> {
    let mut joined = ArrayBuilder::new(call.scope);
    for value in call.iter() {
        match value {
            Some(RawBsonRef::Array(array)) => {
                for element in elements(array) {
                    joined.push(element?)?;
                }
            }
            value if is_nullish(value) => return null(),
            value => {
                let found = type_name(value);
                return Err(Error::new(
                    28664,
                    format!("$concatArrays only supports arrays, not {found}"),
                ));
            }
        }
    }
    Ok(Some(joined.finish()))
}

fn contains(call: &Call<'_>) -> Result<Option<RawBson>> {
    let Some(RawBsonRef::Array(array)) = call.get(1) else {
        let found = call.type_name(1);
        return Err(Error::new(
            40081,
            format!("$in requires an array as a second argument, found: {found}"),
        ));
    };
    for element in elements(array) {
        call.scope.step(1)?;
        if compare(call.get(0), Some(element?), call.scope).is_eq() {
            return Ok(Some(RawBson::Boolean(true)));
        }
    }
    Ok(Some(RawBson::Boolean(false)))
}

/// An index of `$indexOfArray` and the like: a whole number that is not negative.
pub(super) fn bound(call: &Call<'_>, position: usize, which: &str) -> Result<usize> {
    let (name, value) = (call.name(), call.get(position));
    let Some(index) = value
        .and_then(number::whole)
        .and_then(|index| i32::try_from(index).ok())
    else {
        let (found, shown) = (type_name(value), render(value));
        return Err(Error::new(
            40096,
            format!("{name} requires an integral {which} index, found a value of type: {found}, with value: {shown}"),
        ));
    };
    usize::try_from(index).map_err(|_| {
        let problem = format!("{name} requires a nonnegative {which} index, found: {index}");
        Error::new(40097, problem)
    })
}

fn index_of(call: &Call<'_>) -> Result<Option<RawBson>> {
    let text = "$indexOfArray requires an array as a first argument, found: ";
    let Some(array) = call.array(0, 40090, text)? else {
        return null();
    };
    let start = if call.is_given(2) {
        bound(call, 2, "starting")?
    } else {
        0
    };
    let end = if call.is_given(3) {
        bound(call, 3, "ending")?
    } else {
        usize::MAX
    };
    for (position, element) in elements(array).enumerate().take(end).skip(start) {
        call.scope.step(1)?;
        if compare(Some(element?), call.get(1), call.scope).is_eq() {
            return Ok(Some(RawBson::Int32(i32::try_from(position).unwrap_or(i32::MAX))));
        }
    }
    Ok(Some(RawBson::Int32(-1)))
}

/// An argument of `$range`: its name, and the codes of its errors.
fn range_argument(call: &Call<'_>, position: usize, what: &str, codes: (i32, i32)) -> Result<i32> {
    let value = call.get(position);
    if value.and_then(Number::of).is_none() {
        let found = type_name(value);
        return Err(Error::new(
            codes.0,
            format!("$range requires a numeric {what} value, found value of type: {found}"),
        ));
    }
    let whole = value
        .and_then(number::whole)
        .and_then(|whole| i32::try_from(whole).ok());
    whole.ok_or_else(|| {
        let shown = render(value);
        Error::new(
            codes.1,
            format!("$range requires a {what} value that can be represented as a 32-bit integer, found value: {shown}"),
        )
    })
}

/// Bytes that MongoDB counts for an element of `$range`.
const RANGE_ELEMENT_BYTES: u64 = 16;

fn range(call: &Call<'_>) -> Result<Option<RawBson>> {
    let start = range_argument(call, 0, "starting", (34443, 34444))?;
    let end = range_argument(call, 1, "ending", (34445, 34446))?;
    let step = match call.is_given(2) {
        true => range_argument(call, 2, "step", (34447, 34448))?,
        false => 1,
    };
    if step == 0 {
        return Err(Error::new(34449, "$range requires a non-zero step value"));
    }
    let distance = i64::from(end) - i64::from(start);
    let is_empty = distance == 0 || (distance > 0) != (step > 0);
    let count = if is_empty {
        0
    } else {
        distance.unsigned_abs().div_ceil(u64::from(step.unsigned_abs()))
    };
    let bytes = count * RANGE_ELEMENT_BYTES;
    if bytes > MAX_VALUE_BYTES as u64 {
        return Err(Error::new(
            Code::EXCEEDED_MEMORY_LIMIT,
            format!(
                "$range would use too much memory ({bytes} bytes) and cannot spill to disk. Memory limit: {MAX_VALUE_BYTES} bytes"
            ),
        ));
    }
    let mut values = ArrayBuilder::new(call.scope);
    let mut value = start;
    for _ in 0..count {
        values.push(RawBsonRef::Int32(value))?;
        value = value.saturating_add(step);
    }
    Ok(Some(values.finish()))
}

fn reverse(call: &Call<'_>) -> Result<Option<RawBson>> {
    let text = "The argument to $reverseArray must be an array, but was of type: ";
    let Some(array) = call.array(0, 34435, text)? else {
        return null();
    };
    let all: Vec<RawBsonRef<'_>> = elements(array).collect::<Result<_>>()?;
    let mut reversed = ArrayBuilder::new(call.scope);
    all.into_iter().rev().try_for_each(|element| reversed.push(element))?;
    Ok(Some(reversed.finish()))
}

fn size(call: &Call<'_>) -> Result<Option<RawBson>> {
    let Some(RawBsonRef::Array(array)) = call.get(0) else {
        let found = call.type_name(0);
        return Err(Error::new(
            17124,
            format!("The argument to $size must be an array, but was of type: {found}"),
        ));
    };
    let mut count = 0_i32;
    for element in elements(array) {
        element?;
        count = count.saturating_add(1);
    }
    Ok(Some(RawBson::Int32(count)))
}
