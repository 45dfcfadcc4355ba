//! The property indexes of a container, as administrators see them.

use std::sync::atomic::Ordering;

use bolide_model::Result;

use super::Admin;
use crate::container::Container;

/// A property index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexFigures {
    /// The path, as indexing policies write it.
    pub path: String,
    /// Whether it is complete, so that queries use it.
    pub is_ready: bool,
    /// Whether it was created because queries would profit; otherwise the indexing policy names its path.
    pub is_automatic: bool,
}

/// The property indexes of a container, and the work on them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexReport {
    /// In the order of their creation.
    pub indexes: Vec<IndexFigures>,
    /// Number of items that the running build has gone through.
    pub built_items: u64,
    /// Number of stored items, ghosts included.
    pub stored_items: u64,
    /// Number of dropped indexes whose entries are still to be removed.
    pub dropped: usize,
}

impl Admin<'_> {
    /// See `Account::index_report`.
    pub async fn index_report(&self, container: &Container) -> Result<IndexReport> {
        let guard = container.enter().await?;
        guard.state.check_has_items("listIndexes shows its indexes")?;
        let known = &guard.state.indexes;
        let figures = known.list.iter().map(|index| IndexFigures {
            path: index.kind.to_string(),
            is_ready: index.is_ready,
            is_automatic: index.is_automatic,
        });
        let mut stored_items = 0;
        for partition in &guard.state.layout.partitions {
            stored_items += partition.stored_items();
        }
        let is_building = known.list.iter().any(|index| !index.is_ready);
        Ok(IndexReport {
            indexes: figures.collect(),
            built_items: match is_building {
                true => container.built_items().load(Ordering::Relaxed),
                false => 0,
            },
            stored_items,
            dropped: known.dropped.len(),
        })
    }
}
