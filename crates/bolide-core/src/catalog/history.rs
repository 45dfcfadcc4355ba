//! The histories of containers: where they begin, and what is written into them before something changes.

use std::sync::Arc;

use bolide_model::Result;
use bolide_model::time::CommitTime;
use futures_util::FutureExt as _;

use super::Catalog;
use crate::change_log::{endings, trim};
use crate::container::{Container, ContainerState, WriteGuard};

impl Catalog {
    /// Lets all collections keep their history from now on, those that will be created too: a client opens a change stream. Does nothing if they do.
    pub async fn keep_changes(&self) -> Result<()> {
        if !self.memory.read().account.keeps_changes {
            self.change_account(|account| account.keeps_changes = true).await?;
        }
        for container in self.all_containers() {
            if container.collection().is_some() && !container.state().keeps_all_versions {
                self.keep_all_versions(&container).await?;
            }
        }
        Ok(())
    }

    /// Tells whether all collections keep their history.
    pub fn are_changes_kept(&self) -> bool {
        let keeps = |container: &Arc<Container>| {
            let state = container.state();
            state.collection.is_none() || state.keeps_all_versions
        };
        self.memory.read().account.keeps_changes && self.all_containers().iter().all(keeps)
    }

    /// Begins the history of a container that has no change feed policy. Does nothing if the history has begun already, or if a policy decides about
    /// it.
    pub async fn keep_all_versions(&self, container: &Arc<Container>) -> Result<()> {
        if container.state().keeps_all_versions {
            return Ok(());
        }
        let change = container.lock().await;
        let kept = self.keep_locked(container, &change);
        self.sealed(container, &change, kept.boxed()).await
    }

    async fn keep_locked(&self, container: &Arc<Container>, change: &WriteGuard<'_>) -> Result<()> {
        loop {
            let state = self.current_state(container, change).await?;
            if state.keeps_all_versions || state.properties.change_feed_policy.is_some() {
                return Ok(());
            }
            begin(&state).await?;
            let keep = self.change_known(container, change, &state, |_, row| row.keeps_all_versions = true);
            if keep.await?.is_some() {
                return Ok(());
            }
        }
    }
}

/// Writes the ends of documents up to now into the history, before the settings by which they have ended change.
pub(super) async fn tell_endings(state: &ContainerState) -> Result<()> {
    if state.collection.is_some() && state.keeping().is_some() {
        for partition in &state.layout.partitions {
            partition.tell_endings(CommitTime::default()).await?;
        }
    }
    Ok(())
}

/// Removes the history that earlier policies left. The new history begins with the next write.
pub(super) async fn begin(state: &Arc<ContainerState>) -> Result<()> {
    for partition in &state.layout.partitions {
        trim::begin(state.retention(), partition).await?;
        if state.collection.is_some() {
            endings::pass_over(&state.settings, partition).await?;
        }
    }
    Ok(())
}
