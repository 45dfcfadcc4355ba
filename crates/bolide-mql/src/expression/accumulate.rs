//! Accumulators as expressions: `$sum`, `$avg`, `$min`, `$max`, `$stdDevPop`, `$stdDevSamp`, `$percentile`, `$median`.
//!
//! With one argument that is an array they work on its elements; otherwise on the arguments.

pub(super) mod deviation;
pub(super) mod percentile;
pub(super) mod total;

use std::cmp::Ordering;

use bson::{RawBson, RawBsonRef};

use self::deviation::Deviation;
use self::total::Total;
use super::build::elements;
use super::call::Call;
use super::comparison::compare;
use super::operand::is_nullish;
use super::operators::{Arguments, Operator};
use crate::error::Result;
use crate::value::number::Number;

pub(super) const OPERATORS: &[Operator] = &[
    Operator::eager("$sum", Arguments::Any, sum),
    Operator::eager("$avg", Arguments::Any, average),
    Operator::eager("$min", Arguments::Any, |call| extreme(call, Ordering::Less)),
    Operator::eager("$max", Arguments::Any, |call| extreme(call, Ordering::Greater)),
    Operator::eager("$stdDevPop", Arguments::Any, |call| {
        Ok(Some(deviation_of(call)?.of_population()))
    }),
    Operator::eager("$stdDevSamp", Arguments::Any, |call| {
        Ok(Some(deviation_of(call)?.of_sample()))
    }),
    Operator::eager(
        "$percentile",
        Arguments::Named(&percentile::PERCENTILE),
        percentile::percentile,
    ),
    Operator::eager("$median", Arguments::Named(&percentile::MEDIAN), percentile::median),
];

/// Calls the function with each value that is accumulated.
fn for_each(call: &Call<'_>, mut accumulate: impl FnMut(RawBsonRef<'_>)) -> Result<()> {
    if let (1, Some(RawBsonRef::Array(array))) = (call.values.len(), call.get(0)) {
        for element in elements(array) {
            call.scope.step(1)?;
            accumulate(element?);
        }
        return Ok(());
    }
    call.scope.step(call.values.len())?;
    call.iter().flatten().for_each(accumulate);
    Ok(())
}

fn sum(call: &Call<'_>) -> Result<Option<RawBson>> {
    let mut total = Total::default();
    for_each(call, |value| {
        Number::of(value).into_iter().for_each(|number| total.add(number));
    })?;
    Ok(Some(total.value().into()))
}

fn average(call: &Call<'_>) -> Result<Option<RawBson>> {
    let mut total = Total::default();
    for_each(call, |value| {
        Number::of(value).into_iter().for_each(|number| total.add(number));
    })?;
    Ok(Some(total.mean().map_or(RawBson::Null, RawBson::from)))
}

/// The least or greatest value that is not null.
fn extreme(call: &Call<'_>, wanted: Ordering) -> Result<Option<RawBson>> {
    let mut best: Option<RawBson> = None;
    for_each(call, |value| {
        let current = best.as_ref().map(RawBson::as_raw_bson_ref);
        let is_better = current.is_none() || compare(Some(value), current, call.scope) == wanted;
        if !is_nullish(Some(value)) && is_better {
            best = Some(value.into());
        }
    })?;
    Ok(Some(best.unwrap_or(RawBson::Null)))
}

fn deviation_of(call: &Call<'_>) -> Result<Deviation> {
    let mut deviation = Deviation::default();
    for_each(call, |value| {
        Number::of(value)
            .into_iter()
            .for_each(|number| deviation.add(number.to_f64()));
    })?;
    Ok(deviation)
}
