mod accumulators;
mod errors;
mod geo;
mod hostile;
mod joins;
mod model;
mod naive;
mod pipelines;
mod shapes;
mod windows;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bolide_model::UnixMillis;
use bson::{RawBsonRef, RawDocumentBuf};

use super::{
    BoxSource, Collections, Document, Documents, Lifetime, Namespace, Pipeline, PipelineOptions, SourceStage, View,
};
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::expression::ParseScope;
use crate::filter::Filter;
use crate::value::testing::{array, documents};
use crate::value::text;

/// Collections of the database `test`.
#[derive(Default)]
struct Memory {
    collections: HashMap<String, Vec<RawDocumentBuf>>,
    views: HashMap<String, View>,
    opened: AtomicUsize,
    /// After so many questions all documents have died.
    dead_after: Option<usize>,
    questions: AtomicUsize,
}

impl Collections for Memory {
    fn open(&self, namespace: &Namespace, _: Option<&Filter>) -> Result<BoxSource> {
        assert_eq!(namespace.database, "test");
        self.opened.fetch_add(1, Ordering::Relaxed);
        let found = self.collections.get(&namespace.collection).cloned().unwrap_or_default();
        let live = |bytes| Document {
            lifetime: Some(Lifetime::new(())),
            ..Document::new(bytes)
        };
        Ok(Box::new(Documents::new(found.into_iter().map(live))))
    }

    fn is_live(&self, _: &Lifetime) -> bool {
        let questions = self.questions.fetch_add(1, Ordering::Relaxed);
        self.dead_after.is_none_or(|end| questions < end)
    }

    fn open_stage(&self, _: &Namespace, stage: &SourceStage) -> Result<BoxSource> {
        Err(Error::new(Code::NOT_IMPLEMENTED, stage.name))
    }

    fn view(&self, namespace: &Namespace) -> Result<Option<View>> {
        Ok(self.views.get(&namespace.collection).cloned())
    }
}

fn memory(collections: &[(&str, &str)]) -> Memory {
    let collection = |(name, json): &(&str, &str)| ((*name).to_owned(), documents(json));
    Memory {
        collections: collections.iter().map(collection).collect(),
        ..Memory::default()
    }
}

fn context() -> Context {
    Context::new(UnixMillis(1_000))
}

fn parse(pipeline: &str) -> Result<Pipeline> {
    parse_on(pipeline, Namespace::new("test", "main"))
}

fn parse_on(pipeline: &str, namespace: Namespace) -> Result<Pipeline> {
    let options = PipelineOptions {
        namespace,
        scope: ParseScope::new(&context()),
        geo_fields: vec!["loc".to_owned()],
    };
    Pipeline::parse(&array(pipeline), &options)
}

/// Runs a pipeline over the documents of `input`.
fn run(pipeline: &str, input: &str) -> Result<Vec<RawDocumentBuf>> {
    run_with(pipeline, input, &Arc::new(Memory::default()))
}

fn run_with(pipeline: &str, input: &str, collections: &Arc<Memory>) -> Result<Vec<RawDocumentBuf>> {
    run_documents(&parse(pipeline)?, documents(input), collections)
}

fn run_documents(pipeline: &Pipeline, input: Vec<RawDocumentBuf>, memory: &Arc<Memory>) -> Result<Vec<RawDocumentBuf>> {
    let input = Documents::new(input.into_iter().map(Document::new).collect::<Vec<_>>());
    let collections: Arc<dyn Collections> = Arc::<Memory>::clone(memory);
    let mut output = pipeline.open(Box::new(input), context(), collections)?;
    let mut results = Vec::new();
    while let Some(document) = output.next()? {
        results.push(document.bytes);
    }
    Ok(results)
}

/// Checks that a pipeline gives these documents, with values of these types.
fn check(pipeline: &str, input: &str, expected: &str) {
    check_with(pipeline, input, &Arc::new(Memory::default()), expected);
}

fn check_with(pipeline: &str, input: &str, collections: &Arc<Memory>, expected: &str) {
    let results = run_with(pipeline, input, collections).unwrap_or_else(|error| panic!("{pipeline}: {error:?}"));
    let expected = documents(expected);
    assert!(
        results == expected,
        "{pipeline}\n gave     {}\n expected {}",
        shown(&results),
        shown(&expected)
    );
}

fn shown(documents: &[RawDocumentBuf]) -> String {
    let shown = |document: &RawDocumentBuf| text::render(RawBsonRef::Document(document));
    documents.iter().map(shown).collect::<Vec<_>>().join("\n          ")
}

/// Checks that a pipeline is refused, or fails, with a code.
fn check_error(pipeline: &str, input: &str, code: i32) {
    match run(pipeline, input) {
        Ok(results) => panic!("{pipeline} gave {}", shown(&results)),
        Err(error) => assert_eq!(error.code.0, code, "{pipeline}: {}", error.message),
    }
}
