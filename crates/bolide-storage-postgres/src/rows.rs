//! Keys and values in the table.
//!
//! Column `part` is the number of a home, so that a home lies on one shard. A key begins with the number of the partition:
//!
//! ```text
//!   number (4) 00 base + 1 (8)    commit record; 0 for the one that a partition is created with
//!   number (4) 01…05 key          row of a space
//!   ffffffff 'p' number (4)       list of the home's partitions; empty
//!   ffffffff 'r' id (8)           home 0: partition that is being removed; empty
//!   ffffffff 's' name             home 0: what the store remembers of itself
//! ```
//!
//! All numbers are big-endian, so that keys are in their order.
//!
//! A commit record has the key of the commit that it follows. Two commits that follow the same one would have the same key, and the table has a key once: that
//! is the compare-and-set of a commit, whatever numbers the two would have given themselves.

use bolide_model::{Lsn, UnixMillis};
use bolide_storage::{Batch, CommitToken, Edition, Head, HomeId, Key, PartitionId, Scan, Space, Ticket};
use bytes::Bytes;

/// Bytes before the key of a row of a space.
pub(crate) const PREFIX_BYTES: usize = 5;
const COMMITS: u8 = 0;
/// No partition has this number.
const NO_NUMBER: u32 = u32::MAX;

/// A range of keys, the end excluded.
pub(crate) type Range = (Vec<u8>, Vec<u8>);

/// Whether a partition can be stored.
pub(crate) fn is_storable(partition: PartitionId) -> bool {
    partition.number() != NO_NUMBER
}

/// The key of a row of a space.
pub(crate) fn key(partition: PartitionId, key: &Key) -> Vec<u8> {
    space_key(partition, key.space, &key.bytes)
}

fn space_key(partition: PartitionId, space: Space, bytes: &[u8]) -> Vec<u8> {
    let mut row = Vec::with_capacity(PREFIX_BYTES + bytes.len());
    row.extend_from_slice(&partition.number().to_be_bytes());
    row.push(tag(space));
    row.extend_from_slice(bytes);
    row
}

fn tag(space: Space) -> u8 {
    match space {
        Space::Item => 1,
        Space::Log => 2,
        Space::Expiry => 3,
        Space::Index => 4,
        Space::Meta => 5,
    }
}

/// The range of a scan.
pub(crate) fn scanned(partition: PartitionId, scan: &Scan) -> Range {
    let end = match &scan.to {
        Some(to) => space_key(partition, scan.space, to),
        None => prefix(partition, tag(scan.space) + 1),
    };
    (space_key(partition, scan.space, &scan.from), end)
}

fn prefix(partition: PartitionId, tag: u8) -> Vec<u8> {
    let mut bytes = partition.number().to_be_bytes().to_vec();
    bytes.push(tag);
    bytes
}

/// All rows of a partition that are in its spaces.
pub(crate) fn spaces(partition: PartitionId) -> Range {
    (prefix(partition, COMMITS + 1), prefix(partition, u8::MAX))
}

/// The commit records of a partition.
pub(crate) fn commits(partition: PartitionId) -> Range {
    (prefix(partition, COMMITS), prefix(partition, COMMITS + 1))
}

/// The list of the partitions of any home.
pub(crate) fn partition_list() -> Range {
    (own_key(b'p', &[]), own_key(b'p' + 1, &[]))
}

/// The entry of a partition in the list of its home.
pub(crate) fn listed(partition: PartitionId) -> Vec<u8> {
    own_key(b'p', &partition.number().to_be_bytes())
}

/// The partitions that are being removed.
pub(crate) fn removals() -> Range {
    (own_key(b'r', &[]), own_key(b'r' + 1, &[]))
}

/// The entry of a partition that is being removed.
pub(crate) fn removal(partition: PartitionId) -> Vec<u8> {
    own_key(b'r', &partition.0.to_be_bytes())
}

/// The partition of an entry of [`removals`].
pub(crate) fn removed(key: &[u8]) -> Option<PartitionId> {
    let id = key.get(PREFIX_BYTES..)?.try_into().ok()?;
    Some(PartitionId(u64::from_be_bytes(id)))
}

/// The key under which the store keeps a fact about itself.
pub(crate) fn store_key(name: &str) -> Vec<u8> {
    own_key(b's', name.as_bytes())
}

fn own_key(kind: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = NO_NUMBER.to_be_bytes().to_vec();
    bytes.push(kind);
    bytes.extend_from_slice(rest);
    bytes
}

/// The home of the catalog, where the store keeps what belongs to no other home.
pub(crate) const STORE: HomeId = PartitionId::CATALOG.home();

