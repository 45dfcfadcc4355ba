//! The words of a text.

use rust_stemmers::Stemmer;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::language::Language;

/// What makes a difference between words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sensitivity {
    /// Upper and lower case.
    pub to_case: bool,
    /// Accents and the like.
    pub to_diacritics: bool,
}

/// The rules by which a text is taken apart.
pub struct Words {
    language: Language,
    stemmer: Option<Stemmer>,
    sensitivity: Sensitivity,
}

impl Words {
    /// The rules of a language.
    pub fn new(language: Language, sensitivity: Sensitivity) -> Words {
        Words {
            language,
            stemmer: language.stemmer(),
            sensitivity,
        }
    }

    /// The stems of the words of a text, in order, without stop words.
    pub fn of<'t>(&'t self, text: &'t str) -> impl Iterator<Item = String> + 't {
        let words = text.split(|character: char| !is_in_word(character));
        let words = words.map(|word| word.trim_matches('\''));
        words.filter(|word| !word.is_empty()).filter_map(|word| self.stem(word))
    }

    fn stem(&self, word: &str) -> Option<String> {
        let lower = word.to_lowercase();
        if self.language.is_stop_word(&lower) {
            return None;
        }
        let cased = if self.sensitivity.to_case { word } else { &lower };
        let stem = match &self.stemmer {
            Some(stemmer) => stemmer.stem(cased).into_owned(),
            None => cased.to_owned(),
        };
        Some(match self.sensitivity.to_diacritics {
            true => stem,
            false => without_diacritics(&stem),
        })
    }
}

fn is_in_word(character: char) -> bool {
    character.is_alphanumeric() || is_combining_mark(character) || character == '_' || character == '\''
}

/// The text as phrases are compared.
pub fn folded(text: &str, sensitivity: Sensitivity) -> String {
    let cased = if sensitivity.to_case {
        text.to_owned()
    } else {
        text.to_lowercase()
    };
    match sensitivity.to_diacritics {
        true => cased,
        false => without_diacritics(&cased),
    }
}

fn without_diacritics(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    text.nfd()
        .filter(|character| !is_combining_mark(*character))
        .nfc()
        .collect()
}
