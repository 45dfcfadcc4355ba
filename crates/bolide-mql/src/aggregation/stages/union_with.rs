//! `$unionWith`

use std::sync::Arc;

use bson::raw::{RawArrayBuf, RawBsonRef};

use super::foreign::open_collection;
use crate::aggregation::document::Document;
use crate::aggregation::namespace::Namespace;
use crate::aggregation::options::Options;
use crate::aggregation::parser::{Parsed, Parser, Place};
use crate::aggregation::pipeline::Pipeline;
use crate::aggregation::source::{BoxSource, Documents, Source};
use crate::aggregation::stage::{Run, Stage, connect};
use crate::error::{Code, Error, Result};

#[derive(Debug)]
struct UnionWith {
    collection: Option<Namespace>,
    pipeline: Pipeline,
}

/// Parses the stage.
pub(in crate::aggregation) fn parse(_: &'static str, spec: RawBsonRef<'_>, parser: &mut Parser) -> Result<Parsed> {
    let empty = RawArrayBuf::new();
    let (name, stages) = match spec {
        RawBsonRef::String(name) => (Some(name), RawBsonRef::Array(&empty)),
        other => {
            let wrong = |found: &'static str| {
                let text = format!("the $unionWith stage specification must be an object or string, but found {found}");
                Error::new(Code::FAILED_TO_PARSE, text)
            };
            let options = Options::parse("$unionWith", other, &["coll", "pipeline"], wrong)?;
            let stages = options.get("pipeline")?.unwrap_or(RawBsonRef::Array(&empty));
            (options.string("coll")?, stages)
        }
    };
    let RawBsonRef::Array(stages) = stages else {
        let text = "'pipeline' option must be specified as an array";
        return Err(Error::new(Code::TYPE_MISMATCH, text));
    };
    let database = parser.namespace.database.clone();
    let collection = name
        .map(|name| Namespace::new(database.clone(), name).checked())
        .transpose()?;
    let namespace = collection.clone().unwrap_or_else(|| Namespace::of_database(database));
    let pipeline = parser.sub_pipeline(Place::Union, namespace, parser.scope.clone(), stages)?;
    if collection.is_none() && !pipeline.has_documents {
        let text = "$unionWith stage without explicit collection must have a pipeline with $documents as first stage";
        return Err(Error::new(Code::FAILED_TO_PARSE, text));
    }
    Ok(Parsed::stage(UnionWith { collection, pipeline }))
}

impl Stage for UnionWith {
    fn open(self: Arc<Self>, input: BoxSource, run: &Arc<Run>) -> Result<BoxSource> {
        Ok(Box::new(Union {
            stage: self,
            run: Arc::clone(run),
            source: input,
            is_second: false,
        }))
    }

    fn namespaces(&self, read: &mut Vec<Namespace>) {
        read.extend(self.collection.clone());
        read.extend(self.pipeline.namespaces());
    }
}

struct Union {
    stage: Arc<UnionWith>,
    run: Arc<Run>,
    source: BoxSource,
    is_second: bool,
}

impl Source for Union {
    fn next(&mut self) -> Result<Option<Document>> {
        if let Some(document) = self.source.next()? {
            return Ok(Some(document));
        }
        if self.is_second {
            return Ok(None);
        }
        self.is_second = true;
        let pipeline = &self.stage.pipeline;
        let input = match (&self.stage.collection, pipeline.source()) {
            (None, _) => Box::new(Documents::new(None)),
            (Some(collection), Some(stage)) => self.run.collections.open_stage(collection, stage)?,
            (Some(collection), None) => open_collection(&self.run, collection, pipeline.leading_filter())?,
        };
        self.source = connect(&pipeline.stages, input, &self.run)?;
        self.source.next()
    }
}
