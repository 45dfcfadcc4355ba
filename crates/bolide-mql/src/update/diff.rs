//! The difference of two documents, for updates that do not say what they change.

use std::collections::HashMap;

use bson::{RawArray, RawBson, RawBsonRef, RawDocument};

use super::delta::{ChangedPath, Delta, FieldChanges, MAX_CHANGES, PathPart, same_bytes};
use super::operator::elements_of;
use crate::error::Result;

/// Returns the changes that make the new document of the old one.
///
/// They are a replacement if fields were reordered, if there are very many, or if their description would not be shorter than the new document.
pub fn diff(old: &RawDocument, new: &RawDocument) -> Result<Delta> {
    let Some(changes) = diff_documents(old, new, &ChangedPath::default())? else {
        return Ok(Delta::Replacement);
    };
    if size(&changes) < new.as_bytes().len() {
        return Ok(Delta::Fields(changes));
    }
    Ok(Delta::Replacement)
}

/// Returns the changes of a document; `None` if its order of fields cannot be described by them, or if there are too many.
fn diff_documents(old: &RawDocument, new: &RawDocument, path: &ChangedPath) -> Result<Option<FieldChanges>> {
    let mut old_fields = HashMap::new();
    for (number, field) in old.into_iter().enumerate() {
        let (name, value) = field?;
        old_fields.insert(name.as_str(), (number, value));
    }
    let mut changes = FieldChanges::default();
    // Numbers of fields that stay must rise, and new fields must follow them all.
    let mut next = 0;
    for field in new {
        let (name, new_value) = field?;
        let path = || path.with(PathPart::Field(name.as_str().to_owned()));
        match old_fields.remove(name.as_str()) {
            Some((number, _)) if number < next => return Ok(None),
            Some((number, old_value)) => {
                next = number + 1;
                diff_values(old_value, new_value, path, &mut changes)?;
            }
            None => {
                next = usize::MAX;
                changes.updated.push((path(), new_value.into()));
            }
        }
        if changes.len() > MAX_CHANGES {
            return Ok(None);
        }
    }
    let mut removed: Vec<_> = old_fields.into_iter().collect();
    removed.sort_unstable_by_key(|(_, (number, _))| *number);
    for (name, _) in removed {
        changes.removed.push(path.with(PathPart::Field(name.to_owned())));
    }
    Ok((changes.len() <= MAX_CHANGES).then_some(changes))
}

fn diff_values(
    old: RawBsonRef<'_>,
    new: RawBsonRef<'_>,
    path: impl FnOnce() -> ChangedPath,
    changes: &mut FieldChanges,
) -> Result<()> {
    if same_bytes(old, new) {
        return Ok(());
    }
    let path = path();
    let inner = match (old, new) {
        (RawBsonRef::Document(old), RawBsonRef::Document(new)) => diff_documents(old, new, &path)?,
        (RawBsonRef::Array(old), RawBsonRef::Array(new)) => diff_arrays(old, new, &path)?,
        _ => None,
    };
    match inner {
        Some(mut inner) => {
            changes.updated.append(&mut inner.updated);
            changes.removed.append(&mut inner.removed);
            changes.truncated.append(&mut inner.truncated);
        }
        None => changes.updated.push((path, new.into())),
    }
    Ok(())
}

fn diff_arrays(old: &RawArray, new: &RawArray, path: &ChangedPath) -> Result<Option<FieldChanges>> {
    let old = elements_of(old)?;
    let new = elements_of(new)?;
    let mut changes = FieldChanges::default();
    for (index, new) in new.iter().enumerate() {
        let path = || path.with(PathPart::Index(index));
        match old.get(index) {
            Some(old) => diff_values(*old, *new, path, &mut changes)?,
            None => changes.updated.push((path(), (*new).into())),
        }
        if changes.len() > MAX_CHANGES {
            return Ok(None);
        }
    }
    if new.len() < old.len() {
        changes.truncated.push((path.clone(), new.len()));
    }
    Ok(Some(changes))
}

/// Returns about how many bytes the description of the changes has.
fn size(changes: &FieldChanges) -> usize {
    let path_size = |path: &ChangedPath| path.0.len() * 8;
    let updated = changes.updated.iter().map(|(path, value)| {
        let value = match value {
            RawBson::String(text) => text.len(),
            RawBson::Document(document) => document.as_bytes().len(),
            RawBson::Array(array) => array.as_bytes().len(),
            RawBson::Binary(data) => data.bytes.len(),
            _ => 8,
        };
        path_size(path) + value
    });
    let removed = changes.removed.iter().map(path_size);
    let truncated = changes.truncated.iter().map(|(path, _)| path_size(path));
    updated.chain(removed).chain(truncated).sum()
}
