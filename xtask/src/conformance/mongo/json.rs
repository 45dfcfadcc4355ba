//! Extended JSON, in which commands and expectations are written.

use bson::Document;
use serde_json::{Map, Value};

use crate::Result;

/// A document from Extended JSON. Whole plain numbers become int32 where they fit; the order of keys is kept.
///
/// # Errors
/// If a key such as `$date` has a value of the wrong form.
pub fn document(json: Map<String, Value>) -> Result<Document> {
    Ok(Document::try_from(json)?)
}
