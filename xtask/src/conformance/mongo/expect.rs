//! Compares replies with what a case expects of them, as `mongo/README.md` of the cases says.
//!
//! At the root of a reply only the expected keys count. Inside, documents have exactly the expected keys in any order, lists the expected
//! elements in this order, and numbers are equal by value whatever their type.

use bson::{Bson, Document};

/// Checks a reply.
///
/// # Errors
/// The first key that differs, with the server's message.
pub fn check(expected: &Document, reply: &Document) -> Result<(), String> {
    for (key, expected) in expected {
        if !matches(expected, reply.get(key)) {
            let got = reply.get(key).map_or("nothing".to_owned(), Bson::to_string);
            let message = reply.get_str("errmsg").map(|text| format!(" ({text})"));
            return Err(format!(
                "{key}: expected {expected}, got {got}{}",
                message.unwrap_or_default()
            ));
        }
    }
    Ok(())
}

/// Whether the documents have exactly these `_id`s, in any order.
pub fn same_ids(expected: &[Bson], got: &[Bson]) -> bool {
    in_any_order(expected, got)
}

fn matches(expected: &Bson, got: Option<&Bson>) -> bool {
    if let Some((form, argument)) = special(expected) {
        return matches_special(form, argument, got);
    }
    let Some(got) = got else { return false };
    match (expected, got) {
        (Bson::Document(expected), Bson::Document(got)) => {
            expected.iter().all(|(key, value)| matches(value, got.get(key)))
                && got.keys().all(|key| expected.contains_key(key))
        }
        (Bson::Array(expected), Bson::Array(got)) => {
            expected.len() == got.len()
                && expected
                    .iter()
                    .zip(got)
                    .all(|(expected, got)| matches(expected, Some(got)))
        }
        _ => match (number(expected), number(got)) {
            (Some(expected), Some(got)) => expected == got,
            _ => expected == got,
        },
    }
}

/// The form and argument of a document such as `{"$$type": "int"}`.
fn special(expected: &Bson) -> Option<(&str, &Bson)> {
    let document = expected.as_document()?;
    let (key, argument) = document.iter().next()?;
    Some((key.strip_prefix("$$").filter(|_| document.len() == 1)?, argument))
}

fn matches_special(form: &str, argument: &Bson, got: Option<&Bson>) -> bool {
    match (form, argument, got) {
        ("absent", _, got) => got.is_none(),
        ("subset", Bson::Document(expected), Some(Bson::Document(got))) => {
            expected.iter().all(|(key, value)| matches(value, got.get(key)))
        }
        ("unordered", Bson::Array(expected), Some(Bson::Array(got))) => in_any_order(expected, got),
        ("type", Bson::String(name), Some(got)) => match name.as_str() {
            "int" => matches!(got, Bson::Int32(_)),
            "long" => matches!(got, Bson::Int64(_)),
            _ => false,
        },
        ("int", expected, Some(Bson::Int32(got))) => number(expected) == Some(Number::Whole(i64::from(*got))),
        ("anyOf", Bson::Array(values), got) => values.iter().any(|value| matches(value, got)),
        _ => false,
    }
}

/// Whether each expected element has a different counterpart.
fn in_any_order(expected: &[Bson], got: &[Bson]) -> bool {
    expected.len() == got.len() && pair_up(expected, &mut got.iter().collect())
}

/// Finds counterparts by backtracking: a form may match several elements, so the first match is not always right.
fn pair_up(expected: &[Bson], left: &mut Vec<&Bson>) -> bool {
    let Some((first, rest)) = expected.split_first() else {
        return true;
    };
    (0..left.len()).any(|index| {
        if !matches(first, Some(left[index])) {
            return false;
        }
        let tried = left.remove(index);
        let fits = pair_up(rest, left);
        left.insert(index, tried);
        fits
    })
}

/// A number without its type.
#[derive(Debug, PartialEq)]
enum Number {
    Whole(i64),
    Other(f64),
}

fn number(value: &Bson) -> Option<Number> {
    match value {
        Bson::Int32(number) => Some(Number::Whole(i64::from(*number))),
        Bson::Int64(number) => Some(Number::Whole(*number)),
        Bson::Double(number) => Some(of_double(*number)),
        Bson::Decimal128(number) => Some(of_double(number.to_string().parse().ok()?)),
        _ => None,
    }
}

/// Doubles that hold a whole number exactly are that number.
fn of_double(number: f64) -> Number {
    // 2^53: below it every whole double is exact.
    if number.fract() == 0.0 && number.abs() < 9_007_199_254_740_992.0 {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within i64")]
        return Number::Whole(number as i64);
    }
    Number::Other(number)
}

#[cfg(test)]
mod tests;
