//! Which part of a container a query reads (cosmos-rest §§6.2, 6.3).

use bolide_model::epk::{Epk, EpkRange};
use bolide_model::partition_key::{Component, PartitionKey, PartitionKeyDefinition, PartitionKind};
use bolide_model::{Reason, Result};
use bolide_query::{KeyRange, KeyRanges, KeyValue, Query};
use serde_json::{Value, json};

use super::QueryItems;
use crate::container::ContainerState;
use crate::scan::{ScanScope, Slice};
use crate::sql::{QueryMemory, query_error};

/// Memory for a key that a filter names, in bytes: the interval of its items, and the slice that is read.
const SLICE_BYTES: usize = 2 * (size_of::<EpkRange>() + size_of::<Slice>()) + 128;

/// Memory for a range of a plan, as JSON and as text, in bytes.
const PLAN_RANGE_BYTES: usize = 1024;

/// Which part of a container a query reads.
pub(super) struct Route {
    /// The parts of physical partitions that it reads, in the order of their keys.
    pub slices: Vec<Slice>,
    /// Which queries the client has to merge even if one range holds all of their items.
    left_to_client: LeftToClient,
    /// Whether a full last page looks like those before it, so that an empty page follows. Go's `TestCrossPartitionQuery` and JavaScript's tests of
    /// iterators expect this for one range; for several ranges, JavaScript's tests accept no empty page at the end.
    pub ends_with_empty_page: bool,
    /// Number of components of the partition key, from the first on, by which items are found; the key itself or the filter gave them.
    pub key_components: usize,
}

/// Which queries clients merge even in one range.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LeftToClient {
    /// None: the client named a part of the container, or is not an SDK.
    None,
    /// Only aggregates without VALUE, as the Python SDK's tests expect: the container has several ranges, and the filter may fix the key.
    AggregatesIntoObjects,
    /// All queries that need a merge, as the Go and Python SDKs' tests expect: an SDK queries all keys.
    All,
}

impl Route {
    /// Returns whether the client has to merge the results of several ranges. Several keys may lie in one range.
    pub fn needs_merge(&self, query: &Query) -> bool {
        let is_left = match self.left_to_client {
            LeftToClient::None => false,
            LeftToClient::AggregatesIntoObjects => query.aggregates_into_object(),
            LeftToClient::All => true,
        };
        query.needs_merge() && (is_left || !self.is_in_one_range())
    }

    /// Returns whether everything that the query reads lies in one physical partition.
    pub fn is_in_one_range(&self) -> bool {
        let mut ranges = self.slices.iter().map(|slice| slice.partition.range);
        let first = ranges.next();
        ranges.all(|range| Some(range) == first)
    }
}

/// Finds which part of a container a query reads.
///
/// # Errors
/// `BadRequest` if it may read several logical partitions and the caller has not allowed that; `RangeGone`; `Throttled` without memory for
/// all ranges that it names.
pub(super) fn route(
    compiled: &Query,
    query: &QueryItems,
    state: &ContainerState,
    memory: &QueryMemory,
) -> Result<Route> {
    if !compiled.reads_items() {
        return Ok(Route {
            slices: Vec::new(),
            left_to_client: LeftToClient::None,
            ends_with_empty_page: false,
            key_components: 0,
        });
    }
    let named = ScanScope {
        partition_key: query.scope.partition_key.clone().filter(|key| !key.is_empty()),
        ..query.scope.clone()
    };
    if named != ScanScope::default() {
        return Ok(Route {
            slices: named.slices(state)?,
            left_to_client: LeftToClient::None,
            ends_with_empty_page: false,
            key_components: named.partition_key.map_or(0, |key| key.0.len()),
        });
    }
    let ranges = match state.collection {
        // Its documents are in one place, or placed by values that JSON may show as others.
        Some(_) => KeyRanges::All,
        None => compiled.partition_key_ranges().map_err(query_error)?,
    };
    let is_spread = state.collection.is_none() && !ranges.is_single_key() && ranges != KeyRanges::Nothing;
    if is_spread && !query.cross_partition {
        return Err(Reason::CrossPartitionDisabled.into());
    }
    let slices = slices_of(&ranges, state, memory)?;
    let key_components = key_components(&ranges, &state.properties.partition_key);
    let has_several_ranges = state.layout.partitions.len() > 1;
    let left_to_client = match query.cross_partition {
        true if query.is_by_sdk && key_components == 0 && !slices.is_empty() => LeftToClient::All,
        true if has_several_ranges => LeftToClient::AggregatesIntoObjects,
        _ => LeftToClient::None,
    };
    Ok(Route {
        ends_with_empty_page: left_to_client == LeftToClient::All && !has_several_ranges && !compiled.needs_merge(),
        slices,
        left_to_client,
        key_components,
    })
}

