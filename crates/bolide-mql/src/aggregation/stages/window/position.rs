//! Functions of the place of a document: ranks, shifts, and filling of gaps.

use bson::raw::RawBson;

use super::function::{Rank, Values};
use super::partition::{Coordinate, Partition};
use crate::aggregation::accumulator::value_bytes;
use crate::aggregation::stages::count::integer;
use crate::context::memory::StageMemory;
use crate::error::{Code, Error, Result};
use crate::expression::Expression;
use crate::value::number::Number;
use crate::value::types;

/// `$rank`, `$denseRank`, `$documentNumber`
pub(super) fn ranks(rank: Rank, partition: &Partition) -> Values {
    let (mut with_gaps, mut dense) = (0i64, 0i64);
    let number = |(index, place): (usize, i64)| {
        if !partition.is_tie(index) {
            with_gaps = place;
            dense += 1;
        }
        let number = match rank {
            Rank::WithGaps => with_gaps,
            Rank::Dense => dense,
            Rank::Document => place,
        };
        Some(integer(number))
    };
    (0..partition.len()).zip(1i64..).map(number).collect()
}

/// `$shift`
pub(super) fn shift(
    output: &Expression,
    by: i64,
    default: &RawBson,
    partition: &Partition,
    memory: &mut StageMemory,
) -> Result<Values> {
    let values = partition.evaluate(output, memory)?;
    let distance = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
    let mut shifted = Values::with_capacity(values.len());
    for index in 0..values.len() {
        let from = if by < 0 {
            index.checked_sub(distance)
        } else {
            index.checked_add(distance)
        };
        let value = match from.and_then(|from| values.get(from)) {
            Some(value) => value.clone(),
            None => Some(default.clone()),
        };
        memory.add(value.as_ref().map_or(0, value_bytes))?;
        shifted.push(value);
    }
    Ok(shifted)
}

fn is_null(value: Option<&RawBson>) -> bool {
    matches!(value, None | Some(RawBson::Null | RawBson::Undefined))
}

/// `$locf`
pub(super) fn last_observed(input: &Expression, partition: &Partition, memory: &mut StageMemory) -> Result<Values> {
    let mut last = RawBson::Null;
    let mut filled = Values::with_capacity(partition.len());
    for value in partition.evaluate(input, memory)? {
        if let (Some(value), false) = (&value, is_null(value.as_ref())) {
            last = value.clone();
        }
        memory.add(value_bytes(&last))?;
        filled.push(Some(last.clone()));
    }
    Ok(filled)
}

/// `$linearFill`
pub(super) fn linear_fill(input: &Expression, partition: &Partition, memory: &mut StageMemory) -> Result<Values> {
    let coordinates = partition.coordinates(Code::TYPE_MISMATCH, "$linearFill")?;
    check_distinct(&coordinates)?;
    let values = partition.evaluate(input, memory)?;
    let mut filled: Values = Vec::with_capacity(values.len());
    let mut known: Option<(usize, Number)> = None;
    for (index, value) in values.into_iter().enumerate() {
        if is_null(value.as_ref()) {
            filled.push(Some(RawBson::Null));
            continue;
        }
        let Some(number) = value.as_ref().and_then(|value| Number::of(value.as_raw_bson_ref())) else {
            let found = value.map_or("missing", |value| types::name(value.as_raw_bson_ref()));
            let text = format!("Value to be filled must be numeric or nullish, but found {found}");
            return Err(Error::new(6050201, text));
        };
        if let Some((before, first)) = known {
            fill_between(&mut filled, &coordinates, before..index, (first, number));
        }
        known = Some((index, number));
        filled.push(value);
    }
    Ok(filled)
}

/// Fills the gap behind the document at the start of `gap`, up to its end.
fn fill_between(
    filled: &mut Values,
    coordinates: &[Coordinate],
    gap: std::ops::Range<usize>,
    values: (Number, Number),
) {
    let number = |index: usize| match coordinates.get(index) {
        Some(Coordinate::Number(number)) => *number,
        Some(Coordinate::Date(date)) => Number::Int64(*date),
        None => Number::Int32(0),
    };
    let (x1, x2) = (number(gap.start), number(gap.end));
    let (y1, y2) = values;
    for index in gap.start + 1..gap.end {
        let x = number(index);
        let weighted = y1.mul(x2.sub(x)).add(y2.mul(x.sub(x1)));
        if let (Some(slot), Some(value)) = (filled.get_mut(index), weighted.div(x2.sub(x1))) {
            *slot = Some(value.into());
        }
    }
}

fn check_distinct(coordinates: &[Coordinate]) -> Result<()> {
    for (a, b) in coordinates.iter().zip(coordinates.iter().skip(1)) {
        let is_equal = match (a, b) {
            (Coordinate::Number(a), Coordinate::Number(b)) => a.compare(*b).is_eq(),
            (Coordinate::Date(a), Coordinate::Date(b)) => a == b,
            _ => {
                let text = "Conflicting sort value types, previous and current types don't match";
                return Err(Error::new(6050106, text));
            }
        };
        if is_equal {
            let text = "There can be no repeated values in the sort field";
            return Err(Error::new(6050106, text));
        }
    }
    Ok(())
}
