//! Vectors: the embeddings of items, and their indexes.
//!
//! Messages use the service's words, which the Python SDK's tests compare. Source: cosmos-rest §4.2.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::input::{Input, has_duplicates, invalid, meaning, read_paths, word};
use crate::error::{Error, Result, excerpt};
use crate::limits::{FLAT_VECTOR_DIMENSIONS, VECTOR_DIMENSIONS};
use crate::path::PropertyPath;

/// Largest quantized vector, in bytes, whatever its dimensions.
const QUANTIZATION_BYTES: i64 = 512;

/// Minimum and maximum number of candidates in a search of a graph.
const SEARCH_LIST: (i64, i64) = (25, 500);

/// See [`VectorIndex::shard_keys`].
const SHARD_KEYS: &str = "vectorIndexShardKeys";
/// Maximum number of paths of a shard key.
const SHARD_PATHS: usize = 1;

/// The vector embedding policy of a container.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorEmbeddingPolicy {
    /// One embedding per path.
    pub embeddings: Vec<VectorEmbedding>,
}

/// The vectors at one path.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorEmbedding {
    /// The path.
    pub path: PropertyPath,
    /// The type of an element.
    pub data_type: VectorDataType,
    /// The number of elements.
    pub dimensions: u32,
    /// The measure of similarity.
    pub distance_function: DistanceFunction,
    /// The source from which the service would compute the vectors; stored and returned.
    pub source: Option<Value>,
}

/// The type of an element of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorDataType {
    /// 32-bit float.
    Float32,
    /// 16-bit float.
    Float16,
    /// Signed byte.
    Int8,
    /// Unsigned byte.
    Uint8,
}

/// The measure of similarity of two vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DistanceFunction {
    /// The cosine: higher is more similar.
    Cosine,
    /// The dot product: higher is more similar.
    DotProduct,
    /// The distance: lower is more similar.
    Euclidean,
}

/// An index of the vectors at one path.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorIndex {
    /// The path; it must be in the embedding policy.
    pub path: PropertyPath,
    /// How it is searched.
    pub kind: VectorIndexType,
    /// How vectors are compressed.
    pub quantizer: Option<Quantizer>,
    /// Bytes of a compressed vector: 1 to its dimensions, at most 512.
    pub quantization_bytes: Option<i64>,
    /// Number of candidates in a search: 25 to 500.
    pub search_list_size: Option<i64>,
    /// Properties by which the index is divided.
    pub shard_key: Option<Vec<PropertyPath>>,
    /// The same with the name that Java's SDK uses, stored as sent.
    pub shard_keys: Option<Vec<PropertyPath>>,
}

/// How an index is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorIndexType {
    /// Compares all vectors.
    Flat,
    /// Compares all vectors, compressed.
    QuantizedFlat,
    /// Searches a graph.
    DiskAnn,
}

/// How vectors are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantizer {
    /// Product quantization.
    Product,
    /// Spherical quantization.
    Spherical,
}

const DATA_TYPES: &[(&str, VectorDataType)] = &[
    ("float32", VectorDataType::Float32),
    ("float16", VectorDataType::Float16),
    ("int8", VectorDataType::Int8),
    ("uint8", VectorDataType::Uint8),
];

const DISTANCES: &[(&str, DistanceFunction)] = &[
    ("cosine", DistanceFunction::Cosine),
    ("dotproduct", DistanceFunction::DotProduct),
    ("euclidean", DistanceFunction::Euclidean),
];

const INDEX_TYPES: &[(&str, VectorIndexType)] = &[
    ("flat", VectorIndexType::Flat),
    ("quantizedFlat", VectorIndexType::QuantizedFlat),
    ("diskANN", VectorIndexType::DiskAnn),
];

const QUANTIZERS: &[(&str, Quantizer)] = &[("product", Quantizer::Product), ("spherical", Quantizer::Spherical)];

const AUTH_TYPES: &[&str] = &["ApiKey", "Entra"];

impl VectorEmbeddingPolicy {
    pub(super) fn from_input(input: &Input<'_>) -> Result<VectorEmbeddingPolicy> {
        let embeddings = input.objects("vectorEmbeddings")?;
        let embeddings = embeddings
            .iter()
            .map(VectorEmbedding::from_input)
            .collect::<Result<Vec<_>>>()?;
        let paths: Vec<&PropertyPath> = embeddings.iter().map(|embedding| &embedding.path).collect();
        if has_duplicates(&paths) {
            return Err(invalid(&input.name_of("vectorEmbeddings"), "a list of different paths"));
        }
        Ok(VectorEmbeddingPolicy { embeddings })
    }

