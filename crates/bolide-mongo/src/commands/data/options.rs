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
use bson::{RawArrayBuf, RawBson, RawDocument, RawDocumentBuf, rawdoc};

use super::super::arguments::Arguments;
use super::views::View;
use crate::namespace::Namespace;

/// Databases whose collections have no validators.
const WITHOUT_VALIDATORS: [&str; 3] = ["admin", "config", "local"];

/// MongoDB's code for a number below the least one.
const OUT_OF_RANGE: i32 = 51024;

/// Options of `create` that a view cannot have.
const NOT_ON_VIEWS: [&str; 13] = [
    "capped",
    "size",
    "max",
    "validator",
    "validationLevel",
    "validationAction",
    "timeseries",
    "clusteredIndex",
    "expireAfterSeconds",
    "changeStreamPreAndPostImages",
    "indexOptionDefaults",
    "storageEngine",
    "encryptedFields",
];

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
    /// `NotImplemented` for capped, clustered, time-series and encrypted collections; `InvalidOptions` for options that need one of these;
    /// those of validators and collations.
    pub fn read(arguments: &mut Arguments<'_>, namespace: &Namespace) -> Result<CollectionOptions> {
        if let Some(view) = read_view(arguments)? {
            return Ok(view);
        }
        refuse_kinds(arguments)?;
        if arguments.boolean("autoIndexId")? == Some(false) {
            let text = "The 'autoIndexId' option may only be true: every collection has an index on _id";
            return Err(Error::new(Code::INVALID_OPTIONS, text));
        }
        let validation = Validation::read(arguments, namespace)?;
        let collation = read_collation(arguments)?;
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

    /// The view that is to be created in this database; `None` for a collection.
    pub fn view(&self, database: &str) -> Option<View> {
        View::of_options(&self.document, database)
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

/// Reads the options of a view; `None` if a collection is to be created.
fn read_view(arguments: &mut Arguments<'_>) -> Result<Option<CollectionOptions>> {
    let on = arguments.string("viewOn")?;
    let pipeline = arguments.array("pipeline")?;
    let on = match (on, pipeline) {
        (None, None) => return Ok(None),
        (None, Some(_)) => return Err(Error::bad_value("'pipeline' cannot be specified without 'viewOn'")),
        (Some(""), _) => return Err(Error::bad_value("'viewOn' cannot be empty")),
        (Some(on), _) => on,
    };
    if let Some(option) = NOT_ON_VIEWS.iter().find(|option| arguments.value(option).is_some()) {
        let text = format!("option not supported on a view: {option}");
        return Err(Error::new(Code::INVALID_OPTIONS, text));
    }
    let collation = read_collation(arguments)?;
    let pipeline = pipeline.map_or_else(RawArrayBuf::new, ToOwned::to_owned);
    let mut document = rawdoc! {"viewOn": on, "pipeline": pipeline};
    if let Some(collation) = &collation {
        document.append(cstr!("collation"), collation.to_document().to_owned());
    }
    Ok(Some(CollectionOptions { document, collation }))
}

fn read_collation(arguments: &mut Arguments<'_>) -> Result<Option<Arc<Collation>>> {
    match arguments.document("collation")? {
        Some(collation) if collation.is_empty() => Err(Error::bad_value("'collation' cannot be an empty document.")),
        Some(collation) => Collation::parse(collation),
        None => Ok(None),
    }
}

/// Refuses kinds of collections that do not exist here, and their options without them.
fn refuse_kinds(arguments: &mut Arguments<'_>) -> Result<()> {
    let not_implemented = |what: &str| Err(Error::new(Code::NOT_IMPLEMENTED, format!("{what} are not supported")));
    let is_capped = arguments.boolean("capped")?.unwrap_or(false);
    let size = arguments.integer("size")?;
    let has_size = size.is_some() | arguments.integer("max")?.is_some();
    match (is_capped, size) {
        (_, Some(size)) if size < 1 => {
            let text = format!("BSON field 'size' value must be >= 1, actual value '{size}'");
            return Err(Error::new(OUT_OF_RANGE, text));
        }
        (true, None) => {
            let text = "the 'size' field is required when 'capped' is true";
            return Err(Error::new(Code::INVALID_OPTIONS, text));
        }
        (true, Some(_)) => return not_implemented("capped collections"),
        (false, _) => {}
    }
    if has_size {
        let text = "the 'capped' field needs to be true when either the 'size' or 'max' fields are present";
        return Err(Error::new(Code::INVALID_OPTIONS, text));
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
pub fn with(options: &RawDocument, name: &'static CStr, value: RawBson) -> Result<RawDocumentBuf> {
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
