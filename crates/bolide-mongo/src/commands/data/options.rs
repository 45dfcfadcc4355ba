//! The options of a collection: what `create` accepts, what `collMod` changes, what `listCollections` shows.
//!
//! Source: mongo.md §6 and §18.2.

use std::sync::Arc;

use bolide_core::CollectionDefinition;
use bolide_mql::collation::Collation;
use bolide_mql::filter::Filter;
use bolide_mql::value;
use bolide_mql::{Code, Error, Result};
use bson::raw::{CStr, RawBsonRef, cstr};
use bson::{RawDocument, RawDocumentBuf, rawdoc};

use super::super::arguments::Arguments;
use crate::namespace::Namespace;

/// Databases whose collections have no validators.
const WITHOUT_VALIDATORS: [&str; 3] = ["admin", "config", "local"];

const LEVELS: [&str; 3] = ["off", "strict", "moderate"];
const ACTIONS: [&str; 2] = ["error", "warn"];

/// `expireAfterSeconds` of a collection itself is for kinds of collections that do not exist here.
pub const NO_COLLECTION_TTL: &str = "'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' option is specified";

/// The options of a new collection.
#[derive(Debug)]
pub struct CollectionOptions {
    /// As `listCollections` shows them, in one order.
    pub document: RawDocumentBuf,
    /// The default collation of queries and indexes.
    pub collation: Option<Arc<Collation>>,
}

impl CollectionOptions {
    /// Reads the options of `create`.
    ///
    /// # Errors
    /// `NotImplemented` for capped, clustered, time-series and encrypted collections and for views; `InvalidOptions` for options that need one of these;
    /// those of validators and collations.
    pub fn read(arguments: &mut Arguments<'_>, namespace: &Namespace) -> Result<CollectionOptions> {
        refuse_kinds(arguments)?;
        if arguments.boolean("autoIndexId")? == Some(false) {
            let text = "The 'autoIndexId' option may only be true: every collection has an index on _id";
            return Err(Error::new(Code::INVALID_OPTIONS, text));
        }
        let validation = Validation::read(arguments, namespace)?;
        let collation = match arguments.document("collation")? {
            Some(collation) if collation.is_empty() => {
                return Err(Error::bad_value("'collation' cannot be an empty document."));
            }
            Some(collation) => Collation::parse(collation)?,
            None => None,
        };
        let mut document = RawDocumentBuf::new();
        if let Some(images) = read_images(arguments)? {
            document.append(cstr!("changeStreamPreAndPostImages"), images);
        }
        if let Some(defaults) = arguments.document("indexOptionDefaults")? {
            document.append(cstr!("indexOptionDefaults"), defaults.to_owned());
        }
        validation.append_to(&mut document);
        if let Some(collation) = &collation {
            document.append(cstr!("collation"), collation.to_document().to_owned());
        }
        check_id_index(arguments)?;
        Ok(CollectionOptions { document, collation })
    }

    /// Whether a collection has the same options, in any order, so that creating it again changes nothing.
    pub fn are_those_of(&self, definition: &CollectionDefinition) -> bool {
        let has = |name: &str, value: RawBsonRef<'_>| {
            let stored = definition.option(name);
            stored.is_some_and(|stored| value::equal(stored, value))
        };
        let mut number = 0;
        for option in self.document.iter() {
            match option {
                Ok((name, value)) if has(name.as_str(), value) => number += 1,
                _ => return false,
            }
        }
        number == definition.options.iter().count()
    }
}

/// Refuses kinds of collections that do not exist here, and their options without them.
fn refuse_kinds(arguments: &mut Arguments<'_>) -> Result<()> {
    let not_implemented = |what: &str| Err(Error::new(Code::NOT_IMPLEMENTED, format!("{what} are not supported")));
    let is_capped = arguments.boolean("capped")?.unwrap_or(false);
    let has_size = arguments.integer("size")?.is_some() | arguments.integer("max")?.is_some();
    if is_capped {
        return not_implemented("capped collections");
    }
    if has_size {
        let text = "the 'capped' field needs to be true when either the 'size' or 'max' fields are present";
        return Err(Error::new(Code::INVALID_OPTIONS, text));
    }
    let has_view = arguments.string("viewOn")?.is_some();
    let has_pipeline = arguments.array("pipeline")?.is_some();
    if has_view {
        return Err(Error::new(Code::NOT_IMPLEMENTED, "views are not supported yet"));
    }
    if has_pipeline {
        return Err(Error::bad_value("'pipeline' cannot be specified without 'viewOn'"));
    }
    if arguments.document("timeseries")?.is_some() {
        return not_implemented("time-series collections");
    }
    let clustered = arguments.value("clusteredIndex");
    if clustered.is_some_and(value::is_truthy) {
        return not_implemented("clustered collections");
    }
    if arguments.document("encryptedFields")?.is_some() {
        return not_implemented("collections with encrypted fields");
    }
    if arguments.value("expireAfterSeconds").is_some() {
        return Err(Error::new(Code::INVALID_OPTIONS, NO_COLLECTION_TTL));
    }
    if arguments.boolean("temp")? == Some(true) {
        return not_implemented("temporary collections");
    }
    if arguments
        .document("storageEngine")?
        .is_some_and(|options| !options.is_empty())
    {
        return not_implemented("options of storage engines");
    }
    Ok(())
}

