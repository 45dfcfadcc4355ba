//! The words of a document and their scores.

use std::collections::{BTreeMap, HashMap};

use bson::raw::{RawBsonRef, RawDocument};

use super::TextSource;
use super::language::Language;
use super::words::{Sensitivity, Words, folded};
use crate::value::DEPTH_LIMIT;

/// What was found in a document.
#[derive(Debug, Default)]
pub struct Found {
    /// The score of each word.
    pub scores: BTreeMap<String, f64>,
    /// The texts, folded as phrases are.
    pub texts: Vec<String>,
}

/// Reads the words of a document.
pub fn of(source: &TextSource, document: &RawDocument, sensitivity: Sensitivity) -> Found {
    let mut reader = Reader {
        source,
        sensitivity,
        found: Found::default(),
        path: String::new(),
    };
    reader.document(document, source.default_language, 0);
    reader.found
}

struct Reader<'s> {
    source: &'s TextSource,
    sensitivity: Sensitivity,
    found: Found,
    /// Of the current field, without indexes of arrays.
    path: String,
}

/// The number of times that a word is in a text.
#[derive(Debug, Clone, Copy)]
struct Count {
    times: f64,
    /// 1 + 1/2 + 1/4 + …: each further time counts less.
    frequency: f64,
    next: f64,
}

impl Reader<'_> {
    fn document(&mut self, document: &RawDocument, language: Language, depth: usize) {
        let field = self.source.language_override.as_str();
        let own = document.get_str(field).ok().and_then(Language::named);
        let language = own.unwrap_or(language);
        for (name, value) in document.iter().flatten() {
            if name.as_str() == field {
                continue;
            }
            let before = self.path.len();
            if before > 0 {
                self.path.push('.');
            }
            self.path.push_str(name.as_str());
            self.value(value, language, depth + 1);
            self.path.truncate(before);
        }
    }

    fn value(&mut self, value: RawBsonRef<'_>, language: Language, depth: usize) {
        if depth > DEPTH_LIMIT {
            return;
        }
        match value {
            RawBsonRef::String(text) => {
                if let Some(weight) = self.source.weight(&self.path) {
                    self.text(text, weight, language);
                }
            }
            RawBsonRef::Document(document) if self.source.has_fields_in(&self.path) => {
                self.document(document, language, depth);
            }
            RawBsonRef::Array(array) => {
                for element in array.into_iter().flatten() {
                    self.value(element, language, depth + 1);
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str, weight: f64, language: Language) {
        let words = Words::new(language, self.sensitivity);
        let mut counts: HashMap<String, Count> = HashMap::new();
        let mut all = 0.0;
        for word in words.of(text) {
            let count = counts.entry(word).or_insert(Count {
                times: 0.0,
                frequency: 0.0,
                next: 1.0,
            });
            count.times += 1.0;
            count.frequency += count.next;
            count.next /= 2.0;
            all += 1.0;
        }
        for (word, count) in counts {
            let share = 0.5 * count.times / all + 0.5;
            // A text that is nothing but the word is a little better.
            let whole = if text.eq_ignore_ascii_case(&word) { 1.1 } else { 1.0 };
            *self.found.scores.entry(word).or_default() += weight * count.frequency * share * whole;
        }
        self.found.texts.push(folded(text, self.sensitivity));
    }
}
