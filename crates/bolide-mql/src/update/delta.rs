//! What an update changed, for change streams.

use std::collections::HashMap;
use std::fmt;

use bson::{RawBson, RawBsonRef, RawDocument};

use crate::error::Result;

/// Most changes that are described one by one. Their paths need more memory than the document if it has many small values.
pub(super) const MAX_CHANGES: usize = 10_000;

/// What an update changed.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// The whole document was replaced.
    Replacement,
    /// Fields were changed.
    Fields(FieldChanges),
}

/// Changed fields: the `updateDescription` of a change event.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct FieldChanges {
    /// `updatedFields`: new values.
    pub updated: Vec<(ChangedPath, RawBson)>,
    /// `removedFields`.
    pub removed: Vec<ChangedPath>,
    /// `truncatedArrays`: arrays that lost elements at their end, with their new lengths.
    pub truncated: Vec<(ChangedPath, usize)>,
}

/// Collects changes while operators are applied.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    changes: FieldChanges,
    count: usize,
}

impl Recorder {
    /// Returns the number of changes until now.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Records a new value.
    pub(super) fn updated(&mut self, path: &ChangedPath, value: RawBsonRef<'_>) {
        self.count += 1;
        if self.count <= MAX_CHANGES {
            self.changes.updated.push((path.clone(), value.into()));
        }
    }

    /// Records that a field was removed.
    pub(super) fn removed(&mut self, path: &ChangedPath) {
        self.count += 1;
        if self.count <= MAX_CHANGES {
            self.changes.removed.push(path.clone());
        }
    }

    /// Returns the changes; of too many, only the fields on the top level.
    pub(super) fn finish(self, old: &RawDocument, new: &RawDocument) -> Result<FieldChanges> {
        if self.count <= MAX_CHANGES {
            return Ok(self.changes);
        }
        top_level_changes(old, new)
    }
}

fn top_level_changes(old: &RawDocument, new: &RawDocument) -> Result<FieldChanges> {
    let path = |name: &str| ChangedPath(vec![PathPart::Field(name.to_owned())]);
    let mut old_fields = HashMap::new();
    for field in old {
        let (name, value) = field?;
        old_fields.insert(name, value);
    }
    let mut changes = FieldChanges::default();
    for field in new {
        let (name, value) = field?;
        let is_same = old_fields.remove(name).is_some_and(|old| same_bytes(old, value));
        if !is_same {
            changes.updated.push((path(name.as_str()), value.into()));
        }
    }
    changes.removed = old_fields.into_keys().map(|name| path(name.as_str())).collect();
    changes.removed.sort_unstable();
    Ok(changes)
}

impl FieldChanges {
    /// Tells whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of changes.
    pub(super) fn len(&self) -> usize {
        self.updated.len() + self.removed.len() + self.truncated.len()
    }
}

/// The path of a changed value. Its text has dots between the parts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct ChangedPath(pub Vec<PathPart>);

/// A part of a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathPart {
    /// A field of a document.
    Field(String),
    /// An element of an array.
    Index(usize),
}

impl ChangedPath {
    /// Returns the path of a field or element inside this value.
    pub(super) fn with(&self, part: PathPart) -> ChangedPath {
        let mut parts = self.0.clone();
        parts.push(part);
        ChangedPath(parts)
    }
}

impl fmt::Display for ChangedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, part) in self.0.iter().enumerate() {
            let dot = if number == 0 { "" } else { "." };
            write!(f, "{dot}{part}")?;
        }
        Ok(())
    }
}

impl fmt::Display for PathPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathPart::Field(name) => f.write_str(name),
            PathPart::Index(index) => write!(f, "{index}"),
        }
    }
}

/// Tells whether two values are stored as the same type and bytes; so a NaN is the same as itself, and 1 differs from 1.0.
pub(super) fn same_bytes(left: RawBsonRef<'_>, right: RawBsonRef<'_>) -> bool {
    match (left, right) {
        (RawBsonRef::Double(left), RawBsonRef::Double(right)) => left.to_bits() == right.to_bits(),
        _ => left == right,
    }
}
