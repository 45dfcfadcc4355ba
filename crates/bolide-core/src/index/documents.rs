//! The indexes of MongoDB collections, as property indexes.

use std::sync::Arc;

use bolide_mql::index::{IndexDefinition, has_stored_keys};

use super::{IndexKind, PropertyIndex, PropertyIndexes};

/// An index of a collection. What changes of its definition do not change its keys.
#[derive(Debug, Clone)]
pub(crate) struct DocumentIndex {
    /// Its id in the collection.
    pub id: u32,
    pub definition: Arc<IndexDefinition>,
}

impl PartialEq for DocumentIndex {
    fn eq(&self, other: &DocumentIndex) -> bool {
        self.id == other.id
    }
}

impl Eq for DocumentIndex {}

impl PropertyIndexes {
    /// Adds the indexes of a collection whose keys are stored, and drops those that it no longer has. `is_empty`: no documents are stored, so that new ones
    /// need not be built.
    pub fn follow_collection(&mut self, indexes: impl Iterator<Item = DocumentIndex>, is_empty: bool) {
        let wanted: Vec<DocumentIndex> = indexes.filter(|index| has_stored_keys(&index.definition)).collect();
        self.retain(|known| match &known.kind {
            IndexKind::Document(index) => wanted.contains(index),
            _ => true,
        });
        for index in wanted {
            let is_it = |known: &&mut PropertyIndex| known.kind == IndexKind::Document(index.clone());
            if let Some(known) = self.list.iter_mut().find(is_it) {
                known.kind = IndexKind::Document(index);
                continue;
            }
            if self.add(IndexKind::Document(index), false)
                && let Some(added) = self.list.last_mut()
            {
                added.is_ready = is_empty;
            }
        }
    }

    /// Returns the property index of an index of a collection, if queries may use it.
    pub fn usable_of_collection(&self, id: u32) -> Option<&PropertyIndex> {
        let is_it = |index: &&PropertyIndex| matches!(&index.kind, IndexKind::Document(known) if known.id == id);
        self.list.iter().find(is_it).filter(|index| index.is_ready)
    }
}
