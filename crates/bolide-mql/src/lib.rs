//! The MongoDB query language, as functions on BSON documents: filters, projections, sort orders, updates, pipelines, index definitions.
//!
//! It reads no clock and no storage: time, variables and the documents of other collections are arguments.

pub mod aggregation;
pub mod collation;
pub mod context;
pub mod document;
pub mod error;
pub mod expression;
pub mod filter;
pub mod geo;
pub mod index;
pub mod namespace;
pub mod path;
pub mod projection;
pub mod sort;
pub mod text_search;
pub mod update;
pub mod value;
pub mod vector;

pub use bson;
pub use context::Context;
pub use error::{Code, Error, Result};
