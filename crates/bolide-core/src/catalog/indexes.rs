//! The property indexes of containers: added, put into use, dropped.

use std::sync::Arc;

use bolide_model::Result;
use futures_util::FutureExt as _;

use super::Catalog;
use crate::container::Container;
use crate::index::PropertyIndexes;

/// What waits for a change of indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Writers: an index is added, or is put into use. Running queries do not use it.
    Writers,
    /// All requests: an index may be dropped, which running queries may be using.
    All,
}

impl Catalog {
    /// Changes the property indexes of a container: all writers see either those before or those after the change. `layout`: if the container's ranges
    /// have another version, nothing changes. `waits`: which requests wait for the change, and it for them. The definition that clients see stays the same, with its etag.
    ///
    /// Returns whether anything was changed.
    ///
    /// # Errors
    /// `NotFound` if the container was deleted.
    pub async fn change_indexes<F>(
        self: &Arc<Self>,
        container: &Arc<Container>,
        (waits, layout): (Waits, Option<u64>),
        mut change: F,
    ) -> Result<bool>
    where
        F: FnMut(&mut PropertyIndexes) + Send + 'static,
    {
        let container = container.clone();
        self.carry_out(|catalog| async move {
            let guard = match waits {
                Waits::Writers => container.lock_writers().await,
                Waits::All => container.lock().await,
            };
            let known = guard.state().indexes.clone();
            let decide = move |_, row: &mut super::rows::ContainerRow| {
                if layout.is_some_and(|layout| layout != row.layout_version) {
                    return Ok(false);
                }
                let mut changed = (*row.indexes).clone();
                change(&mut changed);
                // Also if others have made the change: then only this process does not know it yet.
                let has_changed = changed != *known;
                row.indexes = Arc::new(changed);
                Ok(has_changed)
            };
            let changed = catalog.commit_state(&container, &guard, decide);
            Ok(catalog.sealed(&container, &guard, changed.boxed()).await?.is_some())
        })
        .await
    }
}
