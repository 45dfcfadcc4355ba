//! `$facet`

use std::sync::Arc;

use bson::raw::{CString, RawArrayBuf, RawBson, RawBsonRef, RawDocumentBuf};

use crate::aggregation::document::Document;
use crate::aggregation::namespace::Namespace;
use crate::aggregation::parser::{Parsed, Parser, Place};
use crate::aggregation::pipeline::Pipeline;
use crate::aggregation::source::{BoxSource, Documents};
use crate::aggregation::stage::{Blocking, Output, Run, Stage, connect};
use crate::context::memory::StageMemory;
use crate::error::{Error, Result};
use crate::path::field::parse_name;
use crate::projection::{check_bytes, check_depth};
use crate::value::{text, types};

#[derive(Debug)]
struct Facet {
    facets: Vec<(CString, Pipeline)>,
}

/// Parses the stage.
pub(in crate::aggregation) fn parse(_: &'static str, spec: RawBsonRef<'_>, parser: &mut Parser) -> Result<Parsed> {
    let spec = match spec {
        RawBsonRef::Document(document) if !document.is_empty() => document,
        other => {
            let shown = text::render(other);
            let text = format!("the $facet specification must be a non-empty object, but found: {shown}");
            return Err(Error::new(40169, text));
        }
    };
    let mut facets = Vec::new();
    for element in spec {
        let (name, value) = element?;
        let RawBsonRef::Array(stages) = value else {
            let found = types::name(value);
            let text = format!("arguments to $facet must be arrays, {name} is type {found}");
            return Err(Error::new(40170, text));
        };
        let field = parse_name(name.as_str())?;
        if name.as_str().contains('.') {
            return Err(Error::new(
                40183,
                format!("FieldPath field names may not contain '.'. Found '{name}'"),
            ));
        }
        let (namespace, scope) = (parser.namespace.clone(), parser.scope.clone());
        facets.push((field, parser.sub_pipeline(Place::Facet, namespace, scope, stages)?));
    }
    Ok(Parsed::stage(Facet { facets }))
}

impl Facet {
    fn collect(&self, mut input: BoxSource, run: &Arc<Run>) -> Result<Output> {
        let mut memory = StageMemory::new("$facet");
        let mut documents = Vec::new();
        while let Some(document) = input.next()? {
            memory.add(document.memory())?;
            documents.push(document);
        }
        let documents: Arc<[Document]> = documents.into();
        let mut result = RawDocumentBuf::new();
        for (name, pipeline) in &self.facets {
            let documents = Arc::clone(&documents);
            let indexes = 0..documents.len();
            let input = Documents::new(indexes.filter_map(move |index| documents.get(index).cloned()));
            let mut output = connect(&pipeline.stages, Box::new(input), run)?;
            let mut array = RawArrayBuf::new();
            while let Some(document) = output.next()? {
                array.push(RawBson::Document(document.bytes));
                check_bytes(array.as_bytes().len())?;
            }
            result.append(name, RawBson::Array(array));
            check_bytes(result.as_bytes().len())?;
        }
        check_depth(&result)?;
        Ok(Box::new(std::iter::once(Document::new(result))))
    }
}

impl Stage for Facet {
    fn open(self: Arc<Self>, input: BoxSource, run: &Arc<Run>) -> Result<BoxSource> {
        let run = Arc::clone(run);
        Ok(Blocking::source(move || self.collect(input, &run)))
    }

    fn namespaces(&self, read: &mut Vec<Namespace>) {
        for (_, pipeline) in &self.facets {
            read.extend(pipeline.namespaces());
        }
    }
}
