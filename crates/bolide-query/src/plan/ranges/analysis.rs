//! The boxes of a condition, and their key ranges.

use std::cell::{Cell, RefCell};

use super::bounds::{Bounds, KeyBox, box_bytes, bytes_of, inequality, intersection, key_value, point, prefix_bounds};
use super::{KeyRange, KeyRanges, KeyValue};
use crate::bind::Bound;
use crate::error::{QueryError, Result};
use crate::memory::Memory;
use crate::path::PathStep;
use crate::program::{LikePattern, Scalar, Select, SubqueryForm};
use crate::schema::{PartitionKeyKind, Schema};
use crate::text::ast::{BinaryOp, UnaryOp};
use crate::value::Value;

/// With more boxes than this the query reads all ranges.
const MAX_BOXES: usize = 4096;

/// Maximum number of pairs of boxes that are intersected for a query. Pairs left out only mean that ranges are read which have no results.
const MAX_PAIRS: usize = 100_000;

pub(super) struct Analysis<'q> {
    bound: &'q Bound,
    schema: &'q Schema,
    /// Also analyse subqueries.
    pub(super) deep: bool,
    /// Pairs of boxes intersected so far.
    pairs: Cell<usize>,
    memory: &'q Memory,
    /// Set if there was no memory for a box.
    refusal: RefCell<Option<QueryError>>,
}

