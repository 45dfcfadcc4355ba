//! The options of text indexes: weights and languages.
//!
//! The key `{a: "text", b: 1}` is stored as `{_fts: "text", _ftsx: 1, b: 1}` with `weights: {a: 1}`.

use std::collections::BTreeMap;

use bson::raw::{RawBsonRef, RawDocument, RawDocumentBuf, cstr};

use super::definition::append;
use super::pattern::{Field, KeyPattern, Order, WILDCARD, cannot};
use crate::error::{Error, Result};
use crate::text_search::Language;
use crate::value;
use crate::value::number::Number;

/// Weights are below this.
const WEIGHT_LIMIT: i64 = 100_000;

/// The field that stands for all words in a stored key pattern.
const WORDS: &str = "_fts";

/// The field that stands for their scores.
const SCORES: &str = "_ftsx";

/// What a text index takes words from, and in which language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextOptions {
    /// The weight of each field, 1 to 99999; `$**` is every field.
    pub weights: BTreeMap<String, i32>,
    /// The language of documents that name none.
    pub default_language: String,
    /// The field in which a document names its language.
    pub language_override: String,
}

impl TextOptions {
    /// Appends the options to a definition.
    pub(super) fn append_to(&self, document: &mut RawDocumentBuf) {
        let mut weights = RawDocumentBuf::new();
        for (name, weight) in &self.weights {
            append(&mut weights, name, RawBsonRef::Int32(*weight));
        }
        document.append(cstr!("weights"), weights);
        document.append(cstr!("default_language"), self.default_language.as_str());
        document.append(cstr!("language_override"), self.language_override.as_str());
    }
}

/// Returns the stored key pattern and the options.
///
/// # Errors
/// 67 `CannotCreateIndex` for text fields that are not adjacent, bad weights or languages.
pub fn normalize(
    key: &KeyPattern,
    weights: Option<RawBsonRef<'_>>,
    default_language: Option<&str>,
    language_override: Option<&str>,
) -> Result<(KeyPattern, TextOptions)> {
    check_order(key)?;
    let mut all = BTreeMap::new();
    for field in key.fields() {
        if field.order == Order::Special && &*field.name != WORDS {
            all.insert(field.name.to_string(), 1);
        }
    }
    match weights {
        None => {}
        Some(RawBsonRef::Document(weights)) => read_weights(weights, &mut all)?,
        Some(RawBsonRef::String(WILDCARD)) => {
            all.insert(WILDCARD.to_owned(), 1);
        }
        Some(_) => return Err(cannot("text index option 'weights' must be an object")),
    }
    if all.is_empty() {
        return Err(cannot(
            "text index option 'weights' must specify fields or the wildcard",
        ));
    }
    let default_language = default_language.unwrap_or("english");
    if Language::named(default_language).is_none() {
        return Err(cannot("default_language is not valid"));
    }
    let language_override = language_override.unwrap_or("language");
    if language_override.is_empty() || language_override.starts_with('$') || language_override.contains('.') {
        return Err(cannot("language_override is not valid"));
    }
    let options = TextOptions {
        weights: all,
        default_language: default_language.to_owned(),
        language_override: language_override.to_owned(),
    };
    Ok((stored_key(key)?, options))
}

/// Fields in order, then text fields, then fields in order again.
fn check_order(key: &KeyPattern) -> Result<()> {
    let fields = key.fields();
    let is_text = |field: &Field| field.order == Order::Special;
    let is_reserved = |field: &Field| [WORDS, SCORES].contains(&&*field.name);
    let first = fields.iter().position(is_text).unwrap_or(0);
    let is_stored_form = &*fields[first].name == WORDS;
    let others: Vec<&Field> = if is_stored_form {
        let next = fields.get(first + 1).filter(|field| &*field.name == SCORES);
        if next.is_none_or(|field| field.order != Order::Ascending) {
            return Err(cannot("expected _ftsx after _fts"));
        }
        fields[..first].iter().chain(&fields[first + 2..]).collect()
    } else {
        fields.iter().collect()
    };
    if others.iter().any(|field| is_reserved(field)) {
        return Err(cannot("text index with reserved fields _fts/_ftsx not allowed"));
    }
    let behind_text = fields[first..].iter().skip_while(|field| is_text(field));
    if behind_text.clone().any(is_text) {
        return Err(cannot("'text' fields in index must all be adjacent"));
    }
    let document = key.document();
    for field in others.iter().filter(|field| !is_text(field)) {
        let direction = document.get(&*field.name).ok().flatten().and_then(value::number::whole);
        if !matches!(direction, Some(1 | -1)) {
            return Err(cannot("expected value 1 or -1 for non-text key in compound index"));
        }
    }
    Ok(())
}

fn read_weights(weights: &RawDocument, all: &mut BTreeMap<String, i32>) -> Result<()> {
    for element in weights.iter() {
        let (name, weight) = element.map_err(Error::malformed)?;
        let Some(number) = Number::of(weight) else {
            return Err(cannot("weight for text index needs numeric type"));
        };
        let weight = number.truncated().unwrap_or(0);
        let Some(checked) = i32::try_from(weight)
            .ok()
            .filter(|checked| *checked > 0 && weight < WEIGHT_LIMIT)
        else {
            return Err(cannot(format!(
                "text index weight must be in the exclusive interval (0,{WEIGHT_LIMIT}) but found: {weight}"
            )));
        };
        check_weighted_name(name.as_str())?;
        all.insert(name.as_str().to_owned(), checked);
    }
    Ok(())
}

fn check_weighted_name(name: &str) -> Result<()> {
    if name == WILDCARD {
        return Ok(());
    }
    if name.is_empty() {
        return Err(cannot("weight cannot be on an empty field"));
    }
    for part in name.split('.') {
        if part.is_empty() {
            return Err(cannot("weight cannot have empty path component"));
        }
        if part.starts_with('$') {
            return Err(cannot("weight cannot have path component with $ prefix"));
        }
    }
    Ok(())
}

fn stored_key(key: &KeyPattern) -> Result<KeyPattern> {
    let mut stored = RawDocumentBuf::new();
    let mut has_words = false;
    for (name, value) in key.document().iter().flatten() {
        let is_text = value.as_str().is_some();
        if name.as_str() == WORDS || name.as_str() == SCORES || !is_text {
            has_words |= name.as_str() == WORDS;
            stored.append(name, value);
        } else if !has_words {
            has_words = true;
            stored.append(cstr!("_fts"), "text");
            stored.append(cstr!("_ftsx"), 1);
        }
    }
    KeyPattern::parse(&stored)
}

#[cfg(test)]
mod tests;
