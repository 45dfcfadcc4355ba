//! `$percentile` and `$median`, computed exactly.

use bson::{RawBson, RawBsonRef};

use crate::error::{Code, Error, Result};
use crate::expression::build::{ArrayBuilder, elements};
use crate::expression::call::Call;
use crate::expression::operators::Named;
use crate::value::number::Number;

pub(super) const PERCENTILE: Named = Named {
    not_object: 7_429_703,
    unknown: 40415,
    parameters: &[("input", Some(40414)), ("method", Some(40414)), ("p", Some(40414))],
};

pub(super) const MEDIAN: Named = Named {
    not_object: 7_436_100,
    unknown: 40415,
    parameters: &[("input", Some(40414)), ("method", Some(40414))],
};

/// Returns for each `p`, from 0 to 1, the value that this part of the numbers does not exceed: that at position ⌈p·n⌉ in order. `None` of nothing.
pub fn percentiles(numbers: &mut [f64], ps: &[f64]) -> Option<Vec<f64>> {
    numbers.sort_by(f64::total_cmp);
    let value = |p: &f64| numbers.get(rank(numbers.len(), *p)).copied();
    ps.iter().map(value).collect()
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of elements are small, and p is from 0 to 1"
)]
fn rank(count: usize, p: f64) -> usize {
    if p >= 1.0 {
        return count.saturating_sub(1);
    }
    ((count as f64 * p).ceil() as usize).saturating_sub(1)
}

/// The numbers of the input: of the elements of an array, or the value itself.
fn input(call: &Call<'_>) -> Result<Vec<f64>> {
    let mut numbers = Vec::new();
    match call.get(0) {
        Some(RawBsonRef::Array(array)) => {
            for element in elements(array) {
                call.scope.step(1)?;
                numbers.extend(Number::of(element?).map(Number::to_f64));
            }
        }
        value => numbers.extend(value.and_then(Number::of).map(Number::to_f64)),
    }
    match call.get(1) {
        Some(RawBsonRef::String("approximate")) => Ok(numbers),
        _ => Err(Error::new(
            Code::BAD_VALUE,
            "Currently only 'approximate' can be used as percentile 'method'.",
        )),
    }
}

pub(super) fn percentile(call: &Call<'_>) -> Result<Option<RawBson>> {
    let mut numbers = input(call)?;
    let ps = fractions(call)?;
    let found = percentiles(&mut numbers, &ps);
    let mut array = ArrayBuilder::new(call.scope);
    for index in 0..ps.len() {
        let value = found.as_ref().and_then(|found| found.get(index));
        array.push(value.map_or(RawBsonRef::Null, |value| RawBsonRef::Double(*value)))?;
    }
    Ok(Some(array.finish()))
}

pub(super) fn median(call: &Call<'_>) -> Result<Option<RawBson>> {
    let mut numbers = input(call)?;
    let median = percentiles(&mut numbers, &[0.5]).and_then(|found| found.first().copied());
    Ok(Some(median.map_or(RawBson::Null, RawBson::Double)))
}

/// The argument `p`: an array of numbers from 0 to 1.
fn fractions(call: &Call<'_>) -> Result<Vec<f64>> {
    let failed = |code: i32| {
        let shown = call.render(2);
        Error::new(
            code,
            format!(
                "The $percentile 'p' field must be an array of numbers from the [0.0, 1.0] range, but found: {shown}"
            ),
        )
    };
    let Some(RawBsonRef::Array(array)) = call.get(2) else {
        return Err(failed(7_750_301));
    };
    let fraction = |element: Result<RawBsonRef<'_>>| {
        let p = Number::of(element?).map(Number::to_f64);
        let p = p.ok_or_else(|| failed(7_750_302))?;
        if (0.0..=1.0).contains(&p) {
            Ok(p)
        } else {
            Err(failed(7_750_303))
        }
    };
    let ps: Vec<f64> = elements(array).map(fraction).collect::<Result<_>>()?;
    if ps.is_empty() { Err(failed(7_750_301)) } else { Ok(ps) }
}
