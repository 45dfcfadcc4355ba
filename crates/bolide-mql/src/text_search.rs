//! `$text`: the words of documents, and searches for them.
//!
//! Nothing is stored of the words: a search reads them from each document. Their scores are those of MongoDB's text index, version 3.
//!
//! Source: mongo.md §10, §14.

mod language;
mod query;
mod score;
mod words;

use std::collections::BTreeMap;

pub use language::Language;
pub use query::TextQuery;

/// What a text index takes words from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextSource {
    /// The weight of each field; `$**` is every field.
    pub weights: BTreeMap<String, i32>,
    /// The language of documents that name none.
    pub default_language: Language,
    /// The field in which a document names its language.
    pub language_override: String,
}

impl TextSource {
    /// The weight of a field by its dotted name, without indexes of arrays; `None` if words are not taken from it.
    fn weight(&self, path: &str) -> Option<f64> {
        let weight = self.weights.get(path).or_else(|| self.weights.get(EVERY_FIELD));
        weight.map(|weight| f64::from(*weight))
    }

    /// Whether words may be taken from a field inside of this one.
    fn has_fields_in(&self, path: &str) -> bool {
        let is_inside = |name: &String| name.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        self.weights.contains_key(EVERY_FIELD) || self.weights.keys().any(is_inside)
    }
}

/// The name that stands for all fields.
const EVERY_FIELD: &str = "$**";

#[cfg(test)]
mod tests;
