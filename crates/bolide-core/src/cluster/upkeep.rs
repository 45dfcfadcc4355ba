//! The heads of the partitions whose upkeep a node does: what other nodes have committed may expire earlier than anything that this node knows of.

use std::sync::Arc;

use bolide_model::ttl::{Policy, Settings};
use futures_util::{StreamExt as _, stream};

use super::Cluster;
use crate::container::ContainerState;
use crate::partition::Partition;

/// Maximum number of partitions whose heads are read at the same time.
const AT_ONCE: usize = 16;

impl Cluster {
    /// Lets the workers of owned partitions learn what other nodes have committed. `all`: also where nothing expires, but partition keys may be deleted and
    /// sessions forgotten.
    pub(super) async fn follow_heads(&self, all: bool) {
        let view = self.view();
        let mut owned = Vec::new();
        for container in self.catalog.all_containers() {
            let state = container.state();
            if !state.is_deleted && (all || has_upkeep(&state)) {
                let partitions = state.layout.partitions.iter();
                owned.extend(
                    partitions
                        .filter(|partition| view.owner(partition.id) == Some(self.id))
                        .cloned(),
                );
            }
        }
        let owned = stream::iter(owned);
        owned.for_each_concurrent(AT_ONCE, follow_head).await;
    }
}

/// Tells whether items of a container may expire, or entries of its history.
fn has_upkeep(state: &ContainerState) -> bool {
    state.settings != Settings::new(Policy::Off) || state.retention().is_some()
}

async fn follow_head(partition: Arc<Partition>) {
    // What fails here, fails again when the partition is used; a change of settings is followed by the catalog.
    if let Err(error) = partition.follow().await {
        tracing::trace!(%error, partition = %partition.id, "the head cannot be read");
    }
}
