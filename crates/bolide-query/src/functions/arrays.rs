//! Functions of arrays and objects, and CHOOSE and IIF (cosmos-sql §18.4).

use std::borrow::Cow;
use std::cmp::Ordering;

use super::{Call, Function};
use crate::fuel::{ELEMENT, Fuel};
use crate::value::{Kind, Text, Value, equals, total_order};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::strict("ARRAY_CONCAT", 2, 2, concat).any_number(),
    Function::lenient("ARRAY_CONTAINS", 2, 3, contains),
    Function::lenient("_TRY_ARRAY_CONTAINS", 2, 3, contains),
    Function::lenient("ARRAY_CONTAINS_ANY", 2, 2, |c| contains_each(c, true)).any_number(),
    Function::lenient("ARRAY_CONTAINS_ALL", 2, 2, |c| contains_each(c, false)).any_number(),
    Function::strict("ARRAY_LENGTH", 1, 1, |c| {
        with_items(c, |items| Value::int(items.len() as i64))
    }),
    Function::strict("ARRAY_SLICE", 2, 3, slice),
    Function::strict("ARRAY_SUM", 1, 1, |c| with_numbers(c, |n| Some(n.iter().sum()))),
    Function::strict("ARRAY_AVG", 1, 1, |c| with_numbers(c, average)),
    Function::strict("ARRAY_MEDIAN", 1, 1, |c| with_numbers(c, median)),
    Function::strict("ARRAY_MIN", 1, 1, |c| extreme(c, Ordering::Less)),
    Function::strict("ARRAY_MAX", 1, 1, |c| extreme(c, Ordering::Greater)),
    Function::lenient("CHOOSE", 2, 2, choose).any_number(),
    Function::strict("ObjectToArray", 1, 3, object_to_array),
    Function::strict("_ObjectToArray", 1, 3, object_to_array),
    Function::lenient("IIF", 3, 3, |c| {
        if c.arg(0).is_true() {
            c.arg(1).clone()
        } else {
            c.arg(2).clone()
        }
    }),
];

fn with_items<'a>(call: &Call<'_, 'a>, compute: impl Fn(&[Value<'a>]) -> Value<'a>) -> Value<'a> {
    call.arg(0).elements().map_or(Value::Undefined, |items| compute(&items))
}

fn concat<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let arrays: Option<Vec<Cow<'_, [Value<'a>]>>> = call.args.iter().map(Value::elements).collect();
    let Some(arrays) = arrays else {
        return Value::Undefined;
    };
    let elements: usize = arrays.iter().map(|items| items.len()).sum();
    if !call.may_make(elements * size_of::<Value<'_>>()) || !call.fuel().spend_each(elements, ELEMENT) {
        return Value::Undefined;
    }
    Value::array(arrays.iter().flat_map(|items| items.iter().cloned()))
}

fn contains<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let Some(items) = call.arg(0).elements() else {
        return Value::Undefined;
    };
    let wanted = call.arg(1);
    if !wanted.is_defined() {
        return Value::Undefined;
    }
    let partial = call.arg(2).is_true();
    let fuel = call.fuel();
    Value::Bool(items.iter().any(|item| {
        if partial {
            holds(item, wanted, fuel)
        } else {
            equals(item, wanted, fuel) == Some(true)
        }
    }))
}

/// Whether an object has all members of another, also in nested objects; other values must be equal.
fn holds(item: &Value<'_>, wanted: &Value<'_>, fuel: &Fuel) -> bool {
    if item.kind() != Kind::Object {
        return equals(item, wanted, fuel) == Some(true);
    }
    let units = |value: &Value<'_>| match value {
        Value::Json(text) => text.len() as u64 * 2,
        Value::Object(members) => members.len() as u64 * 4,
        _ => 0,
    };
    match wanted.members() {
        Some(members) => members.iter().all(|(name, value)| {
            fuel.spend(units(item) + units(value)) && holds(&item.member(name.as_str()), value, fuel)
        }),
        None => false,
    }
}

fn contains_each<'a>(call: &Call<'_, 'a>, any: bool) -> Value<'a> {
    let Some(items) = call.arg(0).elements() else {
        return Value::Undefined;
    };
    let mut known = true;
    for wanted in &call.args[1..] {
        if !wanted.is_defined() {
            known = false;
        } else if !call.fuel().spend(items.len() as u64 * 4) {
            return Value::Undefined;
        } else if items.iter().any(|item| equals(item, wanted, call.fuel()) == Some(true)) == any {
            return Value::Bool(any);
        }
    }
    if known { Value::Bool(!any) } else { Value::Undefined }
}

fn slice<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let (Some(items), Some(start)) = (call.arg(0).elements(), call.i64(1)) else {
        return Value::Undefined;
    };
    let length = items.len() as i64;
    let max_count = match call.args.get(2) {
        None => length,
        Some(_) => match call.i64(2) {
            Some(max_count) => max_count,
            None => return Value::Undefined,
        },
    };
    let from = if start < 0 {
        length.saturating_add(start).max(0)
    } else {
        start.min(length)
    };
    Value::array(
        items
            .iter()
            .skip(from as usize)
            .take(max_count.max(0) as usize)
            .cloned(),
    )
}

fn with_numbers<'a>(call: &Call<'_, 'a>, compute: fn(&[f64]) -> Option<f64>) -> Value<'a> {
    let Some(items) = call.arg(0).elements() else {
        return Value::Undefined;
    };
    // Sorting, for the median, is the most expensive computation here.
    if !call.fuel().spend_each(items.len(), 2 * ELEMENT) {
        return Value::Undefined;
    }
    let numbers: Option<Vec<f64>> = items.iter().map(Value::as_f64).collect();
    numbers
        .and_then(|numbers| compute(&numbers))
        .map_or(Value::Undefined, Value::float)
}

fn average(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

fn median(numbers: &[f64]) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// The smallest or largest primitive; other elements are ignored.
fn extreme<'a>(call: &Call<'_, 'a>, wanted: Ordering) -> Value<'a> {
    let Some(items) = call.arg(0).elements() else {
        return Value::Undefined;
    };
    let primitives = items.iter().filter(|item| item.is_primitive());
    let better = |best, item| {
        let is_better = call.fuel().spend(string_units(item)) && total_order(item, best) == wanted;
        if is_better { item } else { best }
    };
    let best = primitives.reduce(better);
    best.cloned().unwrap_or(Value::Undefined)
}

fn string_units(value: &Value<'_>) -> u64 {
    value.as_str().map_or(0, |text| text.len() as u64 / 8)
}

/// Counts from one.
fn choose<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    match call.i64(0) {
        Some(at) if at >= 1 => call.args.get(at as usize).cloned().unwrap_or(Value::Undefined),
        _ => Value::Undefined,
    }
}

fn object_to_array<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let Some(members) = call.arg(0).members() else {
        return Value::Undefined;
    };
    let name_of = |at: usize, default: &'static str| match call.args.get(at) {
        None => Some(Text::Borrowed(default)),
        Some(Value::String(name)) => Some(name.clone()),
        Some(_) => None,
    };
    let (Some(key_name), Some(value_name)) = (name_of(1, "k"), name_of(2, "v")) else {
        return Value::Undefined;
    };
    if !call.fuel().spend_each(members.len(), 4 * ELEMENT) {
        return Value::Undefined;
    }
    Value::array(members.iter().map(|(name, value)| {
        Value::object([
            (key_name.clone(), Value::String(name.clone())),
            (value_name.clone(), value.clone()),
        ])
    }))
}