    pub(super) fn to_json(&self) -> Value {
        let embeddings: Vec<Value> = self.embeddings.iter().map(VectorEmbedding::to_json).collect();
        json!({"vectorEmbeddings": embeddings})
    }
}

impl VectorEmbedding {
    fn from_input(input: &Input<'_>) -> Result<VectorEmbedding> {
        Ok(VectorEmbedding {
            path: input.path("path")?,
            data_type: embedding_word(input, "dataType", "DataType", DATA_TYPES)?,
            dimensions: read_dimensions(input)?,
            distance_function: embedding_word(input, "distanceFunction", "DistanceFunction", DISTANCES)?,
            source: input
                .object("embeddingSource")?
                .map(|source| read_source(input, &source))
                .transpose()?,
        })
    }

    fn to_json(&self) -> Value {
        let mut json = json!({
            "path": self.path.as_str(),
            "dataType": word(DATA_TYPES, self.data_type),
            "dimensions": self.dimensions,
            "distanceFunction": word(DISTANCES, self.distance_function),
        });
        if let Some(source) = &self.source {
            json["embeddingSource"] = source.clone();
        }
        json
    }
}

impl VectorIndex {
    pub(super) fn from_input(input: &Input<'_>) -> Result<VectorIndex> {
        let kind = input.require("type", input.string("type")?)?;
        let kind = meaning(INDEX_TYPES, kind).ok_or_else(|| {
            Error::bad_request(format!(
                "The Vector Indexing Policy's Index Type::{} is invalid.",
                excerpt(kind)
            ))
        })?;
        Ok(VectorIndex {
            path: input.path("path")?,
            kind,
            quantizer: input.choice("quantizerType", QUANTIZERS)?,
            quantization_bytes: input.integer("quantizationByteSize")?,
            search_list_size: read_search_list_size(input)?,
            shard_key: input
                .array("vectorIndexShardKey")?
                .map(|paths| read_shard_key(paths, input))
                .transpose()?,
            shard_keys: input
                .array(SHARD_KEYS)?
                .map(|paths| read_paths(paths, &input.name_of(SHARD_KEYS)))
                .transpose()?,
        })
    }

    pub(super) fn to_json(&self) -> Value {
        let mut members = Map::new();
        members.insert("path".into(), self.path.as_str().into());
        members.insert("type".into(), word(INDEX_TYPES, self.kind).into());
        if let Some(quantizer) = self.quantizer {
            members.insert("quantizerType".into(), word(QUANTIZERS, quantizer).into());
        }
        if let Some(bytes) = self.quantization_bytes {
            members.insert("quantizationByteSize".into(), bytes.into());
        }
        if let Some(size) = self.search_list_size {
            members.insert("indexingSearchListSize".into(), size.into());
        }
        let shards = [("vectorIndexShardKey", &self.shard_key), (SHARD_KEYS, &self.shard_keys)];
        for (name, paths) in shards {
            if let Some(paths) = paths {
                members.insert(name.into(), paths.iter().map(PropertyPath::as_str).collect());
            }
        }
        Value::Object(members)
    }

    fn check(&self, embeddings: &HashMap<&PropertyPath, &VectorEmbedding>) -> Result<()> {
        let path = &self.path;
        let Some(embedding) = embeddings.get(path) else {
            return Err(Error::bad_request(format!(
                "The Vector Indexing Policy's path::{path} not matching in Embedding's path."
            )));
        };
        let dimensions = embedding.dimensions;
        if self.kind == VectorIndexType::Flat && dimensions > FLAT_VECTOR_DIMENSIONS {
            return Err(Error::bad_request(format!(
                "The Vector Indexing Policy's path::{path} has Dimensions:{dimensions} which is more than the maximum supported value: \
                 {FLAT_VECTOR_DIMENSIONS} of Index Type::flat."
            )));
        }
        match self.quantization_bytes {
            Some(bytes) => check_range(
                "QuantizationByteSize",
                bytes,
                1,
                QUANTIZATION_BYTES.min(dimensions.into()),
            ),
            None => Ok(()),
        }
    }
}

/// No two embeddings, or indexes, have the same path.
fn embeddings_by_path(policy: Option<&VectorEmbeddingPolicy>) -> HashMap<&PropertyPath, &VectorEmbedding> {
    let embeddings = policy.into_iter().flat_map(|policy| &policy.embeddings);
    embeddings.map(|embedding| (&embedding.path, embedding)).collect()
}

