//! What composite indexes can do for a query: find the items that pass several conditions, and give the order of the rows.

use std::cmp::Reverse;
use std::sync::Arc;

use bolide_model::partition_key::{Component, PartitionKey};
use bolide_query::index::{CompositeIndex, CompositeOrder, IndexCondition, Interval};
use bolide_query::{KeyValue, Number, Query};

use super::candidates::{MAX_CONDITIONS, MAX_LOOKUPS, Part};
use crate::container::ContainerState;
use crate::index::{PropertyIndexes, property_path};

/// Integers below this number are doubles, and no others round to them.
const EXACT_INTEGERS: f64 = 9_007_199_254_740_992.0;

/// What composite indexes can do for a query.
#[derive(Default)]
pub(super) struct CompositeUse {
    /// The keys that the conditions on two or more paths admit, each with the id of the index.
    pub keys: Vec<(u32, Vec<Interval>)>,
    /// How the rows come in an index, with its id.
    pub order: Option<(u32, Arc<CompositeIndex>, CompositeOrder)>,
}

impl CompositeUse {
    /// Returns what the indexes can do for a query over so many slices. `conditions`: those of its filter and of the partition key that it is sent to.
    pub fn of(
        query: &Query,
        state: &ContainerState,
        (slices, part): (usize, Part),
        conditions: &[IndexCondition],
    ) -> CompositeUse {
        let usable = || state.indexes.usable_composite();
        let admitted = usable().filter_map(|(id, index)| Some((id, index.intervals(conditions)?)));
        let short = admitted.filter(|(_, keys)| keys.len() * slices <= MAX_LOOKUPS);
        let orders = usable().filter_map(|(id, index)| {
            let order = query.composite_order(index, conditions)?;
            let has_order = part == Part::Ranges || holds_key(state, index, &order);
            has_order.then(|| (id, index.clone(), order))
        });
        CompositeUse {
            keys: short.take(MAX_CONDITIONS).collect(),
            // The one that regards most conditions; of these, one that has equal rows in their order.
            order: orders.max_by_key(|(id, _, order)| {
                (
                    number_served(order, conditions),
                    order.has_order_of_items(),
                    Reverse(*id),
                )
            }),
        }
    }

    /// Whether the index in the order of the rows is the only one that regards conditions on several paths.
    pub fn is_of_order_only(&self) -> bool {
        let order = self.order.as_ref().map(|(index, ..)| *index);
        self.keys.iter().all(|(index, _)| Some(*index) == order)
    }
}

/// Whether the keys that are read are those of one partition key: otherwise the items of all keys would be read.
fn holds_key(state: &ContainerState, index: &CompositeIndex, order: &CompositeOrder) -> bool {
    let fixed = &index.paths()[..order.fixed_paths];
    let mut key = state.properties.partition_key.paths.iter().map(property_path);
    key.all(|path| path.is_some_and(|path| fixed.iter().any(|own| own.path == path)))
}

fn number_served(order: &CompositeOrder, conditions: &[IndexCondition]) -> usize {
    let is_served = |condition: &&IndexCondition| order.paths.contains(&condition.path);
    conditions.iter().filter(is_served).count()
}

/// Returns the conditions that hold for every item of a partition key, for paths without another one.
pub(super) fn conditions_of_key(
    state: &ContainerState,
    key: Option<&PartitionKey>,
    known: &[IndexCondition],
) -> Vec<IndexCondition> {
    let components = key.iter().flat_map(|key| &key.0);
    let paths = state.properties.partition_key.paths.iter();
    let conditions = paths.zip(components).filter_map(|(path, component)| {
        let value = match component {
            // The key is a double, and the value in the item may be another number that rounds to it.
            Component::Number(number) if number.abs() < EXACT_INTEGERS => KeyValue::Number(Number::Float(*number)),
            Component::String(text) => KeyValue::String(text.clone()),
            Component::Bool(value) => KeyValue::Bool(*value),
            Component::Null => KeyValue::Null,
            _ => return None,
        };
        IndexCondition::equal_to(property_path(path)?, &value)
    });
    let is_new = |condition: &IndexCondition| known.iter().all(|known| known.path != condition.path);
    conditions.filter(is_new).collect()
}

/// Describes, in a line for each, what composite indexes can do for a query.
pub(super) fn explain(query: &Query, indexes: &PropertyIndexes) -> String {
    let conditions = query.index_conditions();
    let lines = indexes.usable_composite().flat_map(|(_, index)| {
        let serves = |what: &str| format!("index: {index} serves {what}\n");
        let keys = index.intervals(&conditions).map(|_| serves("conditions"));
        let order = query.composite_order(index, &conditions).map(|_| serves("the order"));
        keys.into_iter().chain(order)
    });
    lines.collect()
}
