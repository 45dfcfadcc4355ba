//! The documents that a transaction has written.

use std::collections::BTreeMap;

use bolide_model::{Error, Reason, Result};
use bolide_mql::update::Delta;

use crate::documents::{DocumentBatch, DocumentDraft, StoredDocument, Undecided, description};

/// What a transaction has made of one document.
pub(super) struct Written {
    /// The document in the snapshot; `None` if the transaction inserted it.
    pub base: Option<StoredDocument>,
    /// The new document; `None` if the transaction deleted it.
    pub draft: Option<DocumentDraft>,
}

/// Returns the draft of a document that the transaction has changed `before`: it tells what both changes together have changed.
pub(super) fn updated_twice(base: &StoredDocument, before: &DocumentDraft, draft: DocumentDraft) -> DocumentDraft {
    if before.changes.is_none() || draft.changes.is_none() {
        return DocumentDraft { changes: None, ..draft };
    }
    let delta = match bolide_mql::update::diff(base.document(), draft.document()) {
        Ok(Delta::Fields(changes)) => changes,
        // Its description would be longer than the document; it is an update all the same.
        _ => description::of_fields(base.document(), draft.document()),
    };
    draft.updated(Delta::Fields(delta))
}

/// Writes the documents of a transaction. Deletions come first, and replacements before insertions, so that unique keys that move between documents are
/// free.
pub(super) fn apply(documents: &mut DocumentBatch<'_, '_>, written: &BTreeMap<u64, Written>) -> Result<(), Undecided> {
    let mut stored = Vec::new();
    for change in written.values() {
        let Some(base) = &change.base else { continue };
        match documents.again(base)? {
            Some(now) if now.version() == base.version() => stored.push((now, &change.draft)),
            _ => return Err(Error::from(Reason::WriteConflict).into()),
        }
    }
    documents.foresee_all(written.values().filter_map(|change| change.draft.as_ref()))?;
    let conflict = || Undecided::from(Error::from(Reason::WriteConflict));
    for (now, draft) in &stored {
        if draft.is_none() {
            documents.delete(now);
        }
    }
    let replaced: Vec<(&StoredDocument, &DocumentDraft)> = stored
        .iter()
        .filter_map(|(now, draft)| draft.as_ref().map(|draft| (now, draft)))
        .collect();
    documents.replace_all(&replaced)?.map_err(|_| conflict())?;
    for change in written.values().filter(|change| change.base.is_none()) {
        if let Some(draft) = &change.draft {
            documents.insert(draft)?.map_err(|_| conflict())?;
        }
    }
    Ok(())
}
