//! A search, parsed.

use std::collections::{BTreeMap, BTreeSet};

use bson::raw::{RawBsonRef, RawDocument};

use super::TextSource;
use super::language::Language;
use super::score;
use super::words::{Sensitivity, Words, folded};
use crate::error::{Code, Error, Result};
use crate::value::types;

/// The operand of `$text`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextQuery {
    search: String,
    language: Option<Language>,
    sensitivity: Sensitivity,
}

/// What a search asks for, in the language of an index.
#[derive(Debug, Default)]
struct Terms {
    /// One of these must be there.
    wanted: BTreeSet<String>,
    /// None of these may be there.
    unwanted: BTreeSet<String>,
    /// All of these must be there, as they are written.
    phrases: Vec<String>,
    /// None of these may be there.
    unwanted_phrases: Vec<String>,
}

impl TextQuery {
    /// Parses `{$search, $language?, $caseSensitive?, $diacriticSensitive?}`.
    ///
    /// # Errors
    /// `NoSuchKey` without `$search`; `TypeMismatch`; `BadValue` for other fields and unknown languages.
    pub fn parse(value: RawBsonRef<'_>) -> Result<TextQuery> {
        let RawBsonRef::Document(document) = value else {
            return Err(Error::bad_value("$text expects an object"));
        };
        let mut search = None;
        let mut query = TextQuery {
            search: String::new(),
            language: None,
            sensitivity: Sensitivity::default(),
        };
        for element in document {
            let (name, value) = element?;
            match (name.as_str(), value) {
                ("$search", RawBsonRef::String(text)) => search = Some(text.to_owned()),
                ("$language", RawBsonRef::String(name)) => query.language = Some(language(name)?),
                ("$caseSensitive", RawBsonRef::Boolean(is_sensitive)) => query.sensitivity.to_case = is_sensitive,
                ("$diacriticSensitive", RawBsonRef::Boolean(is_sensitive)) => {
                    query.sensitivity.to_diacritics = is_sensitive;
                }
                (name @ ("$search" | "$language"), other) => return Err(wrong_type(name, other, "string")),
                (name @ ("$caseSensitive" | "$diacriticSensitive"), other) => {
                    return Err(wrong_type(name, other, "bool"));
                }
                _ => return Err(Error::bad_value("extra fields in $text")),
            }
        }
        let missing = || Error::new(Code::NO_SUCH_KEY, "Missing expected field \"$search\"");
        query.search = search.ok_or_else(missing)?;
        Ok(query)
    }

    /// The score of a document, higher than 0; `None` if it does not match.
    pub fn score(&self, source: &TextSource, document: &RawDocument) -> Option<f64> {
        let terms = self.terms(self.language.unwrap_or(source.default_language), self.sensitivity);
        if terms.wanted.is_empty() {
            return None;
        }
        let found = self.found(source, document);
        let has = |term: &String| found.scores.contains_key(term);
        let in_a_text = |phrase: &String| found.texts.iter().any(|text| text.contains(phrase.as_str()));
        let matches = terms.wanted.iter().any(has)
            && !terms.unwanted.iter().any(has)
            && terms.phrases.iter().all(in_a_text)
            && !terms.unwanted_phrases.iter().any(in_a_text);
        if !matches {
            return None;
        }
        if self.sensitivity == Sensitivity::default() {
            return Some(total(&found.scores, &terms.wanted));
        }
        // The words of an index have no case and no diacritics, so neither has the score.
        let insensitive = Sensitivity::default();
        let terms = self.terms(self.language.unwrap_or(source.default_language), insensitive);
        Some(total(&score::of(source, document, insensitive).scores, &terms.wanted))
    }

    fn found(&self, source: &TextSource, document: &RawDocument) -> score::Found {
        score::of(source, document, self.sensitivity)
    }

    /// Takes the search apart: words, `"phrases"`, and both with `-` before them.
    fn terms(&self, language: Language, sensitivity: Sensitivity) -> Terms {
        let words = Words::new(language, sensitivity);
        let mut terms = Terms::default();
        // A quote without its partner quotes nothing.
        let closed = self.search.matches('"').count() / 2 * 2;
        let mut is_negated = false;
        for (at, part) in self.search.split('"').enumerate() {
            let is_phrase = at % 2 == 1 && at < closed;
            if is_phrase {
                let phrase = folded(part, sensitivity);
                if is_negated {
                    terms.unwanted_phrases.push(phrase);
                } else if !phrase.trim().is_empty() {
                    terms.wanted.extend(words.of(part));
                    terms.phrases.push(phrase);
                }
                is_negated = false;
                continue;
            }
            for word in part.split_whitespace() {
                match word.strip_prefix('-') {
                    Some(unwanted) => terms.unwanted.extend(words.of(unwanted)),
                    None => terms.wanted.extend(words.of(word)),
                }
            }
            is_negated = part == "-" || part.ends_with(" -");
        }
        terms
    }
}

fn total(scores: &BTreeMap<String, f64>, wanted: &BTreeSet<String>) -> f64 {
    wanted.iter().filter_map(|term| scores.get(term)).sum()
}

fn language(name: &str) -> Result<Language> {
    let unsupported = || Error::bad_value(format!("unsupported language: \"{name}\" for text index version 3"));
    Language::named(name).ok_or_else(unsupported)
}

fn wrong_type(name: &str, found: RawBsonRef<'_>, expected: &str) -> Error {
    let found = types::name(found);
    let text = format!("\"{name}\" had the wrong type. Expected {expected}, found {found}");
    Error::new(Code::TYPE_MISMATCH, text)
}
