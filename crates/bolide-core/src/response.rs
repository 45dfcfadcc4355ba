//! What every data operation answers with: its result, what it cost, and how far the ranges it touched have come.

use bolide_model::{Error, Lsn, RequestUnits};

/// Where a partition key range stood when an operation touched it, and what the operation did there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RangePosition {
    /// Id of the partition key range.
    pub range: u32,
    /// The range's newest log sequence number as the operation saw it; for a write, its own.
    pub lsn: Lsn,
    /// The range's part of the operation's charge: it counts against the range's share of the throughput.
    pub charge: RequestUnits,
}

/// The cost of an operation and the ranges it touched: what session tokens and charges are made of.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cost {
    /// Request units charged to the caller: the sum over the ranges touched.
    pub charge: RequestUnits,
    /// In range order; empty where no range was reached.
    pub touched: Vec<RangePosition>,
}

impl Cost {
    /// Cost in one range.
    pub(crate) fn in_range(charge: RequestUnits, range: u32, lsn: Lsn) -> Cost {
        Cost {
            charge,
            touched: vec![RangePosition { range, lsn, charge }],
        }
    }

    /// A page of a feed: what was read in each range is in `touched`, and a page costs a unit at least.
    pub(crate) fn of_feed(touched: Vec<RangePosition>) -> Cost {
        let charge: RequestUnits = touched.iter().map(|position| position.charge).sum();
        Cost::over(RequestUnits(charge.0.max(1.0)).rounded(), touched)
    }

    /// Cost in several ranges. What `touched` has as charges so far are the costs of what was done in each range; they come to `charge`
    /// but for its rounding and its minimum, which they bear in proportion, or evenly where nothing was done.
    pub(crate) fn over(charge: RequestUnits, mut touched: Vec<RangePosition>) -> Cost {
        let sum: RequestUnits = touched.iter().map(|position| position.charge).sum();
        let ranges = touched.len() as f64;
        for position in &mut touched {
            position.charge = RequestUnits(if sum.0 > 0.0 {
                position.charge.0 * (charge.0 / sum.0)
            } else {
                charge.0 / ranges
            });
        }
        Cost { charge, touched }
    }
}

/// The result of an operation.
#[derive(Debug, Clone)]
pub struct Response<T> {
    /// What was asked for.
    pub value: T,
    /// What it took.
    pub cost: Cost,
}

/// A refused operation. It changed nothing, and cost something all the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// Why.
    pub error: Error,
    /// What it took.
    pub cost: Cost,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal {
            error,
            cost: Cost::default(),
        }
    }
}

/// An answer or a refusal.
pub type ChargedResult<T> = Result<Response<T>, Refusal>;
