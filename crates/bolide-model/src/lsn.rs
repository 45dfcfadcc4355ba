//! Log sequence numbers.

use std::fmt;

/// More transactions than a partition has between two replacements of the account's content. Small enough that clients which keep positions as floating
/// point numbers, exact up to 2^53, can do so after eight million replacements.
const REPLACEMENT_STEP: u64 = 1 << 30;

/// Position in the log of one physical partition: each committed transaction adds one (cosmos-rest §3.3, TTL-208).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub u64);

impl Lsn {
    /// The position after this one.
    #[must_use]
    pub fn next(self) -> Lsn {
        Lsn(self.0 + 1)
    }

    /// The position from which an account counts after its content was replaced by an earlier one, if no position above this one was given before.
    ///
    /// Partitions that are gone may have had higher positions than all that are left, so a multiple of [`REPLACEMENT_STEP`] is skipped.
    #[must_use]
    pub fn after_replacement(self) -> Lsn {
        Lsn((self.0 / REPLACEMENT_STEP)
            .saturating_add(1)
            .saturating_mul(REPLACEMENT_STEP))
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
