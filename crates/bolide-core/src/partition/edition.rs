//! What the edition of a partition's head says, which every read returns and every commit sets (TTL-233).
//!
//! ```text
//!   sealed (1 bit)        writes are refused while the store is copied and after it has moved (`write_seal`)
//!   settings (39 bits)    the number of the container's settings: raised in every partition before they change (`catalog::seal`)
//!   deletions (24 bits)   counts deletions by partition key, whose tombstones readers have in memory
//! ```
//!
//! Several servers may share a store. One that reads or writes a partition whose settings have another number than those that it has in memory begins
//! the request again with the new settings.

use bolide_model::{Error, Reason};
use bolide_storage::Edition;
use serde::{Deserialize, Serialize};

const DELETION_BITS: u32 = 24;
const DELETIONS: u64 = (1 << DELETION_BITS) - 1;
const SEALED: u64 = 1 << 63;

/// The number of a container's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SettingsNumber(pub u64);

impl SettingsNumber {
    /// Returns the number in a head's edition.
    pub fn of(edition: Edition) -> SettingsNumber {
        SettingsNumber((edition.0 & !SEALED) >> DELETION_BITS)
    }

    /// Returns whether the settings have not changed since the container was created.
    pub fn is_first(&self) -> bool {
        self.0 == 0
    }

    /// Returns the number of the settings after these.
    pub fn next(self) -> SettingsNumber {
        SettingsNumber(self.0 + 1)
    }

    /// Returns the edition of a partition that has these settings, without deletions by partition key.
    pub fn edition(self) -> Edition {
        Edition(self.0 << DELETION_BITS)
    }
}

/// Returns the edition after new settings.
pub(super) fn with_settings(edition: Edition, settings: SettingsNumber) -> Edition {
    Edition((edition.0 & SEALED) | settings.edition().0 | deletions(edition))
}

/// Tells whether the partition has a seal, which its own row describes.
pub(super) fn is_sealed(edition: Edition) -> bool {
    edition.0 & SEALED != 0
}

/// Returns the edition of a partition that has a seal, and is otherwise the same.
pub(super) fn sealed(edition: Edition) -> Edition {
    Edition(edition.0 | SEALED)
}

/// Returns the edition of a partition that has no seal, and is otherwise the same.
pub(super) fn unsealed(edition: Edition) -> Edition {
    Edition(edition.0 & !SEALED)
}

/// Returns the edition after a deletion by partition key.
pub(super) fn after_deletion(edition: Edition) -> Edition {
    Edition((edition.0 & !DELETIONS) | (edition.0.wrapping_add(1) & DELETIONS))
}

/// Returns the count of deletions by partition key, which begins again after the largest.
pub(super) fn deletions(edition: Edition) -> u64 {
    edition.0 & DELETIONS
}

/// Returns the error of a request that has met other settings than its own.
pub(super) fn settings_changed() -> Error {
    Reason::SettingsChanged.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_deletions_do_not_touch_each_other() {
        let edition = after_deletion(SettingsNumber(7).edition());
        assert_eq!(
            (SettingsNumber::of(edition), deletions(edition)),
            (SettingsNumber(7), 1)
        );
        let raised = with_settings(edition, SettingsNumber(8));
        assert_eq!((SettingsNumber::of(raised), deletions(raised)), (SettingsNumber(8), 1));
    }

    #[test]
    fn a_seal_touches_neither_settings_nor_deletions() {
        let edition = after_deletion(SettingsNumber(7).edition());
        let with_seal = sealed(edition);
        assert!(is_sealed(with_seal) && !is_sealed(edition));
        assert_eq!(SettingsNumber::of(with_seal), SettingsNumber(7));
        assert_eq!(deletions(with_seal), 1);
        assert!(is_sealed(with_settings(with_seal, SettingsNumber(8))));
        assert_eq!(unsealed(with_seal), edition);
    }

    #[test]
    fn the_count_of_deletions_begins_again_after_the_largest() {
        let last = Edition(SettingsNumber(7).edition().0 | DELETIONS);
        assert_eq!(after_deletion(last), SettingsNumber(7).edition());
    }
}
