use bson::rawdoc;

use super::super::definition::IndexDefinition;
use super::super::specification::ParseOptions;
use super::*;

fn listed(specification: &RawDocument) -> Result<RawDocumentBuf, (i32, String)> {
    IndexDefinition::parse(specification, &ParseOptions::default())
        .map(|definition| definition.to_document())
        .map_err(|error| (error.code.0, error.message))
}

#[test]
fn the_stored_form_has_words_scores_and_weights() {
    let cases = [
        (
            rawdoc! {"key": {"a": "text"}, "name": "t"},
            rawdoc! {"v": 2, "key": {"_fts": "text", "_ftsx": 1}, "name": "t", "weights": {"a": 1},
            "default_language": "english", "language_override": "language", "textIndexVersion": 3},
        ),
        (
            rawdoc! {"key": {"x": 1, "b": "text", "a": "text", "y": -1}, "name": "t", "weights": {"a": 10, "c.d": 2.7},
            "default_language": "german", "language_override": "lang"},
            rawdoc! {"v": 2, "key": {"x": 1, "_fts": "text", "_ftsx": 1, "y": -1}, "name": "t",
            "weights": {"a": 10, "b": 1, "c.d": 2}, "default_language": "german", "language_override": "lang",
            "textIndexVersion": 3},
        ),
        (
            rawdoc! {"key": {"$**": "text"}, "name": "t", "textIndexVersion": 2, "default_language": "none"},
            rawdoc! {"v": 2, "key": {"_fts": "text", "_ftsx": 1}, "name": "t", "weights": {"$**": 1},
            "default_language": "none", "language_override": "language", "textIndexVersion": 2},
        ),
    ];
    for (specification, expected) in cases {
        assert_eq!(listed(&specification), Ok(expected.clone()));
        assert_eq!(listed(&expected), Ok(expected.clone()), "the stored form is its own");
    }
}

#[test]
fn bad_text_indexes_are_refused() {
    for (specification, problem) in [
        (
            rawdoc! {"key": {"a": "text", "b": 1, "c": "text"}, "name": "t"},
            "'text' fields in index must all be adjacent",
        ),
        (
            rawdoc! {"key": {"a": "text", "b": 2}, "name": "t"},
            "expected value 1 or -1 for non-text key in compound index",
        ),
        (
            rawdoc! {"key": {"_fts": "text"}, "name": "t"},
            "expected _ftsx after _fts",
        ),
        (
            rawdoc! {"key": {"_fts": "text", "_ftsx": 1}, "name": "t"},
            "text index option 'weights' must specify fields or the wildcard",
        ),
        (
            rawdoc! {"key": {"a": "text", "_ftsx": 1}, "name": "t"},
            "text index with reserved fields _fts/_ftsx not allowed",
        ),
        (
            rawdoc! {"key": {"a": "text"}, "name": "t", "weights": {"a": 0}},
            "text index weight must be in the exclusive interval (0,100000) but found: 0",
        ),
        (
            rawdoc! {"key": {"a": "text"}, "name": "t", "weights": {"a": 100_000}},
            "text index weight must be in the exclusive interval (0,100000) but found: 100000",
        ),
        (
            rawdoc! {"key": {"a": "text"}, "name": "t", "weights": {"a": "1"}},
            "weight for text index needs numeric type",
        ),
        (
            rawdoc! {"key": {"a": "text"}, "name": "t", "weights": {"a.$b": 1}},
            "weight cannot have path component with $ prefix",
        ),
        (
            rawdoc! {"key": {"a": "text"}, "name": "t", "default_language": "klingon"},
            "default_language is not valid",
        ),
        (
            rawdoc! {"key": {"a": "text"}, "name": "t", "language_override": ""},
            "language_override is not valid",
        ),
    ] {
        let mut versioned = specification.clone();
        versioned.append(cstr!("v"), 2);
        let text = value::text::render_document(&versioned);
        let expected = (67, format!("Error in specification {text} :: caused by :: {problem}"));
        assert_eq!(listed(&specification), Err(expected));
    }
}
