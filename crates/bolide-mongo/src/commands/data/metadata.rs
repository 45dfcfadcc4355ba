//! What `$meta` in a projection asks for.

use std::collections::BTreeSet;

use bolide_core::StoredDocument;
use bolide_mql::filter::Filter;
use bolide_mql::{Code, Context, Error, Result};
use bson::raw::{RawBsonRef, cstr};
use bson::{RawDocument, RawDocumentBuf};

const NOT_AVAILABLE: i32 = 40218;

/// The names that a projection has in `{$meta: name}`.
#[derive(Debug, Default)]
pub struct Asked(BTreeSet<String>);

/// Returns what a projection asks for.
///
/// # Errors
/// The document is not valid.
pub fn asked(projection: &RawDocument) -> Result<Asked> {
    let mut asked = Asked::default();
    asked.add(RawBsonRef::Document(projection))?;
    Ok(asked)
}

impl Asked {
    /// Adds the names in a value. The depth of documents is limited.
    fn add(&mut self, value: RawBsonRef<'_>) -> Result<()> {
        match value {
            RawBsonRef::Document(document) => {
                for element in document {
                    match element? {
                        (name, RawBsonRef::String(asked)) if name.as_str() == "$meta" => {
                            self.0.insert(asked.to_owned());
                        }
                        (name, _) if name.as_str() == "$literal" => {}
                        (_, value) => self.add(value)?,
                    }
                }
            }
            RawBsonRef::Array(array) => {
                for element in array {
                    self.add(element?)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether the projection asks for `name`.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Checks that everything asked for can be given. Keys of indexes are not kept with what they find, so there is never an `indexKey`.
    ///
    /// # Errors
    /// 40218 if a query of this kind does not have it; `NotImplemented`.
    pub fn check(&self, filter: &Filter) -> Result<()> {
        for name in &self.0 {
            let missing = match name.as_str() {
                "recordId" | "indexKey" => continue,
                "geoNearDistance" if filter.has_near() => continue,
                "geoNearDistance" => "$geoNear distance",
                "geoNearPoint" if !filter.has_near() => "$geoNear point",
                "textScore" if filter.has_text() => continue,
                "textScore" => "text score",
                "searchScore" => "$search score",
                "searchHighlights" => "$search highlights",
                "searchScoreDetails" => "$search score details",
                "vectorSearchScore" => "$vectorSearch score",
                other => {
                    let text = format!("the metadata '{other}' is not supported in the projection of a query");
                    return Err(Error::new(Code::NOT_IMPLEMENTED, text));
                }
            };
            let text = format!("query requires {missing} metadata, but it is not available");
            return Err(Error::new(NOT_AVAILABLE, text));
        }
        Ok(())
    }

    /// Returns the metadata of one document; `None` if the projection asks for none.
    pub fn of(&self, document: &StoredDocument, filter: &Filter, context: &Context) -> Option<RawDocumentBuf> {
        if self.0.is_empty() {
            return None;
        }
        let mut metadata = RawDocumentBuf::new();
        if self.contains("recordId") {
            metadata.append(cstr!("recordId"), record_id(document));
        }
        if self.contains("geoNearDistance")
            && let Some(distance) = filter.near_distance(document.document())
        {
            metadata.append(cstr!("geoNearDistance"), distance);
        }
        if self.contains("textScore")
            && let Some(score) = filter.text_score(document.document(), context)
        {
            metadata.append(cstr!("textScore"), score);
        }
        Some(metadata)
    }
}

/// The number of a document, by which it is stored.
pub fn record_id(document: &StoredDocument) -> i64 {
    i64::try_from(document.number()).unwrap_or(i64::MAX)
}
