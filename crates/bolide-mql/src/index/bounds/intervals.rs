//! Intervals of the values of one indexed field.

use bolide_index::codec::rank;
use bson::raw::{RawArrayBuf, RawBson, RawBsonRef, RawDocumentBuf};
use bson::spec::BinarySubtype;
use bson::{Binary, DateTime, Regex, Timestamp, oid::ObjectId};

use crate::collation::Collation;
use crate::filter::{Operator, Test};
use crate::value::number::Number;
use crate::value::order::type_rank;
use crate::value::{key, text};

/// One end of an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// The encoded value, in ascending order.
    pub key: Vec<u8>,
    /// Whether the value itself is inside.
    pub is_inclusive: bool,
    /// As it is shown.
    value: RawBson,
}

/// Values between two edges.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    pub low: Edge,
    pub high: Edge,
}

/// Intervals in order, none of which touch.
#[derive(Debug, Clone, PartialEq)]
pub struct Intervals(pub Vec<Interval>);

/// How strings of an index compare, and whether the filter compares them in the same way.
#[derive(Debug, Clone, Copy)]
pub struct Strings<'c> {
    pub collation: Option<&'c Collation>,
    pub is_same: bool,
}

impl Interval {
    /// Whether it has one value.
    pub fn is_point(&self) -> bool {
        self.low.key == self.high.key
    }

    /// As explain shows it: `[1, 5)`.
    pub fn shown(&self, is_descending: bool) -> String {
        let (first, last) = match is_descending {
            true => (&self.high, &self.low),
            false => (&self.low, &self.high),
        };
        format!(
            "{}{}, {}{}",
            if first.is_inclusive { '[' } else { '(' },
            shown(&first.value),
            shown(&last.value),
            if last.is_inclusive { ']' } else { ')' },
        )
    }

    fn is_empty(&self) -> bool {
        match self.low.key.cmp(&self.high.key) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Equal => !(self.low.is_inclusive && self.high.is_inclusive),
            std::cmp::Ordering::Greater => true,
        }
    }
}

fn shown(value: &RawBson) -> String {
    match value {
        RawBson::Double(number) => text::render_f64(*number),
        value => text::render(value.as_raw_bson_ref()),
    }
}

impl Edge {
    fn new(value: RawBson, is_inclusive: bool, collation: Option<&Collation>) -> Edge {
        Edge {
            key: key::of(value.as_raw_bson_ref(), collation),
            is_inclusive,
            value,
        }
    }

    /// In the order of beginnings: an inclusive one comes first.
    fn as_low(&self) -> (&[u8], bool) {
        (&self.key, !self.is_inclusive)
    }

    /// In the order of ends: an inclusive one comes last.
    fn as_high(&self) -> (&[u8], bool) {
        (&self.key, self.is_inclusive)
    }
}

impl Intervals {
    /// All values.
    pub fn all() -> Intervals {
        Intervals(vec![Interval {
            low: Edge::new(RawBson::MinKey, true, None),
            high: Edge::new(RawBson::MaxKey, true, None),
        }])
    }

    /// Whether all are single values.
    pub fn are_points(&self) -> bool {
        self.0.iter().all(Interval::is_point)
    }

    /// Whether they are all values.
    pub fn is_all(&self) -> bool {
        let all = |interval: &Interval| interval.low.value == RawBson::MinKey && interval.high.value == RawBson::MaxKey;
        self.0.first().is_some_and(all)
    }

