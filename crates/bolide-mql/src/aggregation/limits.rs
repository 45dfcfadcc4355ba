//! Limits of pipelines (mongo.md §13, §16).

/// The most stages of a pipeline.
pub const MAX_STAGES: usize = 1000;

/// How deep pipelines may stand in stages of pipelines.
pub const MAX_SUB_PIPELINE_DEPTH: usize = 20;