/// Checks that every vector index has an embedding that matches it.
pub(super) fn check_indexes(indexes: &[VectorIndex], policy: Option<&VectorEmbeddingPolicy>) -> Result<()> {
    let paths: Vec<&PropertyPath> = indexes.iter().map(|index| &index.path).collect();
    if has_duplicates(&paths) {
        return Err(invalid("indexingPolicy.vectorIndexes", "a list of different paths"));
    }
    let embeddings = embeddings_by_path(policy);
    indexes.iter().try_for_each(|index| index.check(&embeddings))
}

/// Checks that a replaced container keeps its embeddings and vector indexes; it may add others.
pub(super) fn check_replaced(
    old: (Option<&VectorEmbeddingPolicy>, &[VectorIndex]),
    new: (Option<&VectorEmbeddingPolicy>, &[VectorIndex]),
) -> Result<()> {
    let (kept, given) = (embeddings_by_path(old.0), embeddings_by_path(new.0));
    if !kept.iter().all(|(path, embedding)| given.get(path) == Some(embedding)) {
        return Err(Error::bad_request(
            "Paths in existing embedding policy cannot be modified in Collection Replace.",
        ));
    }
    let given: HashMap<&PropertyPath, &VectorIndex> = new.1.iter().map(|index| (&index.path, index)).collect();
    if !old.1.iter().all(|index| given.get(&index.path) == Some(&index)) {
        return Err(Error::bad_request(
            "Paths in existing vector indexing policy cannot be modified in Collection Replace.",
        ));
    }
    Ok(())
}

fn embedding_word<T: Copy>(input: &Input<'_>, member: &str, title: &str, words: &[(&str, T)]) -> Result<T> {
    let given = input.require(member, input.string(member)?)?;
    meaning(words, given).ok_or_else(|| {
        Error::bad_request(format!(
            "The Vector Embedding Policy has an invalid {title}:{}.",
            excerpt(given)
        ))
    })
}

fn read_dimensions(input: &Input<'_>) -> Result<u32> {
    let given = input.require("dimensions", input.integer("dimensions")?)?;
    let which = match u32::try_from(given) {
        Ok(dimensions @ 1..=VECTOR_DIMENSIONS) => return Ok(dimensions),
        _ if given < 1 => "less than the minimum supported value: 1".to_owned(),
        _ => format!("more than the maximum supported value: {VECTOR_DIMENSIONS}"),
    };
    Err(Error::bad_request(format!(
        "The Vector Embedding Policy has Dimensions:{given} which is {which}."
    )))
}

/// The service computes embeddings of text from such a source; we only store the definition.
fn read_source(embedding: &Input<'_>, source: &Input<'_>) -> Result<Value> {
    for member in ["endpoint", "deploymentName"] {
        source.require(member, source.string(member)?)?;
    }
    if source.array("sourcePaths")?.unwrap_or_default().is_empty() {
        return Err(invalid(&source.name_of("sourcePaths"), "a list of at least one path"));
    }
    match source.string("authType")? {
        Some(given) if !AUTH_TYPES.contains(&given) => Err(Error::bad_request(
            "The auth type provided in the embedding source of vector policy is invalid.",
        )),
        _ => embedding.require("embeddingSource", embedding.get("embeddingSource").cloned()),
    }
}

fn read_search_list_size(input: &Input<'_>) -> Result<Option<i64>> {
    let size = input.integer("indexingSearchListSize")?;
    if let Some(size) = size {
        check_range("IndexingSearchListSize", size, SEARCH_LIST.0, SEARCH_LIST.1)?;
    }
    Ok(size)
}

fn check_range(parameter: &str, value: i64, min: i64, max: i64) -> Result<()> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(Error::bad_request(format!(
        "The Vector Indexing Policy parameter {parameter} value :: {value} is out of range. The allowed range is between {min} and {max}."
    )))
}

fn read_shard_key(paths: &[Value], input: &Input<'_>) -> Result<Vec<PropertyPath>> {
    if paths.len() > SHARD_PATHS {
        return Err(Error::bad_request(format!(
            "The number of shard paths defined in the Vector Indexing Policy: {} exceeds the maximum: {SHARD_PATHS}.",
            paths.len()
        )));
    }
    if let Some(path) = paths
        .iter()
        .filter_map(Value::as_str)
        .find(|path| PropertyPath::parse(path).is_err())
    {
        return Err(Error::bad_request(format!(
            "The Vector Indexing Policy has an invalid Shard Path: {}.",
            excerpt(path)
        )));
    }
    read_paths(paths, &input.name_of("vectorIndexShardKey"))
}
