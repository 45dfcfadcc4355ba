//! The order of all BSON values (`mongo.md §9`): first by type, then by value.

use std::cmp::Ordering;

use bolide_index::codec::rank;
use bson::spec::BinarySubtype;
use bson::{RawArray, RawBinaryRef, RawBsonRef, RawDocument, RawDocumentBuf, raw::RawDbPointerRef};

use super::collation::Collation;
use super::depth::{RECURSION_LIMIT, container_bytes};
use super::number::Number;

/// Returns the place of the value's type in the order of types. Types that compare with each other have one rank: all numbers, strings and symbols.
pub fn type_rank(value: RawBsonRef<'_>) -> u8 {
    match value {
        RawBsonRef::MinKey => rank::MIN_KEY,
        RawBsonRef::Undefined => rank::UNDEFINED,
        RawBsonRef::Null => rank::NULL,
        RawBsonRef::Int32(_) | RawBsonRef::Int64(_) | RawBsonRef::Double(_) | RawBsonRef::Decimal128(_) => rank::NUMBER,
        RawBsonRef::String(_) | RawBsonRef::Symbol(_) => rank::STRING,
        RawBsonRef::Document(_) => rank::OBJECT,
        RawBsonRef::Array(_) => rank::ARRAY,
        RawBsonRef::Binary(_) => rank::BINARY,
        RawBsonRef::ObjectId(_) => rank::OBJECT_ID,
        RawBsonRef::Boolean(_) => rank::BOOLEAN,
        RawBsonRef::DateTime(_) => rank::DATE,
        RawBsonRef::Timestamp(_) => rank::TIMESTAMP,
        RawBsonRef::RegularExpression(_) => rank::REGEX,
        RawBsonRef::DbPointer(_) => rank::DB_POINTER,
        RawBsonRef::JavaScriptCode(_) => rank::CODE,
        RawBsonRef::JavaScriptCodeWithScope(_) => rank::CODE_WITH_SCOPE,
        RawBsonRef::MaxKey => rank::MAX_KEY,
    }
}

/// Compares two values; strings by their bytes.
pub fn compare(a: RawBsonRef<'_>, b: RawBsonRef<'_>) -> Ordering {
    compare_with(a, b, None)
}

/// Compares two values; strings by the collation, if there is one, also inside arrays and documents.
pub fn compare_with(a: RawBsonRef<'_>, b: RawBsonRef<'_>, collation: Option<&Collation>) -> Ordering {
    Comparison { collation }.values(a, b, 0)
}

/// Tells whether two values are equal. Numbers are equal by value: 1, 1.0 and the decimal 1.00.
pub fn equal(a: RawBsonRef<'_>, b: RawBsonRef<'_>) -> bool {
    equal_with(a, b, None)
}

/// Tells whether two values are equal; strings by the collation, if there is one.
pub fn equal_with(a: RawBsonRef<'_>, b: RawBsonRef<'_>, collation: Option<&Collation>) -> bool {
    compare_with(a, b, collation) == Ordering::Equal
}

/// Compares two documents as [`compare`] does: field by field, each by type, name and value.
pub fn compare_documents(a: &RawDocument, b: &RawDocument, collation: Option<&Collation>) -> Ordering {
    Comparison { collation }.documents(a, b, 0)
}

struct Comparison<'a> {
    collation: Option<&'a Collation>,
}

