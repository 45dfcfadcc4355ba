//! The first or last few values in an order: `$minN`, `$maxN`, `$top`, `$topN`, `$bottom`, `$bottomN`.

use std::collections::BTreeMap;

use bson::raw::{RawArrayBuf, RawBson};

use crate::collation::Collation;
use crate::context::memory::StageMemory;
use crate::error::Result;
use crate::value::key;

use super::state::value_bytes;

/// Values in the order of their keys; of equal keys in the order of their arrival.
#[derive(Debug, Clone)]
pub(in crate::aggregation) struct Ranked {
    count: usize,
    keeps_last: bool,
    /// Whether the result is the value itself, not an array.
    is_single: bool,
    arrivals: u64,
    entries: BTreeMap<(Vec<u8>, u64), RawBson>,
}

impl Ranked {
    /// Keeps the first `count` values.
    pub(super) fn first(count: usize, is_single: bool) -> Ranked {
        Ranked {
            count,
            keeps_last: false,
            is_single,
            arrivals: 0,
            entries: BTreeMap::new(),
        }
    }

    /// Keeps the last `count` values.
    pub(super) fn last(count: usize, is_single: bool) -> Ranked {
        Ranked {
            keeps_last: true,
            ..Ranked::first(count, is_single)
        }
    }

    /// Adds a value in the order of the values themselves; null and missing ones do not count.
    pub(super) fn add_value(
        &mut self,
        value: Option<RawBson>,
        is_descending: bool,
        collation: Option<&Collation>,
        memory: &mut StageMemory,
    ) -> Result<()> {
        let Some(value) = value.filter(|value| !matches!(value, RawBson::Null | RawBson::Undefined)) else {
            return Ok(());
        };
        let mut key = key::of(value.as_raw_bson_ref(), collation);
        if is_descending {
            key.iter_mut().for_each(|byte| *byte = !*byte);
        }
        self.add(key, value, memory)
    }

    /// Adds a value with a key.
    pub(super) fn add(&mut self, key: Vec<u8>, value: RawBson, memory: &mut StageMemory) -> Result<()> {
        memory.add(key.len() + value_bytes(&value))?;
        self.entries.insert((key, self.arrivals), value);
        self.arrivals += 1;
        if self.entries.len() > self.count {
            let dropped = match self.keeps_last {
                true => self.entries.pop_first(),
                false => self.entries.pop_last(),
            };
            if let Some(((key, _), value)) = dropped {
                memory.release(key.len() + value_bytes(&value));
            }
        }
        Ok(())
    }

    /// Returns the values in order.
    pub(super) fn result(&self) -> RawBson {
        if self.is_single {
            return self.entries.values().next().cloned().unwrap_or(RawBson::Null);
        }
        let mut array = RawArrayBuf::new();
        for value in self.entries.values() {
            array.push(value);
        }
        RawBson::Array(array)
    }
}
