//! Expiry by indexes: the rules that they make, and what a document has for them.
//!
//! | rule | index | a document expires |
//! | --- | --- | --- |
//! | core | `{_ts: ±1}` | `expireAfterSeconds` after its last write, or after its own `ttl` (TTL-083…099, TTL-281, TTL-285) |
//! | date | any other single field | `expireAfterSeconds` after the earliest date in the field (mongo.md §18.1) |
//!
//! Whether a document has expired is decided by [`bolide_model::ttl`].

use std::borrow::Cow;

use bolide_model::UnixMillis;
use bolide_model::ttl::{Own, Policy};
use bson::raw::{RawBsonRef, RawDocument, RawDocumentBuf};

use super::definition::IndexDefinition;
use super::extraction;
use super::pattern::{KeyPattern, Kind, cannot};
use crate::error::{Error, Result};
use crate::value;
use crate::value::number::Number;

/// The system property that the core rule counts from; clients never see it (TTL-087, TTL-287).
pub const TS: &str = "_ts";

/// The property with a document's own value (TTL-089).
const TTL: &str = "ttl";

/// Which fields may have a TTL index, and which values count in them (mongo.md §18.4 no. 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TtlMode {
    /// MongoDB's rules for dates on any field, any number of indexes, and the core rule beside them.
    #[default]
    Mongodb,
    /// One TTL index for a collection; in a field other than `_ts`, numbers count as milliseconds since 1970.
    CosmosCustomPath,
    /// Only `_ts`.
    CosmosTsOnly,
}

/// A rule of expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TtlRule {
    /// The container's default, on the last write.
    Core(Policy),
    /// This many seconds after the earliest date.
    Date(u32),
}

impl TtlRule {
    /// The rule of an index with `expireAfterSeconds`.
    pub(super) fn of(definition: &IndexDefinition) -> Option<TtlRule> {
        let seconds = definition.expire_after_seconds?;
        let seconds = u32::try_from(seconds).ok();
        if is_core(&definition.key) {
            Some(TtlRule::Core(seconds.map_or(Policy::OwnOnly, Policy::After)))
        } else {
            seconds.map(TtlRule::Date)
        }
    }
}

/// Whether an index with this key makes the core rule.
pub fn is_core(key: &KeyPattern) -> bool {
    key.kind() == Kind::Ordered && key.is_single(TS)
}

/// Checks `expireAfterSeconds` of a specification and returns it as it is stored.
///
/// # Errors
/// 67 `CannotCreateIndex` for a bad value, a compound key or a special kind; 2 `BadValue` for a field that the mode does not allow.
pub fn check(value: RawBsonRef<'_>, key: &KeyPattern, specification: &RawDocument, mode: TtlMode) -> Result<i32> {
    let text = || value::text::render_document(specification);
    let in_specification = |problem: String| cannot(format!(". Index spec: {} :: caused by :: {problem}", text()));
    if is_core(key) {
        return core_seconds(value).map_err(in_specification);
    }
    let seconds = date_seconds(value).map_err(in_specification)?;
    if key.kind() != Kind::Ordered {
        return Err(cannot(not_a_ttl_kind(key.kind())));
    }
    if key.fields().len() != 1 {
        return Err(cannot(format!("{COMPOUND}. Index spec: {}", text())));
    }
    check_field(key, mode)?;
    Ok(seconds)
}

/// The text about compound keys.
pub const COMPOUND: &str = "TTL indexes are single-field indexes, compound indexes do not support TTL";

/// The text about a core rule for some documents only.
pub const PARTIAL_CORE: &str = "a TTL index on '_ts' cannot be partial";

/// The text about special kinds.
pub fn not_a_ttl_kind(kind: Kind) -> String {
    format!("Index type '{}' cannot be a TTL index", kind.name())
}

/// Checks that the mode allows a TTL index on this field.
///
/// # Errors
/// 2 `BadValue`.
pub fn check_field(key: &KeyPattern, mode: TtlMode) -> Result<()> {
    if mode == TtlMode::CosmosTsOnly && !is_core(key) {
        return Err(Error::bad_value(
            "The 'expireAfterSeconds' option is supported on '_ts' field only.",
        ));
    }
    Ok(())
}