    /// The values in both.
    #[must_use]
    pub fn and(&self, other: &Intervals) -> Intervals {
        let (mut ours, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut both = Vec::new();
        while let (Some(a), Some(b)) = (ours.peek(), theirs.peek()) {
            let low = if a.low.as_low() >= b.low.as_low() {
                &a.low
            } else {
                &b.low
            };
            let is_a_first = a.high.as_high() <= b.high.as_high();
            let high = if is_a_first { &a.high } else { &b.high };
            let common = Interval {
                low: low.clone(),
                high: high.clone(),
            };
            if !common.is_empty() {
                both.push(common);
            }
            match is_a_first {
                true => ours.next(),
                false => theirs.next(),
            };
        }
        Intervals(both)
    }

    /// Puts intervals in order, and joins those that touch.
    fn of(mut intervals: Vec<Interval>) -> Intervals {
        intervals.retain(|interval| !interval.is_empty());
        intervals.sort_by(|a, b| a.low.as_low().cmp(&b.low.as_low()));
        let mut joined: Vec<Interval> = Vec::with_capacity(intervals.len());
        for interval in intervals {
            match joined.last_mut() {
                Some(last) if interval.low.key <= last.high.key => {
                    if interval.high.as_high() > last.high.as_high() {
                        last.high = interval.high;
                    }
                }
                _ => joined.push(interval),
            }
        }
        Intervals(joined)
    }

    /// The keys of the values that pass a test. An array that passes has one of them. `None` if nothing is known.
    pub fn of_test(test: &Test<'_>, strings: Strings<'_>) -> Option<Intervals> {
        let mut found = Vec::new();
        match test {
            Test::Comparison(operator, operand) => comparison(*operator, operand, strings, &mut found)?,
            Test::Membership(values, patterns) => {
                for value in *values {
                    equal(value, strings, &mut found)?;
                }
                for (pattern, options) in patterns {
                    matching(pattern, options, strings, &mut found)?;
                }
            }
            Test::Exists => return Some(Intervals::all()),
            Test::Pattern(pattern, options) => matching(pattern, options, strings, &mut found)?,
            Test::Element(tests) => {
                let each = tests.iter().filter_map(|test| Intervals::of_test(test, strings));
                return each.reduce(|all, next| all.and(&next));
            }
        }
        Some(Intervals::of(found))
    }
}

fn comparison(operator: Operator, operand: &RawBson, strings: Strings<'_>, found: &mut Vec<Interval>) -> Option<()> {
    let value = operand.as_raw_bson_ref();
    if operator == Operator::Equal {
        return equal(operand, strings, found);
    }
    let takes_equal = matches!(operator, Operator::LessOrEqual | Operator::GreaterOrEqual);
    if matches!(operand, RawBson::Null) || Number::of(value).is_some_and(Number::is_nan) {
        // Nothing is less or greater.
        return match takes_equal {
            true => equal(operand, strings, found),
            false => Some(()),
        };
    }
    if !compares(operand, strings) {
        return None;
    }
    let (first, last) = bracket(value)?;
    let edge = |is_inclusive| Edge::new(operand.clone(), is_inclusive, strings.collation);
    let end = |(value, is_inclusive): (RawBson, bool)| Edge::new(value, is_inclusive, strings.collation);
    found.push(match operator {
        Operator::Less | Operator::LessOrEqual => Interval {
            low: end((first, true)),
            high: edge(takes_equal),
        },
        _ => Interval {
            low: edge(takes_equal),
            high: end(last),
        },
    });
    Some(())
}

/// The keys of values that equal one; also of arrays that do: that of their first element.
fn equal(value: &RawBson, strings: Strings<'_>, found: &mut Vec<Interval>) -> Option<()> {
    if !compares(value, strings) {
        return None;
    }
    let mut point = |value: RawBson| {
        let edge = Edge::new(value, true, strings.collation);
        found.push(Interval {
            low: edge.clone(),
            high: edge,
        });
    };
    match value {
        RawBson::Null => {
            point(RawBson::Undefined);
            point(RawBson::Null);
        }
        RawBson::Array(array) => {
            let first = array.into_iter().next().and_then(Result::ok);
            point(first.map_or(RawBson::Undefined, RawBson::from));
            point(value.clone());
        }
        value => point(value.clone()),
    }
    Some(())
}

/// Whether the index has a value where the filter looks for it.
fn compares(value: &RawBson, strings: Strings<'_>) -> bool {
    strings.is_same
        || !matches!(
            value,
            RawBson::String(_) | RawBson::Symbol(_) | RawBson::Document(_) | RawBson::Array(_)
        )
}

/// The first value of a value's bracket of types, and the end of the bracket. `None` where arrays compare as a whole, or there is no good end.
fn bracket(value: RawBsonRef<'_>) -> Option<(RawBson, (RawBson, bool))> {
    let empty = || RawBson::Document(RawDocumentBuf::new());
    Some(match type_rank(value) {
        rank::NUMBER => (
            RawBson::Double(f64::NEG_INFINITY),
            (RawBson::Double(f64::INFINITY), true),
        ),
        rank::STRING => (RawBson::String(String::new()), (empty(), false)),
        rank::OBJECT => (empty(), (RawBson::Array(RawArrayBuf::new()), false)),
        rank::BINARY => {
            let first = Binary {
                subtype: BinarySubtype::Generic,
                bytes: Vec::new(),
            };
            let end = RawBson::ObjectId(ObjectId::from_bytes([0; 12]));
            (RawBson::Binary(first), (end, false))
        }
        rank::OBJECT_ID => {
            let id = |byte| RawBson::ObjectId(ObjectId::from_bytes([byte; 12]));
            (id(0), (id(u8::MAX), true))
        }
        rank::BOOLEAN => (RawBson::Boolean(false), (RawBson::Boolean(true), true)),
        rank::DATE => {
            let date = |millis| RawBson::DateTime(DateTime::from_millis(millis));
            (date(i64::MIN), (date(i64::MAX), true))
        }
        rank::TIMESTAMP => {
            let at = |part| {
                RawBson::Timestamp(Timestamp {
                    time: part,
                    increment: part,
                })
            };
            (at(0), (at(u32::MAX), true))
        }
        _ => return None,
    })
}

/// The keys of strings in which a regular expression that is anchored finds something, and of the same regular expression as a value.
fn matching(pattern: &str, options: &str, strings: Strings<'_>, found: &mut Vec<Interval>) -> Option<()> {
    if strings.collation.is_some() {
        return None;
    }
    let beginning = beginning(pattern, options)?;
    let end = match after(&beginning) {
        Some(end) => RawBson::String(end),
        None => RawBson::Document(RawDocumentBuf::new()),
    };
    found.push(Interval {
        low: Edge::new(RawBson::String(beginning), true, None),
        high: Edge::new(end, false, None),
    });
    let itself = RawBson::RegularExpression(Regex {
        pattern: pattern.to_owned().try_into().ok()?,
        options: options.to_owned().try_into().ok()?,
    });
    let edge = Edge::new(itself, true, None);
    found.push(Interval {
        low: edge.clone(),
        high: edge,
    });
    Some(())
}

/// The text with which every string begins that a regular expression matches; `None` if there is none.
fn beginning(pattern: &str, options: &str) -> Option<String> {
    // An alternative could match without the beginning, in other cases, or at the beginning of another line.
    if options.chars().any(|option| option != 's') || pattern.contains('|') {
        return None;
    }
    let mut rest = pattern
        .strip_prefix('^')
        .or_else(|| pattern.strip_prefix("\\A"))?
        .chars()
        .peekable();
    let mut text = String::new();
    while let Some(next) = rest.next() {
        let literal = match next {
            '\\' => match rest.next() {
                // Letters and digits have other meanings.
                Some(escaped) if escaped.is_ascii_punctuation() => escaped,
                _ => break,
            },
            '.' | '[' | ']' | '(' | ')' | '{' | '}' | '*' | '+' | '?' | '^' | '$' => break,
            literal => literal,
        };
        // It need not be there.
        if matches!(rest.peek(), Some('*' | '?' | '{')) {
            break;
        }
        text.push(literal);
    }
    (!text.is_empty()).then_some(text)
}

/// The first string behind all that begin with a text; `None` if there is none.
fn after(text: &str) -> Option<String> {
    let mut text = text.to_owned();
    while let Some(last) = text.pop() {
        let next = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32);
        if let Some(next) = next {
            text.push(next);
            return Some(text);
        }
    }
    None
}
