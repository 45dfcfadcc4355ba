//! The validator of a collection.
//!
//! Source: MongoDB's manual, "Schema Validation".

use bolide_core::CollectionDefinition;
use bolide_mql::filter::Filter;
use bolide_mql::{Code, Context, Error, Result};
use bson::{RawBsonRef, RawDocument, rawdoc};

/// What documents must match to be written.
pub struct Validator {
    filter: Option<Filter>,
    /// `validationLevel: moderate`: documents that did not match before an update need not match after it.
    pub is_moderate: bool,
}

impl Validator {
    /// Returns the validator of a collection. It refuses nothing if there is none, if it only warns, or if the command bypasses it.
    ///
    /// # Errors
    /// The stored filter is invalid, which `create` and `collMod` do not let happen.
    pub fn of(definition: &CollectionDefinition, is_bypassed: bool) -> Result<Validator> {
        let text = |name| match definition.option(name) {
            Some(RawBsonRef::String(text)) => Some(text),
            _ => None,
        };
        let is_off = text("validationLevel") == Some("off") || text("validationAction") == Some("warn");
        let filter = match definition.option("validator") {
            Some(RawBsonRef::Document(filter)) if !is_bypassed && !is_off => Some(Filter::parse(filter)?),
            _ => None,
        };
        Ok(Validator {
            filter,
            is_moderate: text("validationLevel") == Some("moderate"),
        })
    }

    /// Whether a document is valid.
    ///
    /// # Errors
    /// Of the filter.
    pub fn accepts(&self, document: &RawDocument, context: &Context) -> Result<bool> {
        self.filter
            .as_ref()
            .map_or(Ok(true), |filter| filter.matches(document, context))
    }

    /// Checks a document.
    ///
    /// # Errors
    /// `DocumentValidationFailure`.
    pub fn check(&self, document: &RawDocument, context: &Context) -> Result<()> {
        if self.accepts(document, context)? {
            return Ok(());
        }
        Err(failure(document))
    }
}

/// The error for a document that is not valid.
pub fn failure(document: &RawDocument) -> Error {
    let id = document.get("_id").ok().flatten().unwrap_or(RawBsonRef::Null);
    let info =
        rawdoc! {"errInfo": {"failingDocumentId": bson::RawBson::from(id), "details": {"operatorName": "validator"}}};
    Error {
        details: Some(Box::new(info)),
        ..Error::new(Code::DOCUMENT_VALIDATION_FAILURE, "Document failed validation")
    }
}
