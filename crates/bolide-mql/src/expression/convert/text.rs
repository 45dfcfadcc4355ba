//! Values as strings.

use std::borrow::Cow;

use bson::{RawBson, RawBsonRef};

use super::{Target, binary, unsupported};
use crate::error::{Error, Result};
use crate::expression::date::to_string::{iso, of_seconds};
use crate::expression::operand::{is_nullish, type_name};
use crate::value::number::Decimal;
use crate::value::text::render_f64;

/// The text that string operators such as `$toUpper` take a value for; that of null is empty.
///
/// # Errors
/// 16007: the type has no text.
pub(in crate::expression) fn to_text(value: Option<RawBsonRef<'_>>) -> Result<Cow<'_, str>> {
    let text = match value {
        value if is_nullish(value) => "".into(),
        Some(RawBsonRef::String(text) | RawBsonRef::Symbol(text) | RawBsonRef::JavaScriptCode(text)) => text.into(),
        Some(RawBsonRef::Timestamp(timestamp)) => {
            let date = of_seconds(i64::from(timestamp.time) * 1000)?;
            format!("{date}:{:x}", timestamp.increment).into()
        }
        Some(RawBsonRef::DateTime(date)) => iso(date.timestamp_millis())?.into(),
        value => match value.and_then(of_number) {
            Some(text) => text.into(),
            None => {
                let found = type_name(value);
                return Err(Error::new(
                    16007,
                    format!("can't convert from BSON type {found} to String"),
                ));
            }
        },
    };
    Ok(text)
}

/// A number; `None` for other types.
fn of_number(value: RawBsonRef<'_>) -> Option<String> {
    match value {
        RawBsonRef::Int32(number) => Some(number.to_string()),
        RawBsonRef::Int64(number) => Some(number.to_string()),
        RawBsonRef::Double(number) => Some(of_double(number)),
        RawBsonRef::Decimal128(number) => Some(Decimal::from(number).to_string()),
        _ => None,
    }
}

/// A double with at most 16 digits; a whole one without a point.
fn of_double(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number < 0.0 { "-Infinity" } else { "Infinity" }.to_owned();
    }
    let text = render_f64(number);
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

/// The conversion to a string.
pub(super) fn to_string(value: RawBsonRef<'_>, format: Option<&str>) -> Result<RawBson> {
    let text = match value {
        RawBsonRef::String(text) => text.to_owned(),
        RawBsonRef::Boolean(value) => value.to_string(),
        RawBsonRef::ObjectId(id) => id.to_hex(),
        RawBsonRef::DateTime(date) => iso(date.timestamp_millis())?,
        RawBsonRef::Binary(binary) => binary::to_string(binary, format)?,
        other => of_number(other).ok_or_else(|| unsupported(other, Target::String))?,
    };
    Ok(RawBson::String(text))
}
