//! What a node knows of the others after it has read their heartbeats.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bolide_model::UnixMillis;
use bolide_model::rid::ContainerRid;
use bolide_storage::{Key, PartitionId};
use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use super::heartbeat::{self, Heartbeat, NodeId};
use super::{DEAD_AFTER, FORGOTTEN_AFTER, Node};

/// Nodes of a partition that clients in direct mode are told.
const REPLICAS: usize = 2;

/// See the module.
#[derive(Default)]
pub(super) struct View {
    members: BTreeMap<NodeId, Member>,
    /// The stamp of the head that was read. A node that has joined later reads at a later time.
    stamp: UnixMillis,
}

/// A node, alive or dead.
struct Member {
    heartbeat: Heartbeat,
    value: Bytes,
    /// When its last heartbeat was seen first.
    seen: Instant,
    state: Life,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Alive,
    Dead,
    /// Dead for so long that its row is removed.
    Forgotten,
}

impl View {
    /// Returns the view after the rows were read at a head with this stamp, between two instants.
    pub fn next(
        &self,
        stamp: UnixMillis,
        rows: impl Iterator<Item = (Bytes, Bytes)>,
        (began, ended): (Instant, Instant),
    ) -> View {
        let mut members = BTreeMap::new();
        for (key, value) in rows {
            let Some(id) = heartbeat::node_of(&key) else { continue };
            let known = self.members.get(&id).filter(|known| known.value == value);
            let seen = known.map_or(ended, |known| known.seen);
            // Counted to the begin of the read: a heartbeat that came during it may be missing.
            let silent = began.saturating_duration_since(seen);
            let state = match () {
                () if silent > FORGOTTEN_AFTER => Life::Forgotten,
                () if silent > DEAD_AFTER => Life::Dead,
                () => Life::Alive,
            };
            let heartbeat = Heartbeat::decode(&value);
            members.insert(
                id,
                Member {
                    heartbeat,
                    value,
                    seen,
                    state,
                },
            );
        }
        View { members, stamp }
    }

    fn live(&self) -> impl Iterator<Item = (NodeId, &Member)> {
        let live = self.members.iter().filter(|(_, member)| member.state == Life::Alive);
        live.map(|(id, member)| (*id, member))
    }

    /// Returns the node that does the upkeep of a partition; `None` if no node is known.
    pub fn owner(&self, partition: PartitionId) -> Option<NodeId> {
        self.live().map(|(id, _)| id).max_by_key(|id| weight(*id, partition))
    }

    /// Returns the owner of a partition, and where it is; `None` if it is `own`, or listens nowhere.
    pub fn owner_elsewhere(&self, own: NodeId, partition: PartitionId) -> Option<(NodeId, String)> {
        let owner = self.owner(partition).filter(|owner| *owner != own)?;
        let endpoint = &self.members.get(&owner)?.heartbeat.endpoint;
        (!endpoint.is_empty()).then(|| (owner, endpoint.clone()))
    }

    /// Returns where clients in direct mode send requests for a partition: its owner, and the node that would own it without that one; `None` for `own`. Nodes
    /// that such clients do not reach are left out, and there is at least one.
    pub fn frame_places(&self, own: NodeId, partition: PartitionId) -> Vec<Option<String>> {
        let mut nodes: Vec<(NodeId, &Member)> = self.live().collect();
        nodes.sort_by_key(|(id, _)| std::cmp::Reverse(weight(*id, partition)));
        let place = |(id, member): (NodeId, &Member)| match &member.heartbeat.frames {
            _ if id == own => Some(None),
            frames if frames.is_empty() => None,
            frames => Some(Some(frames.clone())),
        };
        let mut places: Vec<Option<String>> = nodes.into_iter().filter_map(place).take(REPLICAS).collect();
        if places.is_empty() {
            places.push(None);
        }
        places
    }

    /// Returns the latest time at which a purge by `own` may judge a container.
    pub fn purge_bound(&self, own: NodeId, container: ContainerRid) -> UnixMillis {
        let others = self.live().filter(|(id, _)| *id != own);
        let bounds = others.map(|(_, other)| {
            let Heartbeat { bound_ms, readers, .. } = &other.heartbeat;
            let bound = UnixMillis(*bound_ms);
            readers.oldest(container).map_or(bound, |oldest| oldest.min(bound))
        });
        bounds.fold(self.stamp, UnixMillis::min)
    }

    /// Returns the rows of nodes that have been dead for long.
    pub fn forgotten(&self) -> Vec<(Key, Bytes)> {
        let forgotten = self
            .members
            .iter()
            .filter(|(_, member)| member.state == Life::Forgotten);
        let rows = forgotten.map(|(id, member)| (heartbeat::key(*id), member.value.clone()));
        rows.collect()
    }

    /// Returns the live nodes.
    pub fn nodes(&self, own: NodeId, now: Instant) -> Vec<Node> {
        let node = |(id, member): (NodeId, &Member)| Node {
            id,
            endpoint: member.heartbeat.endpoint.clone(),
            is_self: id == own,
            alive: Duration::from_millis(member.heartbeat.alive_ms),
            heartbeat_age: now.saturating_duration_since(member.seen),
            clock: (
                UnixMillis(member.heartbeat.clock_ms.0),
                UnixMillis(member.heartbeat.clock_ms.1),
            ),
            partitions_owned: member.heartbeat.partitions_owned,
            conflicts: member.heartbeat.conflicts,
        };
        self.live().map(node).collect()
    }
}

/// The weight of a node for a partition, the same on all nodes: rendezvous hashing.
fn weight(node: NodeId, partition: PartitionId) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&node.0.to_be_bytes());
    bytes[8..].copy_from_slice(&partition.0.to_be_bytes());
    xxh3_64(&bytes)
}

#[cfg(test)]
mod tests;
