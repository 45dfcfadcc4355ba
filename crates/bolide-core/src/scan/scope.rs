//! The part of a container that a request reads.

use std::sync::Arc;

use bolide_model::Result;
use bolide_model::epk::{Epk, EpkRange};
use bolide_model::partition_key::{PartitionKey, PartitionKeyDefinition};
use bytes::Bytes;

use crate::container::ContainerState;
use crate::content::logical::{self, PrefixTag};
use crate::format::key_interval::KeyInterval;
use crate::format::keys;
use crate::partition::Partition;

/// The part of a container that a request reads: the intersection of the fields that are set. Without any, the whole container.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScanScope {
    /// One logical partition, or all with a prefix of a hierarchical key.
    pub partition_key: Option<PartitionKey>,
    /// One partition key range, by its id.
    pub range: Option<u32>,
    /// An interval of effective partition keys.
    pub epk: Option<EpkRange>,
}

/// The part of one physical partition inside a scope.
#[derive(Clone)]
pub(crate) struct Slice {
    pub partition: Arc<Partition>,
    /// First item key, inclusive.
    pub from: Bytes,
    /// End of the item keys, exclusive; `None`: the end of the partition.
    pub to: Option<Bytes>,
    /// If set, only the keys in between with this prefix of a hierarchical key.
    pub prefix: Option<PrefixTag>,
}

impl Slice {
    /// Returns the key of the only item that the slice can hold; `None` for other slices.
    pub fn as_point(&self) -> Option<Bytes> {
        let is_point = self.prefix.is_none() && self.to.as_ref().is_some_and(|to| keys::is_after(to, &self.from));
        is_point.then(|| self.from.clone())
    }

    /// Returns whether it is all of its partition.
    pub fn is_whole(&self) -> bool {
        self.from.is_empty() && self.to.is_none() && self.prefix.is_none()
    }

    /// Returns whether an item key lies inside the slice.
    pub fn contains(&self, item_key: &[u8]) -> bool {
        item_key >= &self.from[..] && self.to.as_ref().is_none_or(|to| item_key < &to[..]) && self.has_prefix(item_key)
    }

    /// Returns whether an item key between the ends belongs to the slice.
    pub fn has_prefix(&self, item_key: &[u8]) -> bool {
        self.prefix.is_none_or(|prefix| prefix.matches(item_key))
    }
}

impl ScanScope {
    /// Returns the parts of physical partitions inside the scope, in the order of their keys.
    ///
    /// # Errors
    /// `RangeGone`: there is no such range, or no longer; `PartitionKeyMismatch`: more components than the container's key has.
    pub(crate) fn slices(&self, state: &ContainerState) -> Result<Vec<Slice>> {
        let bounds = self.keys(state, logical::of)?;
        let partitions = match self.range {
            Some(range) => std::slice::from_ref(state.layout.partition_with_id(range)?),
            None => &state.layout.partitions[..],
        };
        let mut slices = Vec::new();
        for partition in partitions {
            if bounds
                .to
                .as_ref()
                .is_some_and(|to| partition.epk.min.as_bytes() >= &to[..])
                || partition.epk.max.as_bytes() <= &bounds.from[..]
            {
                continue;
            }
            slices.push(Slice {
                partition: partition.clone(),
                from: bounds.from.clone(),
                to: bounds.to.clone(),
                prefix: self.prefix_tag(state),
            });
        }
        Ok(slices)
    }

    /// Returns the effective partition keys of the scope, independent of the ranges that hold them now: two ways to name one part of a container give
    /// the same interval.
    ///
    /// # Errors
    /// As [`ScanScope::slices`].
    pub(crate) fn interval(&self, state: &ContainerState) -> Result<KeyInterval> {
        let mut interval = self.keys(state, Epk::of)?;
        if let Some(range) = self.range {
            interval.narrow(KeyInterval::of_range(&state.layout.partition_with_id(range)?.epk));
        }
        Ok(interval)
    }

    fn prefix_tag(&self, state: &ContainerState) -> Option<PrefixTag> {
        if state.is_unsharded() {
            return None;
        }
        let key = self.partition_key.as_ref()?;
        PrefixTag::of(&state.properties.partition_key, key)
    }

    /// Returns the interval for an unsharded collection: its documents have no partition key and are all at the lowest effective partition key, so that they are
    /// in the scope together, whatever its key is, or not at all.
    fn keys_in_collection(&self) -> KeyInterval {
        let has_documents = self.epk.as_ref().is_none_or(|range| range.min == Epk::start());
        KeyInterval {
            from: Bytes::new(),
            to: (!has_documents).then(Bytes::new),
        }
    }

    /// Returns the interval of item keys selected by the partition key and the interval of effective partition keys.
    fn keys(
        &self,
        state: &ContainerState,
        place: fn(&PartitionKeyDefinition, &PartitionKey) -> Epk,
    ) -> Result<KeyInterval> {
        if state.is_unsharded() {
            return Ok(self.keys_in_collection());
        }
        let mut bounds = KeyInterval::default();
        if let Some(range) = &self.epk {
            bounds.narrow(KeyInterval::of_range(range).between_whole_keys(&state.properties.partition_key));
        }
        if let Some(key) = self.partition_key.as_ref().filter(|key| !key.is_empty()) {
            let definition = &state.properties.partition_key;
            definition.check_prefix(key)?;
            let epk = match state.shard_key() {
                Some(shard_key) => shard_key.place_of_key(key),
                None => place(definition, key),
            };
            // Effective partition keys are never prefixes of one another, so the keys with this prefix are those of the items of the key itself, or of all
            // keys that begin with it.
            let from = Bytes::copy_from_slice(epk.as_bytes());
            bounds.narrow(KeyInterval {
                to: keys::after_prefix(&from),
                from,
            });
        }
        Ok(bounds)
    }
}
