//! The options of vector indexes: `cosmosSearchOptions`.

use bson::raw::{RawBsonRef, RawDocument, RawDocumentBuf};

use super::pattern::{KeyPattern, cannot};
use crate::error::{Error, Result};
use crate::value::number;
use crate::vector::{DIMENSIONS, Similarity};

/// The kinds of vector indexes with their own options. All are searched in the same way.
const KINDS: [(&str, &[&str]); 3] = [
    ("vector-ivf", &["numLists"]),
    ("vector-hnsw", &["m", "efConstruction"]),
    ("vector-diskann", &["maxDegree", "lBuild"]),
];

/// Checked options.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorOptions {
    /// As they were given.
    pub document: RawDocumentBuf,
    /// `similarity`
    pub similarity: Similarity,
    /// `dimensions`
    pub dimensions: usize,
}

/// Reads the options of an index with this key.
///
/// # Errors
/// 67 `CannotCreateIndex` for options that are missing, unknown or out of range, and for a compound key.
pub fn parse(key: &KeyPattern, options: Option<&RawDocument>) -> Result<VectorOptions> {
    if key.fields().len() != 1 {
        return Err(cannot("a cosmosSearch index has one field"));
    }
    let options = options.ok_or_else(|| cannot("cosmosSearchOptions must be specified for a cosmosSearch index"))?;
    let kind = options.get_str("kind").unwrap_or_default();
    let known = KINDS.iter().find(|(name, _)| *name == kind);
    let (_, own) = known.ok_or_else(|| cannot(format!("Invalid kind of a cosmosSearch index: '{kind}'")))?;
    for element in options {
        let (name, value) = element.map_err(Error::malformed)?;
        let name = name.as_str();
        if own.contains(&name) {
            check_number(name, value)?;
        } else if !["kind", "similarity", "dimensions"].contains(&name) {
            return Err(cannot(format!(
                "Unknown option '{name}' of a cosmosSearch index of kind '{kind}'"
            )));
        }
    }
    let similarity = options.get_str("similarity").ok().and_then(Similarity::named);
    let similarity = similarity.ok_or_else(|| cannot("similarity of a cosmosSearch index must be COS, L2 or IP"))?;
    let dimensions = options.get("dimensions").ok().flatten().and_then(number::whole);
    let dimensions = dimensions.and_then(|number| usize::try_from(number).ok());
    let dimensions = dimensions.filter(|number| (1..=DIMENSIONS).contains(number));
    let range = || {
        cannot(format!(
            "dimensions of a cosmosSearch index must be from 1 to {DIMENSIONS}"
        ))
    };
    Ok(VectorOptions {
        document: options.to_owned(),
        similarity,
        dimensions: dimensions.ok_or_else(range)?,
    })
}

fn check_number(name: &str, value: RawBsonRef<'_>) -> Result<()> {
    match number::whole(value) {
        Some(1..) => Ok(()),
        _ => Err(cannot(format!(
            "{name} of a cosmosSearch index must be a positive whole number"
        ))),
    }
}

#[cfg(test)]
mod tests;
