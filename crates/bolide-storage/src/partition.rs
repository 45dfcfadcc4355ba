//! Names of partitions, and of the homes they lie in.

use std::fmt;

/// Names a home: partitions that an engine keeps in one place, so that they can be committed together and read at one snapshot.
///
/// A physical partition of a container is its own home. Home 0 is the catalog's alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HomeId(pub u32);

/// Names a physical partition for its whole life. Never reused. Partition 0 is the catalog.
///
/// Shape: the home in the upper 32 bits, 0 for a partition that is its own home, and the number in the lower 32. The number is unique
/// in the account, whatever the home: etags are made of it. So the plain numbers that were given out before there were homes stay
/// what they are, on the disk too: partitions that are their own homes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId(pub u64);

impl PartitionId {
    /// The partition that holds databases, containers and account settings.
    pub const CATALOG: PartitionId = PartitionId(0);

    /// The partition of this number that is its own home.
    pub const fn in_own_home(number: u32) -> PartitionId {
        PartitionId(number as u64)
    }

    /// The partition of this number in a home, its own if both are equal. `None` in home 0, where only the catalog is.
    pub const fn in_home(home: HomeId, number: u32) -> Option<PartitionId> {
        match home.0 {
            home if home == number => Some(PartitionId::in_own_home(number)),
            0 => None,
            home => Some(PartitionId(((home as u64) << 32) | number as u64)),
        }
    }

    /// The home it lies in.
    pub const fn home(self) -> HomeId {
        match (self.0 >> 32) as u32 {
            0 => HomeId(self.number()),
            home => HomeId(home),
        }
    }

    /// Its number, which no other partition of the account has.
    pub const fn number(self) -> u32 {
        self.0 as u32
    }
}

/// The number, behind the home's where the partition is not its own home: `7`, `3/7`.
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
