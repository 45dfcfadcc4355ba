//! Keys of values: bytes that compare as the values do, and are equal for equal values.

use bolide_index::codec::{Encoder, rank};
use bson::{RawArray, RawBsonRef, RawDocument};

use super::collation::Collation;
use super::depth::{RECURSION_LIMIT, container_bytes};
use super::number::{Decimal, Parts};
use super::order::{DbPointerParts, binary, type_rank};

/// Appends the key of a value. With a collation, strings that it holds for equal have equal keys.
///
/// Agrees with: [`compare_with`](super::compare_with) of the same collation.
pub fn encode(value: RawBsonRef<'_>, collation: Option<&Collation>, key: &mut Vec<u8>) {
    encode_with(value, collation, &mut Encoder::new(key));
}

/// Returns the key of a value; see [`encode`].
pub fn of(value: RawBsonRef<'_>, collation: Option<&Collation>) -> Vec<u8> {
    let mut key = Vec::new();
    encode(value, collation, &mut key);
    key
}

/// Writes the key of a value to an encoder, as [`encode`] does.
pub fn encode_with(value: RawBsonRef<'_>, collation: Option<&Collation>, encoder: &mut Encoder<'_>) {
    Writer { collation, encoder }.value(value, 0);
}

struct Writer<'a, 'b> {
    collation: Option<&'a Collation>,
    encoder: &'a mut Encoder<'b>,
}

impl Writer<'_, '_> {
    fn value(&mut self, value: RawBsonRef<'_>, depth: usize) {
        use RawBsonRef as V;
        let encoder = &mut *self.encoder;
        match value {
            V::Int32(number) => encoder.i64(number.into()),
            V::Int64(number) => encoder.i64(number),
            V::Double(number) => encoder.f64(number),
            V::Decimal128(number) => match Decimal::from(number).parts() {
                Parts::NaN => encoder.nan(),
                Parts::Infinity { negative } => encoder.infinity(negative),
                Parts::Finite(number) => encoder.decimal(number),
            },
            V::String(text) | V::Symbol(text) => match self.collation {
                Some(collation) => encoder.sort_key(&collation.sort_key(text)),
                None => encoder.string(text),
            },
            V::Document(document) => self.document(document, depth),
            V::Array(array) => self.array(array, depth),
            V::Binary(data) => {
                let (length, subtype, bytes) = binary(data);
                encoder.binary(length, subtype, bytes);
            }
            V::ObjectId(id) => encoder.object_id(id.bytes()),
            V::Boolean(value) => encoder.boolean(value),
            V::DateTime(date) => encoder.date(date.timestamp_millis()),
            V::Timestamp(timestamp) => encoder.timestamp(timestamp.time, timestamp.increment),
            V::RegularExpression(regex) => encoder.regex(regex.pattern.as_str(), regex.options.as_str()),
            V::DbPointer(pointer) => {
                let parts = DbPointerParts::of(pointer);
                encoder.db_pointer(&parts.namespace, parts.id);
            }
            V::JavaScriptCode(code) => encoder.code(code),
            V::JavaScriptCodeWithScope(code) => {
                encoder.code_with_scope(code.code);
                self.value(V::Document(code.scope), depth + 1);
            }
            V::MinKey | V::Undefined | V::Null | V::MaxKey => encoder.rank_only(type_rank(value)),
        }
    }

    fn document(&mut self, document: &RawDocument, depth: usize) {
        self.encoder.begin_object();
        if depth > RECURSION_LIMIT {
            self.bytes_in_place(RawBsonRef::Document(document));
        } else {
            for (name, value) in document.iter().map_while(Result::ok) {
                self.encoder.field(type_rank(value), name.as_str());
                self.value(value, depth + 1);
            }
        }
        self.encoder.end();
    }

    fn array(&mut self, array: &RawArray, depth: usize) {
        self.encoder.begin_array();
        if depth > RECURSION_LIMIT {
            self.bytes_in_place(RawBsonRef::Array(array));
        } else {
            for value in array.into_iter().map_while(Result::ok) {
                self.value(value, depth + 1);
            }
        }
        self.encoder.end();
    }

    /// What stands for the parts of a container that is nested too deeply.
    fn bytes_in_place(&mut self, value: RawBsonRef<'_>) {
        self.encoder.rank_only(rank::MIN_KEY);
        self.encoder.sort_key(container_bytes(value));
    }
}
