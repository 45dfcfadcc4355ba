//! Ids of partitions, and of the homes they lie in.

use std::fmt;

/// Identifies a home: partitions that an engine keeps together, so that they can be committed together and read at one snapshot.
///
/// A physical partition of a container is its own home. Home 0 holds only the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HomeId(pub u32);

/// Identifies a physical partition for its whole life. Never reused. Partition 0 is the catalog.
///
/// Shape: the home in the upper 32 bits, 0 for a partition that is its own home, and the number in the lower 32. The number is unique in the account,
/// whatever the home, because etags are made of it. Ids from versions without homes are plain numbers; they stay valid, on disk too, as partitions
/// that are their own homes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId(pub u64);

impl PartitionId {
    /// The partition that holds databases, containers and account settings.
    pub const CATALOG: PartitionId = PartitionId(0);

    /// The partition in which the servers that share a store tell each other that they are alive.
    pub const NODES: PartitionId = PartitionId(u32::MAX as u64 - 1);

    /// The partition of this number that is its own home.
    pub const fn in_own_home(number: u32) -> PartitionId {
        PartitionId(number as u64)
    }

    /// The partition of this number in a home; its own home if both numbers are equal. `None` for home 0, which holds only the catalog.
    pub const fn in_home(home: HomeId, number: u32) -> Option<PartitionId> {
        match home.0 {
            home if home == number => Some(PartitionId::in_own_home(number)),
            0 => None,
            home => Some(PartitionId(((home as u64) << 32) | number as u64)),
        }
    }

    /// The home of the partition.
    pub const fn home(self) -> HomeId {
        match (self.0 >> 32) as u32 {
            0 => HomeId(self.number()),
            home => HomeId(home),
        }
    }

    /// The number, unique in the account.
    pub const fn number(self) -> u32 {
        self.0 as u32
    }
}

/// The number; if the partition is not its own home, the home's number and a slash come first: `7`, `3/7`.
impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (home, number) = (self.home().0, self.number());
        if home == number {
            write!(f, "{number}")
        } else {
            write!(f, "{home}/{number}")
        }
    }
}

#[cfg(test)]
mod tests;
