//! Groups of rows: GROUP BY, and aggregates without it (cosmos-sql §12, §17).

use std::collections::HashMap;

use smallvec::SmallVec;

use crate::aggregate::State;
use crate::error::Result;
use crate::eval::Row;
use crate::fuel::KEY_BYTE;
use crate::memory::{ALLOCATION_BYTES, TABLE_ENTRY_BYTES};
use crate::program::Grouping;
use crate::value::{SameKey, Value, append_same_key, is_inline, same_key};

/// The groups seen so far, in the order of their first rows.
#[derive(Debug)]
pub struct Groups {
    by_key: HashMap<SameKey, usize>,
    groups: Vec<Group>,
    bytes: usize,
    scratch: Vec<u8>,
}

/// One group: its key values and aggregate states.
#[derive(Debug)]
struct Group {
    key: SameKey,
    keys: Vec<Value<'static>>,
    states: Vec<State>,
}

/// A group after all rows were added.
#[derive(Debug)]
pub struct FinishedGroup {
    key: SameKey,
    keys: Vec<Value<'static>>,
    results: Vec<Value<'static>>,
}

impl Groups {
    /// No rows yet. Without GROUP BY there is one group even so.
    pub fn new(grouping: &Grouping) -> Groups {
        let mut groups = Groups {
            by_key: HashMap::new(),
            groups: Vec::new(),
            bytes: 0,
            scratch: Vec::new(),
        };
        if !grouping.explicit {
            groups.groups.push(Group::new(grouping, SameKey::default(), Vec::new()));
        }
        groups
    }

    /// Adds a row to its group.
    ///
    /// # Errors
    /// [`crate::QueryError::TooLarge`] if the groups exceed their memory; errors of evaluating the keys and arguments.
    pub fn add<'a>(&mut self, grouping: &'a Grouping, row: &mut Row<'a>) -> Result<()> {
        let at = if grouping.explicit {
            self.group_of(grouping, row)?
        } else {
            0
        };
        let mut grown = 0;
        for (aggregate, state) in grouping.aggregates.iter().zip(&mut self.groups[at].states) {
            let value = aggregate.argument.eval(row)?;
            row.session.fuel.burn(state.units(&value))?;
            grown += state.add(aggregate.kind, &value, row.times);
        }
        self.hold(grown, row)
    }

    /// Adds items that are only counted to the one group of a query without GROUP BY.
    pub fn count(&mut self, items: u64) {
        for state in self.groups.iter_mut().flat_map(|group| &mut group.states) {
            state.count(items);
        }
    }

    fn hold(&mut self, bytes: usize, row: &Row<'_>) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        self.bytes += bytes;
        row.session.memory.take(bytes)
    }

    /// Sets the results of the aggregates of the only group, all of them counts or sums.
    pub fn set(&mut self, values: &[u64]) {
        let states = self.groups.first_mut().map_or(&mut [][..], |group| &mut group.states);
        for (state, value) in states.iter_mut().zip(values) {
            match state {
                State::Count(count) => *count = *value,
                State::Sum { sum, count, .. } => (*sum, *count) = (*value as f64, 1),
                State::Extreme { .. } | State::List { .. } => {}
            }
        }
    }

    /// Their memory, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn group_of<'a>(&mut self, grouping: &'a Grouping, row: &mut Row<'a>) -> Result<usize> {
        self.scratch.clear();
        let mut values: SmallVec<[Value<'a>; 4]> = SmallVec::new();
        for (key, _) in &grouping.keys {
            let value = key.eval(row)?;
            append_same_key(&value, &mut self.scratch);
            values.push(value);
        }
        row.session.fuel.burn(self.scratch.len() as u64 * KEY_BYTE)?;
        // Most rows belong to an existing group and need no key of their own.
        if is_inline(&self.scratch)
            && let Some(at) = self.by_key.get(&self.scratch[..])
        {
            return Ok(*at);
        }
        let key = same_key(&self.scratch);
        if let Some(at) = self.by_key.get(&key) {
            return Ok(*at);
        }
        let values: Vec<Value<'static>> = values.into_iter().map(Value::into_owned).collect();
        let values_bytes: usize = values.iter().map(|value| value.written_out_bytes(usize::MAX)).sum();
        let keys_bytes = 2 * (key.len() + ALLOCATION_BYTES) + TABLE_ENTRY_BYTES + size_of::<usize>();
        let states_bytes = grouping.aggregates.len() * size_of::<State>();
        // The list of groups grows by doubling.
        let group_bytes = size_of::<Group>() * 3 / 2 + 3 * ALLOCATION_BYTES;
        self.hold(values_bytes + keys_bytes + states_bytes + group_bytes, row)?;
        self.groups.push(Group::new(grouping, key.clone(), values));
        self.by_key.insert(key, self.groups.len() - 1);
        Ok(self.groups.len() - 1)
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Orders the groups by the identities of their keys, an order that does not depend on other groups.
    pub fn sort(&mut self) {
        self.groups.sort_by(|one, other| one.key.cmp(&other.key));
    }

    /// The groups with their results.
    pub fn finish(self, grouping: &Grouping) -> impl Iterator<Item = FinishedGroup> {
        self.groups.into_iter().map(|group| {
            let results = group
                .states
                .into_iter()
                .zip(&grouping.aggregates)
                .map(|(state, a)| state.finish(a.kind))
                .collect();
            FinishedGroup {
                key: group.key,
                keys: group.keys,
                results,
            }
        })
    }
}

impl Group {
    fn new(grouping: &Grouping, key: SameKey, keys: Vec<Value<'static>>) -> Group {
        Group {
            key,
            keys,
            states: grouping
                .aggregates
                .iter()
                .map(|aggregate| aggregate.kind.start())
                .collect(),
        }
    }
}

impl FinishedGroup {
    /// The identity of the group's keys.
    pub fn key(&self) -> &SameKey {
        &self.key
    }

    /// Puts keys and results into the slots from which the projection reads them.
    pub fn fill(self, grouping: &Grouping, row: &mut Row<'_>) {
        for ((_, slot), value) in grouping.keys.iter().zip(self.keys) {
            row.slots[*slot] = value;
        }
        for (aggregate, value) in grouping.aggregates.iter().zip(self.results) {
            row.slots[aggregate.slot] = value;
        }
    }
}
