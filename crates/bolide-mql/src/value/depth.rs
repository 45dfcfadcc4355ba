//! The bound of recursion over values.

use bson::RawBsonRef;

/// Values nested deeper are compared by their bytes. Documents are validated to fewer levels; only values made by expressions could have more.
pub(super) const RECURSION_LIMIT: usize = 250;

/// Returns the bytes of an array or document.
pub(super) fn container_bytes(value: RawBsonRef<'_>) -> &[u8] {
    match value {
        RawBsonRef::Array(array) => array.as_bytes(),
        RawBsonRef::Document(document) => document.as_bytes(),
        _ => &[],
    }
}
