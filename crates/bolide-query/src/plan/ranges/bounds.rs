//! Bounds of one component of a key, and boxes made of them.

use std::cmp::Ordering;

use super::{KeyEnd, KeyRange, KeyValue};
use crate::memory::ALLOCATION_BYTES;
use crate::text::ast::BinaryOp;
use crate::value::{Kind, Value};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bounds {
    pub min: KeyEnd,
    pub max: KeyEnd,
    pub min_inclusive: bool,
    pub max_inclusive: bool,
}

/// Bounds per component; `None` is unbounded.
pub(super) type KeyBox = Vec<Option<Bounds>>;

/// Memory of a box with one bounded component, without its strings, and of the range made from it.
const BOX_BYTES: usize = size_of::<KeyBox>()
    + size_of::<KeyRange>()
    + size_of::<Option<Bounds>>()
    + 2 * size_of::<KeyEnd>()
    + 5 * ALLOCATION_BYTES;

/// Memory of a box, and of the range made from it. A box without bounds is made for each condition that cannot be analysed, and is small.
pub(super) fn box_bytes(key: &KeyBox) -> usize {
    let text = |end: &KeyEnd| match end {
        KeyEnd::Value(KeyValue::String(text)) => text.len(),
        _ => 0,
    };
    let bounds = key.iter().flatten();
    bounds
        .map(|bounds| BOX_BYTES + 2 * (text(&bounds.min) + text(&bounds.max)))
        .sum()
}

pub(super) fn bytes_of(boxes: &[KeyBox]) -> usize {
    boxes.iter().map(box_bytes).sum()
}

pub(super) fn intersection(left: &KeyBox, right: &KeyBox) -> Option<KeyBox> {
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

    pub(super) fn order(&self, other: &KeyEnd) -> Ordering {
        match (self, other) {
            (KeyEnd::Value(KeyValue::Bool(a)), KeyEnd::Value(KeyValue::Bool(b))) => a.cmp(b),
            (KeyEnd::Value(KeyValue::Number(a)), KeyEnd::Value(KeyValue::Number(b))) => a.total_order(*b),
            (KeyEnd::Value(KeyValue::String(a)), KeyEnd::Value(KeyValue::String(b))) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

pub(super) fn point(value: KeyValue) -> Bounds {
    let end = KeyEnd::Value(value);
    Bounds {
        min: end.clone(),
        max: end,
        min_inclusive: true,
        max_inclusive: true,
    }
}

/// The key component of a constant; comparisons with undefined are never true.
pub(super) fn key_value(value: &Value<'_>) -> Option<KeyValue> {
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
pub(super) fn inequality(op: BinaryOp, constant: &Value<'_>) -> Option<Bounds> {
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

/// The strings with a prefix: up to the prefix with its last character increased by one.
pub(super) fn prefix_bounds(prefix: &str) -> Option<Bounds> {
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
