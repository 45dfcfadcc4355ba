//! The history of a container: whether it keeps one, and who writes the ends of documents into it.

use std::sync::Arc;

use bolide_model::UnixMillis;
use bolide_model::time::CommitTime;

use super::ContainerState;
use crate::change_log::endings::CollectionEndings;
use crate::change_log::{self, Keeping};
use crate::partition::Partition;
use crate::partition::endings::Endings;

impl ContainerState {
    /// Returns how long history is kept, in seconds; `None`: the container keeps none.
    pub fn retention(&self) -> Option<i64> {
        match (&self.collection, self.keeps_all_versions) {
            (Some(_), true) => Some(change_log::COLLECTION_RETENTION),
            _ => change_log::retention(&self.properties, self.keeps_all_versions),
        }
    }

    /// Returns how history is kept; `None`: the container keeps none. The history of a collection has previous versions only if it keeps images.
    pub fn keeping(&self) -> Option<Keeping> {
        let retention = self.retention()?;
        let has_previous = self
            .collection
            .as_ref()
            .is_none_or(|collection| collection.keeps_images());
        Some(Keeping {
            retention,
            has_previous,
            shard_key: self.shard_key().cloned(),
        })
    }
}

/// Lets the partitions of a collection write the ends of documents into its history, by the settings that come into force at `since`.
pub(super) fn tell_endings(before: Option<&ContainerState>, state: &ContainerState, since: (CommitTime, UnixMillis)) {
    let keeping = state.keeping().filter(|_| state.collection.is_some());
    let was_told = before.is_some_and(|before| before.keeping().is_some());
    let is_same = before.is_some_and(|before| before.settings == state.settings);
    let has_same = |partition: &Arc<Partition>| {
        let known = before.iter().flat_map(|before| &before.layout.partitions);
        known.into_iter().any(|known| known.is_same(partition))
    };
    for partition in &state.layout.partitions {
        let is_known = was_told
            && is_same
            && has_same(partition)
            && before.map(ContainerState::keeping).as_ref() == Some(&keeping);
        if keeping.is_some() && is_known {
            partition.keep_endings();
            continue;
        }
        let endings = keeping.clone().map(|keeping| -> Arc<dyn Endings> {
            Arc::new(CollectionEndings::new(state.settings.clone(), keeping, since))
        });
        partition.set_endings(endings);
    }
}
