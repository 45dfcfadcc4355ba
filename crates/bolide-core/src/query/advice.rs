//! Tells the container's advisor which queries would profit from an index.

use std::time::Instant;

use bolide_query::Query;
use bolide_query::index::IndexPath;

use super::QueryMetrics;
use super::candidates::Part;
use crate::container::{Container, ContainerState};
use crate::index::{WantedIndex, allowed_shape, allows};

/// A scan is not in vain if it returns a row for at most this many items.
const SELECTED_FOR_SCAN: u64 = 8;
/// Minimum number of items that a page reads in vain to be recorded.
const MIN_IN_VAIN: u64 = 500;

/// What a page tells the advisor.
pub(super) struct PageAdvice<'a> {
    pub part: Part,
    /// The index that it used, by its id.
    pub used: Option<u32>,
    pub metrics: &'a QueryMetrics,
    pub now: Instant,
}

impl PageAdvice<'_> {
    /// Records the index that the page used, or the items that it read in vain. Returns whether a path is now to get an index.
    pub fn record(&self, container: &Container, state: &ContainerState, query: &Query) -> bool {
        if let Some(index) = self.used {
            container.advisor().record_use(index, self.now);
        }
        if self.used.is_some() || self.part != Part::Ranges {
            return false;
        }
        let in_vain = self
            .metrics
            .retrieved_items
            .saturating_sub(SELECTED_FOR_SCAN * self.metrics.output_rows);
        if in_vain < MIN_IN_VAIN || state.collection.is_some() || !state.indexes.has_room_for_automatic() {
            return false;
        }
        let wanted = self.wanted(state, query);
        wanted.is_some_and(|index| container.advisor().record(&index, in_vain))
    }

    /// Returns the index of which the query would profit most, if the policy allows one.
    fn wanted(&self, state: &ContainerState, query: &Query) -> Option<WantedIndex> {
        let (properties, indexes) = (&state.properties, &state.indexes);
        // How many items an aggregate is made of is not known.
        let is_counted = !query.aggregates();
        let shape = query.shape_paths().into_iter().find(|path| {
            let allowed = allowed_shape(properties, path).filter(|_| is_counted && !indexes.has_shapes(path));
            allowed.is_some_and(|index| !query.spatial_conditions(&[&index]).is_empty())
        });
        if let Some(path) = shape {
            return Some(WantedIndex::Spatial(path));
        }
        let mut conditions = query.index_conditions();
        conditions.retain(|condition| is_counted || condition.is_equality);
        let can_be_added = |path: &IndexPath| allows(&properties.indexing_policy, path) && indexes.on(path).is_none();
        conditions.retain(|condition| can_be_added(&condition.path));
        // An equality selects less than a range.
        conditions.sort_by_key(|condition| !condition.is_equality);
        // An automatic index has no items without a value.
        let order = query.index_order().filter(|order| !order.has_undefined);
        let order = order.map(|order| order.path);
        let order = order.filter(can_be_added);
        let path = conditions.into_iter().map(|condition| condition.path).next().or(order);
        path.map(WantedIndex::Values)
    }
}
