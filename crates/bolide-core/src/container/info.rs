//! What requests get to know of a container.

use std::sync::Arc;

use bolide_model::container::ContainerProperties;
use bolide_model::epk::EpkRange;
use bolide_model::rid::{ContainerRid, DatabaseRid};
use bolide_model::{Lsn, UnixSeconds};

use crate::format::etag::Etag;

/// The names and the definition of a container.
#[derive(Debug, Clone)]
pub struct ContainerInfo {
    /// Its resource id.
    pub rid: ContainerRid,
    /// Its database.
    pub database_rid: DatabaseRid,
    /// The database's name.
    pub database_id: String,
    /// Its definition.
    pub properties: Arc<ContainerProperties>,
    /// Version of the definition.
    pub etag: Etag,
    /// When the definition was last written.
    pub last_modified: UnixSeconds,
}

/// The partition key ranges of a container.
#[derive(Debug, Clone)]
pub struct Ranges {
    /// Changes with every split.
    pub version: u64,
    /// The ranges in the order of their keys; together they hold every key.
    pub ranges: Vec<Range>,
}

/// A partition key range: one physical partition as clients see it.
#[derive(Debug, Clone)]
pub struct Range {
    /// Id of the range.
    pub id: u32,
    /// The keys it holds.
    pub epk: EpkRange,
    /// The ranges it was split from, oldest first.
    pub parents: Vec<u32>,
    /// Its newest log sequence number.
    pub lsn: Lsn,
}
