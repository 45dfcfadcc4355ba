//! The terms of an item in a full-text index.
//!
//! ```text
//! key of a term        term ‖ 00    the texts in which a word occurs
//! key of many terms    00           texts with too many words for an entry each
//! key of a text        01           every text
//! key of no text       02           every item without one
//! ```
//!
//! Words are those of the full-text functions: in lower case, without stop words, stemmed for the language. They consist of letters and digits, so
//! that no key is the beginning of another one.

use std::collections::HashMap;
use std::fmt;

use super::path::IndexPath;
use crate::functions::Analyzer;
use crate::value::{Item, Value};

/// Maximum number of different words of a text that has an entry for each. A longer text has one entry, which every condition finds.
pub const MAX_TERMS: usize = 4_096;
/// Maximum length of a word that has an entry, in bytes. A text with a longer one counts as one with too many.
pub const TERM_BYTES: usize = 256;

/// The key of texts with too many words.
pub const KEY_OF_MANY_TERMS: &[u8] = &[0];
/// The key of all texts.
pub const KEY_OF_TEXT: &[u8] = &[1];
/// The key of all items without a text.
pub const KEY_OF_NO_TEXT: &[u8] = &[2];

/// The key of the texts with a word.
pub fn key_of_term(term: &str) -> Vec<u8> {
    [term.as_bytes(), &[0]].concat()
}

/// What a full-text index is of: the texts at a path, in a language such as `en-US`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextIndex {
    /// Where the text is. Not of elements.
    pub path: IndexPath,
    /// The language by which its words are compared.
    pub language: String,
}

/// The words of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTerms {
    /// Number of words, stop words excluded.
    pub words: u64,
    /// Each different word with the number of times that it occurs, sorted. `None`: too many, or too long ones.
    pub terms: Option<Vec<(String, u64)>>,
}

impl TextIndex {
    /// The words of an item's text; `None` if its value at the path is not a text.
    pub fn terms(&self, item: &Item<'_>) -> Option<TextTerms> {
        self.path
            .value(item, |value| Some(terms_of(&self.analyzer(), value.as_str()?)))
    }

    /// Number of words of an item's text, and how often each of some terms occurs; `None` if its value at the path is not a text.
    pub fn hits(&self, item: &Item<'_>, terms: &[Option<String>]) -> Option<(u64, Vec<u64>)> {
        let count = |value: &Value<'_>| {
            let mut hits = vec![0; terms.len()];
            let mut words = 0;
            for word in self.analyzer().each_word(value.as_str()?) {
                words += 1;
                for (hits, term) in hits.iter_mut().zip(terms) {
                    *hits += u64::from(term.as_ref() == Some(&word));
                }
            }
            Some((words, hits))
        };
        self.path.value(item, count)
    }

    pub(super) fn analyzer(&self) -> Analyzer {
        Analyzer::new(&self.language)
    }
}

fn terms_of(analyzer: &Analyzer, text: &str) -> TextTerms {
    let mut counts: HashMap<String, u64> = HashMap::new();
    let (mut words, mut is_listed) = (0, true);
    for word in analyzer.each_word(text) {
        words += 1;
        is_listed &= word.len() <= TERM_BYTES && counts.len() <= MAX_TERMS;
        if is_listed {
            *counts.entry(word).or_default() += 1;
        }
    }
    let mut terms: Vec<_> = counts.into_iter().collect();
    terms.sort_unstable();
    TextTerms {
        words,
        terms: (is_listed && terms.len() <= MAX_TERMS).then_some(terms),
    }
}

/// The path, and the language after it.
impl fmt::Display for TextIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (full text, {})", self.path, self.language)
    }
}

#[cfg(test)]
mod tests;
