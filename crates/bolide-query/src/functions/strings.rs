//! String functions (cosmos-sql §18.3). Positions and lengths count UTF-16 code units.

use super::{Call, Function};
use crate::fuel::ELEMENT;
use crate::limits::REPLICATE_CHARS;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::strict("CONCAT", 2, 2, concat).any_number(),
    Function::strict("CONTAINS", 2, 3, |c| search(c, |text, part| text.contains(part))),
    Function::strict("STARTSWITH", 2, 3, |c| search(c, |text, part| text.starts_with(part))),
    Function::strict("ENDSWITH", 2, 3, |c| search(c, |text, part| text.ends_with(part))),
    Function::strict("STRINGEQUALS", 2, 3, |c| search(c, |text, part| text == part)),
    Function::strict("INDEX_OF", 2, 3, index_of),
    Function::strict("LASTINDEXOF", 2, 3, last_index_of),
    Function::strict("LEFT", 2, 2, left),
    Function::strict("RIGHT", 2, 2, right),
    Function::strict("LENGTH", 1, 1, |c| {
        with_str(c, |text| Value::int(utf16_len(text) as i64))
    }),
    Function::strict("LOWER", 1, 1, |c| changed(c, lower)),
    Function::strict("UPPER", 1, 1, |c| changed(c, upper)),
    Function::strict("TRIM", 1, 2, |c| trim(c, true, true)),
    Function::strict("LTRIM", 1, 2, |c| trim(c, true, false)),
    Function::strict("RTRIM", 1, 2, |c| trim(c, false, true)),
    Function::strict("REPLACE", 3, 3, replace),
    Function::strict("REPLICATE", 2, 2, replicate),
    Function::strict("REVERSE", 1, 1, |c| changed(c, |text| text.chars().rev().collect())),
    Function::strict("SUBSTRING", 3, 3, substring),
    Function::strict("STRINGJOIN", 2, 2, join),
    Function::strict("STRINGSPLIT", 2, 2, split),
    Function::lenient("CONTAINS_ALL_CI", 2, 2, |c| contains_each(c, false, true)).any_number(),
    Function::lenient("CONTAINS_ALL_CS", 2, 2, |c| contains_each(c, false, false)).any_number(),
    Function::lenient("CONTAINS_ANY_CI", 2, 2, |c| contains_each(c, true, true)).any_number(),
    Function::lenient("CONTAINS_ANY_CS", 2, 2, |c| contains_each(c, true, false)).any_number(),
    // The names that the SDK uses.
    Function::lenient("ContainsAllCi", 2, 2, |c| contains_each(c, false, true)).any_number(),
    Function::lenient("ContainsAllCs", 2, 2, |c| contains_each(c, false, false)).any_number(),
    Function::lenient("ContainsAnyCi", 2, 2, |c| contains_each(c, true, true)).any_number(),
    Function::lenient("ContainsAnyCs", 2, 2, |c| contains_each(c, true, false)).any_number(),
    Function::strict("SubstringBefore", 2, 2, |c| {
        cut(c, |text, part| text.split_once(part).map(|(before, _)| before))
    }),
    Function::strict("SubstringAfter", 2, 2, |c| {
        cut(c, |text, part| text.split_once(part).map(|(_, after)| after))
    }),
    Function::strict("LastSubstringBefore", 2, 2, |c| {
        cut(c, |text, part| text.rsplit_once(part).map(|(before, _)| before))
    }),
    Function::strict("LastSubstringAfter", 2, 2, |c| {
        cut(c, |text, part| text.rsplit_once(part).map(|(_, after)| after))
    }),
];

/// Units to change the case of a byte.
const FOLDING: u64 = 15;

fn with_str<'a>(call: &Call<'_, 'a>, compute: impl Fn(&str) -> Value<'a>) -> Value<'a> {
    call.str(0).map_or(Value::Undefined, compute)
}

/// A string converted character by character.
fn changed<'a>(call: &Call<'_, 'a>, change: fn(&str) -> String) -> Value<'a> {
    match call.str(0) {
        Some(text) if call.fuel().spend_each(text.len(), FOLDING) => Value::string(change(text)),
        _ => Value::Undefined,
    }
}

fn utf16_len(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.encode_utf16().count()
    }
}

