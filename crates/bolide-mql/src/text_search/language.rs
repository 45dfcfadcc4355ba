//! Languages: how their words are stemmed, and which words are so frequent that they are left out.

use rust_stemmers::{Algorithm, Stemmer};

/// A language of text indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Language(Option<&'static Rules>);

#[derive(Debug, PartialEq, Eq)]
struct Rules {
    name: &'static str,
    /// ISO 639-1.
    code: &'static str,
    algorithm: Algorithm,
    stop_words: &'static [&'static str],
}

const fn rules(
    name: &'static str,
    code: &'static str,
    algorithm: Algorithm,
    stop_words: &'static [&'static str],
) -> Rules {
    Rules {
        name,
        code,
        algorithm,
        stop_words,
    }
}

static LANGUAGES: [Rules; 15] = [
    rules("danish", "da", Algorithm::Danish, &[]),
    rules("dutch", "nl", Algorithm::Dutch, &[]),
    rules("english", "en", Algorithm::English, ENGLISH),
    rules("finnish", "fi", Algorithm::Finnish, &[]),
    rules("french", "fr", Algorithm::French, FRENCH),
    rules("german", "de", Algorithm::German, GERMAN),
    rules("hungarian", "hu", Algorithm::Hungarian, &[]),
    rules("italian", "it", Algorithm::Italian, &[]),
    rules("norwegian", "nb", Algorithm::Norwegian, &[]),
    rules("portuguese", "pt", Algorithm::Portuguese, &[]),
    rules("romanian", "ro", Algorithm::Romanian, &[]),
    rules("russian", "ru", Algorithm::Russian, &[]),
    rules("spanish", "es", Algorithm::Spanish, SPANISH),
    rules("swedish", "sv", Algorithm::Swedish, &[]),
    rules("turkish", "tr", Algorithm::Turkish, &[]),
];

impl Language {
    /// No language: words are taken as they are.
    pub const NONE: Language = Language(None);

    /// Finds a language by its name or its code, in any case; `none` is [`Language::NONE`].
    pub fn named(name: &str) -> Option<Language> {
        let is_named = |rules: &&Rules| rules.name.eq_ignore_ascii_case(name) || rules.code.eq_ignore_ascii_case(name);
        match name.eq_ignore_ascii_case("none") {
            true => Some(Language::NONE),
            false => LANGUAGES.iter().find(is_named).map(|rules| Language(Some(rules))),
        }
    }

    /// Its stemmer; `None` if words are not stemmed.
    pub(super) fn stemmer(self) -> Option<Stemmer> {
        self.0.map(|rules| Stemmer::create(rules.algorithm))
    }

    /// Whether a word in lower case is left out.
    pub(super) fn is_stop_word(self, word: &str) -> bool {
        self.0.is_some_and(|rules| rules.stop_words.contains(&word))
    }
}

const ENGLISH: &[&str] = &[
    "a",
    "about",
    "above",
    "after",
    "again",
    "against",
    "all",
    "am",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "because",
    "been",
    "before",
    "being",
    "below",
    "between",
    "both",
    "but",
    "by",
    "cannot",
    "could",
    "did",
    "do",
    "does",
    "doing",
    "down",
    "during",
    "each",
    "few",
    "for",
    "from",
    "further",
    "had",
    "has",
    "have",
    "having",
    "he",
    "her",
    "here",
    "hers",
    "herself",
    "him",
    "himself",
    "his",
    "how",
    "i",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "itself",
    "me",
    "more",
    "most",
    "my",
    "myself",
    "no",
    "nor",
    "not",
    "of",
    "off",
    "on",
    "once",
    "only",
    "or",
    "other",
    "ought",
    "our",
    "ours",
    "ourselves",
    "out",
    "over",
    "own",
    "same",
    "she",
    "should",
    "so",
    "some",
    "such",
    "than",
    "that",
    "the",
    "their",
    "theirs",
    "them",
    "themselves",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "through",
    "to",
    "too",
    "under",
    "until",
    "up",
    "very",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "which",
    "while",
    "who",
    "whom",
    "why",
    "will",
    "with",
    "would",
    "you",
    "your",
    "yours",
    "yourself",
    "yourselves",
];

const GERMAN: &[&str] = &[
    "aber", "alle", "als", "also", "am", "an", "auch", "auf", "aus", "bei", "bin", "bis", "bist", "da", "damit",
    "dann", "das", "dass", "dein", "dem", "den", "der", "des", "dich", "die", "dies", "diese", "dieser", "dir", "du",
    "durch", "ein", "eine", "einem", "einen", "einer", "eines", "er", "es", "euch", "euer", "für", "gegen", "hat",
    "hatte", "ich", "ihm", "ihn", "ihr", "ihre", "im", "in", "ist", "jede", "jeder", "kein", "keine", "können", "man",
    "mein", "mich", "mir", "mit", "nach", "nicht", "noch", "nun", "nur", "ob", "oder", "ohne", "sehr", "sein", "sich",
    "sie", "sind", "so", "über", "um", "und", "uns", "unter", "viel", "vom", "von", "vor", "war", "was", "weil",
    "wenn", "werden", "wie", "wir", "wird", "wo", "zu", "zum", "zur", "zwischen",
];

const FRENCH: &[&str] = &[
    "à", "au", "aux", "avec", "ce", "ces", "dans", "de", "des", "du", "elle", "en", "et", "eux", "il", "je", "la",
    "le", "les", "leur", "lui", "ma", "mais", "me", "mes", "moi", "mon", "ne", "nos", "notre", "nous", "on", "ou",
    "par", "pas", "pour", "qu", "que", "qui", "sa", "se", "ses", "son", "sont", "sur", "ta", "te", "tes", "toi", "ton",
    "tu", "un", "une", "vos", "votre", "vous", "est",
];

const SPANISH: &[&str] = &[
    "a", "al", "algo", "ante", "antes", "como", "con", "contra", "cuando", "de", "del", "desde", "donde", "durante",
    "e", "el", "ella", "ellas", "ellos", "en", "entre", "era", "es", "esa", "ese", "eso", "esta", "este", "esto", "ha",
    "hay", "la", "las", "le", "les", "lo", "los", "más", "me", "mi", "mis", "mucho", "muy", "nada", "ni", "no", "nos",
    "o", "os", "otra", "otro", "para", "pero", "poco", "por", "porque", "que", "qué", "quien", "se", "ser", "si", "sí",
    "sin", "sobre", "son", "su", "sus", "también", "te", "ti", "tu", "tus", "un", "una", "uno", "unos", "y", "ya",
    "yo",
];
