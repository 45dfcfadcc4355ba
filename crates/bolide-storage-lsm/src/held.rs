//! Held snapshots: a view of one home that stays as it is while others move on.

use std::fmt;
use std::sync::Arc;

use bolide_model::time::MonotoneClock;
use bolide_storage::{EngineFuture, Held, Hold, HoldError, PartitionId, ReadRequest, ReadResponse};

use crate::view::{HomeView, Views};

/// A snapshot as its reader has it.
///
/// It does not keep the store open: the engine lets go of what it holds when the store is closed, or opened again after it failed.
pub(crate) struct LsmHeld {
    hold: Arc<Hold<HomeView>>,
    views: Arc<Views>,
    time: Arc<MonotoneClock>,
}

impl LsmHeld {
    pub(crate) fn new(hold: Arc<Hold<HomeView>>, views: Arc<Views>, time: Arc<MonotoneClock>) -> LsmHeld {
        LsmHeld { hold, views, time }
    }
}

impl Held for LsmHeld {
    fn read(&self, partition: PartitionId, request: ReadRequest) -> EngineFuture<'_, Result<ReadResponse, HoldError>> {
        Box::pin(async move {
            self.views.note_call();
            let view = self.hold.snapshot(self.time.now())?;
            Ok(view.read(partition, &request)?)
        })
    }
}

impl fmt::Debug for LsmHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LsmHeld").finish_non_exhaustive()
    }
}