/// The byte offset of a UTF-16 offset; an offset inside a surrogate pair counts as before it.
fn byte_at(text: &str, utf16: usize) -> usize {
    if text.is_ascii() {
        return utf16.min(text.len());
    }
    let mut units = 0;
    for (at, c) in text.char_indices() {
        units += c.len_utf16();
        if units > utf16 {
            return at;
        }
    }
    text.len()
}

/// Lower case, one character to one; characters that would become several are kept.
fn lower(text: &str) -> String {
    text.chars().map(|c| single(c, c.to_lowercase())).collect()
}

/// Upper case, one character to one; characters that would become several are kept.
fn upper(text: &str) -> String {
    text.chars().map(|c| single(c, c.to_uppercase())).collect()
}

fn single(original: char, mut mapped: impl Iterator<Item = char>) -> char {
    match (mapped.next(), mapped.next()) {
        (Some(c), None) => c,
        _ => original,
    }
}

/// Folds case for comparisons that ignore case.
fn folded(text: &str) -> String {
    lower(&upper(text))
}

fn concat<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let parts: Option<Vec<&str>> = call.args.iter().map(Value::as_str).collect();
    let Some(parts) = parts else {
        return Value::Undefined;
    };
    if !call.may_make(parts.iter().map(|part| part.len()).sum()) {
        return Value::Undefined;
    }
    Value::string(parts.concat())
}

fn search<'a>(call: &Call<'_, 'a>, test: fn(&str, &str) -> bool) -> Value<'a> {
    let (Some(text), Some(part)) = (call.str(0), call.str(1)) else {
        return Value::Undefined;
    };
    let ignore_case = match call.args.get(2) {
        None => false,
        Some(Value::Bool(flag)) => *flag,
        Some(_) => return Value::Undefined,
    };
    if ignore_case && !call.fuel().spend_each(text.len() + part.len(), FOLDING) {
        return Value::Undefined;
    }
    Value::Bool(if ignore_case {
        test(&folded(text), &folded(part))
    } else {
        test(text, part)
    })
}

fn index_of<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let (Some(text), Some(part)) = (call.str(0), call.str(1)) else {
        return Value::Undefined;
    };
    let start = match call.args.get(2) {
        None => 0,
        Some(_) => match call.i64(2) {
            Some(start) => start,
            None => return Value::Undefined,
        },
    };
    if start < 0 || start as usize > utf16_len(text) {
        return Value::int(-1);
    }
    let from = byte_at(text, start as usize);
    let found = text[from..].find(part).map(|at| utf16_len(&text[..from + at]) as i64);
    Value::int(found.unwrap_or(-1))
}

/// `from` is the index of the last character of the search.
fn last_index_of<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let (Some(text), Some(part)) = (call.str(0), call.str(1)) else {
        return Value::Undefined;
    };
    let end = match call.args.get(2) {
        None => text.len(),
        Some(_) => match call.i64(2) {
            Some(from) if from < 0 => return Value::int(-1),
            Some(from) => byte_at(text, (from as usize).saturating_add(1)),
            None => return Value::Undefined,
        },
    };
    let found = text[..end].rfind(part).map(|at| utf16_len(&text[..at]) as i64);
    Value::int(found.unwrap_or(-1))
}

fn left<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    match (call.str(0), call.i64(1)) {
        (Some(text), Some(count)) => Value::string(&text[..byte_at(text, count.max(0) as usize)]),
        _ => Value::Undefined,
    }
}

fn right<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    match (call.str(0), call.i64(1)) {
        (Some(text), Some(count)) => {
            let skip = utf16_len(text).saturating_sub(count.max(0) as usize);
            Value::string(&text[byte_at(text, skip)..])
        }
        _ => Value::Undefined,
    }
}

fn trim<'a>(call: &Call<'_, 'a>, start: bool, end: bool) -> Value<'a> {
    let Some(mut text) = call.str(0) else {
        return Value::Undefined;
    };
    let set: Option<&str> = match call.args.get(1) {
        None => None,
        Some(Value::String(set)) => Some(set.as_str()),
        Some(_) => return Value::Undefined,
    };
    let fuel = call.fuel();
    let goes = |c: char| {
        set.map_or(c.is_whitespace(), |set| {
            fuel.spend(10 + set.len() as u64 / 4) && set.contains(c)
        })
    };
    if start {
        text = text.trim_start_matches(goes);
    }
    if end {
        text = text.trim_end_matches(goes);
    }
    Value::string(text)
}

