//! What change streams with `showExpandedEvents` tell of changes of definitions.

use bolide_core::{CatalogEventKind, CollectionChange};
use bolide_mql::index::IndexDefinition;
use bson::raw::{CString, cstr};
use bson::{RawArrayBuf, RawDocument, RawDocumentBuf, rawdoc};

/// Notes that indexes were created or dropped, if there are any.
pub fn note_indexes<'a>(
    change: &mut CollectionChange<'_>,
    kind: CatalogEventKind,
    indexes: impl IntoIterator<Item = &'a IndexDefinition>,
) {
    let mut array = RawArrayBuf::new();
    for index in indexes {
        array.push(index.to_document());
    }
    if !array.is_empty() {
        let description = rawdoc! { "operationDescription": { "indexes": array } };
        change.event = Some((kind, description));
    }
}

/// Notes that options of an index were changed. `reply`: the old and new values, as `collMod` replies them.
pub fn note_modified_index(change: &mut CollectionChange<'_>, name: &str, reply: &RawDocument) {
    let (mut new, mut old) = (rawdoc! { "name": name }, RawDocumentBuf::new());
    for (field, value) in reply.iter().flatten() {
        let parts = [
            (field.as_str().strip_suffix("_new"), &mut new),
            (field.as_str().strip_suffix("_old"), &mut old),
        ];
        for (option, into) in parts {
            if let Some(option) = option.and_then(|option| CString::try_from(option).ok()) {
                into.append(option, value);
            }
        }
    }
    note_modified(change, rawdoc! { "index": new }, Some(old));
}

/// Notes that options of the collection were changed: these, with their new values.
pub fn note_modified(change: &mut CollectionChange<'_>, options: RawDocumentBuf, index_before: Option<RawDocumentBuf>) {
    let uuid = bson::Binary {
        subtype: bson::spec::BinarySubtype::Uuid,
        bytes: change.definition.uuid.as_bytes().to_vec(),
    };
    let mut before = rawdoc! { "collectionOptions": { "uuid": uuid } };
    if let Some(index) = index_before {
        before.append(cstr!("indexOptions"), index);
    }
    let description = rawdoc! { "operationDescription": options, "stateBeforeChange": before };
    change.event = Some((CatalogEventKind::Modify, description));
}
