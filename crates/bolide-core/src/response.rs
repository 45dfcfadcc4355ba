//! What every data operation returns: its result, its charge, and the positions of the ranges it used.

use bolide_model::{Error, Lsn, RequestUnits};

/// The position of a partition key range when an operation used it, and the operation's charge there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RangePosition {
    /// Id of the partition key range.
    pub range: u32,
    /// The range's newest log sequence number as the operation saw it; for a write, its own.
    pub lsn: Lsn,
    /// The range's part of the operation's charge in request units: it counts against the range's share of the throughput.
    pub charge: RequestUnits,
}

/// The charge of an operation and the ranges it used, from which session tokens and charges are made.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cost {
    /// Request units charged to the caller: the sum over the ranges used.
    pub charge: RequestUnits,
    /// The ranges used, in range order; empty if no range was reached.
    pub touched: Vec<RangePosition>,
}

impl Cost {
    /// Returns the cost of work in one range.
    pub(crate) fn in_range(charge: RequestUnits, range: u32, lsn: Lsn) -> Cost {
        Cost {
            charge,
            touched: vec![RangePosition { range, lsn, charge }],
        }
    }

    /// Returns the cost of a feed's page: `touched` has the cost of the reads in each range, and a page costs at least one unit.
    pub(crate) fn of_feed(touched: Vec<RangePosition>) -> Cost {
        let charge: RequestUnits = touched.iter().map(|position| position.charge).sum();
        Cost::over(RequestUnits(charge.0.max(1.0)).rounded(), touched)
    }

    /// Returns a cost in several ranges. The charges in `touched` are the costs of the work in each range. Their sum differs from `charge` by
    /// rounding and by the minimum charge, which are divided in proportion, or evenly if no work was done.
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
    /// The value that was requested.
    pub value: T,
    /// The charge and the ranges used.
    pub cost: Cost,
}

/// A refused operation. It changed nothing, but has a cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The reason.
    pub error: Error,
    /// The charge and the ranges used.
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

/// A response or a refusal.
pub type ChargedResult<T> = Result<Response<T>, Refusal>;
