//! Partitions that are no range of a container: each holds all keys, and no request consumes units of it.

use std::sync::Arc;

use bolide_model::epk::EpkRange;
use bolide_model::{Result, UnixMillis};
use bolide_storage::{Engine, Head, PartitionId};

use super::{Partition, Placement, Signals, engine_error};
use crate::throughput::{Meter, PacingSettings};

impl Partition {
    /// Opens such a partition, and creates it if it does not exist.
    ///
    /// # Errors
    /// From the engine.
    pub async fn open_whole(
        engine: Arc<dyn Engine>,
        id: PartitionId,
        now: UnixMillis,
        signals: Signals,
    ) -> Result<Arc<Partition>> {
        engine.create(id, Head::first(now)).await.map_err(engine_error)?;
        let placement = Placement {
            id,
            range: 0,
            epk: EpkRange::all(),
            parents: vec![],
        };
        let meter = Meter::shared(&PacingSettings::of(None), 1, now.seconds());
        Partition::open(engine, placement, meter, signals).await
    }
}
