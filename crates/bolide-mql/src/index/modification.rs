//! Changes of an index by collMod.
//!
//! Source: mongo.md §6 and §18.2; for `_ts`, TTL-281 and TTL-282.

use bson::raw::{RawBsonRef, RawDocument, RawDocumentBuf, cstr};

use super::comparison::{Existing, check_ttl};
use super::definition::IndexDefinition;
use super::pattern::Kind;
use super::time_to_live::{self, COMPOUND, NEGATIVE, TS, is_core};
use crate::error::{Code, Error, Result};
use crate::value;
use crate::value::number::Number;

const UNKNOWN_FIELD: i32 = 40415;
const DUPLICATE_FIELD: i32 = 40413;

/// The argument `index` of collMod.
#[derive(Debug, Clone)]
pub struct IndexModification<'a> {
    target: Target<'a>,
    expire_after_seconds: Option<RawBsonRef<'a>>,
    hidden: Option<bool>,
    unique: Option<bool>,
    prepare_unique: Option<bool>,
}

#[derive(Debug, Clone, Copy)]
enum Target<'a> {
    Name(&'a str),
    Key(&'a RawDocument),
}

/// A changed index.
#[derive(Debug, Clone)]
pub struct Modified {
    /// Its position in the list that was given.
    pub position: usize,
    /// The definition that takes its place.
    pub definition: IndexDefinition,
    /// The index becomes unique: the change is refused if documents have equal keys.
    pub becomes_unique: bool,
    /// The fields of the reply: `expireAfterSeconds_old`, `expireAfterSeconds_new` (int64) and so on.
    pub reply: RawDocumentBuf,
}

impl<'a> IndexModification<'a> {
    /// Reads the argument.
    ///
    /// # Errors
    /// 40415 for an unknown field, 40413 for one that comes twice, 14 `TypeMismatch`; 72 `InvalidOptions` without, or with two, ways to name the
    /// index, and if nothing is to be changed.
    pub fn parse(index: &'a RawDocument) -> Result<IndexModification<'a>> {
        let given = Given::read(index)?;
        let target = match (given.name, given.key) {
            (Some(_), Some(_)) => return Err(invalid("Cannot specify both key pattern and name.")),
            (Some(name), None) => Target::Name(name),
            (None, Some(key)) => Target::Key(key),
            (None, None) => return Err(invalid("Must specify either index name or key pattern.")),
        };
        let modification = IndexModification {
            target,
            expire_after_seconds: given.expire_after_seconds,
            hidden: given.hidden,
            unique: given.unique,
            prepare_unique: given.prepare_unique,
        };
        let has_boolean = [given.hidden, given.unique, given.prepare_unique]
            .iter()
            .any(Option::is_some);
        if modification.expire_after_seconds.is_none() && !has_boolean {
            return Err(invalid("no expireAfterSeconds, hidden, unique, or prepareUnique field"));
        }
        Ok(modification)
    }

    /// Applies the change to one of the indexes of a collection.
    ///
    /// # Errors
    /// 27 `IndexNotFound`, 181 `AmbiguousIndexKeyPattern`, 72 `InvalidOptions`, 2 `BadValue`.
    pub fn apply(&self, existing: &Existing<'_>) -> Result<Modified> {
        let found = self.find(existing);
        let is_core_rule = found
            .as_ref()
            .is_ok_and(|position| is_core(&existing.definitions[*position].key));
        let seconds = self
            .expire_after_seconds
            .map(|value| seconds(value, is_core_rule))
            .transpose()?;
        let position = found?;
        let mut modified = Modified {
            position,
            definition: existing.definitions[position].clone(),
            becomes_unique: false,
            reply: RawDocumentBuf::new(),
        };
        if let Some(seconds) = seconds {
            modified.set_expiry(seconds, existing)?;
        }
        if let Some(is_unique) = self.unique {
            modified.set_unique(is_unique)?;
        }
        if let Some(is_hidden) = self.hidden {
            modified.set_hidden(is_hidden)?;
        }
        if let Some(is_prepared) = self.prepare_unique {
            modified.set_prepare_unique(is_prepared)?;
        }
        Ok(modified)
    }

    fn find(&self, existing: &Existing<'_>) -> Result<usize> {
        let definitions = existing.definitions;
        let found: Vec<usize> = (0..definitions.len())
            .filter(|position| match self.target {
                Target::Name(name) => definitions[*position].name() == name,
                Target::Key(key) => definitions[*position].key.is_same(key),
            })
            .collect();
        let text = match self.target {
            Target::Name(name) => name.to_owned(),
            Target::Key(key) => value::text::render_document(key),
        };
        match found[..] {
            [] => Err(Error::new(
                Code::INDEX_NOT_FOUND,
                format!("cannot find index {text} for ns {}", existing.namespace),
            )),
            [position] => Ok(position),
            [first, second, ..] => Err(Error::new(
                Code::AMBIGUOUS_INDEX_KEY_PATTERN,
                format!(
                    "index keyPattern {text} matches {} indexes, must use index name. Conflicting indexes:{}, {}",
                    found.len(),
                    definitions[first].catalog_text(),
                    definitions[second].catalog_text()
                ),
            )),
        }
    }
}

/// The value as it is stored: truncated and, for a date rule, not above the largest int32.
fn seconds(value: RawBsonRef<'_>, is_core_rule: bool) -> Result<i32> {
    if is_core_rule {
        return time_to_live::core_seconds(value).map_err(invalid);
    }
    let number = Number::of(value).filter(|number| !number.is_nan());
    let Some(number) = number else {
        return Err(invalid("TTL index 'expireAfterSeconds' option must not be NaN"));
    };
    let seconds = match number.truncated() {
        Some(seconds) => seconds,
        None if number.to_f64() < 0.0 => i64::MIN,
        None => i64::MAX,
    };
    if seconds < 0 {
        return Err(invalid(NEGATIVE));
    }
    Ok(i32::try_from(seconds).unwrap_or(i32::MAX))
}

impl Modified {
    fn set_expiry(&mut self, seconds: i32, existing: &Existing<'_>) -> Result<()> {
        let definition = &mut self.definition;
        if definition.is_id() {
            return Err(invalid("the _id field does not support TTL indexes"));
        }
        if definition.key.fields().len() != 1 {
            return Err(invalid(COMPOUND));
        }
        if definition.kind() != Kind::Ordered {
            return Err(invalid(time_to_live::not_a_ttl_kind(definition.kind())));
        }
        if is_core(&definition.key) && definition.partial.is_some() {
            return Err(invalid(time_to_live::PARTIAL_CORE));
        }
        time_to_live::check_field(&definition.key, existing.ttl_mode)?;
        if let Some(old) = definition.expire_after_seconds {
            self.reply.append(cstr!("expireAfterSeconds_old"), i64::from(old));
        }
        self.reply.append(cstr!("expireAfterSeconds_new"), i64::from(seconds));
        definition.expire_after_seconds = Some(seconds);
        check_ttl(existing, definition)
    }

    fn set_unique(&mut self, is_unique: bool) -> Result<()> {
        let definition = &mut self.definition;
        if !is_unique {
            return Err(Error::bad_value("Cannot make index non-unique"));
        }
        if definition.unique || definition.is_id() {
            return Ok(());
        }
        if !definition.prepare_unique {
            return Err(invalid(
                "Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first.",
            ));
        }
        definition.unique = true;
        definition.prepare_unique = false;
        self.becomes_unique = true;
        self.reply.append(cstr!("unique_new"), true);
        Ok(())
    }

    fn set_hidden(&mut self, is_hidden: bool) -> Result<()> {
        let definition = &mut self.definition;
        if definition.is_id() {
            return Err(Error::bad_value("can't hide _id index"));
        }
        if definition.hidden != is_hidden {
            self.reply.append(cstr!("hidden_old"), definition.hidden);
            self.reply.append(cstr!("hidden_new"), is_hidden);
            definition.hidden = is_hidden;
        }
        Ok(())
    }

    fn set_prepare_unique(&mut self, is_prepared: bool) -> Result<()> {
        let definition = &mut self.definition;
        if definition.unique || definition.is_id() || definition.prepare_unique == is_prepared {
            return Ok(());
        }
        let has_ts = definition.key.fields().iter().any(|field| &*field.name == TS);
        if definition.kind() != Kind::Ordered || has_ts {
            return Err(invalid("this index cannot be unique"));
        }
        self.reply.append(cstr!("prepareUnique_old"), definition.prepare_unique);
        self.reply.append(cstr!("prepareUnique_new"), is_prepared);
        definition.prepare_unique = is_prepared;
        Ok(())
    }
}

/// The fields of the argument, each of its type.
#[derive(Default)]
struct Given<'a> {
    name: Option<&'a str>,
    key: Option<&'a RawDocument>,
    expire_after_seconds: Option<RawBsonRef<'a>>,
    hidden: Option<bool>,
    unique: Option<bool>,
    prepare_unique: Option<bool>,
}

impl<'a> Given<'a> {
    fn read(index: &'a RawDocument) -> Result<Given<'a>> {
        let mut given = Given::default();
        let mut seen: Vec<&str> = Vec::new();
        for element in index.iter() {
            let (name, value) = element.map_err(Error::malformed)?;
            let name = name.as_str();
            // Only known names are kept, so the list stays short.
            if seen.contains(&name) {
                let message = format!("BSON field 'collMod.index.{name}' is a duplicate field");
                return Err(Error::new(DUPLICATE_FIELD, message));
            }
            match name {
                "name" => given.name = Some(value.as_str().ok_or_else(|| wrong_type(name, value, "type 'string'"))?),
                "keyPattern" => {
                    let key = value.as_document();
                    given.key = Some(key.ok_or_else(|| wrong_type(name, value, "type 'object'"))?);
                }
                "expireAfterSeconds" => {
                    if Number::of(value).is_none() {
                        return Err(wrong_type(name, value, "types '[long, int, decimal, double']"));
                    }
                    given.expire_after_seconds = Some(value);
                }
                "hidden" => given.hidden = Some(boolean(name, value)?),
                "unique" => given.unique = Some(boolean(name, value)?),
                "prepareUnique" => given.prepare_unique = Some(boolean(name, value)?),
                _ => {
                    let message = format!("BSON field 'collMod.index.{name}' is an unknown field.");
                    return Err(Error::new(UNKNOWN_FIELD, message));
                }
            }
            seen.push(name);
        }
        Ok(given)
    }
}

fn boolean(name: &str, value: RawBsonRef<'_>) -> Result<bool> {
    if value.as_bool().is_none() && Number::of(value).is_none() {
        return Err(wrong_type(name, value, "types '[bool, long, int, decimal, double']"));
    }
    Ok(value::is_truthy(value))
}

fn wrong_type(field: &str, value: RawBsonRef<'_>, expected: &str) -> Error {
    Error::new(
        Code::TYPE_MISMATCH,
        format!(
            "BSON field 'collMod.index.{field}' is the wrong type '{}', expected {expected}",
            value::types::name(value)
        ),
    )
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::INVALID_OPTIONS, message)
}

#[cfg(test)]
mod tests;