impl Comparison<'_> {
    fn values(&self, a: RawBsonRef<'_>, b: RawBsonRef<'_>, depth: usize) -> Ordering {
        use RawBsonRef as V;
        match (a, b) {
            (V::String(a) | V::Symbol(a), V::String(b) | V::Symbol(b)) => self.texts(a, b),
            (V::Int32(a), V::Int32(b)) => a.cmp(&b),
            (V::ObjectId(a), V::ObjectId(b)) => a.cmp(&b),
            (V::DateTime(a), V::DateTime(b)) => a.cmp(&b),
            (V::Boolean(a), V::Boolean(b)) => a.cmp(&b),
            (V::Document(_), V::Document(_)) | (V::Array(_), V::Array(_)) if depth > RECURSION_LIMIT => {
                container_bytes(a).cmp(container_bytes(b))
            }
            (V::Document(a), V::Document(b)) => self.documents(a, b, depth),
            (V::Array(a), V::Array(b)) => self.arrays(a, b, depth),
            (V::Timestamp(a), V::Timestamp(b)) => (a.time, a.increment).cmp(&(b.time, b.increment)),
            (V::Binary(a), V::Binary(b)) => binary(a).cmp(&binary(b)),
            (V::RegularExpression(a), V::RegularExpression(b)) => {
                let patterns = a.pattern.as_str().cmp(b.pattern.as_str());
                patterns.then_with(|| a.options.as_str().cmp(b.options.as_str()))
            }
            (V::JavaScriptCode(a), V::JavaScriptCode(b)) => a.cmp(b),
            (V::JavaScriptCodeWithScope(a), V::JavaScriptCodeWithScope(b)) => a
                .code
                .cmp(b.code)
                .then_with(|| self.values(V::Document(a.scope), V::Document(b.scope), depth + 1)),
            (V::DbPointer(a), V::DbPointer(b)) => {
                let (a, b) = (DbPointerParts::of(a), DbPointerParts::of(b));
                a.namespace.len().cmp(&b.namespace.len()).then_with(|| a.cmp(&b))
            }
            (a, b) => match (Number::of(a), Number::of(b)) {
                (Some(a), Some(b)) => a.compare(b),
                _ => type_rank(a).cmp(&type_rank(b)),
            },
        }
    }

    fn texts(&self, a: &str, b: &str) -> Ordering {
        match self.collation {
            Some(collation) => collation.compare(a, b),
            None => a.cmp(b),
        }
    }

    fn documents(&self, a: &RawDocument, b: &RawDocument, depth: usize) -> Ordering {
        let (mut a, mut b) = (a.iter(), b.iter());
        loop {
            let (first, second) = (a.next().and_then(Result::ok), b.next().and_then(Result::ok));
            let ((a_name, a), (b_name, b)) = match (first, second) {
                (Some(first), Some(second)) => (first, second),
                (first, second) => return first.is_some().cmp(&second.is_some()),
            };
            let order = type_rank(a)
                .cmp(&type_rank(b))
                .then_with(|| a_name.as_str().cmp(b_name.as_str()))
                .then_with(|| self.values(a, b, depth + 1));
            if order != Ordering::Equal {
                return order;
            }
        }
    }

    fn arrays(&self, a: &RawArray, b: &RawArray, depth: usize) -> Ordering {
        let (mut a, mut b) = (a.into_iter(), b.into_iter());
        loop {
            let order = match (a.next().and_then(Result::ok), b.next().and_then(Result::ok)) {
                (Some(a), Some(b)) => self.values(a, b, depth + 1),
                (a, b) => return a.is_some().cmp(&b.is_some()),
            };
            if order != Ordering::Equal {
                return order;
            }
        }
    }
}

/// Binary data compares by its stored length, then its subtype, then its bytes. The old subtype stores its length once more inside.
pub(super) fn binary(value: RawBinaryRef<'_>) -> (usize, u8, &[u8]) {
    let inner_length = if value.subtype == BinarySubtype::BinaryOld {
        4
    } else {
        0
    };
    (value.bytes.len() + inner_length, value.subtype.into(), value.bytes)
}

/// A DBPointer taken apart. The type gives no access to its parts, so they are read from its BSON bytes.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DbPointerParts {
    pub(super) namespace: Vec<u8>,
    pub(super) id: [u8; 12],
}

impl DbPointerParts {
    pub(super) fn of(pointer: RawDbPointerRef<'_>) -> DbPointerParts {
        /// Length of the document, type, empty name, length of the namespace.
        const BEFORE_NAMESPACE: usize = 4 + 1 + 1 + 4;
        /// NUL of the namespace, object id, end of the document.
        const AFTER_NAMESPACE: usize = 1 + 12 + 1;
        let mut document = RawDocumentBuf::new();
        document.append(bson::raw::cstr!(""), RawBsonRef::DbPointer(pointer));
        let bytes = document.as_bytes();
        let end = bytes.len().saturating_sub(AFTER_NAMESPACE);
        let id = bytes.get(end + 1..end + 13).and_then(|id| id.try_into().ok());
        DbPointerParts {
            namespace: bytes.get(BEFORE_NAMESPACE..end).unwrap_or_default().to_vec(),
            id: id.unwrap_or_default(),
        }
    }
}
