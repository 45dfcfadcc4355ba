//! The index in whose order the rows of a query come.

use super::conditions::path_of;
use super::path::IndexPath;
use crate::bind::Bound;

/// ORDER BY one path.
///
/// The keys of the path are in the order of the rows, each with the items of that value. Items with one key come by
/// resource id, descending if `descending`. If `has_undefined`, items without a value have rows before all others, or behind them. Where [`super::is_exact`] is false for a key, their values differ, and must be sorted as without an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexOrder {
    /// Where the sort value is. Not of elements.
    pub path: IndexPath,
    /// From the highest key to the lowest.
    pub descending: bool,
    /// Whether items without a value have rows, so that the index must have [`super::KEY_OF_UNDEFINED`] for them.
    pub has_undefined: bool,
}

/// The order of a query, see [`crate::Query::index_order`].
pub(crate) fn order(bound: &Bound) -> Option<IndexOrder> {
    let key = bound.select.only_sort_key().filter(|key| !key.primitives_only)?;
    let path = path_of(bound, &key.value).filter(|path| !path.is_of_elements())?;
    // Every item has these two.
    let is_always_defined = path.is_property("id") || path.is_property("_ts");
    Some(IndexOrder {
        path,
        descending: key.descending,
        has_undefined: !key.skip_undefined && !is_always_defined,
    })
}

#[cfg(test)]
mod tests;
