use bson::rawdoc;

use super::words::{Sensitivity, Words};
use super::*;
use crate::bson::{RawBsonRef, RawDocumentBuf};
use crate::error::Code;

fn source(weights: &[(&str, i32)], language: &str) -> TextSource {
    TextSource {
        weights: weights
            .iter()
            .map(|(name, weight)| ((*name).to_owned(), *weight))
            .collect(),
        default_language: Language::named(language).expect("a language"),
        language_override: "language".to_owned(),
    }
}

fn score(query: &RawDocumentBuf, document: &RawDocumentBuf) -> Option<f64> {
    let query = TextQuery::parse(RawBsonRef::Document(query)).expect("a query");
    query.score(&source(&[("a", 1), ("b", 10)], "english"), document)
}

/// MongoDB's rule: weight · (1 + 1/2 + …) · (count / words / 2 + 1/2), and 1.1 times that for a text that is the word.
#[test]
fn scores() {
    for (text, search, expected) in [
        // The stem is "coffe", which is not the text.
        ("coffee", "coffee", 1.0),
        ("cat", "cats", 1.1),
        ("coffee shop", "coffee", 0.75),
        ("Coffee and cake", "coffee", 0.75),
        ("coffee shop", "coffee shop", 1.5),
        ("java coffee java", "java", 1.5 * (0.5 * 2.0 / 3.0 + 0.5)),
        ("shops", "shopping", 1.0),
    ] {
        let found = score(&rawdoc! { "$search": search }, &rawdoc! { "a": text });
        let found = found.expect(text);
        assert!((found - expected).abs() < 1e-12, "{text} {search}: {found}");
    }
    let weighted = score(&rawdoc! { "$search": "coffee" }, &rawdoc! { "b": "coffee" });
    assert_eq!(weighted, Some(10.0));
    let both = score(
        &rawdoc! { "$search": "coffee" },
        &rawdoc! { "b": "coffee", "a": "coffee shop", "c": "coffee" },
    );
    assert_eq!(both, Some(10.75));
}

#[test]
fn which_documents_match() {
    let text = "The quick brown-fox jumps over Café Crème";
    for (search, expected) in [
        ("fox", true),
        ("foxes", true),
        ("FOX", true),
        ("cat", false),
        ("cat fox", true),
        ("the", false),
        ("", false),
        ("cafe", true),
        ("fox -quick", false),
        ("fox -cat", true),
        ("-cat", false),
        ("brown-fox", true),
        ("\"quick brown\"", true),
        ("\"brown quick\"", false),
        ("\"quick brown\" \"over cafe\"", true),
        ("\"quick brown\" \"cat\"", false),
        ("fox -\"quick brown\"", false),
        ("fox -\"brown quick\"", true),
        ("fox \"unclosed", true),
    ] {
        let found = score(&rawdoc! { "$search": search }, &rawdoc! { "a": text });
        assert_eq!(found.is_some(), expected, "{search}");
    }
}

#[test]
fn sensitivity_and_language() {
    let document = rawdoc! { "a": "Café Crème" };
    for (query, expected) in [
        (rawdoc! { "$search": "cafe", "$diacriticSensitive": true }, false),
        (rawdoc! { "$search": "café", "$diacriticSensitive": true }, true),
        (rawdoc! { "$search": "Café", "$caseSensitive": true }, true),
        (rawdoc! { "$search": "café", "$caseSensitive": true }, false),
        (rawdoc! { "$search": "cafe", "$language": "none" }, true),
    ] {
        assert_eq!(score(&query, &document).is_some(), expected, "{query:?}");
    }
    let german = rawdoc! { "a": "Häuser", "language": "german" };
    assert!(score(&rawdoc! { "$search": "Haus", "$language": "de" }, &german).is_some());
}

#[test]
fn words_are_taken_from_arrays_and_nested_fields() {
    let wildcard = source(&[("$**", 1)], "none");
    let named = source(&[("a.b", 1)], "none");
    let query = TextQuery::parse(RawBsonRef::Document(&rawdoc! { "$search": "x" })).expect("a query");
    for (document, of_named) in [
        (rawdoc! { "a": { "b": "x" } }, true),
        (rawdoc! { "a": [{ "b": ["y", "x"] }] }, true),
        (rawdoc! { "a": "x" }, false),
        (rawdoc! { "c": { "d": "x" } }, false),
    ] {
        assert!(query.score(&wildcard, &document).is_some(), "{document:?}");
        assert_eq!(query.score(&named, &document).is_some(), of_named, "{document:?}");
    }
}

#[test]
fn words() {
    let words = |language: &str, text: &str| -> Vec<String> {
        let language = Language::named(language).expect("a language");
        Words::new(language, Sensitivity::default()).of(text).collect()
    };
    assert_eq!(words("english", "Running dogs, don't!"), ["run", "dog", "don't"]);
    assert_eq!(words("none", "The Running_1 ÉTÉ"), ["the", "running_1", "ete"]);
    assert!(Language::named("klingon").is_none());
}

#[test]
fn operands() {
    for (operand, code) in [
        (rawdoc! {}, 4),
        (rawdoc! { "$search": 1 }, 14),
        (rawdoc! { "$search": "a", "$language": 1 }, 14),
        (rawdoc! { "$search": "a", "$language": "klingon" }, 2),
        (rawdoc! { "$search": "a", "$caseSensitive": 1 }, 14),
        (rawdoc! { "$search": "a", "x": 1 }, 2),
    ] {
        let error = TextQuery::parse(RawBsonRef::Document(&operand)).expect_err("refused");
        assert_eq!(error.code, Code(code), "{operand:?}");
    }
}
