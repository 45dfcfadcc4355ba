//! The stages, one module each.

pub(super) mod bucket;
pub(super) mod bucket_auto;
pub(super) mod caller;
pub(super) mod count;
pub(super) mod densifier;
pub(super) mod densify;
pub(super) mod documents;
pub(super) mod facet;
pub(super) mod fill;
pub(super) mod foreign;
pub(super) mod geo_near;
pub(super) mod granularity;
pub(super) mod graph_lookup;
pub(super) mod group;
pub(super) mod limit;
pub(super) mod lookup;
pub(super) mod matching;
pub(super) mod nested;
pub(super) mod redact;
pub(super) mod sample;
pub(super) mod shape;
pub(super) mod sort;
pub(super) mod union_with;
pub(super) mod unwind;
pub(super) mod vector_search;
pub(super) mod window;
