use bson::raw::{RawArrayBuf, RawBson, RawDocumentBuf};
use bson::rawdoc;

use super::super::pattern::split;
use super::*;

/// The tuples of a document, each once, in order of their text.
fn tuples(paths: &[&str], document: &RawDocumentBuf, sparse: bool) -> Result<Vec<String>> {
    let paths: Vec<Path> = paths.iter().map(|path| split(path)).collect();
    let mut found = Vec::new();
    extract(paths.iter(), document, sparse, &mut |values| {
        let texts: Vec<String> = values
            .iter()
            .map(|value| value.map_or("missing".to_owned(), value::text::render))
            .collect();
        found.push(texts.join(", "));
        Ok(())
    })?;
    found.sort();
    found.dedup();
    Ok(found)
}

fn check(cases: Vec<(&[&str], RawDocumentBuf, &[&str])>, sparse: bool) {
    for (paths, document, expected) in cases {
        let found = tuples(paths, &document, sparse).map_err(|error| error.message);
        let expected = expected.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(found, Ok(expected), "{paths:?}");
    }
}

#[test]
fn fields_lead_through_objects_and_one_array() {
    let cases: Vec<(&[&str], RawDocumentBuf, &[&str])> = vec![
        (&["a"], rawdoc! {"a": 4, "b": 5}, &["4"]),
        (&["b", "a"], rawdoc! {"a": 4, "b": 5}, &["5, 4"]),
        (&["a.b"], rawdoc! {"a": {"b": 4}, "c": "c"}, &["4"]),
        (&["a"], rawdoc! {"a": [1, 2, 3]}, &["1", "2", "3"]),
        (&["a", "b"], rawdoc! {"a": [1, 2], "b": 2}, &["1, 2", "2, 2"]),
        (&["b", "a"], rawdoc! {"a": 5, "b": [1, 2]}, &["1, 5", "2, 5"]),
        (&["a"], rawdoc! {"a": [0, 0, 0]}, &["0"]),
        (&["a.b"], rawdoc! {"a": {"b": [1, 2]}}, &["1", "2"]),
        (&["a.b"], rawdoc! {"a": [{"b": 1}, {"b": 2}]}, &["1", "2"]),
        (&["a.b.c"], rawdoc! {"a": {"b": [{"c": 1}, {"c": 2}]}}, &["1", "2"]),
        (
            &["a.b", "d"],
            rawdoc! {"a": [{"b": 1, "c": 4}, {"e": 6, "b": 2}], "d": 5},
            &["1, 5", "2, 5"],
        ),
        (&["a.b"], rawdoc! {"a": [{"b": 1}, {"b": [1, 2, 3]}]}, &["1", "2", "3"]),
        (
            &["a.b"],
            rawdoc! {"a": [{"b": [1, 2]}, {"b": [2, 3]}]},
            &["1", "2", "3"],
        ),
        (&["a", "a.b"], rawdoc! {"a": [{"b": 2}]}, &["{ b: 2 }, 2"]),
        // An array in an array is a value.
        (&["a"], rawdoc! {"a": [[1, 2], 3]}, &["3", "[ 1, 2 ]"]),
        (&["a.b"], rawdoc! {"a": [[{"b": 1}]]}, &["missing"]),
    ];
    check(cases, false);
}

#[test]
fn numbers_are_positions_or_names() {
    let deep = rawdoc! {"a": [[1, [1, 2, [{"b": [[], 2]}]]], 1]};
    let cases: Vec<(&[&str], RawDocumentBuf, &[&str])> = vec![
        (&["a.0"], rawdoc! {"a": [2]}, &["2"]),
        (&["a.0"], rawdoc! {"a": [[2]]}, &["[ 2 ]"]),
        (&["a.0"], rawdoc! {"a": {"0": 2}}, &["2"]),
        (&["a.0.0"], rawdoc! {"a": [[2]], "c": 3}, &["2"]),
        (&["a.b.c.3"], rawdoc! {"a": {"b": {"c": [0, 2, 3, [4]]}}}, &["[ 4 ]"]),
        (&["a.1.b"], rawdoc! {"a": [{"b": 1}, {"b": 2}]}, &["2"]),
        (&["a.0.b"], rawdoc! {"a": [[{"b": 1}, {"b": 2}]]}, &["1", "2"]),
        (&["a.0.0"], rawdoc! {"a": [[]]}, &["missing"]),
        (&["a.0.0"], rawdoc! {"a": []}, &["missing"]),
        (&["a.0"], rawdoc! {"a": [[]]}, &["undefined"]),
        (&["a.0.1.2.b.0"], deep, &["undefined"]),
        // Only numbers as they are written count.
        (&["a.00"], rawdoc! {"a": [2]}, &["missing"]),
        (&["a.+0"], rawdoc! {"a": [2]}, &["missing"]),
        // A position that is not there, and a name that is.
        (&["a.5"], rawdoc! {"a": [{"5": 7}]}, &["7"]),
        (
            &["a", "a.b", "a.0.b", "a.b.0", "a.0.b.0"],
            rawdoc! {"a": [{"b": [1, 2]}, {"b": {"0": 3}}]},
            &[
                "{ b: [ 1, 2 ] }, 1, 1, 1, 1",
                "{ b: [ 1, 2 ] }, 2, 2, 1, 1",
                "{ b: { 0: 3 } }, { 0: 3 }, 1, 3, 1",
                "{ b: { 0: 3 } }, { 0: 3 }, 2, 3, 1",
            ],
        ),
    ];
    check(cases, false);
}