/// Checks `idIndex`, with which tools restore what `listCollections` shows.
fn check_id_index(arguments: &mut Arguments<'_>) -> Result<()> {
    let Some(index) = arguments.document("idIndex")? else {
        return Ok(());
    };
    let is_id = match index.get("key") {
        Ok(Some(key)) => value::equal(key, RawBsonRef::Document(&rawdoc! {"_id": 1})),
        _ => false,
    };
    if is_id {
        return Ok(());
    }
    let text = "The field 'key' for an _id index must be {_id: 1}";
    Err(Error::bad_value(text))
}

/// Reads `changeStreamPreAndPostImages: {enabled}`.
///
/// # Errors
/// `TypeMismatch`; 40414 without `enabled`.
pub fn read_images(arguments: &mut Arguments<'_>) -> Result<Option<RawDocumentBuf>> {
    let Some(images) = arguments.document("changeStreamPreAndPostImages")? else {
        return Ok(None);
    };
    let mut fields = Arguments::of_document("changeStreamPreAndPostImages", images)?;
    let is_enabled = fields.boolean("enabled")?;
    let is_enabled = fields.required("enabled", is_enabled)?;
    fields.finish()?;
    Ok(Some(rawdoc! {"enabled": is_enabled}))
}

/// `validator`, `validationLevel` and `validationAction`, as they were given.
#[derive(Debug, Clone, Default)]
pub struct Validation {
    validator: Option<RawDocumentBuf>,
    level: Option<String>,
    action: Option<String>,
}

impl Validation {
    /// Reads and checks them.
    ///
    /// # Errors
    /// `BadValue` for unknown levels and actions; those of filters; `QueryFeatureNotAllowed` for conditions that one document cannot be checked
    /// against; `InvalidOptions` in databases of the server.
    pub fn read(arguments: &mut Arguments<'_>, namespace: &Namespace) -> Result<Validation> {
        let name = arguments.name().to_owned();
        let validator = arguments.document("validator")?;
        if let Some(validator) = validator {
            check_validator(validator, namespace)?;
        }
        let level = one_of(&name, "validationLevel", arguments.string("validationLevel")?, &LEVELS)?;
        let action = one_of(
            &name,
            "validationAction",
            arguments.string("validationAction")?,
            &ACTIONS,
        )?;
        Ok(Validation {
            validator: validator.map(ToOwned::to_owned),
            level,
            action,
        })
    }

    /// Whether none was given.
    pub fn is_empty(&self) -> bool {
        self.validator.is_none() && self.level.is_none() && self.action.is_none()
    }

    fn append_to(&self, document: &mut RawDocumentBuf) {
        if let Some(validator) = &self.validator {
            document.append(cstr!("validator"), validator.clone());
        }
        if let Some(level) = &self.level {
            document.append(cstr!("validationLevel"), level.as_str());
        }
        if let Some(action) = &self.action {
            document.append(cstr!("validationAction"), action.as_str());
        }
    }

    /// Returns the options of a collection with these instead of its own. As in MongoDB, what then is in force is shown in full.
    ///
    /// # Errors
    /// The stored options are invalid BSON.
    pub fn change(&self, options: &RawDocument) -> Result<RawDocumentBuf> {
        let text = |name: &str| options.get_str(name).ok().map(str::to_owned);
        let all = Validation {
            validator: match &self.validator {
                Some(validator) => Some(validator.clone()),
                None => Some(
                    options
                        .get_document("validator")
                        .map(ToOwned::to_owned)
                        .unwrap_or_default(),
                ),
            },
            level: self
                .level
                .clone()
                .or_else(|| text("validationLevel"))
                .or_else(|| Some("strict".to_owned())),
            action: self
                .action
                .clone()
                .or_else(|| text("validationAction"))
                .or_else(|| Some("error".to_owned())),
        };
        let mut changed = without(options, &["validator", "validationLevel", "validationAction"])?;
        all.append_to(&mut changed);
        Ok(changed)
    }
}

/// Returns the options of a collection with another value of one of them.
///
/// # Errors
/// The stored options are invalid BSON.
pub fn with(options: &RawDocument, name: &'static CStr, value: RawDocumentBuf) -> Result<RawDocumentBuf> {
    let mut changed = without(options, &[name.as_str()])?;
    changed.append(name, value);
    Ok(changed)
}

fn without(options: &RawDocument, names: &[&str]) -> Result<RawDocumentBuf> {
    let mut rest = RawDocumentBuf::new();
    for option in options {
        let (name, value) = option?;
        if !names.contains(&name.as_str()) {
            rest.append(name, value);
        }
    }
    Ok(rest)
}

fn one_of(command: &str, field: &str, value: Option<&str>, values: &[&str]) -> Result<Option<String>> {
    match value {
        Some(value) if !values.contains(&value) => Err(Error::bad_value(format!(
            "Enumeration value '{value}' for field '{command}.{field}' is not a valid value."
        ))),
        value => Ok(value.map(str::to_owned)),
    }
}

fn check_validator(validator: &RawDocument, namespace: &Namespace) -> Result<()> {
    if validator.is_empty() {
        return Ok(());
    }
    if WITHOUT_VALIDATORS.contains(&namespace.database.as_str()) || namespace.collection.starts_with("system.") {
        let text = format!("Document validators are not allowed on {namespace}");
        return Err(Error::new(Code::INVALID_OPTIONS, text));
    }
    if Filter::parse(validator)?.has_near() {
        let text = "$geoNear is not allowed in this context";
        return Err(Error::new(Code::QUERY_FEATURE_NOT_ALLOWED, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
