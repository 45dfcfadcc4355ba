//! What a filter requires of the keys of an item.
//!
//! A condition on a path is derived from one comparison with constants. AND intersects the conditions on a path of single values; each condition on
//! elements of an array stays on its own, because different elements may meet them. OR unites the conditions on paths that all its operands have.
//! A part of the filter that is not analysed gives no condition, and so lets every item pass.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, hash_map};

use super::interval::{Interval, intersection, union};
use super::path::IndexPath;
use super::values::{Values, has_own_key, of_type_test};
use crate::bind::Bound;
use crate::plan::KeyValue;
use crate::program::{LikePattern, Ordering, Scalar, Select, Source, SubqueryForm, regards_case};
use crate::text::ast::{BinaryOp, UnaryOp};
use crate::value::Value;

/// Maximum number of intervals of a condition; beyond it there is no condition.
pub const MAX_INTERVALS: usize = 4_096;

/// Maximum size of all bounds that are made for a query, in bytes. A parameter with a long string can be mentioned often.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// The keys that an item must have at a path: at least one in one of the intervals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexCondition {
    /// Where in the item the values are.
    pub path: IndexPath,
    /// Sorted, without overlaps, at most [`MAX_INTERVALS`]. None if no item can pass.
    pub intervals: Vec<Interval>,
    /// Each interval has one key only, as from `=` and IN.
    pub is_equality: bool,
}

impl IndexCondition {
    /// Whether an item with these keys at the path can pass.
    pub fn admits(&self, keys: &[Vec<u8>]) -> bool {
        let has_key = |interval: &Interval| keys.iter().any(|key| interval.contains(key));
        self.intervals.iter().any(has_key)
    }

    /// The condition that the value at a path is that of a partition key; `None` if such values have no keys of their own.
    pub fn equal_to(path: IndexPath, value: &KeyValue) -> Option<IndexCondition> {
        let value = match value {
            KeyValue::Undefined | KeyValue::Complex => return None,
            KeyValue::Null => Value::Null,
            KeyValue::Bool(value) => Value::Bool(*value),
            KeyValue::Number(number) => Value::Number(*number),
            KeyValue::String(text) => Value::string(text.as_str()),
        };
        Some(IndexCondition::new(path, Values::equal_to([&value])))
    }

    fn new(path: IndexPath, values: Values) -> IndexCondition {
        IndexCondition {
            path,
            intervals: values.intervals,
            is_equality: values.is_equality,
        }
    }

    /// Requires the values of both conditions on one path; only those of `self` if both have too many intervals.
    fn intersect(&mut self, other: &IndexCondition) {
        let intervals = intersection(&self.intervals, &other.intervals);
        if intervals.len() <= MAX_INTERVALS {
            self.intervals = intervals;
            self.is_equality |= other.is_equality;
        }
    }
}

/// The conditions of a query, see [`crate::Query::index_conditions`].
pub(crate) fn conditions(bound: &Bound) -> Vec<IndexCondition> {
    filter_of_items(bound).map_or_else(Vec::new, |filter| Analysis::new(bound).of(filter))
}

/// The filter of a query, if items that it does not select need not be read: it is over items, and has no ranking, whose statistics are of all items.
pub(super) fn filter_of_items(bound: &Bound) -> Option<&Scalar> {
    let select = &bound.select;
    let is_over_items = matches!(select.inputs.first(), Some(input) if matches!(input.source, Source::Item));
    let is_ranked = matches!(select.ordering, Ordering::Rank(_));
    select.filter.as_ref().filter(|_| is_over_items && !is_ranked)
}

/// Maximum number of comparisons of a filter that is analysed by [`is_exact_filter`].
const MAX_EXACT: usize = 16;

/// Whether an item passes the filter if and only if the one condition of the query admits its key: the filter is comparisons of one path of single values
/// with constants that have keys of their own.
pub(crate) fn is_exact_filter(bound: &Bound) -> bool {
    let Some(filter) = &bound.select.filter else {
        return false;
    };
    let mut path = None;
    let comparisons = match filter {
        Scalar::And(list) => &list[..],
        single => std::slice::from_ref(single),
    };
    comparisons.len() <= MAX_EXACT
        && comparisons
            .iter()
            .all(|comparison| is_exact_comparison(bound, comparison, &mut path))
}

/// Whether a comparison is exact, and of the same path as those before.
fn is_exact_comparison(bound: &Bound, comparison: &Scalar, path: &mut Option<IndexPath>) -> bool {
    let (value, constants) = match comparison {
        Scalar::Between(parts) => (&parts.0, [parts.1.as_const(), parts.2.as_const()]),
        Scalar::Binary(op, sides) if is_order(*op) => match (sides.0.as_const(), sides.1.as_const()) {
            (None, Some(constant)) => (&sides.0, [Some(constant); 2]),
            (Some(constant), None) => (&sides.1, [Some(constant); 2]),
            _ => return false,
        },
        _ => return false,
    };
    let own = path_of(bound, value).filter(|own| !own.is_of_elements());
    let is_own_key = |constant: Option<&Value<'_>>| constant.is_some_and(has_own_key);
    own.is_some_and(|own| *path.get_or_insert_with(|| own.clone()) == own) && constants.into_iter().all(is_own_key)
}

