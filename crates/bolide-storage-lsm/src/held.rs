//! Held snapshots: a view of one home that does not change while commits go on.

use std::fmt;
use std::sync::Arc;

use bolide_model::time::MonotoneClock;
use bolide_storage::{EngineFuture, HeldSnapshot, Hold, HoldError, PartitionId, ReadRequest, ReadResponse};

use crate::view::{HomeView, Views};

/// A snapshot as its reader sees it.
///
/// It does not keep the store open: the engine ends held snapshots when the store is closed, or opened again after a failure.
pub(crate) struct LsmHeldSnapshot {
    hold: Arc<Hold<HomeView>>,
    views: Arc<Views>,
    time: Arc<MonotoneClock>,
}

impl LsmHeldSnapshot {
    pub(crate) fn new(hold: Arc<Hold<HomeView>>, views: Arc<Views>, time: Arc<MonotoneClock>) -> LsmHeldSnapshot {
        LsmHeldSnapshot { hold, views, time }
    }
}

impl HeldSnapshot for LsmHeldSnapshot {
    fn read(&self, partition: PartitionId, request: ReadRequest) -> EngineFuture<'_, Result<ReadResponse, HoldError>> {
        Box::pin(async move {
            self.views.count_call();
            let view = self.hold.snapshot(self.time.now())?;
            Ok(view.read(partition, &request)?)
        })
    }
}

impl fmt::Debug for LsmHeldSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LsmHeldSnapshot").finish_non_exhaustive()
    }
}