fn replace<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    match (call.str(0), call.str(1), call.str(2)) {
        (Some(text), Some(find), Some(new)) if !find.is_empty() => {
            let longer = new.len().saturating_sub(find.len());
            let matches = text.matches(find).count();
            let bytes = text.len().saturating_add(matches.saturating_mul(longer));
            if !call.may_make(bytes) || !call.fuel().spend_each(matches, ELEMENT) || !call.fuel().spend_bytes(bytes) {
                return Value::Undefined;
            }
            Value::string(text.replace(find, new))
        }
        _ => Value::Undefined,
    }
}

fn replicate<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let (Some(text), Some(count)) = (call.str(0), call.f64(1)) else {
        return Value::Undefined;
    };
    let count = count.trunc();
    let length = count * utf16_len(text) as f64;
    if !count.is_finite() || count < 0.0 || length > REPLICATE_CHARS as f64 {
        return Value::Undefined;
    }
    // An empty string may be repeated more often than an allocation could hold.
    let count = if text.is_empty() { 0 } else { count as usize };
    Value::string(text.repeat(count))
}

fn substring<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let (Some(text), Some(start), Some(length)) = (call.str(0), call.i64(1), call.i64(2)) else {
        return Value::Undefined;
    };
    if start < 0 || length <= 0 || start as usize >= utf16_len(text) {
        return Value::string("");
    }
    let from = byte_at(text, start as usize);
    let to = byte_at(text, (start as usize).saturating_add(length as usize));
    Value::string(&text[from..to])
}

fn join<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let (Some(items), Some(separator)) = (call.arg(0).elements(), call.str(1)) else {
        return Value::Undefined;
    };
    let parts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
    let Some(parts) = parts else {
        return Value::Undefined;
    };
    let content: usize = parts.iter().map(|part| part.len()).sum();
    let bytes = content.saturating_add(parts.len().saturating_mul(separator.len()));
    if !call.may_make(bytes) || !call.fuel().spend_bytes(bytes) {
        return Value::Undefined;
    }
    Value::string(parts.join(separator))
}

fn split<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    match (call.str(0), call.str(1)) {
        (Some(text), Some("")) => Value::array([Value::string(text)]),
        (Some(text), Some(separator)) => {
            let parts = text.matches(separator).count() + 1;
            let is_allowed = call.may_make(text.len() + parts * size_of::<Value<'_>>());
            if !is_allowed || !call.fuel().spend_each(parts, 2 * ELEMENT) {
                return Value::Undefined;
            }
            Value::array(text.split(separator).map(Value::string))
        }
        _ => Value::Undefined,
    }
}

/// ANY and ALL of the tests for each string, in three-valued logic.
fn contains_each<'a>(call: &Call<'_, 'a>, any: bool, ignore_case: bool) -> Value<'a> {
    let Some(text) = call.str(0) else {
        return Value::Undefined;
    };
    let fold = |text: &str| if ignore_case { folded(text) } else { text.to_owned() };
    let folding = if ignore_case { FOLDING } else { 1 };
    if !call.fuel().spend_each(text.len(), folding) {
        return Value::Undefined;
    }
    let text = fold(text);
    let mut known = true;
    for term in &call.args[1..] {
        let term_bytes = term.as_str().map_or(0, str::len);
        if !call.fuel().spend_each(term_bytes, folding) || !call.fuel().spend(text.len() as u64) {
            return Value::Undefined;
        }
        match term.as_str().map(|term| text.contains(&fold(term))) {
            Some(found) if found == any => return Value::Bool(any),
            Some(_) => {}
            None => known = false,
        }
    }
    if known { Value::Bool(!any) } else { Value::Undefined }
}

fn cut<'a>(call: &Call<'_, 'a>, part: for<'t> fn(&'t str, &str) -> Option<&'t str>) -> Value<'a> {
    match (call.str(0), call.str(1)) {
        (Some(text), Some(separator)) => part(text, separator).map_or(Value::Undefined, Value::string),
        _ => Value::Undefined,
    }
}