fn is_order(op: BinaryOp) -> bool {
    matches!(
        op,
        BinaryOp::Equal | BinaryOp::Less | BinaryOp::LessOrEqual | BinaryOp::Greater | BinaryOp::GreaterOrEqual
    )
}

/// The index path that an expression reads.
pub(super) fn path_of(bound: &Bound, scalar: &Scalar) -> Option<IndexPath> {
    let (slot, steps) = match scalar {
        Scalar::Slot(slot) => (*slot, &[][..]),
        Scalar::Path { slot, steps } => (*slot, &steps[..]),
        _ => return None,
    };
    let base = bound.slot_paths.get(slot)?.as_ref()?;
    IndexPath::from_steps(base.iter().chain(steps))
}

struct Analysis<'q> {
    bound: &'q Bound,
    /// Bytes of the bounds made so far.
    bytes: Cell<usize>,
}

impl<'q> Analysis<'q> {
    fn new(bound: &'q Bound) -> Analysis<'q> {
        Analysis {
            bound,
            bytes: Cell::new(0),
        }
    }

    /// What is true of every item for which the expression is true.
    fn of(&self, condition: &Scalar) -> Vec<IndexCondition> {
        let found = match condition {
            Scalar::And(list) => return intersected(list.iter().flat_map(|operand| self.of(operand))),
            Scalar::Or(list) => return self.united(list),
            Scalar::Subquery(SubqueryForm::Exists, select) => return self.exists(select),
            Scalar::Call(function, args) => return self.call(function.name, args),
            Scalar::Between(parts) => self.between(&parts.0, &parts.1, &parts.2),
            Scalar::Binary(op, sides) => self.comparison(*op, &sides.0, &sides.1),
            Scalar::In(value, list) => {
                let constants: Option<Vec<_>> = list.iter().map(Scalar::as_const).collect();
                constants.and_then(|constants| self.one_of(self.path(value), &constants))
            }
            Scalar::InSet(value, set) => self.one_of(self.path(value), &set.values.iter().collect::<Vec<_>>()),
            Scalar::Like(value, pattern) => self.like(value, pattern),
            Scalar::Unary(UnaryOp::Not, operand) => self.one_of(self.path(operand), &[&Value::Bool(false)]),
            Scalar::Slot(_) | Scalar::Path { .. } => self.one_of(self.path(condition), &[&Value::Bool(true)]),
            _ => None,
        };
        found.into_iter().collect()
    }

    fn path(&self, scalar: &Scalar) -> Option<IndexPath> {
        path_of(self.bound, scalar)
    }

    /// The path of the elements of an array.
    fn elements(&self, array: &Scalar) -> Option<IndexPath> {
        self.path(array).and_then(IndexPath::elements)
    }

    /// A condition, unless the query has used up its bytes.
    fn condition(&self, path: Option<IndexPath>, values: Values) -> Option<IndexCondition> {
        let made = values.intervals.iter().map(Interval::bytes).sum::<usize>();
        self.bytes.set(self.bytes.get() + made);
        let condition = IndexCondition::new(path?, values);
        (self.bytes.get() <= MAX_BYTES).then_some(condition)
    }

    fn one_of(&self, path: Option<IndexPath>, constants: &[&Value<'static>]) -> Option<IndexCondition> {
        // Too many are not even encoded.
        if path.is_none() || constants.len() > MAX_INTERVALS {
            return None;
        }
        self.condition(path, Values::equal_to(constants.iter().copied()))
    }

    fn comparison(&self, op: BinaryOp, left: &Scalar, right: &Scalar) -> Option<IndexCondition> {
        let (path, op, constant) = match (left.as_const(), right.as_const()) {
            (None, Some(constant)) => (left, op, constant),
            (Some(constant), None) => (right, op.mirrored(), constant),
            _ => return None,
        };
        self.condition(Some(self.path(path)?), Values::compared(op, constant)?)
    }

    fn between(&self, value: &Scalar, low: &Scalar, high: &Scalar) -> Option<IndexCondition> {
        let path = self.path(value)?;
        let low = low
            .as_const()
            .and_then(|low| Values::compared(BinaryOp::GreaterOrEqual, low));
        let high = high
            .as_const()
            .and_then(|high| Values::compared(BinaryOp::LessOrEqual, high));
        let values = match (low, high) {
            (Some(low), Some(high)) => low.and(&high),
            (one, other) => one.or(other)?,
        };
        self.condition(Some(path), values)
    }

    fn like(&self, value: &Scalar, pattern: &LikePattern) -> Option<IndexCondition> {
        let path = self.path(value)?;
        let LikePattern::Constant(like) = pattern else {
            return None;
        };
        let values = match like.as_literal() {
            Some(text) => Values::equal_to([&Value::string(text)]),
            None => Values::with_prefix(&like.literal_prefix()),
        };
        self.condition(Some(path), values)
    }

    /// What is true if a row of the subquery passes its filter. With a grouping there may be a result without such a row.
    fn exists(&self, select: &Select) -> Vec<IndexCondition> {
        match &select.filter {
            Some(filter) if select.grouping.is_none() => self.of(filter),
            _ => Vec::new(),
        }
    }

    fn call(&self, name: &str, args: &[Scalar]) -> Vec<IndexCondition> {
        let found = match (name, args) {
            ("STARTSWITH", [value, Scalar::Const(prefix), flag @ ..]) if regards_case(flag) => {
                let values = prefix.as_str().map(Values::with_prefix);
                values.and_then(|values| self.condition(Some(self.path(value)?), values))
            }
            ("STRINGEQUALS", [value, Scalar::Const(text), flag @ ..] | [Scalar::Const(text), value, flag @ ..])
                if regards_case(flag) =>
            {
                self.one_of(self.path(value), &[text])
            }
            // A partial match differs for objects only, and they have one key.
            ("ARRAY_CONTAINS" | "_TRY_ARRAY_CONTAINS", [Scalar::Const(list), value, ..]) => {
                let constants = list.elements();
                constants.and_then(|list| self.one_of(self.path(value), &list.iter().collect::<Vec<_>>()))
            }
            ("ARRAY_CONTAINS" | "_TRY_ARRAY_CONTAINS", [array, Scalar::Const(wanted), ..]) => {
                self.one_of(self.elements(array), &[wanted])
            }
            ("ARRAY_CONTAINS_ANY", [array, wanted @ ..]) => {
                let constants: Option<Vec<_>> = wanted.iter().map(Scalar::as_const).collect();
                constants.and_then(|constants| self.one_of(self.elements(array), &constants))
            }
            ("ARRAY_CONTAINS_ALL", [array, wanted @ ..]) => {
                let constants = wanted.iter().filter_map(Scalar::as_const);
                return constants
                    .filter_map(|wanted| self.one_of(self.elements(array), &[wanted]))
                    .collect();
            }
            (test, [value]) => of_type_test(test).and_then(|values| self.condition(Some(self.path(value)?), values)),
            _ => None,
        };
        found.into_iter().collect()
    }

    /// The conditions on the paths that every operand has a condition on.
    fn united(&self, list: &[Scalar]) -> Vec<IndexCondition> {
        let mut common: Option<BTreeMap<IndexPath, IndexCondition>> = None;
        let mut impossible = Vec::new();
        for operand in list.iter().filter(|operand| !is_never_true(operand)) {
            let conditions = self.of(operand);
            if conditions.iter().any(|condition| condition.intervals.is_empty()) {
                impossible = conditions;
                continue;
            }
            let mut of_operand = BTreeMap::new();
            for condition in conditions {
                of_operand.entry(condition.path.clone()).or_insert(condition);
            }
            let united = match common.take() {
                None => of_operand,
                Some(common) => common
                    .into_iter()
                    .filter_map(|(path, own)| Some((path.clone(), either(own, of_operand.remove(&path)?)?)))
                    .collect(),
            };
            if united.is_empty() {
                return Vec::new();
            }
            common = Some(united);
        }
        let Some(common) = common else { return impossible };
        let conditions = common.into_values();
        let united = conditions.map(|condition| IndexCondition {
            intervals: union(condition.intervals),
            ..condition
        });
        united.collect()
    }
}

/// The intervals of both conditions, not yet in order; `None` if there are too many.
fn either(mut own: IndexCondition, other: IndexCondition) -> Option<IndexCondition> {
    own.intervals.extend(other.intervals);
    own.is_equality &= other.is_equality;
    (own.intervals.len() <= MAX_INTERVALS).then_some(own)
}

/// All conditions, those on one path of single values as one.
fn intersected(conditions: impl Iterator<Item = IndexCondition>) -> Vec<IndexCondition> {
    let mut out: Vec<IndexCondition> = Vec::new();
    let mut places = HashMap::new();
    for condition in conditions {
        if !condition.path.is_of_elements() {
            match places.entry(condition.path.clone()) {
                hash_map::Entry::Occupied(place) => {
                    let place: &usize = place.get();
                    out[*place].intersect(&condition);
                    continue;
                }
                hash_map::Entry::Vacant(place) => {
                    place.insert(out.len());
                }
            }
        }
        out.push(condition);
    }
    out
}

fn is_never_true(scalar: &Scalar) -> bool {
    scalar.as_const().is_some_and(|value| !value.is_true())
}

#[cfg(test)]
mod tests;
