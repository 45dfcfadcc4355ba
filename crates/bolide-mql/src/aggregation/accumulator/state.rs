//! What an accumulator has of the values so far.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet, VecDeque};

use bson::raw::{CString, RawArrayBuf, RawBson, RawBsonRef, RawDocumentBuf};

use super::ranked::Ranked;
use crate::aggregation::stages::count::integer;
use crate::collation::Collation;
use crate::context::memory::StageMemory;
use crate::error::{Error, Result};
use crate::expression::{Deviation, Total, percentiles};
use crate::value::number::Number;
use crate::value::{compare_with, key, text, types};

/// The state of an accumulator, for one group or window.
#[derive(Debug, Clone)]
pub(in crate::aggregation) enum State {
    Sum(Total),
    Average(Total),
    Count(i64),
    First(Option<RawBson>),
    Last(Option<RawBson>),
    Extreme {
        best: Option<RawBson>,
        is_maximum: bool,
    },
    Push(RawArrayBuf),
    Set {
        keys: HashSet<Vec<u8>>,
        elements: RawArrayBuf,
    },
    Deviation {
        deviation: Deviation,
        is_sample: bool,
    },
    Merge(Merged),
    FirstN {
        count: usize,
        values: VecDeque<RawBson>,
    },
    LastN {
        count: usize,
        values: VecDeque<RawBson>,
    },
    Ranked(Ranked),
    Percentiles {
        numbers: Vec<f64>,
        fractions: Vec<f64>,
        is_median: bool,
    },
}

/// Returns the memory of a value, in bytes.
pub(in crate::aggregation) fn value_bytes(value: &RawBson) -> usize {
    let contents = match value {
        RawBson::String(text) | RawBson::JavaScriptCode(text) | RawBson::Symbol(text) => text.len(),
        RawBson::Document(document) => document.as_bytes().len(),
        RawBson::Array(array) => array.as_bytes().len(),
        RawBson::Binary(binary) => binary.bytes.len(),
        RawBson::JavaScriptCodeWithScope(code) => code.code.len() + code.scope.as_bytes().len(),
        _ => 0,
    };
    contents + size_of::<RawBson>()
}

impl State {
    pub(super) fn sum() -> State {
        State::Sum(Total::default())
    }

    pub(super) fn average() -> State {
        State::Average(Total::default())
    }

    pub(super) fn extreme(is_maximum: bool) -> State {
        State::Extreme { best: None, is_maximum }
    }

    pub(super) fn push() -> State {
        State::Push(RawArrayBuf::new())
    }

    pub(super) fn set() -> State {
        State::Set {
            keys: HashSet::new(),
            elements: RawArrayBuf::new(),
        }
    }

    pub(super) fn deviation(is_sample: bool) -> State {
        State::Deviation {
            deviation: Deviation::default(),
            is_sample,
        }
    }

    pub(super) fn merge() -> State {
        State::Merge(Merged::default())
    }

    pub(super) fn first(count: usize) -> State {
        State::FirstN {
            count,
            values: VecDeque::new(),
        }
    }

    pub(super) fn last(count: usize) -> State {
        State::LastN {
            count,
            values: VecDeque::new(),
        }
    }

    pub(super) fn percentiles(fractions: Vec<f64>, is_median: bool) -> State {
        State::Percentiles {
            numbers: Vec::new(),
            fractions,
            is_median,
        }
    }

    /// Adds the value of a document.
    ///
    /// # Errors
    /// 40400 if `$mergeObjects` gets no document; 292 if the state needs too much memory.
    pub(super) fn add(
        &mut self,
        value: Option<RawBson>,
        collation: Option<&Collation>,
        memory: &mut StageMemory,
    ) -> Result<()> {
        match self {
            State::Sum(total) | State::Average(total) => {
                if let Some(number) = number(value.as_ref()) {
                    total.add(number);
                }
            }
            State::Count(count) => *count += 1,
            State::First(first) => {
                if first.is_none() {
                    keep(first, value.unwrap_or(RawBson::Null), memory)?;
                }
            }
            State::Last(last) => keep(last, value.unwrap_or(RawBson::Null), memory)?,
            State::Extreme { best, is_maximum } => add_extreme(best, *is_maximum, value, collation, memory)?,
            State::Push(array) => {
                if let Some(value) = value {
                    memory.add(value_bytes(&value))?;
                    array.push(&value);
                }
            }
            State::Set { keys, elements } => add_to_set(keys, elements, value, collation, memory)?,
            State::Deviation { deviation, .. } => {
                if let Some(number) = number(value.as_ref()) {
                    deviation.add(number.to_f64());
                }
            }
            State::Merge(merged) => merged.add(value, memory)?,
            State::FirstN { count, values } => {
                if values.len() < *count {
                    push_back(values, value, memory)?;
                }
            }
            State::LastN { count, values } => {
                push_back(values, value, memory)?;
                if values.len() > *count {
                    let dropped = values.pop_front();
                    memory.release(dropped.as_ref().map_or(0, value_bytes));
                }
            }
            State::Ranked(ranked) => ranked.add(Vec::new(), value.unwrap_or(RawBson::Null), memory)?,
            State::Percentiles { numbers, .. } => {
                if let Some(number) = number(value.as_ref()) {
                    memory.add(size_of::<f64>())?;
                    numbers.push(number.to_f64());
                }
            }
        }
        Ok(())
    }

