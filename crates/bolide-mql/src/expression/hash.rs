//! `$toHashedIndexKey`.

use bson::spec::ElementType;
use bson::{RawBson, RawBsonRef, RawDocument};
use md5::{Digest as _, Md5};

use super::call::Call;
use super::operators::{Arguments, Operator};
use crate::error::Result;
use crate::value::number::Number;

pub(super) const OPERATORS: &[Operator] = &[Operator::eager(
    "$toHashedIndexKey",
    Arguments::Exactly(1),
    to_hashed_index_key,
)];

/// What the hashes of MongoDB's hashed indexes begin with.
const SEED: [u8; 4] = 0_i32.to_le_bytes();
/// The type of what ends a document.
const END: i32 = 0;

/// The value that a hashed index of MongoDB has: the first eight bytes of an MD5. A missing value counts as null.
fn to_hashed_index_key(call: &Call<'_>) -> Result<Option<RawBson>> {
    let mut md5 = Md5::new();
    md5.update(SEED);
    add(call.get(0).unwrap_or(RawBsonRef::Null), None, &mut md5)?;
    let digest = md5.finalize();
    let first = digest.first_chunk().map_or(0, |first| i64::from_le_bytes(*first));
    Ok(Some(RawBson::Int64(first)))
}

/// Adds the kind of a value, its name in a document, and the value: numbers of all types alike, as whole numbers.
fn add(value: RawBsonRef<'_>, name: Option<&str>, md5: &mut Md5) -> Result<()> {
    md5.update(kind(value.element_type()).to_le_bytes());
    if let Some(name) = name {
        md5.update(name);
        md5.update([0]);
    }
    if let Some(number) = Number::of(value) {
        md5.update(whole(number).to_le_bytes());
        return Ok(());
    }
    match value {
        RawBsonRef::Document(document) => add_document(document, md5),
        RawBsonRef::Array(array) => {
            for (index, element) in array.into_iter().enumerate() {
                add(element?, Some(&index.to_string()), md5)?;
            }
            md5.update(END.to_le_bytes());
            Ok(())
        }
        RawBsonRef::JavaScriptCodeWithScope(code) => {
            md5.update(code.code);
            md5.update([0]);
            add_document(code.scope, md5)
        }
        other => {
            let mut document = bson::RawDocumentBuf::new();
            document.append(bson::raw::cstr!(""), other);
            // Before it the length, the type and the empty name; behind it the end of the document.
            let bytes = document.as_bytes();
            md5.update(&bytes[6..bytes.len() - 1]);
            Ok(())
        }
    }
}

fn add_document(document: &RawDocument, md5: &mut Md5) -> Result<()> {
    for field in document {
        let (name, value) = field?;
        add(value, Some(name.as_str()), md5)?;
    }
    md5.update(END.to_le_bytes());
    Ok(())
}

/// A double that is too large counts as the smallest number, not as the largest one.
fn whole(number: Number) -> i64 {
    match number {
        Number::Double(value) if value > 0.0 && number.truncated().is_none() => i64::MIN,
        _ => number.clamped(),
    }
}

/// The number that types have which compare with each other.
fn kind(element: ElementType) -> i32 {
    match element {
        ElementType::MinKey => -1,
        ElementType::Undefined => 0,
        ElementType::Null => 5,
        ElementType::Double | ElementType::Int32 | ElementType::Int64 | ElementType::Decimal128 => 10,
        ElementType::String | ElementType::Symbol => 15,
        ElementType::EmbeddedDocument => 20,
        ElementType::Array => 25,
        ElementType::Binary => 30,
        ElementType::ObjectId => 35,
        ElementType::Boolean => 40,
        ElementType::DateTime => 45,
        ElementType::Timestamp => 47,
        ElementType::RegularExpression => 50,
        ElementType::DbPointer => 55,
        ElementType::JavaScriptCode => 60,
        ElementType::JavaScriptCodeWithScope => 65,
        ElementType::MaxKey => 127,
    }
}
