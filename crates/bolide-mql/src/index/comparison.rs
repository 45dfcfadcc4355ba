//! Whether a new index is one that exists, and the conflicts with those that do.
//!
//! Two definitions are of one index if their key, filter, collation, `unique`, `sparse` and wildcard projection are the same.
//!
//! Source: mongo.md §14.

use bson::raw::RawBsonRef;

use super::definition::IndexDefinition;
use super::pattern::{Kind, cannot};
use super::time_to_live::{TtlMode, is_core};
use crate::error::{Code, Error, Result};
use crate::value;

/// The most indexes of a collection, with that on `_id` (mongo.md §16).
const INDEXES: usize = 64;

/// The indexes of a collection.
#[derive(Debug, Clone, Copy)]
pub struct Existing<'a> {
    /// `database.collection`, for errors.
    pub namespace: &'a str,
    /// All of them.
    pub definitions: &'a [IndexDefinition],
    /// Which TTL indexes may stand beside each other.
    pub ttl_mode: TtlMode,
}

/// How a definition relates to those that exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// The index exists; creating it again does nothing.
    Same,
    /// The index can be created.
    New,
}

/// Compares a new definition with those of a collection.
///
/// # Errors
/// 85 `IndexOptionsConflict`, 86 `IndexKeySpecsConflict`; 67 `CannotCreateIndex` for a second text index, one index too many, or a second core rule
/// of TTL; 2 `BadValue` for a second TTL index where the mode allows one.
pub fn compare_definitions(existing: &Existing<'_>, new: &IndexDefinition) -> Result<Comparison> {
    if let Some(same_name) = existing.definitions.iter().find(|each| each.name == new.name) {
        return compare_of_one_name(same_name, new);
    }
    if let Some(other) = existing.definitions.iter().find(|each| is_one_index(each, new)) {
        let message = if has_same_options(other, new) {
            format!("Index already exists with a different name: {}", other.name)
        } else {
            format!(
                "An equivalent index already exists with a different name and options. {}",
                both(new, other)
            )
        };
        return Err(Error::new(Code::INDEX_OPTIONS_CONFLICT, message));
    }
    check_number(existing, new)?;
    check_ttl(existing, new)?;
    Ok(Comparison::New)
}

fn compare_of_one_name(existing: &IndexDefinition, new: &IndexDefinition) -> Result<Comparison> {
    if !is_one_index(existing, new) {
        return Err(Error::new(
            Code::INDEX_KEY_SPECS_CONFLICT,
            format!(
                "An existing index has the same name as the requested index. When index names are not specified, they \
                 are auto generated and can cause conflicts. Please refer to our documentation. {}",
                both(new, existing)
            ),
        ));
    }
    if !has_same_options(existing, new) {
        return Err(Error::new(
            Code::INDEX_OPTIONS_CONFLICT,
            format!(
                "An equivalent index already exists with the same name but different options. {}",
                both(new, existing)
            ),
        ));
    }
    Ok(Comparison::Same)
}

fn both(new: &IndexDefinition, existing: &IndexDefinition) -> String {
    format!(
        "Requested index: {}, existing index: {}",
        new.catalog_text(),
        existing.catalog_text()
    )
}

fn is_one_index(a: &IndexDefinition, b: &IndexDefinition) -> bool {
    let is_same_filter = match (&a.partial, &b.partial) {
        (None, None) => true,
        (Some(a), Some(b)) => value::equal(RawBsonRef::Document(a.document()), RawBsonRef::Document(b.document())),
        _ => false,
    };
    let is_same_projection = match (&a.wildcard, &b.wildcard) {
        (None, None) => true,
        (Some(a), Some(b)) => value::equal(RawBsonRef::Document(a.document()), RawBsonRef::Document(b.document())),
        _ => false,
    };
    a.key.is_same(b.key.document())
        && a.unique == b.unique
        && a.sparse == b.sparse
        && is_same_filter
        && is_same_projection
        && a.collation == b.collation
}

fn has_same_options(a: &IndexDefinition, b: &IndexDefinition) -> bool {
    let (a, b) = (sorted_options(a), sorted_options(b));
    a.len() == b.len()
        && a.iter().zip(&b).all(|((a_name, a), (b_name, b))| {
            a_name == b_name && value::equal(a.as_raw_bson_ref(), b.as_raw_bson_ref())
        })
}

/// Options by name: their order in a specification makes no difference.
fn sorted_options(definition: &IndexDefinition) -> Vec<(String, bson::RawBson)> {
    let options = definition.secondary_options();
    let mut options: Vec<(String, bson::RawBson)> = options
        .iter()
        .flatten()
        .map(|(name, value)| (name.as_str().to_owned(), value.into()))
        .collect();
    options.sort_by(|(a, _), (b, _)| a.cmp(b));
    options
}

fn check_number(existing: &Existing<'_>, new: &IndexDefinition) -> Result<()> {
    if existing.definitions.len() >= INDEXES {
        return Err(cannot(format!(
            "add index fails, too many indexes for {} key:{}",
            existing.namespace,
            new.key.text()
        )));
    }
    let text = existing.definitions.iter().find(|each| each.kind() == Kind::Text);
    if let Some(text) = text.filter(|_| new.kind() == Kind::Text) {
        return Err(cannot(format!(
            "only one text index per collection allowed, found existing text index \"{}\"",
            text.name
        )));
    }
    Ok(())
}

/// Checks that a TTL index may stand beside the others.
///
/// # Errors
/// 67 `CannotCreateIndex`, 2 `BadValue`.
pub(super) fn check_ttl(existing: &Existing<'_>, new: &IndexDefinition) -> Result<()> {
    let others = || existing.definitions.iter().filter(|each| each.name != new.name);
    if new.expire_after_seconds.is_some() {
        let mut with_ttl = others().filter(|each| each.expire_after_seconds.is_some());
        if existing.ttl_mode == TtlMode::CosmosCustomPath && with_ttl.clone().next().is_some() {
            return Err(Error::bad_value("A collection can have only one TTL index."));
        }
        if is_core(&new.key) && with_ttl.any(|each| is_core(&each.key)) {
            return Err(cannot("a collection can have only one TTL index on '_ts'"));
        }
    }
    check_partial_unique(existing, new)
}

/// With TTL on a field of the application, Cosmos allows no partial unique index (mongo.md §18.3).
fn check_partial_unique(existing: &Existing<'_>, new: &IndexDefinition) -> Result<()> {
    if existing.ttl_mode != TtlMode::CosmosCustomPath {
        return Ok(());
    }
    let all = || {
        let others = existing.definitions.iter().filter(|each| each.name != new.name);
        others.chain([new])
    };
    let has_custom_ttl = all().any(|each| each.expire_after_seconds.is_some() && !is_core(&each.key));
    let has_partial_unique = all().any(|each| each.unique && each.partial.is_some());
    if has_custom_ttl && has_partial_unique {
        return Err(Error::bad_value(
            "A TTL index on a custom path cannot be used together with a partial unique index.",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
