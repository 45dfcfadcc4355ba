//! A pipeline: its stages, where its documents come from, and where they go.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bson::raw::RawArray;

use super::document::Document;
use super::namespace::Namespace;
use super::parser::Parser;
use super::sink::Sink;
use super::source::{BoxSource, Collections, Source, SourceStage};
use super::stage::{Run, Stage, connect};
use super::stages::foreign::open_collection;
use crate::context::Context;
use crate::document::check_internal_size;
use crate::error::Result;
use crate::expression::ParseScope;
use crate::filter::Filter;
use crate::sort::Sort;

/// A pipeline, checked.
#[derive(Debug, Clone)]
pub struct Pipeline {
    pub(super) source: Option<SourceStage>,
    pub(super) stages: Vec<Arc<dyn Stage>>,
    pub(super) sink: Option<Sink>,
    /// Whether it begins with documents of its own, and reads no input.
    pub(super) has_documents: bool,
    /// How many of `stages` each element of the pipeline, as it was sent, has become.
    pub(super) elements: Vec<usize>,
}

/// Numbers of documents that have passed between the elements of a pipeline, while it is pulled from.
#[derive(Debug, Clone)]
pub struct Passed {
    /// First those of the input, then those that each element gave.
    counters: Arc<[AtomicU64]>,
}

impl Passed {
    /// Documents that the pipeline has read from its input.
    pub fn read(&self) -> u64 {
        self.after(0)
    }

    /// Documents that have left the first elements of the pipeline, this many of them.
    pub fn after(&self, elements: usize) -> u64 {
        let counter = self.counters.get(elements);
        counter.map_or(0, |counter| counter.load(Ordering::Relaxed))
    }
}

/// The order of the documents that a pipeline takes first.
#[derive(Debug, Clone)]
pub struct LeadingOrder<'p> {
    /// The order.
    pub sort: &'p Sort,
    /// The filter that every document of the input must match to have an effect. The pipeline applies it itself.
    pub filter: Filter,
    /// How many documents that match it are taken at most.
    pub limit: Option<u64>,
    /// The pipeline for an input in this order: without the stage that sorts.
    pub rest: Pipeline,
}

/// What a pipeline is parsed for.
#[derive(Clone)]
pub struct PipelineOptions {
    /// The collection of the command, or its database.
    pub namespace: Namespace,
    /// The variables of the command's `let`.
    pub scope: ParseScope,
    /// The fields of the collection that have a `2d` or `2dsphere` index, for `$geoNear` without `key`.
    pub geo_fields: Vec<String>,
}

impl Pipeline {
    /// Parses the pipeline of a command.
    ///
    /// # Errors
    /// 14 for an element that is no document, 40323 and 40324 for one that is no stage, 40601 and 40602 for a stage in the wrong place,
    /// 7749501 for more than 1000 stages, 232 for sub-pipelines that are nested too deeply, and those of the stages.
    pub fn parse(stages: &RawArray, options: &PipelineOptions) -> Result<Pipeline> {
        Parser::new(options).pipeline(stages)
    }

    /// Parses the pipeline of a view's definition, over `source`.
    ///
    /// # Errors
    /// As [`Pipeline::parse`], and 167 for stages that no view may have.
    pub fn parse_view(stages: &RawArray, source: Namespace, context: &Context) -> Result<Pipeline> {
        Parser::for_view(source, 0, context).pipeline(stages)
    }

    /// The stage at the start whose documents the caller supplies as the input, such as `$changeStream`.
    pub fn source(&self) -> Option<&SourceStage> {
        self.source.as_ref()
    }

    /// Where the caller writes the documents that the pipeline gives: `$out` or `$merge` at its end.
    pub fn sink(&self) -> Option<&Sink> {
        self.sink.as_ref()
    }

    /// Returns true if the pipeline needs an input; one with `$documents` needs none.
    pub fn reads_input(&self) -> bool {
        !self.has_documents
    }

    /// The collections that stages read besides the input.
    pub fn namespaces(&self) -> Vec<Namespace> {
        let mut namespaces = Vec::new();
        for stage in &self.stages {
            stage.namespaces(&mut namespaces);
        }
        namespaces.sort();
        namespaces.dedup();
        namespaces
    }

    /// The filter that every document of the input must match to have an effect: that of a `$match` at the start, or after `$sort`.
    /// The pipeline applies it itself.
    pub fn leading_filter(&self) -> Option<&Filter> {
        let mut after_sorts = self.stages.iter().skip_while(|stage| stage.sort().is_some());
        after_sorts.next().and_then(|stage| stage.filter())
    }