/// The value for the core rule: a whole int32, int64 or double that is −1 or at least 1 (TTL-281). The error is a text.
pub fn core_seconds(value: RawBsonRef<'_>) -> Result<i32, String> {
    let whole = match value {
        RawBsonRef::Int32(_) | RawBsonRef::Int64(_) | RawBsonRef::Double(_) => value::number::whole(value),
        _ => None,
    };
    whole
        .and_then(|seconds| i32::try_from(seconds).ok())
        .filter(|seconds| *seconds == -1 || *seconds >= 1)
        .ok_or_else(|| {
            "TTL index 'expireAfterSeconds' option on '_ts' must be -1 or a whole number from 1 to 2147483647"
                .to_owned()
        })
}

/// The value for a date rule: any number whose whole part is 0 to 2147483647. The error is a text.
fn date_seconds(value: RawBsonRef<'_>) -> Result<i32, String> {
    let Some(number) = Number::of(value) else {
        return Err(format!(
            "TTL index 'expireAfterSeconds' option must be numeric, but received a type of '{}'",
            value::types::name(value)
        ));
    };
    if number.is_nan() {
        return Err("TTL index 'expireAfterSeconds' option must not be NaN".to_owned());
    }
    let seconds = number.truncated().and_then(|seconds| i32::try_from(seconds).ok());
    match seconds {
        None => Err("TTL index 'expireAfterSeconds' must be within the range of a 32-bit integer".to_owned()),
        Some(..0) => Err(NEGATIVE.to_owned()),
        Some(seconds) => Ok(seconds),
    }
}

/// The text about negative numbers.
pub const NEGATIVE: &str = "TTL index 'expireAfterSeconds' option cannot be less than 0";

/// The earliest date that a document has for a date rule, for a [`Deadline`](bolide_model::ttl::Deadline).
///
/// `None` if the index makes no date rule, if the field has no date, or if the filter of a partial index does not match. Dates in an array count,
/// those in an inner array do not; a dotted field is followed as by every index.
///
/// Units: milliseconds since 1970. With [`TtlMode::CosmosCustomPath`] int32, int64 and finite doubles count as well, rounded down.
///
/// # Errors
/// Those of the filter, and of a field that no index can have (171, 16746).
pub fn date_rule(definition: &IndexDefinition, document: &RawDocument, mode: TtlMode) -> Result<Option<UnixMillis>> {
    let Some(TtlRule::Date(_)) = definition.ttl_rule() else {
        return Ok(None);
    };
    if let Some(partial) = &definition.partial
        && !partial.matches(document)?
    {
        return Ok(None);
    }
    let paths = definition.key.fields().iter().map(|field| &field.path);
    let mut earliest: Option<i64> = None;
    extraction::extract(paths, document, false, &mut |values| {
        let instants = values.iter().filter_map(|value| instant((*value)?, mode));
        earliest = instants.chain(earliest).min();
        Ok(())
    })?;
    Ok(earliest.map(UnixMillis))
}

fn instant(value: RawBsonRef<'_>, mode: TtlMode) -> Option<i64> {
    match value {
        RawBsonRef::DateTime(date) => Some(date.timestamp_millis()),
        _ if mode != TtlMode::CosmosCustomPath => None,
        RawBsonRef::Int32(millis) => Some(millis.into()),
        RawBsonRef::Int64(millis) => Some(millis),
        // The cast saturates, as expiry does.
        RawBsonRef::Double(millis) if millis.is_finite() => Some(millis.floor() as i64),
        _ => None,
    }
}

/// A document's own `ttl` for the core rule (TTL-089…099, TTL-285).
///
/// Whole int32, int64 and double of −1 or 1 to 2147483647 count, at the root only; anything else is data.
pub fn own_ttl(document: &RawDocument) -> Own {
    let number = match document.get(TTL).ok().flatten() {
        Some(RawBsonRef::Int32(seconds)) => f64::from(seconds),
        // Numbers that do not fit a double exactly are out of range anyway.
        Some(RawBsonRef::Int64(seconds)) => seconds as f64,
        Some(RawBsonRef::Double(seconds)) => seconds,
        _ => return Own::Absent,
    };
    Own::from_number(number).unwrap_or_default()
}

/// The document without root fields named `_ts`, which belong to the server (TTL-287).
pub fn strip_ts(document: &RawDocument) -> Cow<'_, RawDocument> {
    if document.get(TS).ok().flatten().is_none() {
        return Cow::Borrowed(document);
    }
    let mut stripped = RawDocumentBuf::new();
    for (name, value) in document.iter().flatten() {
        if name.as_str() != TS {
            stripped.append(name, value);
        }
    }
    Cow::Owned(stripped)
}

#[cfg(test)]
mod tests;
