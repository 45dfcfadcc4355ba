//! What `find` returns of a document.

use bolide_core::StoredDocument;
use bolide_mql::expression::{ParseScope, Scope};
use bolide_mql::filter::Filter;
use bolide_mql::projection::Projection;
use bolide_mql::{Context, Result};
use bson::raw::cstr;
use bson::{RawDocument, RawDocumentBuf};

use super::super::data::metadata::{self, Asked};

/// The projection of a query, and what is added to it.
#[derive(Debug, Default)]
pub struct Shape {
    projection: Option<Projection>,
    asked: Asked,
    shows_record_id: bool,
    returns_key: bool,
}

impl Shape {
    /// Reads `projection`, `showRecordId` and `returnKey`.
    ///
    /// # Errors
    /// Of the projection; 40218 for metadata that the query does not have.
    pub fn parse(
        projection: Option<&RawDocument>,
        (shows_record_id, returns_key): (bool, bool),
        filter: &Filter,
        language: &Context,
    ) -> Result<Shape> {
        let mut shape = Shape {
            shows_record_id,
            returns_key,
            ..Shape::default()
        };
        if let Some(projection) = projection {
            shape.projection = Some(Projection::parse_find(projection, &mut ParseScope::new(language))?);
            shape.asked = metadata::asked(projection)?;
            shape.asked.check(filter)?;
        }
        Ok(shape)
    }

    /// Returns what the client gets of a document that matched; `is_by_id`: it was found by its `_id`.
    ///
    /// # Errors
    /// Of the expressions of the projection.
    pub fn apply(
        &self,
        stored: &StoredDocument,
        filter: &Filter,
        language: &Context,
        is_by_id: bool,
    ) -> Result<RawDocumentBuf> {
        let document = stored.document();
        let mut result = match &self.projection {
            _ if self.returns_key => key(document, is_by_id)?,
            None => document.to_owned(),
            Some(projection) => {
                let metadata = self.asked.of(stored, filter, language);
                let scope = Scope::new(language, document);
                let scope = match &metadata {
                    Some(metadata) => scope.with_metadata(metadata),
                    None => scope,
                };
                projection.apply_matched(document, filter, &scope)?
            }
        };
        if self.shows_record_id && result.get("$recordId")?.is_none() {
            result.append(cstr!("$recordId"), metadata::record_id(stored));
        }
        Ok(result)
    }
}

/// The key by which a document was found: its `_id`, or none, as keys of other indexes are not kept with what they find.
fn key(document: &RawDocument, is_by_id: bool) -> Result<RawDocumentBuf> {
    let mut key = RawDocumentBuf::new();
    if let Some(id) = document.get("_id")?.filter(|_| is_by_id) {
        key.append(cstr!("_id"), id);
    }
    Ok(key)
}
