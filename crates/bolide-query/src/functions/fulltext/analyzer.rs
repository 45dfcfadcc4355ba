//! From text to comparable words: split, in lower case, without stop words, stemmed for the language.

use rust_stemmers::{Algorithm, Stemmer};

use super::stopwords::StopWords;
use crate::fuel::Fuel;
use crate::value::Value;

/// Units per byte of text for splitting it into words.
const ANALYSIS: u64 = 40;

/// Splits text into comparable words for one language.
pub struct Analyzer {
    stemmer: Stemmer,
    stop_words: &'static StopWords,
}

impl std::fmt::Debug for Analyzer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Analyzer")
    }
}

/// The words of a text: letters and digits together, and numbers with their points and commas, such as `1,977`.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let bytes = text.as_bytes();
    let is_inside_number = move |at: usize, c: char| {
        matches!(c, '.' | ',') && at > 0 && is_digit(bytes.get(at - 1)) && is_digit(bytes.get(at + 1))
    };
    let mut from = 0;
    let mut ends = text
        .char_indices()
        .filter(move |(at, c)| !c.is_alphanumeric() && !is_inside_number(*at, *c))
        .map(|(at, c)| (at, at + c.len_utf8()))
        .chain(std::iter::once((text.len(), text.len())));
    std::iter::from_fn(move || {
        ends.by_ref().find_map(|(end, next)| {
            let word = &text[from..end];
            from = next;
            (!word.is_empty()).then_some(word)
        })
    })
}

/// A term of a query.
#[derive(Debug, Clone)]
pub struct Term {
    /// One word, or the words of a phrase.
    words: Vec<String>,
    /// Maximum edit distance of a word.
    distance: usize,
}

impl Analyzer {
    /// The analyzer of a language such as `en-US`; unknown languages are treated as English.
    pub fn new(language: &str) -> Analyzer {
        let base = language.split('-').next().unwrap_or_default().to_ascii_lowercase();
        let algorithm = match base.as_str() {
            "de" => Algorithm::German,
            "es" => Algorithm::Spanish,
            "fr" => Algorithm::French,
            "it" => Algorithm::Italian,
            "pt" => Algorithm::Portuguese,
            _ => Algorithm::English,
        };
        Analyzer {
            stemmer: Stemmer::create(algorithm),
            stop_words: StopWords::of(&base),
        }
    }

    /// The words of a text without stop words, in order; none if there is not enough fuel.
    pub fn words(&self, text: &str, fuel: &Fuel) -> Vec<String> {
        if !fuel.spend_each(text.len(), ANALYSIS) {
            return Vec::new();
        }
        self.each_word(text).collect()
    }

    /// As [`Analyzer::words`], without fuel.
    pub fn each_word(&self, text: &str) -> impl Iterator<Item = String> {
        let lower = split(text).map(str::to_lowercase);
        lower
            .filter(|word| !self.stop_words.contains(word))
            .map(|word| self.stemmer.stem(&word).into_owned())
    }

    /// Reads a term: a string, or `{"term": "x", "distance": 1}` for a fuzzy one.
    pub fn term(&self, value: &Value<'_>, fuel: &Fuel) -> Option<Term> {
        const MAX_EDITS: usize = 2;
        if let Some(text) = value.as_str() {
            return Some(Term {
                words: self.words(text, fuel),
                distance: 0,
            });
        }
        let text = value.member("term");
        let distance = value
            .member("distance")
            .as_i64()
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or(0);
        Some(Term {
            words: self.words(text.as_str()?, fuel),
            distance: distance.min(MAX_EDITS),
        })
    }
}

impl Term {
    /// The words of which a text must have all in order to have the term, none if no text has it. `None` if other words would do as well.
    pub fn exact_words(&self) -> Option<&[String]> {
        (self.distance == 0).then_some(&self.words)
    }
}

/// How often a term occurs, with its words next to each other.
pub fn term_hits(words: &[String], term: &Term, fuel: &Fuel) -> u64 {
    if term.words.is_empty() {
        return 0;
    }
    let same = |a: &String, b: &String| {
        let units = if term.distance == 0 {
            5 + b.len() / 8
        } else {
            100 + 3 * a.len() * b.len()
        };
        if !fuel.spend(units as u64) {
            return false;
        }
        if term.distance == 0 {
            a == b
        } else {
            within(a, b, term.distance)
        }
    };
    let hit = |window: &&[String]| window.iter().zip(&term.words).all(|(a, b)| same(a, b));
    words.windows(term.words.len()).filter(hit).count() as u64
}

/// Whether two words differ by at most `distance` insertions, deletions and replacements.
fn within(a: &str, b: &str, distance: usize) -> bool {
    let b: Vec<char> = b.chars().collect();
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for (row, x) in a.chars().enumerate() {
        let mut current = vec![row + 1];
        for (column, y) in b.iter().enumerate() {
            let replaced = previous[column] + usize::from(x != *y);
            current.push(replaced.min(previous[column + 1] + 1).min(current[column] + 1));
        }
        previous = current;
    }
    previous.last().is_some_and(|edits| *edits <= distance)
}
