//! Property indexes: the keys of an item at a path, and what a query requires of them.
//!
//! ```text
//! item  ──IndexPath::keys──▶ keys       bytes in the order of types and values (key.rs)
//! query ──index_conditions─▶ intervals  an item with a row has a key in one of them, for each condition (conditions.rs)
//! query ──index_order──────▶ path       the rows come in the order of its keys (order.rs)
//! query ──composite_order──▶ intervals  the rows come in the order of these keys of several paths (composite.rs)
//! query ──covering_path────▶ path       its keys are all that the query reads (covering.rs)
//! query ──nearest──────────▶ vector     the rows are those of the items nearest to it (nearest.rs)
//!
//! item  ──TextIndex::terms─▶ terms      the words of its text, as the full-text functions compare them (text.rs)
//! query ──text_conditions──▶ terms      a text with a row has the words of one of them, for each condition (text_conditions.rs)
//! query ──text_ranking─────▶ terms      the order of the rows follows from the words of their texts (text_ranking.rs)
//!
//! item  ──SpatialIndex::keys─▶ cells    those in which its shape is (spatial.rs)
//! query ──spatial_conditions─▶ cells    a shape with a row is in one of them, for each condition (spatial_conditions.rs)
//! ```
//!
//! A condition is a superset of what the filter accepts: an item that it lets through must still pass the filter. What it is based on is what a path
//! of the bound filter reads, so keys and conditions agree with the evaluation by construction: both read items with the same scan.
//!
//! # Shape of a key
//! The encoding of `bolide_index::codec` with the types of `sql_rank`: null, false, true, numbers, strings, arrays, objects. Equal values have equal
//! keys: 1 and 1.0, 0 and -0.0. An integer within 64 bits keeps its exact place between the doubles; one beyond them is the nearest double, and a
//! number beyond the doubles is infinite, as in the evaluation.
//!
//! A string whose encoding is longer than [`KEY_BYTES`] is cut there. All arrays have one key, and so have all objects. See [`is_exact`].
//!
//! No key is the beginning of another one. So keys may be followed by other bytes, and stay in order.
//!
//! Which sorts need a composite index, and where entries are kept, are the caller's business.

mod composite;
mod conditions;
mod covering;
mod interval;
mod key;
mod nearest;
mod order;
mod path;
mod spatial;
mod spatial_conditions;
mod text;
mod text_conditions;
mod text_ranking;
mod values;

pub use crate::functions::CellSurface;
pub use composite::{CompositeIndex, CompositeOrder, CompositePath};
pub use conditions::{IndexCondition, MAX_INTERVALS};
pub use interval::Interval;
pub use key::{KEY_BYTES, KEY_OF_UNDEFINED, is_exact};
pub use nearest::NearestQuery;
pub use order::{IndexOrder, OrderedKeys};
pub use path::IndexPath;
pub use spatial::SpatialIndex;
pub use spatial_conditions::SpatialCondition;
pub use text::{
    KEY_OF_MANY_TERMS, KEY_OF_NO_TEXT, KEY_OF_TEXT, MAX_TERMS, TERM_BYTES, TextIndex, TextTerms, key_of_term,
};
pub use text_conditions::{MAX_TERMS_OF_CONDITION, TextCondition};
pub use text_ranking::{TextAggregate, TextRanking, TextStatistics};

pub(crate) use composite::composite_order;
pub(crate) use conditions::{conditions, is_exact_filter};
pub(crate) use covering::{
    counts_condition, counts_items, counts_runs, covering_path, covers_rows, is_independent_of_order, tells_rows,
    tells_rows_of,
};
pub(crate) use key::{KEY_OF_ARRAYS, KEY_OF_OBJECTS, after, key_of, key_of_string, of_prefix as key_of_prefix};
pub(crate) use nearest::nearest;
pub(crate) use order::order;
pub(crate) use spatial_conditions::{shape_paths, spatial_conditions};
pub(crate) use text_conditions::text_conditions;
pub(crate) use text_ranking::{text_aggregates, text_ranking};

#[cfg(test)]
mod tests;
