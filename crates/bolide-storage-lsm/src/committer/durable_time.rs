//! How far server time is durable.

use std::sync::atomic::{AtomicI64, Ordering};

use bolide_model::UnixMillis;

/// A time below which server time will not fall after a crash; raised by the committer, read by every request.
#[derive(Debug)]
pub(crate) struct DurableTime(AtomicI64);

impl DurableTime {
    pub(super) fn new(time: UnixMillis) -> DurableTime {
        DurableTime(AtomicI64::new(time.0))
    }

    pub(crate) fn get(&self) -> UnixMillis {
        UnixMillis(self.0.load(Ordering::Acquire))
    }

    pub(super) fn raise(&self, to: UnixMillis) {
        self.0.fetch_max(to.0, Ordering::AcqRel);
    }
}
