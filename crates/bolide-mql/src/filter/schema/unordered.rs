//! Equality of values where the order of fields does not count, as in JSON.

use std::collections::BTreeSet;

use bson::raw::CString;
use bson::{RawArrayBuf, RawBson, RawBsonRef, RawDocumentBuf};

/// Returns bytes that are equal for values that differ at most in the order of fields.
pub(super) fn key(value: RawBsonRef<'_>) -> Vec<u8> {
    crate::value::key::of(sorted(value).as_raw_bson_ref(), None)
}

/// Tells whether no two values are equal.
pub(super) fn all_differ<'v>(values: impl Iterator<Item = RawBsonRef<'v>>) -> bool {
    let mut seen = BTreeSet::new();
    values.into_iter().all(|value| seen.insert(key(value)))
}

/// Returns the value with all fields in the order of names. Its depth is bounded as documents are.
fn sorted(value: RawBsonRef<'_>) -> RawBson {
    match value {
        RawBsonRef::Document(document) => {
            let mut fields: Vec<_> = document.iter().map_while(Result::ok).collect();
            fields.sort_by_key(|(name, _)| name.as_str());
            let fields = fields
                .into_iter()
                .map(|(name, value)| (CString::from(name), sorted(value)));
            RawBson::Document(fields.collect::<RawDocumentBuf>())
        }
        RawBsonRef::Array(array) => {
            let elements = array.into_iter().map_while(Result::ok).map(sorted);
            RawBson::Array(elements.collect::<RawArrayBuf>())
        }
        value => value.into(),
    }
}
