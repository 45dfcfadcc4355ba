//! Whether every document that a filter matches is in a partial index.
//!
//! A condition of the query implies one of the index if they are on the same path, and every value that passes the one passes the other: then the place at
//! which the query's condition holds is one at which the other does.

use bson::raw::RawBson;

use crate::collation::Collation;
use crate::filter::{Condition, Conjunction, Operator, Test};
use crate::value::compare_with;
use crate::value::number::Number;
use crate::value::order::type_rank;

/// Tells whether documents that match `query` match `partial`, where both compare strings by a collation. `false` if that is not obvious.
pub fn implies(query: &Conjunction<'_>, partial: &Conjunction<'_>, collation: Option<&Collation>) -> bool {
    let of_condition = |partial: &Condition<'_>| {
        match partial {
        Condition::Field { path, test } => query
            .conditions
            .iter()
            .any(|own| matches!(own, Condition::Field { path: own, test: known } if own == path && test_implies(known, test, collation))),
        Condition::Elements { .. } => false,
    }
    };
    let of_alternatives = |alternatives: &Vec<Conjunction<'_>>| {
        alternatives
            .iter()
            .any(|alternative| implies(query, alternative, collation))
    };
    partial.is_complete
        && partial.conditions.iter().all(of_condition)
        && partial.alternatives.iter().all(of_alternatives)
}

fn test_implies(known: &Test<'_>, wanted: &Test<'_>, collation: Option<&Collation>) -> bool {
    match known {
        Test::Comparison(Operator::Equal, value) => is_passed(wanted, value, collation),
        Test::Membership(values, patterns) => {
            patterns.is_empty() && values.iter().all(|value| is_passed(wanted, value, collation))
        }
        Test::Comparison(operator, value) => match wanted {
            Test::Exists => !known.takes_missing(),
            Test::Comparison(wanted, limit) => is_inside((*operator, value), (*wanted, limit), collation),
            _ => false,
        },
        Test::Exists | Test::Pattern(..) | Test::Element(_) => matches!(wanted, Test::Exists),
    }
}

/// Tells whether all values that equal one pass a test; `false` for null, which missing fields equal, unless the test is for null.
fn is_passed(test: &Test<'_>, value: &RawBson, collation: Option<&Collation>) -> bool {
    let value_ref = value.as_raw_bson_ref();
    let equals = |other: &RawBson| compare_with(value_ref, other.as_raw_bson_ref(), collation).is_eq();
    match test {
        Test::Exists => !matches!(
            value,
            RawBson::Null | RawBson::Undefined | RawBson::MinKey | RawBson::MaxKey
        ),
        Test::Comparison(Operator::Equal, other) => equals(other),
        Test::Comparison(operator, other) => {
            let order = compare_with(value_ref, other.as_raw_bson_ref(), collation);
            is_plain(value)
                && is_plain(other)
                && type_rank(value_ref) == type_rank(other.as_raw_bson_ref())
                && match operator {
                    Operator::Equal => order.is_eq(),
                    Operator::Less => order.is_lt(),
                    Operator::LessOrEqual => order.is_le(),
                    Operator::Greater => order.is_gt(),
                    Operator::GreaterOrEqual => order.is_ge(),
                }
        }
        Test::Membership(values, _) => values.iter().any(equals),
        Test::Pattern(..) | Test::Element(_) => false,
    }
}

/// Tells whether every value on one side of a value is on one side of another.
fn is_inside(
    (operator, value): (Operator, &RawBson),
    (wanted, limit): (Operator, &RawBson),
    collation: Option<&Collation>,
) -> bool {
    use Operator::{Greater, GreaterOrEqual, Less, LessOrEqual};

    if !is_plain(value) || !is_plain(limit) || type_rank(value.as_raw_bson_ref()) != type_rank(limit.as_raw_bson_ref())
    {
        return false;
    }
    let order = compare_with(value.as_raw_bson_ref(), limit.as_raw_bson_ref(), collation);
    match (operator, wanted) {
        (Less, Less | LessOrEqual) | (LessOrEqual, LessOrEqual) => order.is_le(),
        (LessOrEqual, Less) => order.is_lt(),
        (Greater, Greater | GreaterOrEqual) | (GreaterOrEqual, GreaterOrEqual) => order.is_ge(),
        (GreaterOrEqual, Greater) => order.is_gt(),
        _ => false,
    }
}

/// Whether a value compares by the order alone: not null, NaN or an end of the order.
fn is_plain(value: &RawBson) -> bool {
    !matches!(
        value,
        RawBson::Null | RawBson::Undefined | RawBson::MinKey | RawBson::MaxKey
    ) && !Number::of(value.as_raw_bson_ref()).is_some_and(Number::is_nan)
}
