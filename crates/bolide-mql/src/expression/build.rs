//! Documents and arrays that expressions make, with a limit on their size.

use bson::raw::{CStr, CString};
use bson::{RawArray, RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};

use super::scope::Scope;
use crate::error::{Error, Result};

/// Makes an array; each element is a step of work.
pub(super) struct ArrayBuilder<'s> {
    scope: &'s Scope<'s>,
    array: RawArrayBuf,
}

impl<'s> ArrayBuilder<'s> {
    pub(super) fn new(scope: &'s Scope<'s>) -> ArrayBuilder<'s> {
        ArrayBuilder {
            scope,
            array: RawArrayBuf::new(),
        }
    }

    pub(super) fn push(&mut self, value: RawBsonRef<'_>) -> Result<()> {
        let bytes = size_hint(value);
        self.scope.step(steps(bytes))?;
        self.scope.reserve(self.array.as_bytes().len() + bytes)?;
        self.array.push(value);
        Ok(())
    }

    pub(super) fn finish(self) -> RawBson {
        RawBson::Array(self.array)
    }
}

/// Makes a document.
pub(super) struct DocumentBuilder<'s> {
    scope: &'s Scope<'s>,
    document: RawDocumentBuf,
}

impl<'s> DocumentBuilder<'s> {
    pub(super) fn new(scope: &'s Scope<'s>) -> DocumentBuilder<'s> {
        DocumentBuilder {
            scope,
            document: RawDocumentBuf::new(),
        }
    }

    pub(super) fn append(&mut self, key: &CStr, value: RawBsonRef<'_>) -> Result<()> {
        let bytes = key.len() + size_hint(value);
        self.scope.step(steps(bytes))?;
        self.scope.reserve(self.document.as_bytes().len() + bytes)?;
        self.document.append(key, value);
        Ok(())
    }

    pub(super) fn finish(self) -> RawDocumentBuf {
        self.document
    }
}

/// Bytes that are copied in one step of work.
const STEP_BYTES: usize = 1024;

/// The steps of copying so many bytes.
pub(super) fn steps(bytes: usize) -> usize {
    1 + bytes / STEP_BYTES
}

/// About the bytes that a value adds; an upper limit for those that have no limit themselves.
fn size_hint(value: RawBsonRef<'_>) -> usize {
    match value {
        RawBsonRef::String(text) | RawBsonRef::Symbol(text) | RawBsonRef::JavaScriptCode(text) => text.len(),
        RawBsonRef::Document(document) => document.as_bytes().len(),
        RawBsonRef::Array(array) => array.as_bytes().len(),
        RawBsonRef::Binary(binary) => binary.bytes.len(),
        _ => 16,
    }
}

/// Returns a field name as BSON stores it.
///
/// # Errors
/// The given code: it contains a zero byte.
pub(super) fn key(name: &str, code: i32) -> Result<CString> {
    CString::try_from(name).map_err(|_| Error::new(code, "Key field cannot contain an embedded null byte"))
}

/// The elements of an array.
///
/// # Errors
/// `InvalidBSON`: the bytes are damaged; documents were validated when they came in.
pub(super) fn elements(array: &RawArray) -> impl Iterator<Item = Result<RawBsonRef<'_>>> {
    array.into_iter().map(|element| element.map_err(Error::malformed))
}

/// The fields of a document; errors as those of [`elements`].
pub(super) fn fields(document: &RawDocument) -> impl Iterator<Item = Result<(&CStr, RawBsonRef<'_>)>> {
    document.iter().map(|field| field.map_err(Error::malformed))
}

/// The first field of this name; errors as those of [`elements`].
pub(super) fn field<'d>(document: &'d RawDocument, name: &str) -> Result<Option<RawBsonRef<'d>>> {
    document.get(name).map_err(Error::malformed)
}
