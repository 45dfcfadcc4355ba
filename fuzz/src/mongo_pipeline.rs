//! Pipelines: a pipeline as extended JSON, then documents by line, which are its input and those of all collections. Its results are documents.

use std::sync::Arc;

use bolide_mql::aggregation::{
    BoxSource, Collections, Document, Documents, Namespace, Pipeline, PipelineOptions, SourceStage,
};
use bolide_mql::bson::RawDocumentBuf;
use bolide_mql::expression::ParseScope;
use bolide_mql::filter::Filter;
use bolide_mql::{Code, Error, Result, value};

use super::input::Input;
use super::mongo_json;
use super::mongo_work::{context, is_repeatable};

/// Maximum number of results that are read.
const RESULTS: usize = 2_000;
/// Maximum number of documents of an input.
const DOCUMENTS: usize = 20;

struct Memory(Vec<RawDocumentBuf>);

impl Collections for Memory {
    fn open(&self, _: &Namespace, _: Option<&Filter>) -> Result<BoxSource> {
        Ok(source(&self.0))
    }

    fn open_stage(&self, _: &Namespace, stage: &SourceStage) -> Result<BoxSource> {
        Err(Error::new(Code::NOT_IMPLEMENTED, stage.name))
    }
}

fn source(documents: &[RawDocumentBuf]) -> BoxSource {
    let documents: Vec<Document> = documents.iter().cloned().map(Document::new).collect();
    Box::new(Documents::new(documents))
}

/// Runs a pipeline.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let text = input.until(b'\n');
    let Some(stages) = mongo_json::array(text) else { return };
    let options = PipelineOptions {
        namespace: Namespace::new("test", "main"),
        scope: ParseScope::new(&context()),
        geo_fields: vec!["loc".to_owned()],
    };
    let Ok(pipeline) = Pipeline::parse(&stages, &options) else {
        return;
    };
    let mut documents = mongo_json::documents(input.0);
    documents.truncate(DOCUMENTS);
    let results = results(&pipeline, &documents);
    if is_repeatable(text)
        && let Ok(found) = &results
    {
        let again = self::results(&pipeline, &documents).expect("it ran before");
        assert_eq!(again, *found);
    }
}

fn results(pipeline: &Pipeline, documents: &[RawDocumentBuf]) -> Result<Vec<RawDocumentBuf>> {
    let memory = Arc::new(Memory(documents.to_vec()));
    let mut output = pipeline.open(source(documents), context(), memory)?;
    let mut results = Vec::new();
    while results.len() < RESULTS
        && let Some(result) = output.next()?
    {
        value::validate(result.bytes.as_bytes()).expect("results are documents");
        results.push(result.bytes);
    }
    Ok(results)
}
