//! Rows of the account, of databases and of their offers.

use bolide_model::UnixSeconds;
use serde::{Deserialize, Serialize};

use super::{Unknown, json};
use crate::format::etag::Etag;
use crate::throughput::{OfferType, Throughput};

/// Counters and switches of the account.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AccountRow {
    pub next_database: u32,
    pub next_offer: u32,
    pub next_partition: u64,
    #[serde(default = "is_on")]
    pub mongo_document_ttl: bool,
    /// Whether new collections keep their history, because a client has opened a change stream.
    #[serde(default, skip_serializing_if = "is_off")]
    pub keeps_changes: bool,
    #[serde(flatten)]
    pub unknown: Unknown,
}

impl Default for AccountRow {
    /// Returns the row of a new account. Partition 0 is the catalog itself; per-document TTL is on (TTL-288).
    fn default() -> AccountRow {
        AccountRow {
            next_database: 1,
            next_offer: 1,
            next_partition: 1,
            mongo_document_ttl: is_on(),
            keeps_changes: false,
            unknown: Unknown::default(),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_off(switch: &bool) -> bool {
    !switch
}

fn is_on() -> bool {
    true
}

/// A database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DatabaseRow {
    pub id: String,
    #[serde(with = "json::etag")]
    pub etag: Etag,
    #[serde(rename = "ts", with = "json::seconds")]
    pub last_modified: UnixSeconds,
    pub next_container: u32,
    /// Rows of versions without users do not have it.
    #[serde(default = "first")]
    pub next_user: u32,
    pub offer: Option<OfferRow>,
    /// The home of its unsharded MongoDB collections, once it has had one: transactions span all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<u32>,
    #[serde(flatten)]
    pub unknown: Unknown,
}

fn first() -> u32 {
    1
}

/// The offer of a database or container.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OfferRow {
    pub number: u32,
    /// `None` if it was created without throughput; the default is shown then.
    #[serde(default, with = "json::throughput")]
    pub throughput: Option<Throughput>,
    /// Rows of older versions do not have it.
    #[serde(rename = "type", default, with = "json::offer_type")]
    pub kind: OfferType,
    #[serde(with = "json::etag")]
    pub etag: Etag,
    #[serde(rename = "ts", with = "json::seconds")]
    pub last_modified: UnixSeconds,
    #[serde(flatten)]
    pub unknown: Unknown,
}
