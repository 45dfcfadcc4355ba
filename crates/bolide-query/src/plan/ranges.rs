//! Partition key ranges from WHERE, at the level of key values (cosmos-sql §22.3).
//!
//! A condition becomes a list of boxes: each box bounds some components of the key, and an item can pass only if one box holds it.
//! AND intersects boxes pairwise, OR concatenates the lists. What cannot be understood is the box without bounds.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::fmt;

use crate::bind::Bound;
use crate::error::{QueryError, Result};
use crate::memory::{ALLOCATION_BYTES, Memory};
use crate::number::Number;
use crate::path::PathStep;
use crate::program::{LikePattern, Scalar, Select, SubqueryForm};
use crate::schema::{PartitionKeyKind, Schema};
use crate::text::ast::{BinaryOp, UnaryOp};
use crate::value::{Kind, Value};

/// More boxes than this and the query goes everywhere.
const MOST_BOXES: usize = 4096;

/// Pairs of boxes that are intersected for a query at most: what is left out is read without need, and gives nothing.
const MOST_PAIRS: usize = 100_000;

/// A component of a partition key.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyValue {
    /// The property is missing.
    Undefined,
    /// null
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    String(String),
    /// An array or object; all of them are one key.
    Complex,
}

/// An end of a range of key components; only the legacy range kind has others than values.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyEnd {
    /// This value.
    Value(KeyValue),
    /// Below all numbers.
    MinNumber,
    /// Above all numbers.
    MaxNumber,
    /// Below all strings.
    MinString,
    /// Above all strings.
    MaxString,
}

/// A range of partition keys. A point has equal ends; fewer components than the container has paths mean all keys that begin so.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyRange {
    /// The lowest key, component by component.
    pub min: Vec<KeyEnd>,
    /// The highest key.
    pub max: Vec<KeyEnd>,
    /// `min` itself is in the range.
    pub min_inclusive: bool,
    /// `max` itself is in the range.
    pub max_inclusive: bool,
    /// Every component is bounded.
    pub complete: bool,
}

impl KeyRange {
    /// The key, or prefix of a key, that this range is; `None` for a range between two different ends.
    pub fn as_point(&self) -> Option<Vec<&KeyValue>> {
        if self.min != self.max {
            return None;
        }
        self.min
            .iter()
            .map(|end| {
                if let KeyEnd::Value(value) = end {
                    Some(value)
                } else {
                    None
                }
            })
            .collect()
    }
}

/// Where the results of a query can be.
#[derive(Debug, Clone, PartialEq)]
pub enum KeyRanges {
    /// Everywhere.
    All,
    /// Nowhere: the filter contradicts itself, or there is no FROM. The service answers with its lowest point, `[[],[]]`.
    Nothing,
    /// In these ranges.
    Some(Vec<KeyRange>),
}

impl KeyRanges {
    /// Exactly one partition key.
    pub fn is_single_key(&self) -> bool {
        matches!(self, KeyRanges::Some(list) if matches!(list.as_slice(), [range] if range.complete && range.as_point().is_some()))
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Bounds {
    min: KeyEnd,
    max: KeyEnd,
    min_inclusive: bool,
    max_inclusive: bool,
}

/// Bounds per component; `None` is unbounded.
type KeyBox = Vec<Option<Bounds>>;

/// What a box with one bounded component takes beside its strings, and the range that is made of it.
const BOX_BYTES: usize = size_of::<KeyBox>()
    + size_of::<KeyRange>()
    + size_of::<Option<Bounds>>()
    + 2 * size_of::<KeyEnd>()
    + 5 * ALLOCATION_BYTES;

/// What a box takes, and the range that is made of it. A box without bounds is made for whatever cannot be understood, and is small.
fn box_bytes(key: &KeyBox) -> usize {
    let text = |end: &KeyEnd| match end {
        KeyEnd::Value(KeyValue::String(text)) => text.len(),
        _ => 0,
    };
    let bounds = key.iter().flatten();
    bounds
        .map(|bounds| BOX_BYTES + 2 * (text(&bounds.min) + text(&bounds.max)))
        .sum()
}

fn bytes_of(boxes: &[KeyBox]) -> usize {
    boxes.iter().map(box_bytes).sum()
}

/// The ranges of a bound query.
///
/// # Errors
/// As [`Memory::take`].
pub fn key_ranges(bound: &Bound, schema: &Schema, memory: &Memory) -> Result<KeyRanges> {
    if !bound.select.reads_items() {
        return Ok(KeyRanges::Nothing);
    }
    let mut analysis = Analysis {
        bound,
        schema,
        deep: true,
        pairs: Cell::new(0),
        memory,
        refusal: RefCell::default(),
    };
    let boxes = |analysis: &Analysis<'_>| match &bound.select.filter {
        Some(filter) => analysis.boxes(filter),
        None => vec![analysis.unbounded()],
    };
    // Conditions in subqueries never narrow, but they may show that nothing can pass.
    let is_impossible = boxes(&analysis).is_empty();
    memory.give_back(memory.used());
    analysis.deep = false;
    let boxes = if is_impossible { Vec::new() } else { boxes(&analysis) };
    match analysis.refusal.take() {
        Some(refusal) => Err(refusal),
        None => Ok(analysis.ranges(boxes)),
    }
}

struct Analysis<'q> {
    bound: &'q Bound,
    schema: &'q Schema,
    /// Look into subqueries.
    deep: bool,
    /// Pairs of boxes intersected so far.
    pairs: Cell<usize>,
    memory: &'q Memory,
    /// There was no memory for a box.
    refusal: RefCell<Option<QueryError>>,
}

