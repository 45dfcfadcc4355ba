//! `$eq $lt $lte $gt $gte`: comparisons within one bracket of types.

use std::cmp::Ordering;

use bolide_index::codec::rank;
use bson::{RawBson, RawBsonRef};

use crate::value::collation::Collation;
use crate::value::compare_with;
use crate::value::number::Number;
use crate::value::order::type_rank;

/// An operator of comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `$eq`
    Equal,
    /// `$lt`
    Less,
    /// `$lte`
    LessOrEqual,
    /// `$gt`
    Greater,
    /// `$gte`
    GreaterOrEqual,
}

impl Operator {
    fn accepts(self, order: Ordering) -> bool {
        match self {
            Operator::Equal => order.is_eq(),
            Operator::Less => order.is_lt(),
            Operator::LessOrEqual => order.is_le(),
            Operator::Greater => order.is_gt(),
            Operator::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// A comparison with an operand.
#[derive(Debug, Clone)]
pub(super) struct Comparison {
    operator: Operator,
    operand: RawBson,
    /// The bracket of types that the operand is in.
    rank: u8,
}

impl Comparison {
    pub(super) fn new(operator: Operator, operand: RawBsonRef<'_>) -> Comparison {
        Comparison {
            operator,
            operand: operand.into(),
            rank: type_rank(operand),
        }
    }

    pub(super) fn operator(&self) -> Operator {
        self.operator
    }

    pub(super) fn operand(&self) -> &RawBson {
        &self.operand
    }

    /// Returns the operand of an equality.
    pub(super) fn equal_to(&self) -> Option<&RawBson> {
        (self.operator == Operator::Equal).then_some(&self.operand)
    }

    /// Tells whether the comparison holds for a value, `None` being a missing one.
    pub(super) fn matches(&self, value: Option<RawBsonRef<'_>>, collation: Option<&Collation>) -> bool {
        let value_rank = value.map_or(rank::NULL, type_rank);
        match self.rank {
            // Null, undefined and missing are equal here.
            rank::NULL => self.operator.accepts(Ordering::Equal) && is_null(value),
            // All values compare with the ends of the order.
            rank::MIN_KEY | rank::MAX_KEY => self.operator.accepts(value_rank.cmp(&self.rank)),
            _ => match value {
                Some(value) if value_rank == self.rank => self.compares(value, collation),
                _ => false,
            },
        }
    }

    fn compares(&self, value: RawBsonRef<'_>, collation: Option<&Collation>) -> bool {
        let operand = self.operand.as_raw_bson_ref();
        let order = compare_with(value, operand, collation);
        // NaN is neither less nor greater than a number; the order of sorting has it below all.
        let is_unordered = order.is_ne() && (is_nan(value) || is_nan(operand));
        !is_unordered && self.operator.accepts(order)
    }
}

/// Tells whether a value is null, undefined or missing.
pub(super) fn is_null(value: Option<RawBsonRef<'_>>) -> bool {
    matches!(value, None | Some(RawBsonRef::Null | RawBsonRef::Undefined))
}

fn is_nan(value: RawBsonRef<'_>) -> bool {
    match value {
        RawBsonRef::Double(value) => value.is_nan(),
        RawBsonRef::Decimal128(_) => Number::of(value).is_some_and(Number::is_nan),
        _ => false,
    }
}
