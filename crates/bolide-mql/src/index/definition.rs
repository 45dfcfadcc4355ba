//! One index of a collection, as it is stored and listed.

use std::sync::Arc;

use bson::raw::{CStr, RawBsonRef, RawDocument, RawDocumentBuf, cstr};

use super::partial::PartialFilter;
use super::pattern::{KeyPattern, Kind};
use super::specification::{self, ParseOptions};
use super::text::TextOptions;
use super::time_to_live::{TtlMode, TtlRule};
use super::vector::VectorOptions;
use super::wildcard::WildcardProjection;
use crate::collation::Collation;
use crate::error::Result;
use crate::text_search::{Language, TextSource};
use crate::value;
use crate::vector::VectorIndex;

/// The name of the index on `_id` that every collection has.
pub const ID_INDEX: &str = "_id_";

/// One index of a collection: its key pattern and its options, checked and in their normal form.
#[derive(Debug, Clone)]
pub struct IndexDefinition {
    pub(super) version: i32,
    pub(super) name: String,
    pub(super) key: KeyPattern,
    /// Without effect, and shown as it was given.
    pub(super) background: Option<bool>,
    pub(super) unique: bool,
    pub(super) prepare_unique: bool,
    pub(super) sparse: bool,
    pub(super) hidden: bool,
    /// Units: seconds. −1 only for the core rule.
    pub(super) expire_after_seconds: Option<i32>,
    pub(super) partial: Option<PartialFilter>,
    pub(super) collation: Option<Arc<Collation>>,
    pub(super) text: Option<TextOptions>,
    pub(super) vector: Option<VectorOptions>,
    pub(super) wildcard: Option<WildcardProjection>,
    /// Numeric options of special kinds, kept as they were given: `bits`, `min`, `2dsphereIndexVersion` and such.
    pub(super) numbers: RawDocumentBuf,
}

impl IndexDefinition {
    /// Reads and checks one specification of createIndexes.
    ///
    /// # Errors
    /// Those of mongo.md §14 "Spec errors" and §18.2, with MongoDB's codes and texts. 238 `NotImplemented` for what Bolide does not have: clustered
    /// indexes, options of storage engines, uniqueness of text and geospatial indexes.
    pub fn parse(specification: &RawDocument, options: &ParseOptions<'_>) -> Result<IndexDefinition> {
        specification::parse(specification, options)
    }

    /// Reads a definition that [`IndexDefinition::to_document`] wrote.
    ///
    /// # Errors
    /// Those of [`IndexDefinition::parse`], if it is not such a document.
    pub fn from_document(document: &RawDocument) -> Result<IndexDefinition> {
        specification::parse_stored(document)
    }

    /// The index that every collection has: `{_id: 1}`, with the collection's collation.
    ///
    /// # Errors
    /// None in practice: the specification is fixed.
    pub fn id_index(collation: Option<&Arc<Collation>>) -> Result<IndexDefinition> {
        let mut key = RawDocumentBuf::new();
        key.append(cstr!("_id"), 1);
        let mut specification = RawDocumentBuf::new();
        specification.append(cstr!("key"), key);
        specification.append(cstr!("name"), ID_INDEX);
        let options = ParseOptions {
            ttl_mode: TtlMode::default(),
            default_collation: collation,
        };
        IndexDefinition::parse(&specification, &options)
    }

    /// Its name, unique in the collection.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its key pattern. That of a text index is the stored form, `{_fts: "text", _ftsx: 1}` with the fields around it.
    pub fn key(&self) -> &KeyPattern {
        &self.key
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.key.kind()
    }

    /// Whether it is the index on `_id` of every collection.
    pub fn is_id(&self) -> bool {
        self.key.is_id()
    }

    /// Whether no two documents may have the same key: `unique`, the index on `_id`, or `prepareUnique`, which refuses new duplicates.
    pub fn enforces_unique(&self) -> bool {
        self.unique || self.prepare_unique || self.is_id()
    }

    /// The option `unique`. False for the index on `_id`, whose uniqueness is no option.
    pub fn is_unique(&self) -> bool {
        self.unique
    }

    /// The option `prepareUnique`.
    pub fn is_prepare_unique(&self) -> bool {
        self.prepare_unique
    }

    /// Whether documents without any of the fields have no entry. Geospatial and text indexes always leave them out.
    pub fn is_sparse(&self) -> bool {
        self.sparse
            || matches!(
                self.kind(),
                Kind::Text | Kind::Sphere | Kind::Plane | Kind::Wildcard | Kind::Vector
            )
    }

    /// Whether queries must not use it. It still enforces uniqueness and expires documents.
    pub fn is_hidden(&self) -> bool {
        self.hidden
    }

    /// The rule of expiry that the index makes, if it has `expireAfterSeconds`.
    pub fn ttl_rule(&self) -> Option<TtlRule> {
        TtlRule::of(self)
    }

    /// `expireAfterSeconds`; −1 only on `_ts`. Units: seconds.
    pub fn expire_after_seconds(&self) -> Option<i32> {
        self.expire_after_seconds
    }