impl Analysis<'_> {
    fn paths(&self) -> &[Vec<String>] {
        &self.schema.partition_key.paths
    }

    fn is_range(&self) -> bool {
        self.schema.partition_key.kind == PartitionKeyKind::Range
    }

    fn unbounded(&self) -> KeyBox {
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

    /// The key component whose value an expression is.
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

    /// The boxes that hold every item for which the condition is true.
    fn boxes(&self, condition: &Scalar) -> Vec<KeyBox> {
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
        // A box without a bound on the first component is nearly everywhere, and takes the bounded ones with it.
        let mixed = free > 0 && free < boxes.len();
        if boxes.len() > MOST_BOXES || mixed {
            self.anywhere()
        } else {
            boxes
        }
    }

    /// The boxes of both; they take the place of these.
    fn intersected(&self, left: &[KeyBox], right: &[KeyBox]) -> Vec<KeyBox> {
        let pairs = self.pairs.get() + left.len() * right.len();
        self.pairs.set(pairs);
        if left.len() * right.len() > MOST_BOXES || pairs > MOST_PAIRS {
            let (kept, left_out) = if left.len() <= right.len() {
                (left, right)
            } else {
                (right, left)
            };
            self.memory.give_back(bytes_of(left_out));
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
        self.memory.give_back(bytes_of(left) + bytes_of(right));
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

    /// Equality with one of some constants.
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
            (Some(constant), None) => (right, mirrored(op), constant),
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

    /// The range of a box, unless it is everywhere.
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

/// Keeps the first of ranges that are equal.
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

impl KeyRange {
    /// Some order in which equal ranges are neighbours.
    fn order(&self, other: &KeyRange) -> Ordering {
        let ends = |a: &[KeyEnd], b: &[KeyEnd]| {
            let differs = a.iter().zip(b).map(|(x, y)| x.order(y)).find(|order| order.is_ne());
            differs.unwrap_or_else(|| a.len().cmp(&b.len()))
        };
        ends(&self.min, &other.min)
            .then_with(|| ends(&self.max, &other.max))
            .then_with(|| self.min_inclusive.cmp(&other.min_inclusive))
            .then_with(|| self.max_inclusive.cmp(&other.max_inclusive))
            .then_with(|| self.complete.cmp(&other.complete))
    }
}

fn intersection(left: &KeyBox, right: &KeyBox) -> Option<KeyBox> {
    left.iter()
        .zip(right)
        .map(|pair| match pair {
            (None, None) => Some(None),
            (Some(one), None) | (None, Some(one)) => Some(Some(one.clone())),
            (Some(a), Some(b)) => a.intersection(b).map(Some),
        })
        .collect()
}

impl Bounds {
    fn intersection(&self, other: &Bounds) -> Option<Bounds> {
        let (min, min_inclusive) = match self.min.order(&other.min) {
            Ordering::Less => (&other.min, other.min_inclusive),
            Ordering::Greater => (&self.min, self.min_inclusive),
            Ordering::Equal => (&self.min, self.min_inclusive && other.min_inclusive),
        };
        let (max, max_inclusive) = match self.max.order(&other.max) {
            Ordering::Less => (&self.max, self.max_inclusive),
            Ordering::Greater => (&other.max, other.max_inclusive),
            Ordering::Equal => (&self.max, self.max_inclusive && other.max_inclusive),
        };
        let possible = match min.order(max) {
            Ordering::Less => true,
            Ordering::Equal => min_inclusive && max_inclusive,
            Ordering::Greater => false,
        };
        possible.then(|| Bounds {
            min: min.clone(),
            max: max.clone(),
            min_inclusive,
            max_inclusive,
        })
    }
}

impl KeyEnd {
    fn rank(&self) -> u8 {
        match self {
            KeyEnd::Value(KeyValue::Undefined) => 0,
            KeyEnd::Value(KeyValue::Null) => 1,
            KeyEnd::Value(KeyValue::Bool(_)) => 2,
            KeyEnd::MinNumber => 3,
            KeyEnd::Value(KeyValue::Number(_)) => 4,
            KeyEnd::MaxNumber => 5,
            KeyEnd::MinString => 6,
            KeyEnd::Value(KeyValue::String(_)) => 7,
            KeyEnd::MaxString => 8,
            KeyEnd::Value(KeyValue::Complex) => 9,
        }
    }

    fn order(&self, other: &KeyEnd) -> Ordering {
        match (self, other) {
            (KeyEnd::Value(KeyValue::Bool(a)), KeyEnd::Value(KeyValue::Bool(b))) => a.cmp(b),
            (KeyEnd::Value(KeyValue::Number(a)), KeyEnd::Value(KeyValue::Number(b))) => a.total_order(*b),
            (KeyEnd::Value(KeyValue::String(a)), KeyEnd::Value(KeyValue::String(b))) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

fn point(value: KeyValue) -> Bounds {
    let end = KeyEnd::Value(value);
    Bounds {
        min: end.clone(),
        max: end,
        min_inclusive: true,
        max_inclusive: true,
    }
}

/// The key component a constant is; comparisons with undefined never hold.
fn key_value(value: &Value<'_>) -> Option<KeyValue> {
    Some(match value {
        Value::Undefined => return None,
        Value::Null => KeyValue::Null,
        Value::Bool(value) => KeyValue::Bool(*value),
        Value::Number(number) => KeyValue::Number(*number),
        Value::String(text) => KeyValue::String(text.as_str().to_owned()),
        other => {
            debug_assert!(matches!(other.kind(), Kind::Array | Kind::Object));
            KeyValue::Complex
        }
    })
}

/// The bounds of an inequality with a number or string.
fn inequality(op: BinaryOp, constant: &Value<'_>) -> Option<Bounds> {
    let (lowest, highest) = match constant.kind() {
        Kind::Number => (KeyEnd::MinNumber, KeyEnd::MaxNumber),
        Kind::String => (KeyEnd::MinString, KeyEnd::MaxString),
        _ => return None,
    };
    let end = KeyEnd::Value(key_value(constant)?);
    let (min, max, min_inclusive, max_inclusive) = match op {
        BinaryOp::Less => (lowest, end, false, false),
        BinaryOp::LessOrEqual => (lowest, end, false, true),
        BinaryOp::Greater => (end, highest, false, false),
        BinaryOp::GreaterOrEqual => (end, highest, true, false),
        _ => return None,
    };
    Some(Bounds {
        min,
        max,
        min_inclusive,
        max_inclusive,
    })
}

/// The strings that begin so: up to the prefix with its last character raised by one.
fn prefix_bounds(prefix: &str) -> Option<Bounds> {
    let last = prefix.chars().next_back()?;
    let raised = char::from_u32(last as u32 + 1)?;
    let mut end = prefix[..prefix.len() - last.len_utf8()].to_owned();
    end.push(raised);
    let string = |text: String| KeyEnd::Value(KeyValue::String(text));
    Some(Bounds {
        min: string(prefix.to_owned()),
        max: string(end),
        min_inclusive: true,
        max_inclusive: false,
    })
}

/// The operator with its sides exchanged.
fn mirrored(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Less => BinaryOp::Greater,
        BinaryOp::Greater => BinaryOp::Less,
        BinaryOp::LessOrEqual => BinaryOp::GreaterOrEqual,
        BinaryOp::GreaterOrEqual => BinaryOp::LessOrEqual,
        other => other,
    }
}

impl fmt::Display for KeyRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyRanges::All => f.write_str("all"),
            KeyRanges::Nothing => f.write_str("none"),
            KeyRanges::Some(list) => write!(f, "{} range(s)", list.len()),
        }
    }
}
