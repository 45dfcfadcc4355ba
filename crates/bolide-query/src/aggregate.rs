//! Aggregate functions (cosmos-sql §17).

use std::cmp::Ordering;
use std::collections::HashSet;

use crate::fuel::{KEY_BYTE, NODE};
use crate::memory::{ALLOCATION_BYTES, seen_bytes};
use crate::value::{Kind, SameKey, Value, append_same_key, same_key, total_order};

/// The kind of an aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AggregateKind {
    Count,
    Sum,
    Average,
    Min,
    Max,
    MakeList,
    MakeSet,
    CountIf,
}

/// Names in queries. Each enum of names has its own table.
const NAMES: &[(&str, AggregateKind)] = &[
    ("COUNT", AggregateKind::Count),
    ("SUM", AggregateKind::Sum),
    ("AVG", AggregateKind::Average),
    ("MIN", AggregateKind::Min),
    ("MAX", AggregateKind::Max),
    ("MAKELIST", AggregateKind::MakeList),
    ("MAKESET", AggregateKind::MakeSet),
    ("COUNTIF", AggregateKind::CountIf),
];

impl AggregateKind {
    /// Finds the aggregate of this name, in any case.
    pub fn parse(name: &str) -> Option<AggregateKind> {
        NAMES
            .iter()
            .find(|(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, kind)| *kind)
    }

    /// The name in queries.
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(_, kind)| *kind == self)
            .map_or("", |(name, _)| name)
    }

    /// The name in query plans (cosmos-sql §22.1).
    pub fn plan_name(self) -> &'static str {
        match self {
            AggregateKind::Count => "Count",
            AggregateKind::Sum => "Sum",
            AggregateKind::Average => "Average",
            AggregateKind::Min => "Min",
            AggregateKind::Max => "Max",
            AggregateKind::MakeList => "MakeList",
            AggregateKind::MakeSet => "MakeSet",
            AggregateKind::CountIf => "CountIf",
        }
    }

    /// The state before any value.
    pub fn start(self) -> State {
        match self {
            AggregateKind::Count | AggregateKind::CountIf => State::Count(0),
            AggregateKind::Sum | AggregateKind::Average => State::Sum {
                sum: 0.0,
                count: 0,
                spoiled: false,
            },
            AggregateKind::Min | AggregateKind::Max => State::Extreme {
                best: None,
                spoiled: false,
            },
            AggregateKind::MakeList | AggregateKind::MakeSet => State::List {
                items: Vec::new(),
                seen: HashSet::new(),
            },
        }
    }
}

/// The state of an aggregate while values are added.
#[derive(Debug, Clone)]
pub enum State {
    Count(u64),
    /// `spoiled`: a value was not a number, so the result is undefined whatever follows.
    Sum {
        sum: f64,
        count: u64,
        spoiled: bool,
    },
    Extreme {
        best: Option<Value<'static>>,
        spoiled: bool,
    },
    List {
        items: Vec<Value<'static>>,
        seen: HashSet<SameKey>,
    },
}

impl State {
    /// Cost of adding a value, in units of fuel.
    pub fn units(&self, value: &Value<'_>) -> u64 {
        match self {
            State::Count(_) | State::Sum { .. } => NODE,
            State::Extreme { .. } => value.as_str().map_or(NODE, |text| text.len() as u64 / 4),
            State::List { .. } => value.written_out_bytes(usize::MAX) as u64 * KEY_BYTE,
        }
    }

    /// Adds so many values that are defined to a COUNT.
    pub fn count(&mut self, values: u64) {
        if let State::Count(count) = self {
            *count += values;
        }
    }

    /// Adds a value so many times; for sums and lists only once, because the result would depend on the order of all values. Undefined ones are ignored.
    /// Returns the approximate number of bytes by which the state grew.
    pub fn add(&mut self, kind: AggregateKind, value: &Value<'_>, times: u64) -> usize {
        if !value.is_defined() {
            return 0;
        }
        match self {
            State::Count(count) => {
                *count += times * u64::from(kind == AggregateKind::Count || value.is_true());
                0
            }
            State::Sum { sum, count, spoiled } => {
                match value.as_f64() {
                    Some(number) => *sum += number,
                    None => *spoiled = true,
                }
                *count += 1;
                0
            }
            State::Extreme { best, spoiled } => {
                *spoiled |= matches!(value.kind(), Kind::Array | Kind::Object);
                let wanted = if kind == AggregateKind::Min {
                    Ordering::Less
                } else {
                    Ordering::Greater
                };
                if *spoiled || best.as_ref().is_some_and(|best| total_order(value, best) != wanted) {
                    return 0;
                }
                // The bytes of a longer value stay counted when a shorter one replaces it.
                let bytes = |value: &Value<'_>| value.written_out_bytes(usize::MAX);
                let before = best.as_ref().map_or(0, bytes);
                *best = Some(value.clone().into_owned());
                bytes(value).saturating_sub(before)
            }
            State::List { items, seen } => collect(kind, value, items, seen),
        }
    }

    /// The result.
    pub fn finish(self, kind: AggregateKind) -> Value<'static> {
        match self {
            State::Count(count) => Value::int(count as i64),
            State::Sum { spoiled: true, .. } | State::Extreme { spoiled: true, .. } => Value::Undefined,
            State::Sum { sum, count, .. } if kind == AggregateKind::Average => {
                if count == 0 {
                    Value::Undefined
                } else {
                    Value::float(sum / count as f64)
                }
            }
            State::Sum { sum, .. } => Value::float(sum),
            State::Extreme { best, .. } => best.unwrap_or(Value::Undefined),
            State::List { items, .. } => Value::array(items),
        }
    }
}

fn collect(
    kind: AggregateKind,
    value: &Value<'_>,
    items: &mut Vec<Value<'static>>,
    seen: &mut HashSet<SameKey>,
) -> usize {
    let mut bytes = 0;
    if kind == AggregateKind::MakeSet {
        let mut canonical = Vec::new();
        append_same_key(value, &mut canonical);
        let key = same_key(&canonical);
        bytes += seen_bytes(&key);
        if !seen.insert(key) {
            return 0;
        }
    }
    // The list grows by doubling.
    bytes += value.written_out_bytes(usize::MAX) + ALLOCATION_BYTES + size_of::<Value<'static>>() / 2;
    items.push(value.clone().into_owned());
    bytes
}