    /// The order of a `$sort` that comes first, or after `$match`, and how many documents the stages after it take at most.
    pub fn leading_sort_limit(&self) -> Option<(&Sort, Option<u64>)> {
        let mut after_filters = self.stages.iter().skip_while(|stage| stage.filter().is_some());
        let sort = after_filters.next()?.sort()?;
        Some((sort, taken(after_filters.map(Arc::as_ref))))
    }

    /// The order that [`Pipeline::leading_sort_limit`] tells, for an input that comes in it.
    pub fn leading_order(&self) -> Option<LeadingOrder<'_>> {
        let (sort, limit) = self.leading_sort_limit()?;
        let filters: Vec<&Filter> = self.stages.iter().map_while(|stage| stage.filter()).collect();
        let filter = match filters[..] {
            [] => self.leading_filter().cloned().unwrap_or_else(Filter::all),
            [first, ref others @ ..] => others.iter().fold(first.clone(), |all, next| all.and(next)),
        };
        let filters = filters.len();
        let mut rest = self.clone();
        rest.stages.remove(filters);
        let mut behind = filters;
        for length in &mut rest.elements {
            if behind < *length {
                *length -= 1;
                break;
            }
            behind -= *length;
        }
        Some(LeadingOrder {
            sort,
            filter,
            limit,
            rest,
        })
    }

    /// Connects the stages to their input. Documents that the result gives are at most 16 MiB.
    ///
    /// # Errors
    /// Those of opening collections. Errors of documents come while they are pulled.
    pub fn open(&self, input: BoxSource, context: Context, collections: Arc<dyn Collections>) -> Result<BoxSource> {
        let run = Arc::new(Run { context, collections });
        Ok(Box::new(Results {
            input: connect(&self.stages, input, &run)?,
        }))
    }

    /// Connects the stages to their input, as [`Pipeline::open`] does, and counts what passes between them.
    ///
    /// # Errors
    /// As there.
    pub fn open_counted(
        &self,
        input: BoxSource,
        context: Context,
        collections: Arc<dyn Collections>,
    ) -> Result<(BoxSource, Passed)> {
        let run = Arc::new(Run { context, collections });
        let passed = Passed {
            counters: (0..=self.elements.len()).map(|_| AtomicU64::new(0)).collect(),
        };
        let count = |input: BoxSource, at: usize| -> BoxSource {
            let passed = passed.clone();
            Box::new(Counted { input, passed, at })
        };
        let (mut source, mut rest) = (count(input, 0), &self.stages[..]);
        for (index, length) in self.elements.iter().enumerate() {
            let (stages, after) = rest.split_at(*length);
            source = count(connect(stages, source, &run)?, index + 1);
            rest = after;
        }
        Ok((Box::new(Results { input: source }), passed))
    }

    /// Tells every `$sort` how many documents are taken after it.
    pub(super) fn limit_sorts(&mut self) {
        for index in 0..self.stages.len() {
            let (before, after) = self.stages.split_at_mut(index + 1);
            let (Some(stage), Some(limit)) = (before.last_mut(), taken(after.iter().map(Arc::as_ref))) else {
                continue;
            };
            if let Some(limited) = stage.with_limit(limit) {
                *stage = limited;
            }
        }
    }
}

/// Opens a collection, or the documents of a view.
///
/// # Errors
/// Those of `collections`; 165 for views of views that are nested too deeply.
pub fn open_namespace(
    namespace: &Namespace,
    filter: Option<&Filter>,
    context: Context,
    collections: Arc<dyn Collections>,
) -> Result<BoxSource> {
    let run = Arc::new(Run { context, collections });
    open_collection(&run, namespace, filter)
}

/// Returns how many documents stages take at most from what comes before them, as `$skip` and `$limit` say.
fn taken<'a>(stages: impl Iterator<Item = &'a dyn Stage>) -> Option<u64> {
    let mut skipped = 0u64;
    for stage in stages {
        if let Some(limit) = stage.limit() {
            return Some(limit.saturating_add(skipped));
        }
        skipped = skipped.saturating_add(stage.skip()?);
    }
    None
}

/// The documents that leave a pipeline.
struct Results {
    input: BoxSource,
}

impl Source for Results {
    fn next(&mut self) -> Result<Option<Document>> {
        let document = self.input.next()?;
        if let Some(document) = &document {
            check_internal_size(document.bytes.as_bytes().len())?;
        }
        Ok(document)
    }
}

/// Counts the documents that pass.
struct Counted {
    input: BoxSource,
    passed: Passed,
    at: usize,
}

impl Source for Counted {
    fn next(&mut self) -> Result<Option<Document>> {
        let document = self.input.next()?;
        if let (Some(_), Some(counter)) = (&document, self.passed.counters.get(self.at)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        Ok(document)
    }
}
