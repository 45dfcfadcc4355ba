//! Intervals of item keys.

use bolide_model::epk::{Epk, EpkRange};
use bolide_model::partition_key::PartitionKeyDefinition;
use bytes::Bytes;

/// An interval of item keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeyInterval {
    /// Inclusive.
    pub from: Bytes,
    /// Exclusive; `None`: there is no end.
    pub to: Option<Bytes>,
}

impl KeyInterval {
    pub fn of_range(range: &EpkRange) -> KeyInterval {
        let is_end = range.max == Epk::end();
        let to = (!is_end).then(|| Bytes::copy_from_slice(range.max.as_bytes()));
        KeyInterval {
            from: Bytes::copy_from_slice(range.min.as_bytes()),
            to,
        }
    }

    /// Returns the interval with every bound that is longer than an effective partition key moved behind the key that the bound begins with: that
    /// key is below the bound, and in item keys other bytes follow it.
    pub fn between_whole_keys(self, definition: &PartitionKeyDefinition) -> KeyInterval {
        let moved = |bound: Bytes| match Epk::length_in(definition, &bound) {
            Some(length) if length < bound.len() => super::keys::after_prefix(&bound[..length]),
            _ => Some(bound),
        };
        KeyInterval {
            from: moved(self.from.clone()).unwrap_or(self.from),
            to: self.to.and_then(moved),
        }
    }

    pub fn narrow(&mut self, other: KeyInterval) {
        self.from = self.from.clone().max(other.from);
        self.to = match (self.to.take(), other.to) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
    }

    /// Returns whether all of `other` lies inside this interval. An empty interval lies inside every other.
    pub fn covers(&self, other: &KeyInterval) -> bool {
        let ends_inside = match (&self.to, &other.to) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(to), Some(other)) => other <= to,
        };
        let is_empty = other.to.as_ref().is_some_and(|to| *to <= other.from);
        is_empty || (self.from <= other.from && ends_inside)
    }
}
