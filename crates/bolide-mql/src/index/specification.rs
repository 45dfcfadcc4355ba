//! The specifications of createIndexes.
//!
//! Checks run in MongoDB's order, since the first error is the one that a client sees: names and types of all options, what is required, the rules
//! for `_id` and for names, TTL, collation, then options that exclude each other.
//!
//! Source: mongo.md §14 and §18.2.

use std::sync::Arc;

use bson::raw::{RawBsonRef, RawDocument, RawDocumentBuf, cstr};

use super::definition::{ID_INDEX, IndexDefinition};
use super::exclusions;
use super::options::{Options, wrong_type};
use super::partial::PartialFilter;
use super::pattern::{KeyPattern, Kind, cannot};
use super::text;
use super::time_to_live::{self, TtlMode};
use super::vector;
use super::wildcard::WildcardProjection;
use crate::collation::Collation;
use crate::error::{Code, Error, Result};
use crate::value;

/// What decides about specifications besides themselves.
#[derive(Debug, Clone, Copy, Default)]
pub struct ParseOptions<'a> {
    /// Which fields may have a TTL index.
    pub ttl_mode: TtlMode,
    /// The collection's collation, which indexes without one of their own take.
    pub default_collation: Option<&'a Arc<Collation>>,
}

/// The options of an index on `_id`.
const ID_OPTIONS: [&str; 6] = ["key", "name", "v", "ns", "collation", "hidden"];

/// Reads and checks a specification of a client.
pub fn parse(specification: &RawDocument, options: &ParseOptions<'_>) -> Result<IndexDefinition> {
    let given = Given::read(specification).map_err(|error| in_specification(specification, &error))?;
    let versioned = versioned(specification, &given);
    check_name(&given, specification, &versioned)?;
    let seconds = given
        .expire_after_seconds
        .map(|value| time_to_live::check(value, &given.key, specification, options.ttl_mode))
        .transpose()?;
    let collation = collation(&given, options, &versioned)?;
    let definition = given
        .into_definition(seconds, collation)
        .map_err(|error| in_specification(&versioned, &error))?;
    exclusions::check(&definition).map_err(|error| in_specification(&versioned, &error))?;
    Ok(definition)
}

/// Reads a definition from the catalog: its collation is already the one in force, whatever the mode of TTL is now.
pub fn parse_stored(document: &RawDocument) -> Result<IndexDefinition> {
    let given = Given::read(document).map_err(|error| in_specification(document, &error))?;
    let seconds = given
        .expire_after_seconds
        .map(|value| time_to_live::check(value, &given.key, document, TtlMode::Mongodb))
        .transpose()?;
    let collation = match given.collation {
        Some(collation) => Collation::parse(collation)?,
        None => None,
    };
    given.into_definition(seconds, collation)
}

/// The options of a specification, each of its type.
struct Given<'s> {
    key: KeyPattern,
    name: &'s str,
    version: i32,
    has_version: bool,
    booleans: Vec<(&'s str, bool)>,
    hidden: Option<bool>,
    expire_after_seconds: Option<RawBsonRef<'s>>,
    partial: Option<PartialFilter>,
    collation: Option<&'s RawDocument>,
    wildcard: Option<WildcardProjection>,
    weights: Option<RawBsonRef<'s>>,
    default_language: Option<&'s str>,
    language_override: Option<&'s str>,
    vector: Option<&'s RawDocument>,
    numbers: RawDocumentBuf,
}