/// A time as bytes that are in its order.
pub(crate) fn time_bytes(time: UnixMillis) -> [u8; 8] {
    (time.0.cast_unsigned() ^ (1 << 63)).to_be_bytes()
}

/// The time of [`time_bytes`].
pub(crate) fn time_of(bytes: &[u8]) -> Option<UnixMillis> {
    let bits = u64::from_be_bytes(bytes.try_into().ok()?);
    Some(UnixMillis((bits ^ (1 << 63)).cast_signed()))
}

/// The record of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommitRecord {
    /// The number in its key.
    position: u64,
    pub token: CommitToken,
    /// The head that the commit made.
    pub head: Head,
    /// Rises when commits that were decided on this record must not happen any more.
    pub fence: u64,
}

const RECORD_BYTES: usize = 48;

impl CommitRecord {
    /// The record that a partition is created with.
    pub(crate) fn first(head: Head) -> CommitRecord {
        CommitRecord {
            position: 0,
            token: CommitToken(0),
            head,
            fence: 0,
        }
    }

    /// The record of a commit.
    pub(crate) fn of(batch: &Batch) -> CommitRecord {
        CommitRecord {
            position: position_after(batch.base),
            token: batch.token,
            head: batch.head(),
            fence: 0,
        }
    }

    /// The same, which no commit that knows only this one can follow.
    pub(crate) fn fenced(self) -> CommitRecord {
        CommitRecord {
            fence: self.fence.wrapping_add(1),
            ..self
        }
    }

    /// Rises with each commit and each fence of a partition.
    pub(crate) fn age(&self) -> (Lsn, u64) {
        (self.head.lsn, self.fence)
    }

    /// Its key.
    pub(crate) fn key(&self, partition: PartitionId) -> Vec<u8> {
        record_key(partition, self.position)
    }

    /// Its value.
    pub(crate) fn value(&self) -> [u8; RECORD_BYTES] {
        let mut value = [0; RECORD_BYTES];
        value[..16].copy_from_slice(&self.token.0.to_be_bytes());
        value[16..24].copy_from_slice(&self.head.lsn.0.to_be_bytes());
        value[24..32].copy_from_slice(&self.head.stamp.0.to_be_bytes());
        value[32..40].copy_from_slice(&self.head.edition.0.to_be_bytes());
        value[40..].copy_from_slice(&self.fence.to_be_bytes());
        value
    }

    /// Reads a record from its row; `None` if it is damaged.
    pub(crate) fn read(key: &[u8], value: &[u8]) -> Option<CommitRecord> {
        let position = key.get(PREFIX_BYTES..)?.try_into().ok()?;
        let (token, rest) = value.split_first_chunk::<16>()?;
        let numbers: [[u8; 8]; 4] = [
            rest.get(..8)?.try_into().ok()?,
            rest.get(8..16)?.try_into().ok()?,
            rest.get(16..24)?.try_into().ok()?,
            rest.get(24..32)?.try_into().ok()?,
        ];
        let [lsn, stamp, edition, fence] = numbers.map(u64::from_be_bytes);
        (rest.len() == 32).then_some(CommitRecord {
            position: u64::from_be_bytes(position),
            token: CommitToken(u128::from_be_bytes(*token)),
            head: Head {
                lsn: Lsn(lsn),
                stamp: UnixMillis(stamp.cast_signed()),
                edition: Edition(edition),
            },
            fence,
        })
    }
}

/// The number in the key of the commit that follows `base`.
fn position_after(base: Lsn) -> u64 {
    base.0 + 1
}

/// The key of the record of the commit that a ticket names.
pub(crate) fn ticket_key(partition: PartitionId, ticket: &Ticket) -> Vec<u8> {
    record_key(partition, position_after(ticket.base))
}

fn record_key(partition: PartitionId, position: u64) -> Vec<u8> {
    let mut key = prefix(partition, COMMITS);
    key.extend_from_slice(&position.to_be_bytes());
    key
}

/// The key of the record that a partition is created with.
pub(crate) fn first_record(partition: PartitionId) -> Vec<u8> {
    record_key(partition, 0)
}

/// The commit records before that of a key; the one that the partition was created with stays, so that it is not created again.
pub(crate) fn records_before(partition: PartitionId, key: Vec<u8>) -> Range {
    (record_key(partition, 1), key)
}

/// The key of a row without what stands before it.
pub(crate) fn stripped(row: &[u8]) -> Bytes {
    Bytes::copy_from_slice(row.get(PREFIX_BYTES..).unwrap_or_default())
}

#[cfg(test)]
mod tests;
