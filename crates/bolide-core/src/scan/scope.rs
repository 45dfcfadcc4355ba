//! Which part of a container a request is about.

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

/// The part of a container that a request is about: what is given is intersected. Nothing given: the whole container.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScanScope {
    /// One logical partition, or all below a prefix of a hierarchical key.
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
    /// Of the keys in between, only those of this prefix of a hierarchical key.
    pub prefix: Option<PrefixTag>,
}

impl Slice {
    /// Whether an item key lies inside.
    pub fn contains(&self, item_key: &[u8]) -> bool {
        item_key >= &self.from[..] && self.to.as_ref().is_none_or(|to| item_key < &to[..]) && self.has_prefix(item_key)
    }

    /// Whether an item key between the ends is one of the slice.
    pub fn has_prefix(&self, item_key: &[u8]) -> bool {
        self.prefix.is_none_or(|prefix| prefix.matches(item_key))
    }
}

impl ScanScope {
    /// The parts of physical partitions inside the scope, in the order of their keys.
    ///
    /// # Errors
    /// `RangeGone`: no such range, any more; `PartitionKeyMismatch`: more components than the container's key has.
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

    /// The effective partition keys of the scope, whatever ranges they lie in now: two ways to name one part of a container give the same
    /// interval.
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
        let key = self.partition_key.as_ref()?;
        PrefixTag::of(&state.properties.partition_key, key)
    }

    /// The item keys that the partition key and the interval of effective partition keys leave over.
    fn keys(
        &self,
        state: &ContainerState,
        place: fn(&PartitionKeyDefinition, &PartitionKey) -> Epk,
    ) -> Result<KeyInterval> {
        let mut bounds = KeyInterval::default();
        if let Some(range) = &self.epk {
            bounds.narrow(KeyInterval::of_range(range).between_whole_keys(&state.properties.partition_key));
        }
        if let Some(key) = self.partition_key.as_ref().filter(|key| !key.is_empty()) {
            let definition = &state.properties.partition_key;
            definition.check_prefix(key)?;
            let epk = place(definition, key);
            // Effective partition keys are never prefixes of one another, so below a prefix lie the items of the key itself, or of
            // all keys that begin with it.
            let from = Bytes::copy_from_slice(epk.as_bytes());
            bounds.narrow(KeyInterval {
                to: keys::after_prefix(&from),
                from,
            });
        }
        Ok(bounds)
    }
}
