//! Vectors in documents, and how similar they are.
//!
//! A search compares a vector with those of all documents, so it is exact: what indexes are told of their graphs and lists changes nothing.

use bson::raw::{RawBsonRef, RawDocument};

use crate::path::{self, Path};
use crate::value::number::Number;

/// The most dimensions of a vector.
pub const DIMENSIONS: usize = 16_000;

/// What makes two vectors similar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Similarity {
    /// The angle between them: `COS`.
    Cosine,
    /// Their distance: `L2`.
    Euclidean,
    /// Their inner product: `IP`.
    InnerProduct,
}

impl Similarity {
    /// Finds a similarity by the name that index definitions have for it.
    pub fn named(name: &str) -> Option<Similarity> {
        match name {
            "COS" => Some(Similarity::Cosine),
            "L2" => Some(Similarity::Euclidean),
            "IP" => Some(Similarity::InnerProduct),
            _ => None,
        }
    }

    /// Compares two vectors of one length: the cosine, the distance, or the inner product. `None` if it is no number, as of a vector that is zero.
    pub fn compare(self, a: &[f64], b: &[f64]) -> Option<f64> {
        let pairs = || a.iter().zip(b);
        let product = || -> f64 { pairs().map(|(a, b)| a * b).sum() };
        let length = |vector: &[f64]| vector.iter().map(|x| x * x).sum::<f64>().sqrt();
        let result = match self {
            Similarity::Cosine => product() / (length(a) * length(b)),
            Similarity::Euclidean => pairs().map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt(),
            Similarity::InnerProduct => product(),
        };
        result.is_finite().then_some(result)
    }

    /// Returns a number that is the smaller the more similar vectors with this result are.
    pub fn rank(self, result: f64) -> f64 {
        match self {
            Similarity::Euclidean => result,
            Similarity::Cosine | Similarity::InnerProduct => -result,
        }
    }
}

/// A vector index of a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorIndex {
    /// Its name.
    pub name: String,
    /// The field with the vectors.
    pub path: String,
    /// How they are compared.
    pub similarity: Similarity,
    /// Their length. Others are not found.
    pub dimensions: usize,
}

/// Reads a vector: an array of finite numbers, at most [`DIMENSIONS`]. `None` for another value.
pub fn read(value: RawBsonRef<'_>) -> Option<Vec<f64>> {
    let RawBsonRef::Array(array) = value else {
        return None;
    };
    let mut vector = Vec::new();
    for element in array {
        let number = Number::of(element.ok()?)?.to_f64();
        if !number.is_finite() || vector.len() == DIMENSIONS {
            return None;
        }
        vector.push(number);
    }
    (!vector.is_empty()).then_some(vector)
}

/// Returns the vector of a document with this many dimensions.
pub fn of_document(document: &RawDocument, path: &Path, dimensions: usize) -> Option<Vec<f64>> {
    let mut found = path::values(document, path).into_iter().flatten().filter_map(read);
    found.find(|vector| vector.len() == dimensions)
}

#[cfg(test)]
mod tests;
