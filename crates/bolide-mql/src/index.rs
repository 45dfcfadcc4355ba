//! Index definitions: their validation, and the keys of a document.
//!
//! The core stores definitions as [`IndexDefinition::to_document`] writes them and asks this module everything about them:
//!
//! | command | here |
//! | --- | --- |
//! | createIndexes | [`IndexDefinition::parse`] for every specification, then [`compare_definitions`] with those that exist |
//! | listIndexes | [`IndexDefinition::to_document`] |
//! | collMod | [`IndexModification`] |
//! | dropIndexes | [`IndexSelection`] |
//! | queries | [`bounds()`], [`IndexBounds`], [`order()`], [`IndexOrder`] |
//! | writes | [`keys()`], [`stored_keys`], [`duplicate_key_error`], [`date_rule`], [`own_ttl`], [`strip_ts`] |
//!
//! Source: mongo.md §14 and §18.2.

mod bounds;
mod comparison;
mod definition;
mod exclusions;
mod extraction;
mod keys;
mod modification;
mod options;
mod partial;
mod pattern;
mod places;
mod selection;
mod specification;
mod stored;
mod text;
mod time_to_live;
mod vector;
mod wildcard;

pub use bounds::{
    IndexBounds, IndexOrder, KeyRange, OrderedKeys, ShownBounds, bounds, has_stored_keys, multikey_range, order,
};
pub use comparison::{Comparison, Existing, compare_definitions};
pub use definition::IndexDefinition;
pub use keys::{Keys, bound_key, duplicate_key_error, keys};
pub use modification::{IndexModification, Modified};
pub use partial::PartialFilter;
pub use pattern::{Field, KeyPattern, Kind, Order};
pub use selection::{IndexSelection, Selected};
pub use specification::ParseOptions;
pub use stored::{is_cut, stored_keys};
pub use text::TextOptions;
pub use time_to_live::{TtlMode, TtlRule, date_rule, own_ttl, strip_ts};

#[cfg(test)]
mod tests;
