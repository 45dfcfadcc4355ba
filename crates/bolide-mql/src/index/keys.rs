//! The keys of a document in an index, and the error for one that is taken.
//!
//! A key is the encoded values of all fields, one after another ([`crate::value::key`]); those of descending fields are inverted. Keys in order of
//! their bytes are in the order of the index.

use bolide_index::codec;
use bson::raw::{RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, cstr};
use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_64;

use super::definition::{IndexDefinition, append};
use super::extraction::{self, Tuple};
use super::pattern::{Kind, Order};
use super::{places, wildcard};
use crate::collation::Collation;
use crate::error::{Code, Error, Result};
use crate::value;

/// All keys of one document in one index together, in bytes.
const KEYS_BYTES: usize = 64 * 1024 * 1024;

const ARRAY_IN_HASHED_INDEX: i32 = 16766;

/// The keys of a document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Keys {
    /// In order, each once. Empty if the index leaves the document out.
    pub keys: SmallVec<[Vec<u8>; 1]>,
    /// An array was opened, so the document may have several keys.
    pub is_multikey: bool,
}

/// The keys of a document in an index.
///
/// Partial and sparse indexes leave documents out. A missing field counts as null, an empty array as undefined. Text and geospatial indexes have no
/// keys yet: nothing reads by them.
///
/// # Errors
/// 171 `CannotIndexParallelArrays`; 16746 for a number that is a position and a field's name; 16766 for an array in a hashed index; 158
/// `CannotBuildIndexKeys` for too many keys; 16755, 16804 and 13027 for a bad place in a geospatial index; those of a partial index's filter.
pub fn keys(definition: &IndexDefinition, document: &RawDocument) -> Result<Keys> {
    if let Some(partial) = &definition.partial
        && !partial.matches(document)?
    {
        return Ok(Keys::default());
    }
    let mut collected = Collected::default();
    let mut is_multikey = false;
    match definition.kind() {
        Kind::Ordered => {
            is_multikey = tuples(definition, document, &mut |values| {
                collected.add(encode(definition, values))
            })?;
        }
        Kind::Hashed => collected.extend(hashed_key(definition, document)?)?,
        Kind::Wildcard => {
            let collation = definition.collation.as_deref();
            let projection = definition.wildcard.as_ref();
            is_multikey = wildcard::extract(&definition.key, projection, document, &mut |path, value| {
                let mut key = Vec::new();
                value::key::encode(RawBsonRef::String(path), None, &mut key);
                value::key::encode(value, collation, &mut key);
                collected.add(key)
            })?;
        }
        Kind::Text | Kind::Vector => {}
        Kind::Sphere | Kind::Plane => places::check(definition, document)?,
    }
    Ok(Keys {
        keys: collected.finish(),
        is_multikey,
    })
}

/// The place of `bound` in an ordered index: a document with one value for each of its fields, in their order, as `min` and `max` of `find` have it.
/// `None` if it has other fields, or the index is not ordered.
///
/// # Errors
/// The document is not valid.
pub fn bound_key(definition: &IndexDefinition, bound: &RawDocument) -> Result<Option<Vec<u8>>> {
    let fields = definition.key.fields();
    let mut values: SmallVec<[Option<RawBsonRef<'_>>; 4]> = SmallVec::new();
    for element in bound {
        let (name, value) = element?;
        if fields
            .get(values.len())
            .is_none_or(|field| *field.name != *name.as_str())
        {
            return Ok(None);
        }
        values.push(Some(value));
    }
    let is_whole = definition.kind() == Kind::Ordered && values.len() == fields.len();
    Ok(is_whole.then(|| encode(definition, &values)))
}

/// Calls `entry` with the values of every entry of an ordered index. Returns whether an array was opened.
fn tuples<'d>(
    definition: &IndexDefinition,
    document: &'d RawDocument,
    entry: &mut dyn FnMut(Tuple<'_, 'd>) -> Result<()>,
) -> Result<bool> {
    let paths = definition.key.fields().iter().map(|field| &field.path);
    let seen = extraction::extract(paths, document, definition.sparse, entry)?;
    Ok(seen.multikey)
}

fn encode(definition: &IndexDefinition, values: Tuple<'_, '_>) -> Vec<u8> {
    let mut key = Vec::new();
    for (field, value) in definition.key.fields().iter().zip(values) {
        let start = key.len();
        let value = value.unwrap_or(RawBsonRef::Null);
        value::key::encode(value, definition.collation.as_deref(), &mut key);
        if field.order == Order::Descending {
            codec::invert(&mut key[start..]);
        }
    }
    key
}

