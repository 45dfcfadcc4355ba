//! Keys and rows on disk.
//!
//! Each [`Space`] is one key space of the store. In it, integers big-endian:
//!
//! ```text
//! partition (8) | key                              value        a row of a partition
//! ff × 8 | 's'                                     Sequence     the newest write that touched this key space
//! ff × 8 | 'h' | partition (8)   (Meta only)       HeadRow      a partition's head
//! ff × 8 | 'r' | partition (8)   (Meta only)       empty        the partition is removed; its rows are being deleted
//!
//! Sequence   number (8) | highest stamp, ms (8)
//! HeadRow    lsn (8) | stamp, ms (8) | lsn before the last commit (8) | token of the last commit (16) | edition (8)
//! ```
//!
//! A partition is its id, [`PartitionId`]: home (4), 0 if it is its own | number (4).
//!
//! Head rows of format 2 end before the edition; they are read with the first edition.
//!
//! *Each* key space has its own sequence row, because key spaces reach the disk one by one: only this row tells whether a key space lost its latest writes.

use bolide_model::{Lsn, UnixMillis};
use bolide_storage::{CommitToken, Edition, Head, PartitionId, RecentCommits, Space};
use bytes::{BufMut, Bytes, BytesMut};

/// Rows of the engine itself are stored under this id, above every partition. No partition may have it.
pub(crate) const OWN: PartitionId = PartitionId(u64::MAX);

/// Length of the prefix before a partition's own key, in bytes.
pub(crate) const PREFIX_BYTES: usize = 8;

/// Name of the store's key space for each [`Space`], in the order of [`Space::ALL`].
pub(crate) const SPACE_NAMES: [&str; Space::ALL.len()] = ["item", "log", "expiry", "index", "meta"];

/// The key of a partition's row.
pub(crate) fn row_key(partition: PartitionId, key: &[u8]) -> Bytes {
    let mut row = BytesMut::with_capacity(PREFIX_BYTES + key.len());
    row.put_u64(partition.0);
    row.put_slice(key);
    row.freeze()
}

/// The end of a partition's rows, exclusive.
pub(crate) fn rows_end(partition: PartitionId) -> Bytes {
    // `OWN` is not a partition, so there is a next number.
    row_key(PartitionId(partition.0 + 1), &[])
}

/// The key of the sequence row.
pub(crate) fn sequence_key() -> Bytes {
    row_key(OWN, b"s")
}

/// Rows about partitions, in the Meta space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Head,
    Removal,
}

impl Kind {
    fn tag(self) -> u8 {
        match self {
            Kind::Head => b'h',
            Kind::Removal => b'r',
        }
    }

    /// The key of the row about `partition`.
    pub(crate) fn key(self, partition: PartitionId) -> Bytes {
        let mut tail = [self.tag(); 9];
        tail[1..].copy_from_slice(&partition.0.to_be_bytes());
        row_key(OWN, &tail)
    }

    /// The range of all rows of this kind: first key, and the end, exclusive.
    pub(crate) fn range(self) -> (Bytes, Bytes) {
        (row_key(OWN, &[self.tag()]), row_key(OWN, &[self.tag() + 1]))
    }

    /// The partition that a key of this kind names.
    pub(crate) fn partition(key: &[u8]) -> Option<PartitionId> {
        let number = key.get(PREFIX_BYTES + 1..)?.try_into().ok()?;
        Some(PartitionId(u64::from_be_bytes(number)))
    }
}

/// The newest write that touched a key space. The default is the state before any write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sequence {
    pub(crate) number: u64,
    /// No commit of any partition has a higher stamp.
    pub(crate) stamp: UnixMillis,
}

impl Sequence {
    /// Before the first write.
    pub(crate) const NONE: Sequence = Sequence {
        number: 0,
        stamp: UnixMillis(i64::MIN),
    };

    pub(crate) fn encode(self) -> Bytes {
        let mut row = BytesMut::with_capacity(16);
        row.put_u64(self.number);
        row.put_i64(self.stamp.0);
        row.freeze()
    }

    pub(crate) fn decode(row: &[u8]) -> Option<Sequence> {
        let (number, stamp) = row.split_first_chunk::<8>()?;
        let stamp = i64::from_be_bytes(stamp.try_into().ok()?);
        Some(Sequence {
            number: u64::from_be_bytes(*number),
            stamp: UnixMillis(stamp),
        })
    }
}

const HEAD_ROW_BYTES: usize = 48;

/// A partition's head as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadRow {
    pub(crate) head: Head,
    pub(crate) base: Lsn,
    pub(crate) token: CommitToken,
}

impl HeadRow {
    /// The row of a partition that was created with `head`.
    pub(crate) fn created(head: Head) -> HeadRow {
        HeadRow {
            head,
            base: head.lsn,
            token: CommitToken(0),
        }
    }

    pub(crate) fn encode(self) -> Bytes {
        let mut row = BytesMut::with_capacity(HEAD_ROW_BYTES);
        row.put_u64(self.head.lsn.0);
        row.put_i64(self.head.stamp.0);
        row.put_u64(self.base.0);
        row.put_u128(self.token.0);
        row.put_u64(self.head.edition.0);
        row.freeze()
    }

    pub(crate) fn decode(row: &[u8]) -> Option<HeadRow> {
        let (lsn, row) = row.split_first_chunk::<8>()?;
        let (stamp, row) = row.split_first_chunk::<8>()?;
        let (base, token) = row.split_first_chunk::<8>()?;
        let (token, edition) = token.split_first_chunk::<16>()?;
        let edition = match edition {
            [] => Edition::FIRST,
            edition => Edition(u64::from_be_bytes(edition.try_into().ok()?)),
        };
        let head = Head {
            lsn: Lsn(u64::from_be_bytes(*lsn)),
            stamp: UnixMillis(i64::from_be_bytes(*stamp)),
            edition,
        };
        Some(HeadRow {
            head,
            base: Lsn(u64::from_be_bytes(*base)),
            token: CommitToken(u128::from_be_bytes(*token)),
        })
    }

    /// The commits known after a restart: the last one.
    pub(crate) fn recent_commits(self) -> RecentCommits {
        let mut recent_commits = RecentCommits::starting_at(Head {
            lsn: self.base,
            ..self.head
        });
        recent_commits.push_commit(self.token, self.head);
        recent_commits
    }
}
