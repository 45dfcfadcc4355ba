//! Builds the state of an open container from its row.

use std::sync::Arc;

use super::rows::{ContainerRow, OfferRow};
use crate::container::{ContainerState, Layout};
use crate::throughput::SharedMeter;

impl ContainerState {
    /// Returns the state that a row describes, with the opened partitions that the row names.
    pub(super) fn of(row: &ContainerRow, layout: &Layout, database_meter: Option<SharedMeter>) -> ContainerState {
        ContainerState {
            database_meter,
            properties: row.properties.clone(),
            etag: row.etag,
            last_modified: row.last_modified,
            settings: row.settings(),
            history: row.history.clone(),
            offer: row.offer.as_ref().map(OfferRow::offer),
            pacing: row.pacing,
            keeps_all_versions: row.keeps_all_versions,
            collection: row.collection.clone(),
            indexes: row.indexes.clone(),
            settings_number: row.settings_number,
            layout: Arc::new(layout.at(row.settings_number)),
            next_range: row.next_range,
            is_deleted: false,
        }
    }

    /// Tells whether this is the state that a row describes, whether or not a change of it is pending. The etag identifies the definition, so definitions are not compared.
    pub(super) fn shows(&self, row: &ContainerRow) -> bool {
        !self.is_deleted
            && self.etag == row.etag
            && self.settings == row.settings()
            && self.offer == row.offer.as_ref().map(OfferRow::offer)
            && self.pacing == row.pacing
            && self.keeps_all_versions == row.keeps_all_versions
            && self.indexes == row.indexes
            && self.settings_number == row.settings_number
            && self.layout.version == row.layout_version
            && self.next_range == row.next_range
    }
}
