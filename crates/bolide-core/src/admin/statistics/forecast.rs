//! How many items of a partition end when: asks its worker, a part of a write batch at a time.

use std::sync::Arc;

use bolide_model::Result;

use crate::container::ContainerState;
use crate::partition::Partition;
pub(crate) use crate::partition::forecast::{Ends, SLICES, count_some};

/// Rows looked at behind a cut at first: mostly there is nothing to pass.
const FEW_ROWS: usize = 32;
/// Rows read in one write batch. More would delay users' writes.
const ROWS: usize = 2_000;

/// Counts a partition's live items by when they end.
pub(crate) async fn counted(state: &Arc<ContainerState>, partition: &Partition) -> Result<Ends> {
    if !state.settings.policy.is_on() {
        return Ok(Ends::default());
    }
    let mut rows = FEW_ROWS;
    loop {
        let settings = state.settings;
        let counted = partition
            .background(move |batch| count_some(batch, &settings, rows))
            .await?;
        match counted {
            Some(ends) => return Ok(ends),
            None => rows = ROWS,
        }
    }
}
