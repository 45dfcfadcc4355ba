//! `$lookup`

use std::sync::Arc;

use bson::raw::{RawArrayBuf, RawBson, RawBsonRef, RawDocument};

use super::foreign::{Foreign, join_values};
use super::nested;
use crate::aggregation::document::Document;
use crate::aggregation::namespace::Namespace;
use crate::aggregation::options::Options;
use crate::aggregation::parser::{Parsed, Parser, Place};
use crate::aggregation::pipeline::Pipeline;
use crate::aggregation::source::{BoxSource, Documents, Source};
use crate::aggregation::stage::{Run, Stage, connect};
use crate::error::{Code, Error, Result};
use crate::expression::Expression;
use crate::path::field::FieldPath;
use crate::projection::{check_bytes, check_depth};
use crate::value::{text, types};

#[derive(Debug)]
struct Lookup {
    /// The collection; `None` if the pipeline begins with `$documents`.
    from: Option<Namespace>,
    fields: Option<Fields>,
    variables: Vec<(String, Expression)>,
    pipeline: Option<Pipeline>,
    into: FieldPath,
}

/// The equality of a join.
#[derive(Debug)]
struct Fields {
    local: FieldPath,
    foreign: FieldPath,
}

const OPTIONS: &[&str] = &[
    "from",
    "as",
    "localField",
    "foreignField",
    "let",
    "pipeline",
    "_internalCollation",
];

fn failed(text: impl Into<String>) -> Error {
    Error::new(Code::FAILED_TO_PARSE, text)
}

/// Parses the stage.
pub(in crate::aggregation) fn parse(_: &'static str, spec: RawBsonRef<'_>, parser: &mut Parser) -> Result<Parsed> {
    let RawBsonRef::Document(document) = spec else {
        let found = types::name(spec);
        return Err(failed(format!(
            "the $lookup stage specification must be an object, but found {found}"
        )));
    };
    for element in document {
        let (name, value) = element?;
        let is_known = OPTIONS.contains(&name.as_str());
        if !is_known || name.as_str().starts_with('_') {
            let shown = text::render(value);
            return Err(failed(format!("unknown argument to $lookup: {name}: {shown}")));
        }
    }
    let into = argument(document, "as")?.ok_or_else(|| failed("must specify 'as' field for a $lookup"))?;
    let local = argument(document, "localField")?;
    let foreign = argument(document, "foreignField")?;
    let fields = match (local, foreign) {
        (Some(local), Some(foreign)) => Some(Fields {
            local: FieldPath::parse(local)?,
            foreign: FieldPath::parse(foreign)?,
        }),
        (None, None) => None,
        _ => {
            let text = "$lookup requires both or neither of 'localField' and 'foreignField' to be specified";
            return Err(failed(text));
        }
    };
    let stages = document.get("pipeline")?;
    if fields.is_none() && stages.is_none() {
        let text = "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified";
        return Err(failed(text));
    }
    let from = from(document, parser)?;
    let (variables, pipeline) = parse_pipeline(document, stages, from.as_ref(), parser)?;
    if from.is_none() && !pipeline.as_ref().is_some_and(|pipeline| pipeline.has_documents) {
        let shown = text::render(spec);
        return Err(failed(format!(
            "missing 'from' option to $lookup stage specification: {shown}"
        )));
    }
    Ok(Parsed::stage(Lookup {
        from,
        fields,
        variables,
        pipeline,
        into: FieldPath::parse(into)?,
    }))
}

fn argument<'d>(document: &'d RawDocument, name: &str) -> Result<Option<&'d str>> {
    match document.get(name)? {
        None => Ok(None),
        Some(RawBsonRef::String(text)) => Ok(Some(text)),
        Some(other) => {
            let (shown, found) = (text::render(other), types::name(other));
            let text = format!("$lookup argument '{name}: {shown}' must be a string, is type {found}");
            Err(failed(text))
        }
    }
}

fn from(document: &RawDocument, parser: &Parser) -> Result<Option<Namespace>> {
    let database = parser.namespace.database.clone();
    match document.get("from")? {
        None => Ok(None),
        Some(RawBsonRef::String(collection)) => Namespace::new(database, collection).checked().map(Some),
        Some(from @ RawBsonRef::Document(_)) => {
            let wrong = |_: &'static str| failed("$lookup 'from' must be a string or an object");
            let options = Options::parse("$lookup.from", from, &["db", "coll"], wrong)?;
            let collection = options.required("coll")?;
            let Some(collection) = collection.as_str() else {
                return Err(options.wrong_type("coll", collection, "string"));
            };
            if options.string("db")?.is_some_and(|db| db != database) {
                return Err(failed(
                    "$lookup with syntax {from: {db:<>, coll:<>},..} is not supported for another database",
                ));
            }
            Namespace::new(database, collection).checked().map(Some)
        }
        Some(other) => {
            let (shown, found) = (text::render(other), types::name(other));
            Err(failed(format!(
                "$lookup argument 'from: {shown}' must be a string or an object, is type {found}"
            )))
        }
    }
}

