//! The physical partitions of a container.

use std::sync::Arc;

use bolide_model::epk::Epk;
use bolide_model::{Error, Reason, Result};

use crate::partition::{Partition, Placement, SettingsNumber};

/// The physical partitions of a container, in the order of their ranges.
#[derive(Clone)]
pub(crate) struct Layout {
    /// Rises with every split.
    pub version: u64,
    pub partitions: Vec<Arc<Partition>>,
}

impl Layout {
    /// Returns the id, range, keys and parents of each partition.
    pub fn placements(&self) -> Vec<Placement> {
        let placements = self.partitions.iter().map(|partition| Placement {
            id: partition.id,
            range: partition.range,
            epk: partition.epk.clone(),
            parents: partition.parents.clone(),
        });
        placements.collect()
    }

    /// Returns the same partitions for requests by settings of this number.
    #[must_use]
    pub fn at(&self, number: SettingsNumber) -> Layout {
        Layout {
            version: self.version,
            partitions: self.partitions.iter().map(|partition| partition.at(number)).collect(),
        }
    }

    /// Returns the partition that holds a key.
    pub fn partition_of(&self, epk: &Epk) -> Result<&Arc<Partition>> {
        let after = self.partitions.partition_point(|partition| partition.epk.min <= *epk);
        after
            .checked_sub(1)
            .and_then(|at| self.partitions.get(at))
            .ok_or_else(|| Error::internal("no range holds the effective partition key"))
    }

    /// Returns the partition with a range's id.
    ///
    /// # Errors
    /// `RangeGone` if there is none: the range was split, or never existed.
    pub fn partition_with_id(&self, range: u32) -> Result<&Arc<Partition>> {
        self.partitions
            .iter()
            .find(|partition| partition.range == range)
            .ok_or_else(|| Reason::RangeGone { range }.into())
    }
}
