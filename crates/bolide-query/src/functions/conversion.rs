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
    let mut out = Vec::new();
    match call.arg(0) {
        Value::String(text) => return Value::String(text.clone()),
        Value::Number(number) => number.write_plain(&mut out),
        // Stored text may have blanks in it; the result is compact.
        Value::Json(text) => write_json(&parse_json(text).unwrap_or(Value::Undefined), &mut out),
        other => write_json(other, &mut out),
    }
    Value::string(String::from_utf8_lossy(&out))
}

/// The string as JSON of one kind; blanks around it are allowed.
fn parsed<'a>(call: &Call<'_, 'a>, kind: Kind) -> Value<'a> {
    let value = call.str(0).and_then(parse_json).unwrap_or(Value::Undefined);
    if value.kind() == kind { value } else { Value::Undefined }
}
