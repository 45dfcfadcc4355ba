//! What an update changed, as the history keeps it for change streams (mongo.md §7).
//!
//! ```text
//!   {updatedFields: {path: value, …}, removedFields: [path, …], truncatedArrays: [{field: path, newSize: i32}, …],
//!    disambiguatedPaths?: {path: [field | index, …], …}}
//! ```

use bolide_mql::bson::raw::CString;
use bolide_mql::bson::{RawArrayBuf, RawDocument, RawDocumentBuf, rawdoc};
use bolide_mql::update::{ChangedPath, FieldChanges, PathPart};
use bytes::Bytes;

/// Returns the description of an update, as BSON. One without changes is an empty document.
pub(super) fn encode(changes: &FieldChanges) -> Bytes {
    if changes.is_empty() {
        return RawDocumentBuf::new().into_bytes().into();
    }
    let (mut updated, mut removed) = (RawDocumentBuf::new(), RawArrayBuf::new());
    let (mut truncated, mut ambiguous) = (RawArrayBuf::new(), RawDocumentBuf::new());
    for (path, value) in &changes.updated {
        append(&mut updated, path, value.as_raw_bson_ref());
        disambiguate(&mut ambiguous, path);
    }
    for path in &changes.removed {
        removed.push(path.to_string());
        disambiguate(&mut ambiguous, path);
    }
    for (path, size) in &changes.truncated {
        let size = i32::try_from(*size).unwrap_or(i32::MAX);
        truncated.push(rawdoc! { "field": path.to_string(), "newSize": size });
        disambiguate(&mut ambiguous, path);
    }
    let mut description = rawdoc! {
        "updatedFields": updated,
        "removedFields": removed,
        "truncatedArrays": truncated,
    };
    if !ambiguous.is_empty() {
        description.append(bolide_mql::bson::raw::cstr!("disambiguatedPaths"), ambiguous);
    }
    description.into_bytes().into()
}

/// Returns which fields of a document are new or have another value, and which are gone.
pub(super) fn of_fields(old: &RawDocument, new: &RawDocument) -> FieldChanges {
    let path = |name: &str| ChangedPath(vec![PathPart::Field(name.to_owned())]);
    let mut changes = FieldChanges::default();
    for (name, value) in new.iter().flatten() {
        if old.get(name).ok().flatten() != Some(value) {
            changes.updated.push((path(name.as_str()), value.into()));
        }
    }
    for (name, _) in old.iter().flatten() {
        if new.get(name).ok().flatten().is_none() {
            changes.removed.push(path(name.as_str()));
        }
    }
    changes
}

/// Names the parts of a path whose text can be read in two ways: a field has a dot in its name, or looks like an index.
fn disambiguate(paths: &mut RawDocumentBuf, path: &ChangedPath) {
    let looks_like_index = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    let is_ambiguous = |part: &PathPart| match part {
        PathPart::Field(name) => name.contains('.') || looks_like_index(name),
        PathPart::Index(_) => false,
    };
    if !path.0.iter().any(is_ambiguous) {
        return;
    }
    let mut parts = RawArrayBuf::new();
    for part in &path.0 {
        match part {
            PathPart::Field(name) => parts.push(name.as_str()),
            PathPart::Index(index) => parts.push(i32::try_from(*index).unwrap_or(i32::MAX)),
        }
    }
    append(paths, path, parts);
}

fn append(document: &mut RawDocumentBuf, path: &ChangedPath, value: impl Into<bolide_mql::bson::RawBson>) {
    // Names of fields in BSON have no NUL.
    if let Ok(name) = CString::try_from(path.to_string()) {
        document.append(name, value.into());
    }
}