/// Returns the slices that a filter selects.
fn slices_of(ranges: &KeyRanges, state: &ContainerState, memory: &QueryMemory) -> Result<Vec<Slice>> {
    let definition = &state.properties.partition_key;
    let mut intervals = match ranges {
        KeyRanges::All => return ScanScope::default().slices(state),
        KeyRanges::Nothing => return Ok(Vec::new()),
        KeyRanges::Some(list) => {
            memory.hold(list.len() * SLICE_BYTES)?;
            list.iter().map(|range| interval(range, definition)).collect::<Vec<_>>()
        }
    };
    if intervals.iter().any(|interval| *interval == EpkRange::all()) {
        return ScanScope::default().slices(state);
    }
    intervals.sort_by(|one, other| one.min.cmp(&other.min).then_with(|| other.max.cmp(&one.max)));
    // A prefix covers the keys below it, so that no item is read twice.
    intervals.dedup_by(|next, kept| kept.covers(next));
    let mut slices = Vec::new();
    for epk in intervals {
        slices.extend(
            ScanScope {
                epk: Some(epk),
                ..ScanScope::default()
            }
            .slices(state)?,
        );
    }
    Ok(slices)
}

/// Returns how many components of the key a filter fixes such that fewer items are read.
fn key_components(ranges: &KeyRanges, definition: &PartitionKeyDefinition) -> usize {
    let KeyRanges::Some(list) = ranges else { return 0 };
    let pinned = |range: &KeyRange| match interval(range, definition) == EpkRange::all() {
        true => 0,
        false => range.as_point().map_or(0, |values| values.len()),
    };
    list.iter().map(pinned).min().unwrap_or(0)
}

/// Returns the effective partition keys of a range of key values; all of them if the order of values is not that of their hashes.
fn interval(range: &KeyRange, definition: &PartitionKeyDefinition) -> EpkRange {
    match range.as_point() {
        Some(values) if range.complete || definition.kind == PartitionKind::MultiHash => {
            EpkRange::of_prefix(definition, &key_of(&values))
        }
        _ => EpkRange::all(),
    }
}

fn key_of(values: &[&KeyValue]) -> PartitionKey {
    let component = |value: &&KeyValue| match value {
        KeyValue::Undefined | KeyValue::Complex => Component::Undefined,
        KeyValue::Null => Component::Null,
        KeyValue::Bool(value) => Component::Bool(*value),
        KeyValue::Number(number) => Component::Number(number.as_f64()),
        KeyValue::String(text) => Component::String(text.clone()),
    };
    PartitionKey(values.iter().map(component).collect())
}

/// Returns the ranges of a plan as the wire shows them: effective partition keys in hex, sorted and without overlap (cosmos-rest §6.4).
///
/// # Errors
/// `PartitionKeyMismatch` if the given key has more components than the container's; `Throttled` without memory for them.
pub(super) fn plan_ranges(
    ranges: &KeyRanges,
    definition: &PartitionKeyDefinition,
    partition_key: Option<&PartitionKey>,
    memory: &QueryMemory,
) -> Result<Vec<Value>> {
    if let Some(key) = partition_key.filter(|key| !key.is_empty()) {
        definition.check_prefix(key)?;
        return Ok(vec![plan_range(definition, key)]);
    }
    let list = match ranges {
        KeyRanges::Some(list) => list,
        // For a query that can have no result, the service returns an odd point; the full range is correct too, and safe.
        KeyRanges::All | KeyRanges::Nothing => return Ok(vec![full_range()]),
    };
    if list.iter().any(|range| interval(range, definition) == EpkRange::all()) {
        return Ok(vec![full_range()]);
    }
    memory.hold(list.len() * PLAN_RANGE_BYTES)?;
    let mut keys: Vec<PartitionKey> = list
        .iter()
        .filter_map(KeyRange::as_point)
        .map(|values| key_of(&values))
        .collect();
    keys.sort_by_key(|key| Epk::of(definition, key));
    keys.dedup();
    Ok(keys.iter().map(|key| plan_range(definition, key)).collect())
}

fn plan_range(definition: &PartitionKeyDefinition, key: &PartitionKey) -> Value {
    if definition.is_full(key) {
        let point = Epk::of(definition, key).to_hex();
        return json!({ "min": point, "max": point, "isMinInclusive": true, "isMaxInclusive": true });
    }
    // The end is above all keys with this prefix, and is not itself a key. The service marks it inclusive all the same (the Rust SDK's tests).
    let range = EpkRange::of_prefix(definition, key);
    json!({ "min": range.min.to_hex(), "max": range.max.to_hex(), "isMinInclusive": true, "isMaxInclusive": true })
}

/// Returns where a query that reads no items runs: any range can make its row, but several ranges would make one each. As in the service, it is the
/// point below all keys.
pub(super) fn anywhere() -> Value {
    let start = Epk::start().to_hex();
    json!({ "min": start, "max": start, "isMinInclusive": true, "isMaxInclusive": true })
}

fn full_range() -> Value {
    json!({ "min": "", "max": "FF", "isMinInclusive": true, "isMaxInclusive": false })
}