type Parts = (Vec<(String, Expression)>, Option<Pipeline>);

fn parse_pipeline(
    document: &RawDocument,
    stages: Option<RawBsonRef<'_>>,
    from: Option<&Namespace>,
    parser: &mut Parser,
) -> Result<Parts> {
    let variables = match document.get("let")? {
        None => Vec::new(),
        Some(_) if stages.is_none() => {
            return Err(failed("$lookup with a 'let' requires a 'pipeline'"));
        }
        Some(RawBsonRef::Document(variables)) => nested::parse_variables(variables, &mut parser.scope)?,
        Some(other) => {
            let (shown, found) = (text::render(other), types::name(other));
            let text = format!("$lookup argument 'let: {shown}' must be an object, is type {found}");
            return Err(failed(text));
        }
    };
    let stages = match stages {
        None => return Ok((variables, None)),
        Some(RawBsonRef::Array(stages)) => stages,
        Some(_) => {
            return Err(Error::new(
                Code::TYPE_MISMATCH,
                "'pipeline' option must be specified as an array",
            ));
        }
    };
    let mut scope = parser.scope.clone();
    for (name, _) in &variables {
        scope.define(name.clone());
    }
    let of_database = || Namespace::of_database(parser.namespace.database.clone());
    let namespace = from.cloned().unwrap_or_else(of_database);
    let pipeline = parser.sub_pipeline(Place::Lookup, namespace, scope, stages)?;
    Ok((variables, Some(pipeline)))
}

impl Stage for Lookup {
    fn open(self: Arc<Self>, input: BoxSource, run: &Arc<Run>) -> Result<BoxSource> {
        let field = self.fields.as_ref().map(|fields| fields.foreign.clone());
        let foreign = self.from.clone().map(|from| Foreign::new(run, from, field));
        Ok(Box::new(Joined {
            stage: self,
            input,
            run: Arc::clone(run),
            foreign,
        }))
    }

    fn namespaces(&self, read: &mut Vec<Namespace>) {
        read.extend(self.from.clone());
        read.extend(self.pipeline.iter().flat_map(Pipeline::namespaces));
    }
}

struct Joined {
    stage: Arc<Lookup>,
    input: BoxSource,
    run: Arc<Run>,
    foreign: Option<Foreign>,
}

impl Source for Joined {
    fn next(&mut self) -> Result<Option<Document>> {
        let Some(document) = self.input.next()? else {
            return Ok(None);
        };
        let mut matches = self.matches(&document)?;
        let mut array = RawArrayBuf::new();
        while let Some(found) = matches.next()? {
            array.push(RawBson::Document(found.bytes));
            check_bytes(array.as_bytes().len())?;
        }
        let array = RawBson::Array(array);
        let joined = nested::set(&document.bytes, self.stage.into.names(), Some(array.as_raw_bson_ref()))?;
        check_depth(&joined)?;
        Ok(Some(document.with_bytes(joined)))
    }
}

impl Joined {
    /// Returns the documents for one document of the input.
    fn matches(&mut self, document: &Document) -> Result<BoxSource> {
        let stage = Arc::clone(&self.stage);
        let input: BoxSource = match (&mut self.foreign, &stage.fields, &stage.pipeline) {
            (_, _, Some(pipeline)) if pipeline.has_documents => Box::new(Documents::new(None)),
            (Some(foreign), Some(fields), _) => {
                let mut values = join_values(&document.bytes, fields.local.names())?;
                if values.is_empty() {
                    values.push(RawBson::Null);
                }
                foreign.matching(&values)?
            }
            (Some(_), None, Some(pipeline)) if pipeline.source().is_some() => self.source_stage(pipeline)?,
            (Some(foreign), None, Some(pipeline)) => foreign.all(pipeline.leading_filter())?,
            _ => Box::new(Documents::new(None)),
        };
        let Some(pipeline) = &stage.pipeline else {
            return Ok(input);
        };
        if stage.variables.is_empty() {
            return connect(&pipeline.stages, input, &self.run);
        }
        let mut context = self.run.context.clone();
        let mut variables = context.variables.to_vec();
        let scope = document.scope(&self.run.context);
        for (name, expression) in &stage.variables {
            // Undefined stands for a missing value.
            let value = expression.evaluate(&scope)?.unwrap_or(RawBson::Undefined);
            variables.push((name.clone(), value));
        }
        context.variables = variables.into();
        let run = Arc::new(Run {
            context,
            collections: Arc::clone(&self.run.collections),
        });
        connect(&pipeline.stages, input, &run)
    }

    fn source_stage(&self, pipeline: &Pipeline) -> Result<BoxSource> {
        match (pipeline.source(), &self.stage.from) {
            (Some(stage), Some(from)) => self.run.collections.open_stage(from, stage),
            _ => Ok(Box::new(Documents::new(None))),
        }
    }
}
