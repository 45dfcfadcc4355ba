//! Rows of containers.

use std::sync::Arc;

use bolide_model::UnixSeconds;
use bolide_model::container::ContainerProperties;
use bolide_model::ttl::{DateRules, Floors, Settings};
use serde::{Deserialize, Serialize};

use super::{OfferRow, Unknown, json};
use crate::container::{CollectionDefinition, PolicyPeriod};
use crate::format::etag::Etag;
use crate::index::PropertyIndexes;
use crate::partition::{Placement, SettingsNumber};
use crate::throughput::PacingSettings;

/// Maximum number of policy periods that are kept. Older ones would only make statistics about the age of ghosts more exact.
const HISTORY: usize = 256;

/// A container.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContainerRow {
    #[serde(with = "json::container_properties")]
    pub properties: Arc<ContainerProperties>,
    #[serde(with = "json::etag")]
    pub etag: Etag,
    #[serde(rename = "ts", with = "json::seconds")]
    pub last_modified: UnixSeconds,
    /// The floors that earlier policies left; see [`Settings`].
    #[serde(with = "json::floors")]
    pub floors: Floors,
    #[serde(with = "json::stretches")]
    pub history: Vec<PolicyPeriod>,
    pub offer: Option<OfferRow>,
    #[serde(with = "json::pacing")]
    pub pacing: PacingSettings,
    /// See [`ContainerState::keeps_all_versions`](crate::container::ContainerState::keeps_all_versions). Rows of older versions do not have it.
    #[serde(default)]
    pub keeps_all_versions: bool,
    /// Only of MongoDB collections.
    #[serde(default, with = "json::collection", skip_serializing_if = "Option::is_none")]
    pub collection: Option<Arc<CollectionDefinition>>,
    /// Rows of older versions do not have it.
    #[serde(default, with = "json::property_indexes", skip_serializing_if = "has_none")]
    pub indexes: Arc<PropertyIndexes>,
    /// Number of the settings, which the head of each partition has, too. Rows of older versions do not have it.
    #[serde(default, skip_serializing_if = "SettingsNumber::is_first")]
    pub settings_number: SettingsNumber,
    /// A change of the settings that has begun; see [`seal`](crate::catalog).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<PendingSettings>,
    pub layout_version: u64,
    pub next_range: u32,
    #[serde(rename = "ranges", with = "json::placements")]
    pub placements: Vec<Placement>,
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// A change of a container's settings that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PendingSettings {
    /// The number that the settings will have.
    pub number: SettingsNumber,
    /// Rises while the change goes on.
    pub beat: u64,
}

/// Whether a container has never had a property index.
fn has_none(indexes: &PropertyIndexes) -> bool {
    *indexes == PropertyIndexes::default()
}

impl ContainerRow {
    /// Ends a pending change of settings: what the row says is in force under its number.
    pub fn end_pending(&mut self) {
        if let Some(pending) = self.pending.take() {
            self.settings_number = pending.number;
        }
    }

    /// Returns the policy in force and the floors that earlier ones left.
    pub fn settings(&self) -> Settings {
        Settings {
            policy: self.properties.policy,
            floors: self.floors,
            dates: self
                .collection
                .as_ref()
                .map_or_else(DateRules::default, |collection| collection.date_rules()),
        }
    }

    /// Replaces what only a collection has. `is_empty`: no documents are stored.
    pub fn replace_collection(&mut self, definition: Arc<CollectionDefinition>, is_empty: bool) {
        Arc::make_mut(&mut self.indexes).follow_collection(definition.document_indexes(), is_empty);
        self.collection = Some(definition);
    }

    /// Replaces the definition. If the default ttl changes, the policy period before it ends at `now` (TTL-227); otherwise no new period begins
    /// (TTL-231).
    pub fn replace_properties(&mut self, properties: ContainerProperties, now: UnixSeconds) {
        let policy = properties.policy;
        if policy != self.properties.policy {
            self.floors = self.settings().change(policy, now).floors;
            if self.history.len() == HISTORY {
                self.history.remove(0);
            }
            self.history.push(PolicyPeriod { start: now, policy });
        }
        if self.collection.is_none() {
            Arc::make_mut(&mut self.indexes).follow(&properties);
        }
        self.properties = Arc::new(properties);
    }
}
