//! The index in whose order the rows of a query come.

use bolide_index::codec::sql_rank;

use super::conditions::path_of;
use super::interval::Interval;
use super::path::IndexPath;
use crate::bind::Bound;

/// ORDER BY one path, or several of which this is the first.
///
/// The keys of the path are in the order of the rows, each with the items of that value. Items with one key come by
/// resource id, descending if `descending`. If `has_undefined`, items without a value have rows before all others, or behind them. Where [`super::is_exact`] is false for a key, their values differ, and must be sorted as without an index. With more paths, all items
/// with one key must be sorted, and arrays and objects come with the items without a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexOrder {
    /// Where the sort value is. Not of elements.
    pub path: IndexPath,
    /// From the highest key to the lowest.
    pub descending: bool,
    /// Whether items without a value have rows, so that the index must have [`super::KEY_OF_UNDEFINED`] for them.
    pub has_undefined: bool,
    /// Whether other paths decide about rows with equal values.
    pub has_more_paths: bool,
}

/// A part of the keys of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderedKeys {
    /// The keys.
    pub keys: Interval,
    /// Where their rows come, in any order, if that is not in the order of the keys.
    pub rows_at: Option<Interval>,
}

impl OrderedKeys {
    /// Keys whose rows come in their order.
    pub(super) fn of(keys: Interval) -> OrderedKeys {
        OrderedKeys { keys, rows_at: None }
    }

    /// Those of the keys that have to be read for the rows of some keys; `None` if there are none.
    pub fn wanted(&self, rows: &Interval) -> Option<Interval> {
        match &self.rows_at {
            Some(at) => at.overlap(rows).map(|_| self.keys.clone()),
            None => rows.overlap(&self.keys),
        }
    }
}

impl IndexOrder {
    /// The keys of some intervals in the order of their rows.
    pub fn ordered(&self, intervals: &[Interval]) -> Vec<OrderedKeys> {
        let mut parts: Vec<OrderedKeys> = match self.has_more_paths {
            false => intervals.iter().cloned().map(OrderedKeys::of).collect(),
            true => {
                let zone = |from: u8, to: u8| Interval {
                    from: vec![from],
                    to: Some(vec![to]),
                };
                let undefined = zone(sql_rank::UNDEFINED, sql_rank::NULL);
                let zones = [
                    OrderedKeys::of(undefined.clone()),
                    OrderedKeys {
                        keys: zone(sql_rank::ARRAY, sql_rank::END),
                        rows_at: Some(undefined),
                    },
                    OrderedKeys::of(zone(sql_rank::NULL, sql_rank::ARRAY)),
                ];
                let inside = |zone: &OrderedKeys| {
                    let overlaps = intervals.iter().filter_map(|keys| keys.overlap(&zone.keys));
                    let of_zone = overlaps.map(|keys| OrderedKeys { keys, ..zone.clone() });
                    of_zone.collect::<Vec<_>>()
                };
                zones.iter().flat_map(inside).collect()
            }
        };
        if self.descending {
            parts.reverse();
        }
        parts
    }
}

/// The order of a query, see [`crate::Query::index_order`].
pub(crate) fn order(bound: &Bound) -> Option<IndexOrder> {
    let keys = bound.select.sort_keys()?;
    let key = keys.first()?;
    let path = path_of(bound, &key.value).filter(|path| !path.is_of_elements())?;
    // Every item has these two.
    let is_always_defined = path.is_property("id") || path.is_property("_ts");
    Some(IndexOrder {
        path,
        descending: key.descending,
        has_undefined: !key.skip_undefined && !is_always_defined,
        has_more_paths: keys.len() > 1,
    })
}

#[cfg(test)]
mod tests;