    /// The filter of a partial index.
    pub fn partial(&self) -> Option<&PartialFilter> {
        self.partial.as_ref()
    }

    /// The collation of strings; `None` orders by bytes.
    pub fn collation(&self) -> Option<&Arc<Collation>> {
        self.collation.as_ref()
    }

    /// The options of a text index.
    pub fn text(&self) -> Option<&TextOptions> {
        self.text.as_ref()
    }

    /// What a text index takes words from; `None` for other kinds, and if it is hidden.
    pub fn text_source(&self) -> Option<TextSource> {
        let text = self.text.as_ref().filter(|_| !self.hidden)?;
        Some(TextSource {
            weights: text.weights.clone(),
            default_language: Language::named(&text.default_language).unwrap_or_default(),
            language_override: text.language_override.clone(),
        })
    }

    /// What a search needs of a vector index; `None` for other kinds, and if it is hidden.
    pub fn vector_index(&self) -> Option<VectorIndex> {
        let vector = self.vector.as_ref().filter(|_| !self.hidden)?;
        Some(VectorIndex {
            name: self.name.clone(),
            path: self.key.fields().first()?.name.to_string(),
            similarity: vector.similarity,
            dimensions: vector.dimensions,
        })
    }

    /// The definition as listIndexes shows it, which is also how it is stored.
    ///
    /// Shape: `v`, `key`, `name`, then the options that are set. `expireAfterSeconds` is an int32.
    pub fn to_document(&self) -> RawDocumentBuf {
        let mut document = RawDocumentBuf::new();
        document.append(cstr!("v"), self.version);
        document.append(cstr!("key"), self.key.document());
        document.append(cstr!("name"), self.name.as_str());
        if let Some(background) = self.background {
            document.append(cstr!("background"), background);
        }
        append_if(&mut document, cstr!("unique"), self.unique);
        append_if(&mut document, cstr!("hidden"), self.hidden);
        append_if(&mut document, cstr!("prepareUnique"), self.prepare_unique);
        self.append_other_options(&mut document);
        document
    }

    /// The definition as errors show it: as MongoDB's catalog has it, with the flags before the key.
    pub(super) fn catalog_text(&self) -> String {
        let mut document = RawDocumentBuf::new();
        document.append(cstr!("v"), self.version);
        append_if(&mut document, cstr!("unique"), self.unique);
        append_if(&mut document, cstr!("hidden"), self.hidden);
        append_if(&mut document, cstr!("prepareUnique"), self.prepare_unique);
        document.append(cstr!("key"), self.key.document());
        document.append(cstr!("name"), self.name.as_str());
        if let Some(background) = self.background {
            document.append(cstr!("background"), background);
        }
        self.append_other_options(&mut document);
        value::text::render_document(&document)
    }

    /// Appends the options that make no difference to whether two definitions are of one index (mongo.md §14).
    pub(super) fn secondary_options(&self) -> RawDocumentBuf {
        let mut document = RawDocumentBuf::new();
        append_if(&mut document, cstr!("hidden"), self.hidden);
        if let Some(seconds) = self.expire_after_seconds {
            document.append(cstr!("expireAfterSeconds"), seconds);
        }
        if let Some(text) = &self.text {
            text.append_to(&mut document);
        }
        if let Some(vector) = &self.vector {
            document.append(cstr!("cosmosSearchOptions"), vector.document.clone());
        }
        // Versions of formats are no difference.
        let numbers = self.numbers.iter_elements().flatten();
        for element in numbers.filter(|element| !element.key().as_str().ends_with("Version")) {
            if let Ok(value) = element.value() {
                document.append(element.key(), value);
            }
        }
        document
    }

    fn append_other_options(&self, document: &mut RawDocumentBuf) {
        if let Some(partial) = &self.partial {
            document.append(cstr!("partialFilterExpression"), partial.document());
        }
        append_if(document, cstr!("sparse"), self.sparse);
        if let Some(seconds) = self.expire_after_seconds {
            document.append(cstr!("expireAfterSeconds"), seconds);
        }
        if let Some(text) = &self.text {
            text.append_to(document);
        }
        if let Some(vector) = &self.vector {
            document.append(cstr!("cosmosSearchOptions"), vector.document.clone());
        }
        for element in self.numbers.iter_elements().flatten() {
            if let Ok(value) = element.value() {
                document.append(element.key(), value);
            }
        }
        if let Some(collation) = &self.collation {
            document.append(cstr!("collation"), collation.to_document());
        }
        if let Some(projection) = &self.wildcard {
            document.append(cstr!("wildcardProjection"), projection.document());
        }
    }
}

fn append_if(document: &mut RawDocumentBuf, name: &'static CStr, is_set: bool) {
    if is_set {
        document.append(name, true);
    }
}

/// Appends a value under a name that comes from a client. A name with NUL cannot come from BSON and is left out.
pub(super) fn append(document: &mut RawDocumentBuf, name: &str, value: RawBsonRef<'_>) {
    if let Ok(name) = <&CStr>::try_from(name) {
        document.append(name, value);
    }
}
