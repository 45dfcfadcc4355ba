//! The handles of an open partition: one for requests by each number of the container's settings (`super::edition`).

use std::sync::Arc;

use super::{Partition, SettingsNumber};

impl Partition {
    /// Returns the handle for requests by these settings.
    pub fn at(self: &Arc<Self>, settings: SettingsNumber) -> Arc<Partition> {
        match self.settings == settings {
            true => self.clone(),
            false => Arc::new(Partition {
                settings,
                ..Partition::clone(self)
            }),
        }
    }

    /// Tells whether other servers may commit to it.
    pub fn is_shared(&self) -> bool {
        self.engine.is_shared()
    }

    /// Tells whether the next write is better committed by the server that owns the partition, because others write it, too. Counts it.
    pub fn take_forward(&self) -> bool {
        self.shared.rivals.take_forward()
    }

    /// Tells whether both are handles of one open partition, for requests by the same or by other settings.
    pub fn is_same(&self, other: &Partition) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}
