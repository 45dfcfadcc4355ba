//! Requests exact counters from the workers of a container's partitions, which count the ghosts for this (`crate::partition::ghosts`).

use bolide_model::{Result, UnixSeconds};

use crate::container::ContainerState;
use crate::partition::Partition;
use crate::partition::ghosts::{FEW_ROWS, ROWS};
use crate::partition::state::PartitionState;

/// Maximum number of times the ranges are counted again because a second passed between them.
const TRIES: usize = 5;

/// Returns the counters of all partitions of a container, in the order of its ranges, with the ghosts at one second for all of them, and that second.
/// (If counting always takes longer than a second, the counts are of different seconds.)
pub(crate) async fn counted_together(state: &ContainerState) -> Result<(Vec<PartitionState>, UnixSeconds)> {
    let partitions = &state.layout.partitions;
    let mut tries = 0;
    loop {
        tries += 1;
        let mut all = Vec::with_capacity(partitions.len());
        let mut seconds = Vec::with_capacity(partitions.len());
        for partition in partitions {
            let (counted, at) = counted_at(state, partition).await?;
            all.push(counted);
            seconds.push(at);
        }
        let (first, last) = (seconds.first().copied(), seconds.last().copied());
        if first == last || tries == TRIES {
            return Ok((all, last.unwrap_or_default()));
        }
    }
}

/// Returns a partition's counters with every ghost counted, and the second at which they were counted.
pub(crate) async fn counted_at(state: &ContainerState, partition: &Partition) -> Result<(PartitionState, UnixSeconds)> {
    let mut rows = FEW_ROWS;
    loop {
        match partition.count_ghosts(state.settings.clone(), rows).await? {
            Some(counted) => return Ok(counted),
            None => rows = ROWS,
        }
    }
}
