//! Conversions from and to strings (cosmos-sql §18.5).

use super::{Call, Function};
use crate::value::{Kind, Value, parse_json, write_json};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::strict("ToString", 1, 1, to_string),
    Function::strict("StringToNumber", 1, 1, |c| parsed(c, Kind::Number)),
    Function::strict("StringToBoolean", 1, 1, |c| parsed(c, Kind::Bool)),
    Function::strict("StringToNull", 1, 1, |c| parsed(c, Kind::Null)),
    Function::strict("StringToArray", 1, 1, |c| parsed(c, Kind::Array)),
    Function::strict("StringToObject", 1, 1, |c| parsed(c, Kind::Object)),
];

fn to_string<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    // Values nested in a value made during evaluation were counted when they were made.
    let bytes = call.arg(0).written_out_bytes(usize::MAX);
    if !call.fuel().spend_each(bytes, 4) {
        return Value::Undefined;
    }
    let mut out = Vec::new();
    match call.arg(0) {
        Value::String(text) => return Value::String(text.clone()),
        Value::Number(number) if is_very_large(number.as_f64()) => return Value::string(scientific(number.as_f64())),
        Value::Number(number) => number.write_plain(&mut out),
        // Stored text may contain white space; the result is compact.
        Value::Json(text) => write_json(&parse_json(text).unwrap_or(Value::Undefined), &mut out),
        other => write_json(other, &mut out),
    }
    Value::string(String::from_utf8_lossy(&out))
}

/// From this size on the service writes an exponent, because the number has more digits than a double.
fn is_very_large(number: f64) -> bool {
    number.is_finite() && number.abs() >= 1e17
}

/// The shortest digits with an exponent of three digits, as `2.0495371758495027e+018`.
fn scientific(number: f64) -> String {
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((digits, exponent)) => format!("{digits}e+{exponent:0>3}"),
        None => text,
    }
}

/// Parses the string as JSON of one kind; white space around it is allowed.
fn parsed<'a>(call: &Call<'_, 'a>, kind: Kind) -> Value<'a> {
    let text = call.str(0).filter(|text| call.fuel().spend_each(text.len(), 10));
    let value = text.and_then(parse_json).unwrap_or(Value::Undefined);
    if value.kind() == kind { value } else { Value::Undefined }
}