#[test]
fn missing_fields_and_empty_arrays_have_entries() {
    let nested = rawdoc! {"a": [1, {"b": [2, {"c": [3, {"d": 1}], "e": 4}, 5, {"f": 6}], "g": 7}]};
    let cases: Vec<(&[&str], RawDocumentBuf, &[&str])> = vec![
        (&["a.b"], rawdoc! {"a": [{"c": 2}, {"c": 2}]}, &["missing"]),
        (&["a"], rawdoc! {"b": 1}, &["missing"]),
        (&["a.b"], rawdoc! {"a": [1, 2]}, &["missing"]),
        (&["a.b"], rawdoc! {"a": 5}, &["missing"]),
        (&["x", "y"], rawdoc! {"a": "a"}, &["missing, missing"]),
        (&["a"], rawdoc! {"a": []}, &["undefined"]),
        (&["a.b"], rawdoc! {"a": []}, &["missing"]),
        (&["a"], rawdoc! {"a": RawBson::Null}, &["null"]),
        (&["a"], rawdoc! {"a": RawBson::Undefined}, &["undefined"]),
        (&["a", "b"], rawdoc! {"a": 2, "b": []}, &["2, undefined"]),
        (
            &["a.b.c.d", "a.g", "a.b.f", "a.b.c", "a.b.e"],
            nested,
            &[
                "1, 7, missing, { d: 1 }, 4",
                "missing, 7, 6, missing, missing",
                "missing, 7, missing, 3, 4",
                "missing, 7, missing, missing, missing",
                "missing, missing, missing, missing, missing",
            ],
        ),
    ];
    check(cases, false);
}

#[test]
fn sparse_leaves_out_tuples_without_any_field() {
    let cases: Vec<(&[&str], RawDocumentBuf, &[&str])> = vec![
        (&["a"], rawdoc! {"b": 1}, &[]),
        (&["a"], rawdoc! {"a": RawBson::Null}, &["null"]),
        (&["a", "b"], rawdoc! {"b": 1}, &["missing, 1"]),
        (&["a", "b"], rawdoc! {"c": 1}, &[]),
        (&["a.b"], rawdoc! {"a": [{"c": 1}, {"b": 1}]}, &["1"]),
        (&["a"], rawdoc! {"a": []}, &["undefined"]),
    ];
    check(cases, true);
}

#[test]
fn two_arrays_and_ambiguous_numbers_are_refused() {
    let ambiguous = "Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), \
                     field: '0' for array: ";
    let parallel = |second: &str, first: &str| format!("cannot index parallel arrays [{second}] [{first}]");
    let cases: Vec<(&[&str], RawDocumentBuf, i32, String)> = vec![
        (&["a", "b"], rawdoc! {"a": [1, 2], "b": [1, 2]}, 171, parallel("b", "a")),
        (
            &["a.x", "a.y"],
            rawdoc! {"a": [{"x": [1], "y": [2]}]},
            171,
            parallel("y", "x"),
        ),
        // A position leads through its array as well.
        (&["a.0", "b"], rawdoc! {"a": [1], "b": [1, 2]}, 171, parallel("b", "a")),
        (
            &["a.0"],
            rawdoc! {"a": [{"0": 2}]},
            16746,
            format!("{ambiguous}[ {{ 0: 2 }} ]"),
        ),
        (
            &["a.0"],
            rawdoc! {"a": [2, {"0": 3}]},
            16746,
            format!("{ambiguous}[ 2, {{ 0: 3 }} ]"),
        ),
    ];
    for (paths, document, code, text) in cases {
        let error = tuples(paths, &document, false)
            .err()
            .map(|error| (error.code.0, error.message));
        assert_eq!(error, Some((code, text)), "{paths:?}");
    }
}

#[test]
fn positions_in_nested_arrays_do_not_multiply() {
    // Opening each of the 60 levels element by element would make 2^60 entries.
    let mut document = rawdoc! {"a": 1};
    for _ in 0..60 {
        let mut items = RawArrayBuf::new();
        items.push(document);
        items.push(1);
        document = rawdoc! {"a": items};
    }
    let path = "a.0.".repeat(60) + "a";
    assert_eq!(tuples(&[&path], &document, false).ok(), Some(vec!["1".to_owned()]));
}
