//! The row of a node, which it writes with every heartbeat.

use std::fmt;

use bolide_model::UnixMillis;
use bolide_model::rid::ContainerRid;
use bolide_storage::{Key, Scan, Space};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// The first byte of the keys of heartbeats.
const NODE: u8 = b'N';
/// Maximum number of readers that a heartbeat lists by their containers.
const LISTED: usize = 64;

/// The id of a node: random for each start of a server, shown as 16 hexadecimal digits; zero where no other server can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(pub(super) u64);

impl NodeId {
    pub(super) fn random() -> NodeId {
        NodeId(fastrand::u64(..))
    }

    /// Returns the id with this number.
    pub const fn new(id: u64) -> NodeId {
        NodeId(id)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What a node tells the others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Heartbeat {
    /// Rises with every heartbeat.
    pub beat: u64,
    pub endpoint: String,
    /// Host and port where clients in direct mode reach it; empty if they do not.
    pub frames: String,
    pub alive_ms: u64,
    /// Server time as the node knows it.
    pub clock_ms: (i64, i64),
    pub partitions_owned: u64,
    pub conflicts: u64,
    /// No read of the node is judged at an earlier time, except those of `readers`.
    pub bound_ms: i64,
    pub readers: Readers,
}

/// The earliest times at which a node reads in several steps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Readers {
    /// By container; at most [`LISTED`].
    listed: Vec<([u8; 8], i64)>,
    /// Of the containers that are not listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    others: Option<i64>,
}

impl Readers {
    /// Adds a container and the earliest time at which it is read.
    pub fn add(&mut self, container: ContainerRid, oldest: UnixMillis) {
        if self.listed.len() < LISTED {
            self.listed.push((container.bytes(), oldest.0));
        } else {
            self.others = Some(self.others.map_or(oldest.0, |others| others.min(oldest.0)));
        }
    }

    /// Returns the earliest time at which a container may be read.
    pub fn oldest(&self, container: ContainerRid) -> Option<UnixMillis> {
        let rid = container.bytes();
        let listed = self.listed.iter().find(|(listed, _)| *listed == rid);
        listed.map(|(_, oldest)| *oldest).or(self.others).map(UnixMillis)
    }
}

impl Heartbeat {
    pub fn encode(&self) -> Bytes {
        serde_json::to_vec(self).map(Bytes::from).unwrap_or_default()
    }

    /// Returns what a row says. Of a node whose row cannot be read it is known only that it lives; it may read at any time.
    pub fn decode(value: &[u8]) -> Heartbeat {
        serde_json::from_slice(value).unwrap_or_else(|error| {
            tracing::warn!(%error, "the heartbeat of another server cannot be read: nothing is purged while it lives");
            Heartbeat {
                bound_ms: i64::MIN,
                ..Heartbeat::default()
            }
        })
    }
}

/// Returns the key of a node's row.
pub(super) fn key(node: NodeId) -> Key {
    let mut bytes = vec![NODE];
    bytes.extend_from_slice(&node.0.to_be_bytes());
    Key::new(Space::Meta, bytes)
}

/// Returns the node that a key names.
pub(super) fn node_of(key: &[u8]) -> Option<NodeId> {
    let (first, id) = key.split_first()?;
    let id = id.try_into().ok().filter(|_| *first == NODE)?;
    Some(NodeId(u64::from_be_bytes(id)))
}

/// Returns the scan of all rows.
pub(super) fn scan() -> Scan {
    Scan {
        space: Space::Meta,
        from: Bytes::from_static(&[NODE]),
        to: Some(Bytes::from_static(&[NODE + 1])),
        reverse: false,
        max_rows: usize::MAX,
        max_bytes: usize::MAX,
        keys_only: false,
    }
}
