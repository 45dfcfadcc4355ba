//! Aggregation pipelines: stages and accumulators.
//!
//! [`Pipeline::parse`] checks the stages and where they stand. [`Pipeline::open`] connects them: every stage pulls documents from the one
//! before it, one at a time, so a pipeline without a blocking stage holds one document. Blocking stages (`$sort`, `$group`, …) hold at most
//! 100 MB each.
//!
//!   Collections ──▶ leading $match ──▶ stage ──▶ … ──▶ stage ──▶ cursor, or the writer of `$out` and `$merge`
//!
//! Documents of collections come from [`Collections`], which the caller implements. Stages that pass a document on, changed or not, keep
//! its [`Lifetime`]; stages that make one of many have none to keep.

mod accumulator;
mod document;
mod limits;
mod namespace;
mod options;
mod parser;
mod pipeline;
mod sink;
mod source;
mod stage;
mod stages;
#[cfg(test)]
mod tests;

pub use document::{Document, Lifetime};
pub use limits::{MAX_STAGES, MAX_SUB_PIPELINE_DEPTH};
pub use namespace::Namespace;
pub use parser::{length_of, stage_of};
pub use pipeline::{LeadingOrder, Passed, Pipeline, PipelineOptions, open_namespace};
pub use sink::{Merge, Out, Sink, WhenMatched, WhenNotMatched};
pub use source::{BoxSource, Collections, Documents, Source, SourceStage, View};
