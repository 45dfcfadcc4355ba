//! Rows of users, permissions and client encryption keys.

use std::sync::Arc;

use bolide_model::UnixSeconds;
use bolide_model::encryption_key::EncryptionKeyProperties;
use serde::{Deserialize, Serialize};

use super::{Unknown, json};
use crate::catalog::permissions::PermissionProperties;
use crate::format::etag::Etag;

/// A user of a database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UserRow {
    pub id: String,
    #[serde(with = "json::etag")]
    pub etag: Etag,
    #[serde(rename = "ts", with = "json::seconds")]
    pub last_modified: UnixSeconds,
    pub next_permission: u64,
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// A permission of a user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PermissionRow {
    #[serde(flatten, with = "json::grant")]
    pub grant: Arc<PermissionProperties>,
    #[serde(with = "json::etag")]
    pub etag: Etag,
    #[serde(rename = "ts", with = "json::seconds")]
    pub last_modified: UnixSeconds,
    #[serde(flatten)]
    pub unknown: Unknown,
}

/// A client encryption key of a database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct EncryptionKeyRow {
    #[serde(with = "json::encryption_key_properties")]
    pub properties: Arc<EncryptionKeyProperties>,
    /// Rows of older versions have only the time of the last write.
    #[serde(rename = "cts", default, with = "json::optional_seconds")]
    created: Option<UnixSeconds>,
    #[serde(with = "json::etag")]
    pub etag: Etag,
    #[serde(rename = "ts", with = "json::seconds")]
    pub last_modified: UnixSeconds,
    #[serde(flatten)]
    pub unknown: Unknown,
}

impl EncryptionKeyRow {
    /// Returns the row of a new key.
    pub fn new(properties: Arc<EncryptionKeyProperties>, etag: Etag, now: UnixSeconds) -> EncryptionKeyRow {
        EncryptionKeyRow {
            properties,
            created: Some(now),
            etag,
            last_modified: now,
            unknown: Unknown::default(),
        }
    }

    /// Returns the row of the same key, wrapped in another way.
    pub fn replaced(&self, properties: Arc<EncryptionKeyProperties>, etag: Etag, now: UnixSeconds) -> EncryptionKeyRow {
        EncryptionKeyRow {
            properties,
            created: Some(self.created()),
            etag,
            last_modified: now,
            unknown: self.unknown.clone(),
        }
    }

    /// Returns the time of its creation.
    pub fn created(&self) -> UnixSeconds {
        self.created.unwrap_or(self.last_modified)
    }
}
