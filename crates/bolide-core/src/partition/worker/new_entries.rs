//! When a write batch takes the entries of creates to be new.

use bolide_storage::Engine;

/// Number of write batches that read the entries of creates, after one of them was there: whoever creates what is there does so again and again.
const BATCHES_THAT_READ: u32 = 64;

/// See the module.
pub(super) struct NewEntries {
    /// The engine checks it with the commit, for less than a read costs.
    are_checked: bool,
    batches_that_read: u32,
}

impl NewEntries {
    pub fn checked_by(engine: &dyn Engine) -> NewEntries {
        NewEntries {
            are_checked: engine.checks_new_keys(),
            batches_that_read: 0,
        }
    }

    /// Whether the next write batch does.
    pub fn next(&mut self) -> bool {
        if self.batches_that_read == 0 {
            return self.are_checked;
        }
        self.batches_that_read -= 1;
        false
    }

    /// One that was taken to be new was there.
    pub fn found_one(&mut self) {
        self.batches_that_read = BATCHES_THAT_READ;
    }
}
