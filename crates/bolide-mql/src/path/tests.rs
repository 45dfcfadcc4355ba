use bson::{RawDocumentBuf, rawdoc};

use super::{LastArray, Path, index_of, values};
use crate::value::text::render;

/// Returns the values as texts; `missing` for a missing one.
fn texts(document: &RawDocumentBuf, path: &str) -> Vec<String> {
    let found = values(document, &Path::parse(path).unwrap());
    found
        .into_iter()
        .map(|value| value.map_or("missing".to_owned(), render))
        .collect()
}

#[test]
fn paths_lead_to_the_values_that_mongodb_sees() {
    let cases = [
        (rawdoc! {"a": 1}, "a", vec!["1"]),
        (rawdoc! {"a": 1}, "b", vec!["missing"]),
        (rawdoc! {"a": 1}, "a.b", vec!["missing"]),
        (rawdoc! {"a": {"b": 1}}, "a.b", vec!["1"]),
        (rawdoc! {"": {"": 1}}, ".", vec!["1"]),
        (rawdoc! {"a": [1, 2]}, "a", vec!["1", "2", "[ 1, 2 ]"]),
        (rawdoc! {"a": []}, "a", vec!["[]"]),
        (rawdoc! {"a": [[1], 2]}, "a", vec!["[ 1 ]", "2", "[ [ 1 ], 2 ]"]),
        // Elements that are no documents have no fields, not even missing ones.
        (
            rawdoc! {"a": [{"b": 1}, {"c": 1}, 5, [{"b": 2}]]},
            "a.b",
            vec!["1", "missing"],
        ),
        (rawdoc! {"a": []}, "a.b", vec![]),
        (rawdoc! {"a": [{"b": [1, 2]}]}, "a.b", vec!["1", "2", "[ 1, 2 ]"]),
        // A number is an index, and a name in documents.
        (rawdoc! {"a": [5, 7, 3]}, "a.1", vec!["7"]),
        (rawdoc! {"a": [5, 7]}, "a.2", vec![]),
        (rawdoc! {"a": [5, 7]}, "a.01", vec![]),
        (rawdoc! {"a": [5, [2, 4]]}, "a.1", vec!["[ 2, 4 ]"]),
        (rawdoc! {"a": [5, {"1": 4}, 3]}, "a.1", vec!["4", "{ 1: 4 }"]),
        (rawdoc! {"a": {"1": 4}}, "a.1", vec!["4"]),
        (rawdoc! {"a": [5, {"b": 4}]}, "a.1.b", vec!["missing", "4"]),
        (rawdoc! {"a": [[5, {"b": 4}]]}, "a.0.b", vec!["4"]),
        (rawdoc! {"a": [[5, [6, 7]]]}, "a.0.1", vec!["[ 6, 7 ]"]),
        (rawdoc! {"a": [[5, [6, 7]]]}, "a.0.1.0", vec!["6"]),
        (rawdoc! {"a": [{"b": [9, 8]}]}, "a.b.1", vec!["8"]),
        (rawdoc! {"a": [{"b": [9, 8]}]}, "a.0.b.1", vec!["missing", "8"]),
    ];
    for (document, path, expected) in cases {
        assert_eq!(texts(&document, path), expected, "{path}");
    }
}

#[test]
fn the_index_is_that_of_the_outermost_array_entered_without_a_number() {
    let cases = [
        (rawdoc! {"a": [1, 2]}, "a", vec![Some(0), Some(1), None]),
        (
            rawdoc! {"a": [{"b": 1}, {"b": [1, 2]}]},
            "a.b",
            vec![Some(0), Some(1), Some(1), Some(1)],
        ),
        (
            rawdoc! {"a": [{"b": [1, 2]}]},
            "a.0.b",
            vec![Some(0), Some(0), Some(1), None],
        ),
        (rawdoc! {"a": [5, 6]}, "a.1", vec![None]),
    ];
    for (document, path, expected) in cases {
        let mut found = Vec::new();
        let visit = |place: super::Place<'_>| {
            found.push(place.array_index);
            Ok(false)
        };
        Path::parse(path)
            .unwrap()
            .any(&document, LastArray::Opened, visit)
            .unwrap();
        assert_eq!(found, expected, "{path}");
    }
}

#[test]
fn a_value_can_stand_for_the_first_part() {
    let document = rawdoc! {"x": [{"b": 1}, {"b": 2}]};
    let value = document.get("x").unwrap().unwrap();
    let mut found = Vec::new();
    let visit = |place: super::Place<'_>| {
        found.push(place.value.map(render));
        Ok(false)
    };
    Path::parse("any.b")
        .unwrap()
        .any_of_value(value, LastArray::Opened, visit)
        .unwrap();
    assert_eq!(found, [Some("1".to_owned()), Some("2".to_owned())]);
}

#[test]
fn indexes_are_written_without_zeros_in_front() {
    let cases = [
        ("0", Some(0)),
        ("10", Some(10)),
        ("00", None),
        ("01", None),
        ("", None),
        ("1a", None),
        ("-1", None),
        ("99999999999999999999", None),
    ];
    for (text, expected) in cases {
        assert_eq!(index_of(text), expected, "{text}");
    }
}

#[test]
fn paths_are_bounded() {
    assert!(Path::parse(&vec!["a"; 200].join(".")).is_ok());
    assert_eq!(Path::parse(&vec!["a"; 201].join(".")).unwrap_err().code.0, 15);
}

#[test]
fn a_path_of_numbers_does_not_multiply_without_bound() {
    let nested = (0..45).fold(rawdoc! {"0": 1}, |inner, _| rawdoc! {"0": [inner]});
    let path = Path::parse(&vec!["0"; 60].join(".")).unwrap();
    let found = path.any(&nested, LastArray::Opened, |_| Ok(false));
    assert_eq!(found.unwrap_err().code.0, 2);
}
