//! Counts the items of a partition by the time until they expire. Its worker counts a part in each write batch.

use std::sync::Arc;

use bolide_model::Result;

use crate::container::ContainerState;
use crate::partition::Partition;
pub(crate) use crate::partition::forecast::{Ends, SLICES, count_some};

/// Maximum number of rows read behind each cut at first: mostly there is none to pass.
const FEW_ROWS: usize = 32;
/// Maximum number of rows read in one write batch, so that users' writes are not delayed.
const ROWS: usize = 2_000;

/// Counts a partition's live items by the time until they expire.
pub(crate) async fn counted(state: &Arc<ContainerState>, partition: &Partition) -> Result<Ends> {
    if !state.settings.policy.is_on() {
        return Ok(Ends::default());
    }
    let mut rows = FEW_ROWS;
    loop {
        let settings = state.settings.clone();
        let counted = partition
            .background(move |batch| count_some(batch, &settings, rows))
            .await?;
        match counted {
            Some(ends) => return Ok(ends),
            None => rows = ROWS,
        }
    }
}
