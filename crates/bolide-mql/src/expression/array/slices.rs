//! Parts of arrays: `$slice`, `$firstN`, `$lastN`, `$minN`, `$maxN`.

use bson::{RawArray, RawBson, RawBsonRef};

use super::super::build::{ArrayBuilder, elements};
use super::super::call::{Call, null};
use super::super::comparison::compare;
use super::super::operand::{is_nullish, render, type_name};
use super::super::operators::{Arguments, Named, Operator};
use super::super::scope::Scope;
use crate::error::{Error, Result};
use crate::value::number::{self, Number};

pub(in crate::expression) const OPERATORS: &[Operator] = &[
    Operator::eager("$slice", Arguments::Between(2, 3), slice),
    Operator::eager("$firstN", Arguments::Named(&N), |call| {
        some(call, |all, n| all.get(..n))
    }),
    Operator::eager("$lastN", Arguments::Named(&N), |call| {
        some(call, |all, n| all.get(all.len() - n..))
    }),
    Operator::eager("$minN", Arguments::Named(&N), |call| extremes(call, false)),
    Operator::eager("$maxN", Arguments::Named(&N), |call| extremes(call, true)),
];

const N: Named = Named {
    not_object: 5_787_900,
    unknown: 5_787_901,
    parameters: &[("n", Some(5_787_906)), ("input", Some(5_787_907))],
};

fn collect(array: &RawArray) -> Result<Vec<RawBsonRef<'_>>> {
    elements(array).collect()
}

fn make(values: &[RawBsonRef<'_>], scope: &Scope<'_>) -> Result<Option<RawBson>> {
    let mut array = ArrayBuilder::new(scope);
    values.iter().try_for_each(|value| array.push(*value))?;
    Ok(Some(array.finish()))
}

/// An argument of `$slice` that is a number of elements.
fn count(call: &Call<'_>, position: usize, ordinal: &str, codes: (i32, i32)) -> Result<i32> {
    let value = call.get(position);
    if value.and_then(Number::of).is_none() {
        let found = type_name(value);
        return Err(Error::new(
            codes.0,
            format!("{ordinal} argument to $slice must be a numeric value, but is of type: {found}"),
        ));
    }
    let whole = value
        .and_then(number::whole)
        .and_then(|whole| i32::try_from(whole).ok());
    whole.ok_or_else(|| {
        let shown = render(value);
        Error::new(
            codes.1,
            format!("{ordinal} argument to $slice can't be represented as a 32-bit integer: {shown}"),
        )
    })
}

/// `[array, n]`: the first n, or the last if n is negative; `[array, position, n]`: n from a position, which counts from the end if it is negative.
fn slice(call: &Call<'_>) -> Result<Option<RawBson>> {
    let second_is_null = is_nullish(call.get(1));
    let third_is_null = call.is_given(2) && is_nullish(call.get(2));
    if is_nullish(call.get(0)) || second_is_null || third_is_null {
        return null();
    }
    let text = "First argument to $slice must be an array, but is of type: ";
    let Some(array) = call.array(0, 28724, text)? else {
        return null();
    };
    let second = count(call, 1, "Second", (28725, 28726))?;
    let all = collect(array)?;
    let magnitude = usize::try_from(second.unsigned_abs()).unwrap_or(usize::MAX);
    let from_end = all.len().saturating_sub(magnitude);
    if !call.is_given(2) {
        let part = if second >= 0 {
            all.get(..magnitude.min(all.len()))
        } else {
            all.get(from_end..)
        };
        return make(part.unwrap_or_default(), call.scope);
    }
    let third = count(call, 2, "Third", (28727, 28728))?;
    if third <= 0 {
        return Err(Error::new(
            28729,
            format!("Third argument to $slice must be positive: {third}"),
        ));
    }
    let start = if second >= 0 {
        magnitude.min(all.len())
    } else {
        from_end
    };
    let length = usize::try_from(third).unwrap_or(usize::MAX);
    let end = start.saturating_add(length).min(all.len());
    make(all.get(start..end).unwrap_or_default(), call.scope)
}

/// The arguments of `$firstN` and the like.
fn n_and_input<'c>(call: &Call<'c>) -> Result<(usize, &'c RawArray)> {
    let (value, shown) = (call.get(0), call.render(0));
    if value.and_then(Number::of).is_none() {
        return Err(Error::new(
            5_787_902,
            format!("Value for 'n' must be of integral type, but found {shown}"),
        ));
    }
    let Some(n) = value.and_then(number::whole) else {
        return Err(Error::new(
            5_787_903,
            format!("Value for 'n' must be of integral type, but found {shown}"),
        ));
    };
    if n <= 0 {
        return Err(Error::new(5_787_908, format!("'n' must be greater than 0, found {n}")));
    }
    match call.get(1) {
        Some(RawBsonRef::Array(array)) => Ok((usize::try_from(n).unwrap_or(usize::MAX), array)),
        _ => Err(Error::new(5_788_200, "Input must be an array")),
    }
}

type Choice = for<'s, 'v> fn(&'s [RawBsonRef<'v>], usize) -> Option<&'s [RawBsonRef<'v>]>;

fn some(call: &Call<'_>, choose: Choice) -> Result<Option<RawBson>> {
    let (n, array) = n_and_input(call)?;
    let all = collect(array)?;
    make(choose(&all, n.min(all.len())).unwrap_or_default(), call.scope)
}

/// The n least or greatest elements that are not null, in that order.
fn extremes(call: &Call<'_>, descending: bool) -> Result<Option<RawBson>> {
    let (n, array) = n_and_input(call)?;
    let mut all = collect(array)?;
    all.retain(|value| !is_nullish(Some(*value)));
    call.scope.step(all.len())?;
    all.sort_by(|a, b| {
        let order = compare(Some(*a), Some(*b), call.scope);
        if descending { order.reverse() } else { order }
    });
    make(all.get(..n.min(all.len())).unwrap_or_default(), call.scope)
}
