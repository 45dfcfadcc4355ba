//! `$search` with `cosmosSearch`, and `$vectorSearch`: the documents whose vectors are most similar to one.

use std::sync::Arc;

use bson::raw::{RawBsonRef, RawDocument};
use bson::rawdoc;

use crate::aggregation::document::Document;
use crate::aggregation::options::Options;
use crate::aggregation::parser::{Parsed, Parser};
use crate::aggregation::source::BoxSource;
use crate::aggregation::stage::{Blocking, Output, Run, Stage};
use crate::context::memory::StageMemory;
use crate::error::{Code, Error, Result};
use crate::filter::Filter;
use crate::path::Path;
use crate::sort::Sorter;
use crate::value::number;
use crate::value::types;
use crate::vector::{self, Similarity, VectorIndex};

/// The most documents of one search.
const RESULTS: i64 = 10_000;

/// The stage.
#[derive(Debug)]
struct VectorSearch {
    stage: &'static str,
    path: Path,
    similarity: Similarity,
    vector: Vec<f64>,
    filter: Option<Filter>,
    limit: usize,
    form: Form,
}

/// Whose form of the stage it is, and so what the score is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `searchScore`: the cosine, the distance, or the inner product.
    Cosmos,
    /// `vectorSearchScore`: from 0 to 1, but for inner products.
    Atlas,
}

/// Options of a search that tell an approximate one how far to look; an exact one looks at all documents.
const COSMOS_OPTIONS: &[&str] = &[
    "vector",
    "path",
    "k",
    "filter",
    "nProbes",
    "efSearch",
    "lSearch",
    "oversampling",
];
const ATLAS_OPTIONS: &[&str] = &[
    "index",
    "path",
    "queryVector",
    "numCandidates",
    "limit",
    "filter",
    "exact",
];

/// Parses `$search: {cosmosSearch: {vector, path, k, filter?, …}, returnStoredSource?}`.
pub(in crate::aggregation) fn parse_cosmos(
    name: &'static str,
    spec: RawBsonRef<'_>,
    parser: &mut Parser,
) -> Result<Parsed> {
    let wrong = |found: &'static str| {
        let text = format!("{name} options must be specified in an object, but found: {found}");
        Error::new(Code::FAILED_TO_PARSE, text)
    };
    let RawBsonRef::Document(document) = spec else {
        return Err(wrong(types::name(spec)));
    };
    if document.get("cosmosSearch")?.is_none() {
        let text = "$search is supported with cosmosSearch only";
        return Err(Error::new(Code::COMMAND_NOT_SUPPORTED, text));
    }
    let outer = Options::parse("$search", spec, &["cosmosSearch", "returnStoredSource"], wrong)?;
    let spec = outer.required("cosmosSearch")?;
    let options = Options::parse("$search.cosmosSearch", spec, COSMOS_OPTIONS, wrong)?;
    let path = required_string(&options, "path")?;
    let index = find(parser, name, path, None)?;
    let vector = query_vector(&options, "vector", &index)?;
    search(&options, parser, name, &index, vector, "k", Form::Cosmos)
}

/// Parses `$vectorSearch: {index, path, queryVector, limit, numCandidates?, exact?, filter?}`.
pub(in crate::aggregation) fn parse_atlas(
    name: &'static str,
    spec: RawBsonRef<'_>,
    parser: &mut Parser,
) -> Result<Parsed> {
    let wrong = |found: &'static str| {
        let text = format!("{name} options must be specified in an object, but found: {found}");
        Error::new(Code::FAILED_TO_PARSE, text)
    };
    let options = Options::parse(name, spec, ATLAS_OPTIONS, wrong)?;
    let path = required_string(&options, "path")?;
    let index = find(parser, name, path, options.string("index")?)?;
    let vector = query_vector(&options, "queryVector", &index)?;
    search(&options, parser, name, &index, vector, "limit", Form::Atlas)
}

