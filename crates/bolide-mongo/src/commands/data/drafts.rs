//! Documents to be written: checked, and prepared for the core.

use std::sync::Arc;

use bolide_core::{CollectionDefinition, DocumentDraft, Duplicate};
use bolide_mql::index::duplicate_key_error;
use bolide_mql::{Code, Error, Result, index};
use bson::{RawDocument, RawDocumentBuf};

use super::super::context::CommandContext;
use crate::namespace::Namespace;

/// Prepares a document whose `_id` is present and valid.
///
/// # Errors
/// Those of index keys.
pub fn draft(
    context: &CommandContext<'_>,
    definition: &Arc<CollectionDefinition>,
    document: RawDocumentBuf,
) -> Result<DocumentDraft> {
    DocumentDraft::new(document, definition, context.state.account.draft_options())
}

/// Returns the error for a document whose `_id` or unique key is taken.
pub fn duplicate(
    definition: &CollectionDefinition,
    namespace: &Namespace,
    document: &RawDocument,
    duplicate: &Duplicate,
) -> Error {
    let index = definition.indexes.iter().find(|index| index.id == duplicate.index);
    let Some(index) = index else {
        return Error::new(Code::DUPLICATE_KEY, "E11000 duplicate key error");
    };
    // Which of several keys is taken is not known; the first is shown, as for an index without arrays.
    let keys = index::keys(&index.definition, document).unwrap_or_default().keys;
    let key = keys.first().map_or(&[][..], Vec::as_slice);
    duplicate_key_error(&index.definition, &namespace.to_string(), document, key)
}
