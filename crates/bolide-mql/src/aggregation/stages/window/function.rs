//! The functions of windows.

use bson::raw::{RawBson, RawBsonRef};

use super::bounds::Bounds;
use super::dates::DateUnit;
use super::partition::Partition;
use super::{numeric, position};
use crate::aggregation::accumulator::{Accumulator, Item, State};
use crate::context::memory::StageMemory;
use crate::error::Result;
use crate::expression::Expression;

/// A function, parsed.
#[derive(Debug)]
pub(in crate::aggregation::stages) enum Function {
    /// An accumulator over the window.
    Accumulate { accumulator: Accumulator, bounds: Bounds },
    /// `$rank`, `$denseRank`, `$documentNumber`
    Rank(Rank),
    /// `$shift`
    Shift {
        output: Expression,
        by: i64,
        default: RawBson,
    },
    /// `$expMovingAvg`
    MovingAverage { input: Expression, alpha: RawBson },
    /// `$derivative`
    Derivative {
        input: Expression,
        unit: Option<DateUnit>,
        bounds: Bounds,
    },
    /// `$integral`
    Integral {
        input: Expression,
        unit: Option<DateUnit>,
        bounds: Bounds,
    },
    /// `$covariancePop`, `$covarianceSamp`
    Covariance {
        x: Expression,
        y: Expression,
        is_sample: bool,
        bounds: Bounds,
    },
    /// `$linearFill`
    LinearFill(Expression),
    /// `$locf`
    LastObserved(Expression),
}

/// How documents are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::aggregation::stages) enum Rank {
    /// `$rank`: ties have the number of the first of them.
    WithGaps,
    /// `$denseRank`: the numbers of different places follow one another.
    Dense,
    /// `$documentNumber`
    Document,
}

/// A value for each document; `None` sets no field.
pub(super) type Values = Vec<Option<RawBson>>;

impl Function {
    /// Returns the values for all documents of a partition.
    ///
    /// # Errors
    /// Those of expressions; 292 for too much memory; others for values that the function cannot take.
    pub(super) fn values(&self, partition: &mut Partition, memory: &mut StageMemory) -> Result<Values> {
        match self {
            Function::Accumulate { accumulator, bounds } => accumulate(accumulator, bounds, partition, memory),
            Function::Rank(rank) => Ok(position::ranks(*rank, partition)),
            Function::Shift { output, by, default } => position::shift(output, *by, default, partition, memory),
            Function::MovingAverage { input, alpha } => numeric::moving_average(input, alpha, partition, memory),
            Function::Derivative { input, unit, bounds } => {
                numeric::derivative(input, *unit, bounds, partition, memory)
            }
            Function::Integral { input, unit, bounds } => numeric::integral(input, *unit, bounds, partition, memory),
            Function::Covariance {
                x,
                y,
                is_sample,
                bounds,
            } => numeric::covariance((x, y), *is_sample, bounds, partition, memory),
            Function::LinearFill(input) => position::linear_fill(input, partition, memory),
            Function::LastObserved(input) => position::last_observed(input, partition, memory),
        }
    }
}

/// Accumulates over each window. While the start of the windows stays, each goes on from the one before it; else it is computed anew.
fn accumulate(
    accumulator: &Accumulator,
    bounds: &Bounds,
    partition: &Partition,
    memory: &mut StageMemory,
) -> Result<Values> {
    let context = &partition.run.context;
    let mut items: Vec<Item> = Vec::with_capacity(partition.len());
    for document in partition.documents() {
        context.interrupt.check(1)?;
        let item = accumulator.item(&document.scope(context))?;
        memory.add(item.bytes())?;
        items.push(item);
    }
    let start = || accumulator.start(RawBsonRef::Null, context);
    let (mut state, mut done): (State, std::ops::Range<usize>) = (start()?, 0..0);
    let mut held = memory.clone();
    let mut values = Values::with_capacity(partition.len());
    for span in bounds.spans(partition)? {
        let is_same = span == done;
        if span.start != done.start || span.end < done.end {
            (state, done) = (start()?, span.start..span.start);
            held = memory.clone();
        }
        for item in items.get(done.end..span.end).unwrap_or_default() {
            context.interrupt.check(1)?;
            accumulator.add_item(&mut state, item.clone(), context, &mut held)?;
        }
        done = span;
        let value = match (is_same, values.last()) {
            (true, Some(last)) => Option::clone(last),
            _ => Some(state.result()),
        };
        let bytes = value.as_ref().map_or(0, crate::aggregation::accumulator::value_bytes);
        memory.add(bytes)?;
        held.add(bytes)?;
        values.push(value);
    }
    Ok(values)
}
