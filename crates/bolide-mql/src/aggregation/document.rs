//! What travels through a pipeline.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use bson::raw::RawDocumentBuf;

use crate::context::Context;
use crate::expression::Scope;

/// A document in a pipeline.
#[derive(Debug, Clone)]
pub struct Document {
    /// Its bytes.
    pub bytes: RawDocumentBuf,
    /// Until when the stored document lives from which this one was made; `None` if it was made of none or of several.
    pub lifetime: Option<Lifetime>,
    /// What `$meta` reads, by its names there.
    pub metadata: Option<Arc<RawDocumentBuf>>,
}

impl Document {
    /// Returns a document that was made of no stored one.
    pub fn new(bytes: RawDocumentBuf) -> Document {
        Document {
            bytes,
            lifetime: None,
            metadata: None,
        }
    }

    /// Returns the document with other bytes.
    pub fn with_bytes(self, bytes: RawDocumentBuf) -> Document {
        Document { bytes, ..self }
    }

    /// Returns another document made of the same stored one.
    pub(super) fn successor(&self, bytes: RawDocumentBuf) -> Document {
        Document {
            bytes,
            lifetime: self.lifetime.clone(),
            metadata: self.metadata.clone(),
        }
    }

    /// Returns the memory it holds, in bytes.
    pub fn memory(&self) -> usize {
        self.bytes.as_bytes().len() + size_of::<Document>()
    }

    /// Returns the scope in which expressions see this document.
    pub(super) fn scope<'a>(&'a self, context: &'a Context) -> Scope<'a> {
        let scope = Scope::new(context, &self.bytes);
        match &self.metadata {
            Some(metadata) => scope.with_metadata(metadata),
            None => scope,
        }
    }
}

/// What the caller needs to judge again, at a later `getMore`, whether a stored document is still alive (TTL-290). Opaque to the pipeline.
#[derive(Clone)]
pub struct Lifetime(Arc<dyn Any + Send + Sync>);

impl Lifetime {
    /// Wraps the caller's value.
    pub fn new<T: Any + Send + Sync>(value: T) -> Lifetime {
        Lifetime(Arc::new(value))
    }

    /// Returns the value, if it has this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lifetime")
    }
}
