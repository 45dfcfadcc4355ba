//! `min` and `max` of `find`: the part of an index that is read.

use bolide_core::{CollectionDefinition, StoredDocument};
use bolide_mql::index::{self, IndexDefinition};
use bolide_mql::{Error, Result};
use bson::RawDocument;
use bson::raw::RawBsonRef;

use super::language::hinted_index;

/// Both bounds have the same fields.
pub const DIFFERENT_FIELDS: i32 = 51176;
const HINT_NEEDED: i32 = 51173;
const NOT_COMPATIBLE: i32 = 51174;
const NOT_IN_ORDER: i32 = 51175;

/// A part of an index: documents with a key from `min`, and before `max`.
#[derive(Debug, Clone)]
pub struct IndexRange {
    index: IndexDefinition,
    min: Option<Vec<u8>>,
    max: Option<Vec<u8>>,
}

/// Checks what does not depend on the collection.
///
/// # Errors
/// The bounds have different fields.
pub fn check(min: Option<&RawDocument>, max: Option<&RawDocument>) -> Result<()> {
    let (Some(min), Some(max)) = (min, max) else {
        return Ok(());
    };
    let names = |bound: &RawDocument| -> Result<Vec<String>> {
        bound
            .into_iter()
            .map(|field| Ok(field?.0.as_str().to_owned()))
            .collect()
    };
    if names(min)? == names(max)? {
        return Ok(());
    }
    Err(Error::new(
        DIFFERENT_FIELDS,
        "min and max must have the same field names",
    ))
}

impl IndexRange {
    /// Reads the bounds; `None` if there are none.
    ///
    /// # Errors
    /// 51173 without a hint, 51174 if the bounds do not fit the index, 51175 if `min` does not come before `max`.
    pub fn parse(
        min: Option<&RawDocument>,
        max: Option<&RawDocument>,
        hint: Option<RawBsonRef<'_>>,
        definition: &CollectionDefinition,
    ) -> Result<Option<IndexRange>> {
        if min.is_none() && max.is_none() {
            return Ok(None);
        }
        let hinted = hint.and_then(|hint| hinted_index(definition, hint));
        let index = hinted.map(|index| &*index.definition).ok_or_else(|| {
            let text = "When using min()/max() a hint of which index to use must be provided";
            Error::new(HINT_NEEDED, text)
        })?;
        let key = |bound: Option<&RawDocument>| -> Result<Option<Vec<u8>>> {
            let Some(bound) = bound else { return Ok(None) };
            let key = index::bound_key(index, bound)?;
            let unfit = || Error::new(NOT_COMPATIBLE, "The index chosen is not compatible with min/max");
            Ok(Some(key.ok_or_else(unfit)?))
        };
        let (min, max) = (key(min)?, key(max)?);
        if let (Some(min), Some(max)) = (&min, &max)
            && min >= max
        {
            let text = "The value provided for min() does not come before the value provided for max()";
            return Err(Error::new(NOT_IN_ORDER, text));
        }
        let index = index.clone();
        Ok(Some(IndexRange { index, min, max }))
    }

    /// Returns the first key of a document in this part of the index.
    ///
    /// # Errors
    /// Of the keys of the document.
    pub fn key(&self, document: &StoredDocument) -> Result<Option<Vec<u8>>> {
        let keys = index::keys(&self.index, document.document())?.keys;
        let mut keys = keys.into_iter();
        Ok(keys.find(|key| {
            self.min.as_ref().is_none_or(|min| key >= min) && self.max.as_ref().is_none_or(|max| key < max)
        }))
    }
}
