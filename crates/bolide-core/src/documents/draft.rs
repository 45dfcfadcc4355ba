//! Documents to be written: everything that follows from a document and the definition of its collection, computed before the worker decides.

use std::borrow::Cow;
use std::sync::Arc;

use bolide_model::epk::Epk;
use bolide_model::ttl::{Deadline, Own};
use bolide_mql::bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use bolide_mql::index::TtlMode;
use bolide_mql::update::{Delta, FieldChanges};
use bolide_mql::{Error, index};

use crate::container::{CollectionDefinition, CollectionIndex};
use crate::content::{DocumentId, digest};
use crate::format::keys::UniqueKey;

/// What an account makes of documents.
#[derive(Debug, Clone, Copy)]
pub struct DraftOptions {
    /// Whether documents may have a ttl of their own (TTL-288).
    pub reads_own_ttl: bool,
    /// Which values count for TTL indexes.
    pub ttl_mode: TtlMode,
}

/// A document to be written, with everything that its record and entries need.
#[derive(Debug, Clone)]
pub struct DocumentDraft {
    pub(crate) place: Epk,
    pub(crate) id: DocumentId,
    pub(crate) own: Own,
    pub(crate) deadlines: Vec<Deadline>,
    pub(crate) unique: Vec<UniqueKey>,
    pub(crate) document: RawDocumentBuf,
    /// What an update changed; `None` if the document is new or replaces another as a whole.
    pub(crate) changes: Option<Arc<FieldChanges>>,
    /// The definition by which `deadlines` and `unique` were made.
    pub(super) definition: Arc<CollectionDefinition>,
    pub(super) ttl_mode: TtlMode,
}

impl DocumentDraft {
    /// Prepares a document, whose `_id` is present and valid. A root field `_ts` is dropped (TTL-287).
    ///
    /// # Errors
    /// `CannotIndexParallelArrays` and other errors of index keys; those of the shard key.
    pub fn new(
        document: RawDocumentBuf,
        collection: &Arc<CollectionDefinition>,
        options: DraftOptions,
    ) -> Result<DocumentDraft, Error> {
        let document = match index::strip_ts(&document) {
            Cow::Owned(stripped) => stripped,
            Cow::Borrowed(_) => document,
        };
        let id = document.get("_id").ok().flatten().unwrap_or(RawBsonRef::Null);
        let id = DocumentId::of(id, collection.collation.as_deref());
        let place = collection.place_of(&document)?;
        let own = match options.reads_own_ttl {
            true => index::own_ttl(&document),
            false => Own::Absent,
        };
        let (deadlines, unique) = index_fields(&document, collection, options.ttl_mode)?;
        Ok(DocumentDraft {
            place,
            id,
            own,
            deadlines,
            unique,
            document,
            changes: None,
            definition: collection.clone(),
            ttl_mode: options.ttl_mode,
        })
    }

    /// Returns the draft as it is by the definition that is in force: the collection may have got other indexes since the draft was made.
    ///
    /// # Errors
    /// Errors of index keys.
    pub(super) fn by(&self, collection: &Arc<CollectionDefinition>) -> Result<Cow<'_, DocumentDraft>, Error> {
        if Arc::ptr_eq(&self.definition, collection) {
            return Ok(Cow::Borrowed(self));
        }
        let (deadlines, unique) = index_fields(&self.document, collection, self.ttl_mode)?;
        Ok(Cow::Owned(DocumentDraft {
            deadlines,
            unique,
            definition: collection.clone(),
            ..self.clone()
        }))
    }

    /// Adds what the update changed that made this version.
    #[must_use]
    pub fn updated(self, delta: Delta) -> DocumentDraft {
        let changes = match delta {
            Delta::Fields(changes) => Some(Arc::new(changes)),
            Delta::Replacement => None,
        };
        DocumentDraft { changes, ..self }
    }

    /// Returns the document as it will be stored.
    pub fn document(&self) -> &RawDocument {
        &self.document
    }

    /// Returns where the document belongs: all documents of a commit are at one place.
    pub fn place(&self) -> &Epk {
        &self.place
    }

    /// Returns the encoded `_id`.
    pub fn id(&self) -> &DocumentId {
        &self.id
    }
}

/// Returns the deadlines and unique keys of a document.
pub(crate) fn index_fields(
    document: &RawDocument,
    collection: &CollectionDefinition,
    mode: TtlMode,
) -> Result<(Vec<Deadline>, Vec<UniqueKey>), Error> {
    let mut deadlines = Vec::new();
    let mut unique = Vec::new();
    for index in collection.indexes.iter().skip(1) {
        deadlines.extend(deadline(document, index, mode)?);
        let keys = index::keys(&index.definition, document)?;
        if index.definition.enforces_unique() {
            unique.extend(keys.keys.iter().map(|key| UniqueKey {
                index: index.id,
                digest: digest(key),
            }));
        }
    }
    unique.sort_unstable();
    unique.dedup();
    Ok((deadlines, unique))
}

fn deadline(document: &RawDocument, index: &CollectionIndex, mode: TtlMode) -> Result<Option<Deadline>, Error> {
    let Some(rule) = index.rules.last() else {
        return Ok(None);
    };
    let date = index::date_rule(&index.definition, document, mode)?;
    Ok(date.map(|date| Deadline { rule: *rule, date }))
}