    /// Returns the result for the values so far.
    pub(in crate::aggregation) fn result(&self) -> RawBson {
        match self {
            State::Sum(total) => total.value().into(),
            State::Average(total) => total.mean().map_or(RawBson::Null, RawBson::from),
            State::Count(count) => integer(*count),
            State::First(value) | State::Last(value) => value.clone().unwrap_or(RawBson::Null),
            State::Extreme { best, .. } => best.clone().unwrap_or(RawBson::Null),
            State::Push(array) => RawBson::Array(array.clone()),
            State::Set { elements, .. } => RawBson::Array(elements.clone()),
            State::Deviation {
                deviation,
                is_sample: true,
            } => deviation.of_sample(),
            State::Deviation {
                deviation,
                is_sample: false,
            } => deviation.of_population(),
            State::Merge(merged) => RawBson::Document(merged.document()),
            State::FirstN { values, .. } | State::LastN { values, .. } => {
                let mut array = RawArrayBuf::new();
                for value in values {
                    array.push(value);
                }
                RawBson::Array(array)
            }
            State::Ranked(ranked) => ranked.result(),
            State::Percentiles {
                numbers,
                fractions,
                is_median,
            } => percentile_result(numbers.clone(), fractions, *is_median),
        }
    }
}

fn number(value: Option<&RawBson>) -> Option<Number> {
    value.and_then(|value| Number::of(value.as_raw_bson_ref()))
}

/// Replaces the value that is kept.
fn keep(kept: &mut Option<RawBson>, value: RawBson, memory: &mut StageMemory) -> Result<()> {
    memory.release(kept.as_ref().map_or(0, value_bytes));
    memory.add(value_bytes(&value))?;
    *kept = Some(value);
    Ok(())
}

fn push_back(values: &mut VecDeque<RawBson>, value: Option<RawBson>, memory: &mut StageMemory) -> Result<()> {
    let value = value.unwrap_or(RawBson::Null);
    memory.add(value_bytes(&value))?;
    values.push_back(value);
    Ok(())
}

/// Keeps the smallest or largest value; null and missing ones do not count.
fn add_extreme(
    best: &mut Option<RawBson>,
    is_maximum: bool,
    value: Option<RawBson>,
    collation: Option<&Collation>,
    memory: &mut StageMemory,
) -> Result<()> {
    let Some(value) = value.filter(|value| !matches!(value, RawBson::Null | RawBson::Undefined)) else {
        return Ok(());
    };
    let wanted = if is_maximum { Ordering::Greater } else { Ordering::Less };
    let is_better = best
        .as_ref()
        .is_none_or(|best| compare_with(value.as_raw_bson_ref(), best.as_raw_bson_ref(), collation) == wanted);
    match is_better {
        true => keep(best, value, memory),
        false => Ok(()),
    }
}

fn add_to_set(
    keys: &mut HashSet<Vec<u8>>,
    elements: &mut RawArrayBuf,
    value: Option<RawBson>,
    collation: Option<&Collation>,
    memory: &mut StageMemory,
) -> Result<()> {
    let Some(value) = value else {
        return Ok(());
    };
    let key = key::of(value.as_raw_bson_ref(), collation);
    let key_bytes = key.len();
    if keys.insert(key) {
        memory.add(key_bytes + value_bytes(&value))?;
        elements.push(&value);
    }
    Ok(())
}

fn percentile_result(mut numbers: Vec<f64>, fractions: &[f64], is_median: bool) -> RawBson {
    let found = percentiles(&mut numbers, fractions);
    let values = (0..fractions.len()).map(|index| {
        let value = found.as_ref().and_then(|found| found.get(index));
        value.map_or(RawBsonRef::Null, |value| RawBsonRef::Double(*value))
    });
    if is_median {
        return values.map(RawBson::from).next().unwrap_or(RawBson::Null);
    }
    let mut array = RawArrayBuf::new();
    for value in values {
        array.push(value);
    }
    RawBson::Array(array)
}

/// The fields of documents, later values in the places of earlier ones.
#[derive(Debug, Clone, Default)]
pub(in crate::aggregation) struct Merged {
    fields: Vec<(CString, RawBson)>,
    places: HashMap<String, usize>,
}

impl Merged {
    fn add(&mut self, value: Option<RawBson>, memory: &mut StageMemory) -> Result<()> {
        let document = match value {
            None | Some(RawBson::Null | RawBson::Undefined) => return Ok(()),
            Some(RawBson::Document(document)) => document,
            Some(other) => {
                let other = other.as_raw_bson_ref();
                let (shown, found) = (text::render(other), types::name(other));
                let text = format!("$mergeObjects requires object inputs, but input {shown} is of type {found}");
                return Err(Error::new(40400, text));
            }
        };
        for field in &document {
            let (name, value) = field?;
            let value = RawBson::from(value);
            memory.add(value_bytes(&value))?;
            let place = self
                .places
                .get(name.as_str())
                .and_then(|place| self.fields.get_mut(*place));
            if let Some((_, old)) = place {
                memory.release(value_bytes(old));
                *old = value;
                continue;
            }
            memory.add(name.len().saturating_mul(2))?;
            self.places.insert(name.as_str().to_owned(), self.fields.len());
            self.fields.push((name.into(), value));
        }
        Ok(())
    }

    fn document(&self) -> RawDocumentBuf {
        let mut document = RawDocumentBuf::new();
        for (name, value) in &self.fields {
            document.append(name, value);
        }
        document
    }
}