impl<'s> Given<'s> {
    fn read(specification: &'s RawDocument) -> Result<Given<'s>> {
        let options = Options::read(specification)?;
        options.check_names()?;
        let key = options.required_document("key")?;
        let key = KeyPattern::parse(key)?;
        let name = options.required_string("name")?;
        let version = options.version()?;
        let given = Given {
            name,
            version: version.unwrap_or(2),
            has_version: version.is_some(),
            booleans: options.booleans()?,
            hidden: options.boolean("hidden")?,
            expire_after_seconds: options.get("expireAfterSeconds"),
            collation: options.non_empty_document("collation")?,
            partial: options
                .document("partialFilterExpression")?
                .map(PartialFilter::read)
                .transpose()?,
            wildcard: options
                .get("wildcardProjection")
                .map(|value| WildcardProjection::parse(value, &key))
                .transpose()?,
            weights: options.get("weights"),
            default_language: options.string("default_language")?,
            language_override: options.string("language_override")?,
            vector: options.document("cosmosSearchOptions")?,
            numbers: options.numbers()?,
            key,
        };
        given.check_text_options(specification)?;
        Ok(given)
    }

    fn check_text_options(&self, specification: &RawDocument) -> Result<()> {
        let Some(weights) = self.weights else {
            return Ok(());
        };
        if !matches!(
            weights,
            RawBsonRef::Document(_) | RawBsonRef::Array(_) | RawBsonRef::String(_)
        ) {
            return Err(wrong_type("weights", "an object", weights));
        }
        if self.key.kind() == Kind::Text {
            return Ok(());
        }
        Err(cannot(format!(
            "Invalid index specification {}; the field 'weights' can only be specified with text indexes",
            value::text::render_document(specification)
        )))
    }

    fn is_set(&self, option: &str) -> bool {
        self.booleans.iter().any(|(name, is_set)| *name == option && *is_set)
    }

    fn given(&self, option: &str) -> Option<bool> {
        let found = self.booleans.iter().find(|(name, _)| *name == option);
        found.map(|(_, is_set)| *is_set)
    }

    fn into_definition(self, seconds: Option<i32>, collation: Option<Arc<Collation>>) -> Result<IndexDefinition> {
        exclusions::check_numbers(&self.numbers, self.key.kind())?;
        let vector = match (self.key.kind(), self.vector) {
            (Kind::Vector, options) => Some(vector::parse(&self.key, options)?),
            (_, None) => None,
            (_, Some(_)) => {
                let text = "the field 'cosmosSearchOptions' can only be specified with cosmosSearch indexes";
                return Err(cannot(text));
            }
        };
        let (key, text) = match self.key.kind() {
            Kind::Text => {
                let (key, text) =
                    text::normalize(&self.key, self.weights, self.default_language, self.language_override)?;
                (key, Some(text))
            }
            _ => (self.key.clone(), None),
        };
        let name = if key.is_id() { ID_INDEX } else { self.name };
        Ok(IndexDefinition {
            version: self.version,
            name: name.to_owned(),
            background: self.given("background"),
            unique: self.is_set("unique"),
            prepare_unique: self.is_set("prepareUnique"),
            sparse: self.is_set("sparse"),
            hidden: self.hidden.unwrap_or(false),
            expire_after_seconds: seconds,
            partial: self.partial.map(|partial| partial.with_collation(collation.as_ref())),
            numbers: with_versions(self.numbers, key.kind()),
            collation,
            text,
            vector,
            wildcard: self.wildcard,
            key,
        })
    }
}

/// The rules for names, and those for the index on `_id`.
fn check_name(given: &Given<'_>, specification: &RawDocument, versioned: &RawDocument) -> Result<()> {
    let key = given.key.document();
    if given.key.is_id() {
        let names = specification.iter().flatten().map(|(name, _)| name.as_str());
        if let Some(option) = names.into_iter().find(|name| !ID_OPTIONS.contains(name)) {
            return Err(Error::new(
                Code::INVALID_INDEX_SPECIFICATION_OPTION,
                format!(
                    "The field '{option}' is not valid for an _id index specification. Specification: {}",
                    value::text::render_document(versioned)
                ),
            ));
        }
        let direction = key.get("_id").ok().flatten();
        if direction.is_none_or(|direction| !value::equal(direction, RawBsonRef::Int32(1))) {
            return Err(Error::bad_value(format!(
                "The field 'key' for an _id index must be {{_id: 1}}, but got {}",
                given.key.text()
            )));
        }
        if given.hidden.is_some() {
            return Err(Error::bad_value("can't hide _id index"));
        }
        return Ok(());
    }
    if given.name == ID_INDEX {
        return Err(Error::bad_value(format!(
            "The index name '_id_' is reserved for the _id index, which must have key pattern {{_id: 1}}, found key: {}",
            given.key.text()
        )));
    }
    if given.name == "*" {
        return Err(Error::bad_value("The index name '*' is not valid."));
    }
    if given.name.contains('\0') {
        return Err(in_specification(
            versioned,
            &cannot("index name cannot contain NUL bytes"),
        ));
    }
    if given.name.is_empty() {
        return Err(in_specification(versioned, &cannot("index name cannot be empty")));
    }
    Ok(())
}

/// The collation in force: the specification's own, or the collection's.
fn collation(given: &Given<'_>, options: &ParseOptions<'_>, versioned: &RawDocument) -> Result<Option<Arc<Collation>>> {
    let own = match given.collation {
        None => return Ok(options.default_collation.cloned()),
        Some(collation) => Collation::parse(collation).map_err(|error| Error {
            message: format!(
                "failed to add collation information to index spec for index creation: {} :: caused by :: {}",
                value::text::render_document(versioned),
                error.message
            ),
            ..error
        })?,
    };
    if given.key.is_id() && own.as_ref() != options.default_collation {
        return Err(Error::bad_value(format!(
            "The _id index must have the same collation as the collection. Index collation: {}, collection collation: {}",
            collation_text(own.as_ref()),
            collation_text(options.default_collation)
        )));
    }
    Ok(own)
}

/// A collation as errors show it.
pub(super) fn collation_text(collation: Option<&Arc<Collation>>) -> String {
    match collation {
        Some(collation) => value::text::render_document(collation.to_document()),
        None => "{ locale: \"simple\" }".to_owned(),
    }
}

/// Adds the version that a special kind gets if none is given.
fn with_versions(mut numbers: RawDocumentBuf, kind: Kind) -> RawDocumentBuf {
    let version = match kind {
        Kind::Sphere => cstr!("2dsphereIndexVersion"),
        Kind::Text => cstr!("textIndexVersion"),
        _ => return numbers,
    };
    if numbers.get(version.as_str()).ok().flatten().is_none() {
        numbers.append(version, 3);
    }
    numbers
}

/// The specification with the version that it gets if it has none.
fn versioned(specification: &RawDocument, given: &Given<'_>) -> RawDocumentBuf {
    if given.has_version {
        return specification.to_owned();
    }
    let mut versioned = specification.to_owned();
    versioned.append(cstr!("v"), given.version);
    versioned
}

fn in_specification(specification: &RawDocument, error: &Error) -> Error {
    // These two have their own codes and no context in MongoDB.
    if matches!(error.code.0, 13103 | 31303) {
        return error.clone();
    }
    Error::new(
        error.code,
        format!(
            "Error in specification {} :: caused by :: {}",
            value::text::render_document(specification),
            error.message
        ),
    )
}

#[cfg(test)]
mod tests;
