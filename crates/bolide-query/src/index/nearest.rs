//! The vectors whose nearest neighbours a query returns.

use super::conditions::{conditions, path_of};
use super::path::IndexPath;
use crate::bind::Bound;
use crate::program::Scalar;
use crate::schema::DistanceFunction;
use crate::value::Value;

/// ORDER BY the distance to one vector, the most similar items first, with TOP or LIMIT.
///
/// Items without a distance have rows too: those whose value at the path is no vector of so many dimensions. They come first by the Euclidean distance, in the
/// order of their resource ids, and last by the others, in the opposite order.
#[derive(Debug, Clone, PartialEq)]
pub struct NearestQuery {
    /// Where the vectors of items are. Not of elements.
    pub path: IndexPath,
    /// What their distance is.
    pub function: DistanceFunction,
    /// The vector.
    pub vector: Vec<f64>,
    /// Number of rows of all pages together, with those that OFFSET leaves out.
    pub rows: u64,
    /// How much of an index is searched: 10 times the usual tenth by default, 1 to 100.
    pub list_multiplier: f64,
    /// Number of items that are compared exactly for each row: 5 by default, 1 to 100.
    pub candidate_multiplier: f64,
    /// Whether the filter leaves out items without a value at the path.
    pub is_defined: bool,
}

/// The vector of a query, see [`crate::Query::nearest`].
pub(crate) fn nearest(bound: &Bound) -> Option<NearestQuery> {
    let select = &bound.select;
    let key = select.only_sort_key()?;
    let search = key.search.filter(|search| !search.is_exact)?;
    let Scalar::Call(_, args) = &key.value else { return None };
    // The third argument is what the binder has made of the options.
    let [one, other, Scalar::Const(function)] = args.as_slice() else {
        return None;
    };
    let (value, vector) = match (one.as_const(), other.as_const()) {
        (None, Some(vector)) => (one, vector),
        (Some(vector), None) => (other, vector),
        _ => return None,
    };
    let function = function_of(function)?;
    if key.descending == (function == DistanceFunction::Euclidean) {
        return None;
    }
    let path = path_of(bound, value).filter(|path| !path.is_of_elements())?;
    Some(NearestQuery {
        vector: vector.elements()?.iter().map(Value::as_f64).collect::<Option<_>>()?,
        function,
        rows: select.skip.checked_add(select.take?)?,
        list_multiplier: search.list_multiplier,
        candidate_multiplier: search.candidate_multiplier,
        is_defined: conditions(bound).iter().any(|condition| condition.path == path),
        path,
    })
}

fn function_of(number: &Value<'_>) -> Option<DistanceFunction> {
    let number = number.as_f64()?;
    [
        DistanceFunction::Cosine,
        DistanceFunction::DotProduct,
        DistanceFunction::Euclidean,
    ]
    .into_iter()
    .find(|function| *function as i64 as f64 == number)
}

#[cfg(test)]
mod tests;