impl<'q> Analysis<'q> {
    pub(super) fn new(bound: &'q Bound, schema: &'q Schema, memory: &'q Memory) -> Analysis<'q> {
        Analysis {
            bound,
            schema,
            deep: true,
            pairs: Cell::new(0),
            memory,
            refusal: RefCell::default(),
        }
    }

    /// The ranges of boxes that it made.
    ///
    /// # Errors
    /// If there was no memory for one of them.
    pub(super) fn into_ranges(self, boxes: Vec<KeyBox>) -> Result<KeyRanges> {
        match self.refusal.take() {
            Some(refusal) => Err(refusal),
            None => Ok(self.ranges(boxes)),
        }
    }

    fn paths(&self) -> &[Vec<String>] {
        &self.schema.partition_key.paths
    }

    fn is_range(&self) -> bool {
        self.schema.partition_key.kind == PartitionKeyKind::Range
    }

    pub(super) fn unbounded(&self) -> KeyBox {
        vec![None; self.paths().len()]
    }

    /// Counts a box; `false` if there is no memory for it, and the query fails.
    fn holds(&self, key: &KeyBox) -> bool {
        let taken = self.memory.take(box_bytes(key));
        taken.map_err(|refusal| self.refusal.replace(Some(refusal))).is_ok()
    }

    fn anywhere(&self) -> Vec<KeyBox> {
        vec![self.unbounded()]
    }

    /// The key component that an expression reads.
    fn component(&self, scalar: &Scalar) -> Option<usize> {
        let (slot, steps): (usize, &[PathStep]) = match scalar {
            Scalar::Slot(slot) => (*slot, &[]),
            Scalar::Path { slot, steps } => (*slot, steps),
            _ => return None,
        };
        let base = self.bound.slot_paths.get(slot)?.as_ref()?;
        let same = |own: &Vec<String>| {
            own.len() == base.len() + steps.len()
                && own
                    .iter()
                    .zip(base.iter().chain(steps))
                    .all(|(name, step)| matches!(step, PathStep::Name(n) if n == name))
        };
        self.paths().iter().position(same)
    }

    /// The boxes that contain every item for which the condition is true.
    pub(super) fn boxes(&self, condition: &Scalar) -> Vec<KeyBox> {
        match condition {
            Scalar::Const(value) if value.is_true() => self.anywhere(),
            Scalar::Const(_) => Vec::new(),
            Scalar::And(list) => list
                .iter()
                .map(|operand| self.boxes(operand))
                .reduce(|a, b| self.intersected(&a, &b))
                .unwrap_or_default(),
            Scalar::Or(list) => self.united(list),
            Scalar::Unary(UnaryOp::Not, operand) => self.negated(operand),
            Scalar::Binary(op, sides) => self.comparison(*op, &sides.0, &sides.1),
            Scalar::Between(parts) => {
                let low = self.comparison(BinaryOp::GreaterOrEqual, &parts.0, &parts.1);
                let high = self.comparison(BinaryOp::LessOrEqual, &parts.0, &parts.2);
                self.intersected(&low, &high)
            }
            Scalar::In(value, list) => match list.iter().map(Scalar::as_const).collect::<Option<Vec<_>>>() {
                Some(values) => self.one_of(value, values.into_iter()),
                None => self.anywhere(),
            },
            Scalar::InSet(value, set) => self.one_of(value, set.values.iter()),
            Scalar::Like(value, pattern) => match &**pattern {
                LikePattern::Constant(like) => match like.as_literal() {
                    Some(text) => self.one_of(value, [Value::string(text)].iter()),
                    None => self.anywhere(),
                },
                LikePattern::Dynamic(..) => self.anywhere(),
            },
            Scalar::Call(function, args) => self.call(function.name, args),
            Scalar::Subquery(SubqueryForm::Exists, select) => self.subquery(select),
            Scalar::Slot(_) | Scalar::Path { .. } => self.one_of(condition, [Value::Bool(true)].iter()),
            _ => self.anywhere(),
        }
    }

    fn subquery(&self, select: &Select) -> Vec<KeyBox> {
        match &select.filter {
            Some(filter) if self.deep && select.grouping.is_none() => self.boxes(filter),
            _ => self.anywhere(),
        }
    }

    fn united(&self, list: &[Scalar]) -> Vec<KeyBox> {
        let boxes: Vec<KeyBox> = list.iter().flat_map(|operand| self.boxes(operand)).collect();
        let unbounded = |key: &KeyBox| key.first().is_none_or(Option::is_none);
        let free = boxes.iter().filter(|key| unbounded(key)).count();
        // A box without a bound on the first component covers nearly all keys, and so includes the bounded ones.
        let mixed = free > 0 && free < boxes.len();
        if boxes.len() > MAX_BOXES || mixed {
            self.anywhere()
        } else {
            boxes
        }
    }

    /// The boxes of both conditions; they replace the two lists.
    fn intersected(&self, left: &[KeyBox], right: &[KeyBox]) -> Vec<KeyBox> {
        let pairs = self.pairs.get() + left.len() * right.len();
        self.pairs.set(pairs);
        if left.len() * right.len() > MAX_BOXES || pairs > MAX_PAIRS {
            let (kept, left_out) = if left.len() <= right.len() {
                (left, right)
            } else {
                (right, left)
            };
            self.memory.release(bytes_of(left_out));
            return kept.to_vec();
        }
        let mut boxes = Vec::new();
        let pairs = left.iter().flat_map(|a| right.iter().map(move |b| (a, b)));
        for both in pairs.filter_map(|(a, b)| intersection(a, b)) {
            if !self.holds(&both) {
                return self.anywhere();
            }
            boxes.push(both);
        }
        self.memory.release(bytes_of(left) + bytes_of(right));
        boxes
    }

    fn negated(&self, operand: &Scalar) -> Vec<KeyBox> {
        match operand {
            Scalar::Slot(_) | Scalar::Path { .. } => self.one_of(operand, [Value::Bool(false)].iter()),
            Scalar::Call(function, args) if function.name == "IS_DEFINED" => match self.component(&args[0]) {
                Some(component) => vec![self.bounded(component, point(KeyValue::Undefined))],
                None => self.anywhere(),
            },
            _ => self.anywhere(),
        }
    }

    fn bounded(&self, component: usize, bounds: Bounds) -> KeyBox {
        let mut key = self.unbounded();
        key[component] = Some(bounds);
        self.holds(&key);
        key
    }

    /// Equality with one of several constants.
    fn one_of<'v>(&self, value: &Scalar, constants: impl Iterator<Item = &'v Value<'static>>) -> Vec<KeyBox> {
        let Some(component) = self.component(value) else {
            return self.anywhere();
        };
        let points = constants.filter_map(key_value).map(point);
        let boxes = points.map(|bounds| self.bounded(component, bounds));
        boxes.take_while(|_| self.refusal.borrow().is_none()).collect()
    }