/// The key in a hashed index, with a hash of fixed length in place of one value. No field may lead through an array.
fn hashed_key(definition: &IndexDefinition, document: &RawDocument) -> Result<Option<Vec<u8>>> {
    let mut key = Vec::new();
    let mut is_missing = true;
    for field in definition.key.fields() {
        let (value, rest) = extraction::follow(document, &field.path);
        if let Some(RawBsonRef::Array(_)) = value {
            let names = field.path.len().saturating_sub(rest.len());
            let names: Vec<&str> = field.path[..names].iter().map(|name| &**name).collect();
            return Err(Error::new(
                ARRAY_IN_HASHED_INDEX,
                format!(
                    "Error: hashed indexes do not currently support array values. Found array at path: {}",
                    names.join(".")
                ),
            ));
        }
        is_missing &= value.is_none();
        let value = value.unwrap_or(RawBsonRef::Null);
        let collation = definition.collation.as_deref();
        match field.order {
            Order::Special => {
                let hash = xxh3_64(&value::key::of(value, collation));
                key.extend_from_slice(&hash.to_be_bytes());
            }
            Order::Ascending => value::key::encode(value, collation, &mut key),
            Order::Descending => {
                let start = key.len();
                value::key::encode(value, collation, &mut key);
                codec::invert(&mut key[start..]);
            }
        }
    }
    Ok((!definition.sparse || !is_missing).then_some(key))
}

/// Keys as they are found.
#[derive(Default)]
struct Collected {
    keys: SmallVec<[Vec<u8>; 1]>,
    bytes: usize,
}

impl Collected {
    fn add(&mut self, key: Vec<u8>) -> Result<()> {
        // An array of equal elements gives equal keys one after another.
        if self.keys.last() == Some(&key) {
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(key.len() + size_of::<Vec<u8>>());
        if self.bytes > KEYS_BYTES {
            return Err(Error::new(
                Code::CANNOT_BUILD_INDEX_KEYS,
                format!("the keys of the document in one index have more than {KEYS_BYTES} bytes"),
            ));
        }
        self.keys.push(key);
        Ok(())
    }

    fn extend(&mut self, key: Option<Vec<u8>>) -> Result<()> {
        key.map_or(Ok(()), |key| self.add(key))
    }

    fn finish(mut self) -> SmallVec<[Vec<u8>; 1]> {
        if self.keys.len() > 1 {
            self.keys.sort_unstable();
            self.keys.dedup();
        }
        self.keys
    }
}

/// The error for a document one of whose keys another document has.
///
/// `key` is the key in question, `namespace` is `database.collection`.
///
/// Shape: `E11000 duplicate key error collection: db.c index: email_1 dup key: { email: "a@x" }`, with `keyPattern` and `keyValue`; applications
/// read the text. With a collation strings are shown as their sort keys, in hexadecimal (mongo.md §8).
pub fn duplicate_key_error(definition: &IndexDefinition, namespace: &str, document: &RawDocument, key: &[u8]) -> Error {
    let mut found: Option<SmallVec<[RawBson; 2]>> = None;
    // A document that has the key has been through here before without an error.
    let _ = tuples(definition, document, &mut |values| {
        if found.is_none() && encode(definition, values) == key {
            found = Some(values.iter().map(|value| owned(*value)).collect());
        }
        Ok(())
    });
    let mut details = RawDocumentBuf::new();
    let (mut key_value, mut shown) = (RawDocumentBuf::new(), RawDocumentBuf::new());
    let mut is_hex = RawArrayBuf::new();
    for (field, value) in definition.key.fields().iter().zip(found.unwrap_or_default()) {
        match (definition.collation.as_deref(), &value) {
            (Some(collation), RawBson::String(text)) => {
                let hex = hexadecimal(collation, text);
                append(&mut key_value, &field.name, RawBsonRef::String(&hex));
                append(
                    &mut shown,
                    &field.name,
                    RawBsonRef::String(&format!("CollationKey({hex})")),
                );
                is_hex.push(true);
            }
            _ => {
                append(&mut key_value, &field.name, value.as_raw_bson_ref());
                append(&mut shown, &field.name, value.as_raw_bson_ref());
                is_hex.push(false);
            }
        }
    }
    let mut collation_text = String::new();
    details.append(cstr!("keyPattern"), definition.key.document());
    details.append(cstr!("keyValue"), key_value);
    if let Some(collation) = &definition.collation {
        let document = collation.to_document();
        collation_text = format!(" collation: {}", value::text::render_document(document));
        details.append(cstr!("hexEncoded"), is_hex);
        details.append(cstr!("collation"), document);
    }
    let message = format!(
        "E11000 duplicate key error collection: {namespace} index: {}{collation_text} dup key: {}",
        definition.name(),
        value::text::render_document(&shown)
    );
    Error {
        details: Some(Box::new(details)),
        ..Error::new(Code::DUPLICATE_KEY, message)
    }
}

fn owned(value: Option<RawBsonRef<'_>>) -> RawBson {
    value.map_or(RawBson::Null, RawBson::from)
}

fn hexadecimal(collation: &Collation, text: &str) -> String {
    use std::fmt::Write;

    let mut hex = "0x".to_owned();
    for byte in collation.sort_key(text) {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

#[cfg(test)]
mod tests;
