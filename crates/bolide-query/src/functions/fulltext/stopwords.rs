//! Words too common to search for, per language. They include single letters, but not digits, although the documentation says so: the ranking that
//! the tests of the .NET and JavaScript SDKs expect counts digits in the length of a text.

use std::collections::HashSet;
use std::sync::LazyLock;

/// The stop words of one language.
#[derive(Debug)]
pub struct StopWords {
    words: HashSet<&'static str>,
}

static ENGLISH: LazyLock<StopWords> = LazyLock::new(|| StopWords::new(include_str!("stopwords/en.txt")));
static GERMAN: LazyLock<StopWords> = LazyLock::new(|| StopWords::new(include_str!("stopwords/de.txt")));
static SPANISH: LazyLock<StopWords> = LazyLock::new(|| StopWords::new(include_str!("stopwords/es.txt")));
static FRENCH: LazyLock<StopWords> = LazyLock::new(|| StopWords::new(include_str!("stopwords/fr.txt")));
static ITALIAN: LazyLock<StopWords> = LazyLock::new(|| StopWords::new(include_str!("stopwords/it.txt")));
static PORTUGUESE: LazyLock<StopWords> = LazyLock::new(|| StopWords::new(include_str!("stopwords/pt.txt")));

impl StopWords {
    fn new(list: &'static str) -> StopWords {
        StopWords {
            words: list.split_whitespace().collect(),
        }
    }

    /// The stop words of a language such as `en`; unknown languages have the English list.
    pub fn of(language: &str) -> &'static StopWords {
        match language {
            "de" => &GERMAN,
            "es" => &SPANISH,
            "fr" => &FRENCH,
            "it" => &ITALIAN,
            "pt" => &PORTUGUESE,
            _ => &ENGLISH,
        }
    }

    /// Whether a lower-case word is a stop word.
    pub fn contains(&self, word: &str) -> bool {
        self.words.contains(word)
    }
}