    fn comparison(&self, op: BinaryOp, left: &Scalar, right: &Scalar) -> Vec<KeyBox> {
        if let Scalar::Subquery(SubqueryForm::Single, select) = left {
            return self.subquery(select);
        }
        if let Scalar::Subquery(SubqueryForm::Single, select) = right {
            return self.subquery(select);
        }
        let (path, op, constant) = match (left.as_const(), right.as_const()) {
            (None, Some(constant)) => (left, op, constant),
            (Some(constant), None) => (right, op.mirrored(), constant),
            _ => return self.anywhere(),
        };
        if op == BinaryOp::Equal {
            return match path {
                Scalar::Call(function, args) if function.name == "ABS" => self.absolute(&args[0], constant),
                _ => self.one_of(path, std::iter::once(constant)),
            };
        }
        match (self.component(path), inequality(op, constant)) {
            (Some(component), Some(bounds)) if self.is_range() => vec![self.bounded(component, bounds)],
            _ => self.anywhere(),
        }
    }

    /// `ABS(key) = n`: n and −n.
    fn absolute(&self, value: &Scalar, constant: &Value<'static>) -> Vec<KeyBox> {
        match constant.as_f64() {
            Some(number) if number >= 0.0 => self.one_of(value, [Value::float(-number), Value::float(number)].iter()),
            _ => self.anywhere(),
        }
    }

    fn call(&self, name: &str, args: &[Scalar]) -> Vec<KeyBox> {
        match (name, args) {
            ("ARRAY_CONTAINS" | "_TRY_ARRAY_CONTAINS", [Scalar::Const(list), value]) => match list.elements() {
                Some(items) => self.one_of(value, items.iter()),
                None => self.anywhere(),
            },
            ("STRINGEQUALS", [value, Scalar::Const(text)]) | ("STRINGEQUALS", [Scalar::Const(text), value]) => {
                self.one_of(value, std::iter::once(text))
            }
            ("IS_NULL", [value]) => self.one_of(value, [Value::Null].iter()),
            ("STARTSWITH", [value, Scalar::Const(prefix)]) if self.is_range() => {
                match (self.component(value), prefix.as_str().and_then(prefix_bounds)) {
                    (Some(component), Some(bounds)) => vec![self.bounded(component, bounds)],
                    _ => self.anywhere(),
                }
            }
            _ => self.anywhere(),
        }
    }

    fn ranges(&self, boxes: Vec<KeyBox>) -> KeyRanges {
        let Some(mut out) = boxes.into_iter().map(|key| self.range(key)).collect::<Option<Vec<_>>>() else {
            return KeyRanges::All;
        };
        leave_out_repeated(&mut out);
        if out.is_empty() {
            KeyRanges::Nothing
        } else {
            KeyRanges::Some(out)
        }
    }

    /// The range of a box, unless it covers all keys.
    fn range(&self, key: KeyBox) -> Option<KeyRange> {
        let components = key.len();
        let bounds: Vec<Bounds> = key.into_iter().map_while(|bounds| bounds).collect();
        let complete = bounds.len() == components;
        let enough = match self.schema.partition_key.kind {
            PartitionKeyKind::Hash => complete,
            PartitionKeyKind::MultiHash | PartitionKeyKind::Range => true,
        };
        if bounds.is_empty() || !enough {
            return None;
        }
        Some(KeyRange {
            min_inclusive: bounds.iter().all(|b| b.min_inclusive),
            max_inclusive: bounds.iter().all(|b| b.max_inclusive),
            min: bounds.iter().map(|b| b.min.clone()).collect(),
            max: bounds.into_iter().map(|b| b.max).collect(),
            complete,
        })
    }
}

/// Keeps the first of equal ranges.
fn leave_out_repeated(ranges: &mut Vec<KeyRange>) {
    let mut order: Vec<usize> = (0..ranges.len()).collect();
    order.sort_by(|a, b| ranges[*a].order(&ranges[*b]).then(a.cmp(b)));
    let mut is_repeated = vec![false; ranges.len()];
    for pair in order.windows(2) {
        is_repeated[pair[1]] = ranges[pair[0]] == ranges[pair[1]];
    }
    let mut is_repeated = is_repeated.into_iter();
    ranges.retain(|_| !is_repeated.next().unwrap_or_default());
}