fn search(
    options: &Options<'_>,
    parser: &Parser,
    stage: &'static str,
    index: &VectorIndex,
    vector: Vec<f64>,
    limit: &'static str,
    form: Form,
) -> Result<Parsed> {
    let filter = match options.document("filter")? {
        Some(filter) => Some(super::matching::parse_filter(filter, &parser.scope)?),
        None => None,
    };
    if filter.as_ref().is_some_and(Filter::has_text) {
        return Err(Error::bad_value(format!(
            "$text is not allowed in the filter of {stage}"
        )));
    }
    let count = number::whole(options.required(limit)?).filter(|count| (1..=RESULTS).contains(count));
    let count = count.and_then(|count| usize::try_from(count).ok());
    let range = || Error::bad_value(format!("{limit} of {stage} must be a whole number from 1 to {RESULTS}"));
    Ok(Parsed::stage(VectorSearch {
        stage,
        path: Path::parse(&index.path)?,
        similarity: index.similarity,
        vector,
        filter,
        limit: count.ok_or_else(range)?,
        form,
    }))
}

fn required_string<'a>(options: &Options<'a>, name: &str) -> Result<&'a str> {
    options.required(name)?;
    Ok(options.string(name)?.unwrap_or_default())
}

/// Finds the index on a field; with a name, the one of this name.
fn find(parser: &Parser, stage: &str, path: &str, name: Option<&str>) -> Result<VectorIndex> {
    if !parser.is_at_start_of_command() {
        let text = format!("{stage} is supported only as the first stage of a command");
        return Err(Error::new(Code::NOT_IMPLEMENTED, text));
    }
    let indexes = parser.scope.context().vector_indexes.clone();
    let is_asked = |index: &&VectorIndex| index.path == path && name.is_none_or(|name| index.name == name);
    let found = indexes.iter().find(is_asked).cloned();
    found.ok_or_else(|| {
        Error::bad_value("Similarity index was not found for a vector similarity search query.".to_owned())
    })
}

fn query_vector(options: &Options<'_>, name: &str, index: &VectorIndex) -> Result<Vec<f64>> {
    let vector = vector::read(options.required(name)?);
    let vector = vector.ok_or_else(|| Error::bad_value(format!("{name} must be a non-empty array of numbers")))?;
    if vector.len() != index.dimensions {
        let text = format!(
            "the vector has {} dimensions, but those of the index '{}' have {}",
            vector.len(),
            index.name,
            index.dimensions
        );
        return Err(Error::bad_value(text));
    }
    Ok(vector)
}

impl Stage for VectorSearch {
    fn open(self: Arc<Self>, input: BoxSource, run: &Arc<Run>) -> Result<BoxSource> {
        let run = Arc::clone(run);
        Ok(Blocking::source(move || self.collect(input, &run)))
    }
}

impl VectorSearch {
    fn collect(&self, mut input: BoxSource, run: &Run) -> Result<Output> {
        let mut sorter = Sorter::new(Some(self.limit), StageMemory::new(self.stage));
        while let Some(document) = input.next()? {
            let Some(result) = self.compare(&document.bytes) else {
                continue;
            };
            if let Some(filter) = &self.filter
                && !filter.matches(&document.bytes, &run.context)?
            {
                continue;
            }
            let key = sort_key(self.similarity.rank(result));
            let metadata = match self.form {
                Form::Cosmos => rawdoc! { "searchScore": result },
                Form::Atlas => rawdoc! { "vectorSearchScore": normalized(self.similarity, result) },
            };
            let document = Document {
                metadata: Some(Arc::new(metadata)),
                ..document
            };
            let bytes = document.memory();
            sorter.push(key, document, bytes)?;
        }
        Ok(Box::new(sorter.finish()))
    }

    fn compare(&self, document: &RawDocument) -> Option<f64> {
        let vector = vector::of_document(document, &self.path, self.vector.len())?;
        self.similarity.compare(&self.vector, &vector)
    }
}

/// The score of Atlas.
fn normalized(similarity: Similarity, result: f64) -> f64 {
    match similarity {
        Similarity::Cosine | Similarity::InnerProduct => (1.0 + result) / 2.0,
        Similarity::Euclidean => 1.0 / (1.0 + result * result),
    }
}

/// Bytes in the order of the numbers.
fn sort_key(number: f64) -> Vec<u8> {
    // The bits of negative numbers are in reverse order, and their highest is set.
    let bits = number.to_bits();
    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    ordered.to_be_bytes().to_vec()
}
