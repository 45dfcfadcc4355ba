//! Whether the other servers of a store take this one for alive (`crate::cluster`): while they do, they purge nothing that its reads still show.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bolide_model::time::Monotonic;
use bolide_model::{Error, ErrorKind, Result};
use parking_lot::RwLock;

/// See the module. On an engine of one process, and before the first heartbeat, nobody has to hear it.
#[derive(Default)]
pub(crate) struct Heard(RwLock<Option<(Monotonic, Instant)>>);

impl Heard {
    /// Records that others hear this server until then.
    pub fn until(&self, clock: &Monotonic, until: Instant) {
        *self.0.write() = Some((clock.clone(), until));
    }

    /// Tells whether others may have taken this server for dead since its last heartbeat.
    pub fn has_lapsed(&self) -> bool {
        matches!(&*self.0.read(), Some((clock, until)) if clock.now() > *until)
    }

    /// Checks that what was read after other reads of the same request can lack nothing that another server has purged meanwhile.
    ///
    /// # Errors
    /// `Unavailable`.
    pub fn check(&self) -> Result<()> {
        match self.has_lapsed() {
            true => Err(Error::new(
                ErrorKind::Unavailable,
                "the heartbeats of this server fail, so others may have purged what it reads",
            )),
            false => Ok(()),
        }
    }
}

/// Counts commits that another server's commit had overtaken.
#[derive(Default)]
pub(crate) struct Conflicts(AtomicU64);

impl Conflicts {
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
