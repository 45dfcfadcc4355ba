//! The keys of the values that pass one comparison.

use std::cmp::Ordering;

use bolide_index::codec::sql_rank;

use super::interval::{Interval, intersection, union};
use super::key::{self, Key};
use crate::text::ast::BinaryOp;
use crate::value::{Kind, Value, compare};

/// Intervals with at least the keys of some values, sorted and without overlaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Values {
    pub intervals: Vec<Interval>,
    /// Each interval has one key only.
    pub is_equality: bool,
}

/// Whether no value that differs from a constant has its key.
pub(super) fn has_own_key(constant: &Value<'_>) -> bool {
    let is_scalar = !matches!(constant.kind(), Kind::Array | Kind::Object);
    is_scalar && !is_nan(constant) && Key::of(constant).is_some_and(|key| key.is_exact)
}

impl Values {
    /// No value.
    pub fn none() -> Values {
        Values {
            intervals: Vec::new(),
            is_equality: true,
        }
    }

    /// Every defined value.
    pub fn all() -> Values {
        Values::between(Vec::new(), None)
    }

    /// The values whose keys begin with bytes from `first` to before `end`.
    pub fn of_ranks(first: u8, end: u8) -> Values {
        Values::between(vec![first], Some(vec![end]))
    }

    /// Those that begin with a text.
    pub fn with_prefix(prefix: &str) -> Values {
        Values {
            intervals: vec![Interval::of_prefix(key::of_prefix(prefix))],
            is_equality: false,
        }
    }

    /// Those that equal any of the constants. Nothing equals undefined and NaN.
    pub fn equal_to<'v>(constants: impl IntoIterator<Item = &'v Value<'v>>) -> Values {
        let keys = constants.into_iter().filter(|value| !is_nan(value)).filter_map(Key::of);
        Values {
            intervals: union(keys.map(|key| Interval::of_prefix(key.bytes)).collect()),
            is_equality: true,
        }
    }

    /// Those for which `value op constant` is true; `None` if the operator is no comparison.
    pub fn compared(op: BinaryOp, constant: &Value<'_>) -> Option<Values> {
        Some(match op {
            BinaryOp::Equal => Values::equal_to([constant]),
            BinaryOp::NotEqual => Values::different_from(constant),
            BinaryOp::Less => Values::ordered(constant, Ordering::is_lt),
            BinaryOp::LessOrEqual => Values::ordered(constant, Ordering::is_le),
            BinaryOp::Greater => Values::ordered(constant, Ordering::is_gt),
            BinaryOp::GreaterOrEqual => Values::ordered(constant, Ordering::is_ge),
            _ => return None,
        })
    }

    /// Those in both sets.
    pub fn and(&self, other: &Values) -> Values {
        Values {
            intervals: intersection(&self.intervals, &other.intervals),
            is_equality: self.is_equality || other.is_equality,
        }
    }

    /// Those whose order relative to the constant passes the test, which is one of `<`, `<=`, `>` and `>=`. Only values of one type are ordered.
    fn ordered(constant: &Value<'_>, test: fn(Ordering) -> bool) -> Values {
        // Undefined, NaN, arrays and objects have no order, also relative to themselves.
        let Some((first, end)) = ranks_of(constant.kind()).filter(|_| compare(constant, constant).is_some()) else {
            return Values::none();
        };
        let Some(Key { bytes: own, is_exact }) = Key::of(constant) else {
            return Values::none();
        };
        // A cut key is also that of strings on both sides of the constant.
        let has_own = test(Ordering::Equal) || !is_exact;
        let after = key::after(&own);
        let interval = match (test(Ordering::Less), has_own) {
            (true, true) => Interval::new(vec![first], after),
            (true, false) => Interval::new(vec![first], Some(own)),
            (false, true) => Interval::new(own, Some(vec![end])),
            (false, false) => after.and_then(|after| Interval::new(after, Some(vec![end]))),
        };
        Values {
            intervals: interval.into_iter().collect(),
            is_equality: false,
        }
    }

    /// Defined values that are not equal to the constant. Values of different types are not.
    fn different_from(constant: &Value<'_>) -> Values {
        match Key::of(constant) {
            None => Values::none(),
            Some(key) if key.is_exact && !is_nan(constant) => {
                let above = key::after(&key.bytes).and_then(|after| Interval::new(after, None));
                let below = Interval::new(Vec::new(), Some(key.bytes));
                Values {
                    intervals: below.into_iter().chain(above).collect(),
                    is_equality: false,
                }
            }
            Some(_) => Values::all(),
        }
    }

    fn between(from: Vec<u8>, to: Option<Vec<u8>>) -> Values {
        Values {
            intervals: vec![Interval { from, to }],
            is_equality: false,
        }
    }
}

/// The first bytes of the keys of a type that has an order: from, and to before.
fn ranks_of(kind: Kind) -> Option<(u8, u8)> {
    Some(match kind {
        Kind::Null => (sql_rank::NULL, sql_rank::FALSE),
        Kind::Bool => (sql_rank::FALSE, sql_rank::NUMBER),
        Kind::Number => (sql_rank::NUMBER, sql_rank::STRING),
        Kind::String => (sql_rank::STRING, sql_rank::ARRAY),
        Kind::Undefined | Kind::Array | Kind::Object => return None,
    })
}

/// The values of a test function of types (cosmos-sql §18.2).
pub(super) fn of_type_test(name: &str) -> Option<Values> {
    let of_kind = |kind| ranks_of(kind).map(|(first, end)| Values::of_ranks(first, end));
    match name {
        "IS_DEFINED" => Some(Values::all()),
        "IS_NULL" => of_kind(Kind::Null),
        "IS_BOOL" | "IS_BOOLEAN" => of_kind(Kind::Bool),
        "IS_NUMBER" | "IS_FINITE_NUMBER" | "IS_INTEGER" => of_kind(Kind::Number),
        "IS_STRING" | "IS_DATETIME" => of_kind(Kind::String),
        "IS_ARRAY" => Some(Values::of_ranks(sql_rank::ARRAY, sql_rank::OBJECT)),
        "IS_OBJECT" => Some(Values::of_ranks(sql_rank::OBJECT, sql_rank::END)),
        "IS_PRIMITIVE" => Some(Values::of_ranks(sql_rank::NULL, sql_rank::ARRAY)),
        _ => None,
    }
}

fn is_nan(value: &Value<'_>) -> bool {
    value.as_f64().is_some_and(f64::is_nan)
}
