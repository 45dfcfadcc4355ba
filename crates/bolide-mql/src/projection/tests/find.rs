use super::{find, rendered};

#[test]
fn inclusion_exclusion_and_id() {
    let input = r#"{"_id": 1, "b": 2, "a": 3, "c": {"d": 4, "e": 5}, "f": [{"d": 6, "e": 7}, 8, [{"d": 9, "e": 0}]]}"#;
    let cases = [
        (r#"{}"#, input),
        (r#"{"a": 1}"#, r#"{"_id": 1, "a": 3}"#),
        (r#"{"a": 1, "b": true}"#, r#"{"_id": 1, "b": 2, "a": 3}"#),
        (r#"{"a": 1, "_id": 0}"#, r#"{"a": 3}"#),
        (r#"{"_id": 1}"#, r#"{"_id": 1}"#),
        (r#"{"c": 0, "f": 0}"#, r#"{"_id": 1, "b": 2, "a": 3}"#),
        (r#"{"_id": 0, "c": 0, "f": 0}"#, r#"{"b": 2, "a": 3}"#),
        (r#"{"_id": 1, "c": 0, "f": 0}"#, r#"{"_id": 1, "b": 2, "a": 3}"#),
        (r#"{"_id": 0, "b": 0, "a": 0, "f": 0, "c.e": 0}"#, r#"{"c": {"d": 4}}"#),
        (r#"{"c.d": 1}"#, r#"{"_id": 1, "c": {"d": 4}}"#),
        (r#"{"c": {"d": 1}}"#, r#"{"_id": 1, "c": {"d": 4}}"#),
        // Scalars in arrays are dropped by an inclusion and kept by an exclusion.
        (r#"{"f.d": 1}"#, r#"{"_id": 1, "f": [{"d": 6}, [{"d": 9}]]}"#),
        (
            r#"{"f.d": 0, "_id": 0, "a": 0, "b": 0, "c": 0}"#,
            r#"{"f": [{"e": 7}, 8, [{"e": 0}]]}"#,
        ),
        (r#"{"a.x": 1}"#, r#"{"_id": 1}"#),
        (r#"{"missing": 1}"#, r#"{"_id": 1}"#),
        (
            r#"{"a": {"$numberDecimal": "0"}, "b": 0.0, "c": 0, "f": 0}"#,
            r#"{"_id": 1}"#,
        ),
    ];
    for (projection, expected) in cases {
        assert_eq!(
            find(projection, "{}", input).unwrap(),
            rendered(expected),
            "{projection}"
        );
    }
}

#[test]
fn computed_fields_come_last() {
    let input = r#"{"_id": 1, "a": 2, "b": 3}"#;
    let cases = [
        (r#"{"a": "$b", "b": 1}"#, r#"{"_id": 1, "b": 3, "a": 3}"#),
        (r#"{"x": {"$add": ["$a", "$b"]}}"#, r#"{"_id": 1, "x": 5}"#),
        (r#"{"_id": 0, "x": "text"}"#, r#"{"x": "text"}"#),
        (r#"{"x": "$missing", "a": 1}"#, r#"{"_id": 1, "a": 2}"#),
        (r#"{"x.y": "$a", "x.z": "$b"}"#, r#"{"_id": 1, "x": {"y": 2, "z": 3}}"#),
        (r#"{"x": ["$a", 5]}"#, r#"{"_id": 1, "x": [2, 5]}"#),
    ];
    for (projection, expected) in cases {
        assert_eq!(
            find(projection, "{}", input).unwrap(),
            rendered(expected),
            "{projection}"
        );
    }
}

#[test]
fn slices_of_arrays() {
    let input = r#"{"_id": 1, "a": [1, 2, 3, 4, 5], "b": 2, "c": {"d": [1, 2]}, "e": [{"d": [1, 2]}, {"d": [3, 4]}]}"#;
    let cases = [
        (r#"{"a": {"$slice": 2}, "b": 1}"#, r#"{"_id": 1, "a": [1, 2], "b": 2}"#),
        (r#"{"a": {"$slice": -2}, "b": 1}"#, r#"{"_id": 1, "a": [4, 5], "b": 2}"#),
        (
            r#"{"a": {"$slice": [1, 2]}, "b": 1}"#,
            r#"{"_id": 1, "a": [2, 3], "b": 2}"#,
        ),
        (
            r#"{"a": {"$slice": [-3, 2]}, "b": 1}"#,
            r#"{"_id": 1, "a": [3, 4], "b": 2}"#,
        ),
        (
            r#"{"a": {"$slice": [-9, 2]}, "b": 1}"#,
            r#"{"_id": 1, "a": [1, 2], "b": 2}"#,
        ),
        (r#"{"a": {"$slice": 0}, "b": 1}"#, r#"{"_id": 1, "a": [], "b": 2}"#),
        (r#"{"b": {"$slice": 1}, "_id": 1}"#, r#"{"_id": 1, "b": 2}"#),
        // Alone it keeps the other fields.
        (
            r#"{"a": {"$slice": 1}, "c.d": {"$slice": 1}, "e.d": {"$slice": -1}}"#,
            r#"{"_id": 1, "a": [1], "b": 2, "c": {"d": [1]}, "e": [{"d": [2]}, {"d": [4]}]}"#,
        ),
        (r#"{"x": {"$slice": ["$a", 2]}}"#, r#"{"_id": 1, "x": [1, 2]}"#),
    ];
    for (projection, expected) in cases {
        assert_eq!(
            find(projection, "{}", input).unwrap(),
            rendered(expected),
            "{projection}"
        );
    }
}

#[test]
fn the_first_matching_element() {
    let input = r#"{"_id": 1, "z": 0, "a": [{"b": 1, "c": 1}, {"b": 2, "c": 2}, {"b": 2, "c": 3}], "n": [1, 5, 9]}"#;
    let cases = [
        (
            r#"{"a": {"$elemMatch": {"b": 2}}}"#,
            "{}",
            r#"{"_id": 1, "a": [{"b": 2, "c": 2}]}"#,
        ),
        (
            r#"{"a": {"$elemMatch": {"b": 2}}, "z": 1}"#,
            "{}",
            r#"{"_id": 1, "z": 0, "a": [{"b": 2, "c": 2}]}"#,
        ),
        (r#"{"n": {"$elemMatch": {"$gt": 1}}}"#, "{}", r#"{"_id": 1, "n": [5]}"#),
        (r#"{"a": {"$elemMatch": {"b": 7}}}"#, "{}", r#"{"_id": 1}"#),
        (r#"{"z": {"$elemMatch": {"b": 7}}}"#, "{}", r#"{"_id": 1}"#),
        (
            r#"{"a": {"$elemMatch": {"b": 2}}, "z": 0}"#,
            "{}",
            r#"{"_id": 1, "a": [{"b": 2, "c": 2}], "n": [1, 5, 9]}"#,
        ),
        (
            r#"{"a.$": 1}"#,
            r#"{"a.b": 2}"#,
            r#"{"_id": 1, "a": [{"b": 2, "c": 2}]}"#,
        ),
        (
            r#"{"n.$": 1, "z": 1}"#,
            r#"{"n": {"$gte": 5}}"#,
            r#"{"_id": 1, "z": 0, "n": [5]}"#,
        ),
        (r#"{"z.$": 1}"#, r#"{"n": {"$gte": 5}}"#, r#"{"_id": 1, "z": 0}"#),
    ];
    for (projection, filter, expected) in cases {
        assert_eq!(
            find(projection, filter, input).unwrap(),
            rendered(expected),
            "{projection}"
        );
    }
    assert_eq!(find(r#"{"n.$": 1}"#, r#"{"z": 0}"#, input).unwrap_err().code.0, 51246);
}

#[test]
fn bad_projections_have_the_codes_of_mongodb() {
    let cases = [
        (
            r#"{"a": 1, "b": 0}"#,
            31254,
            "Cannot do exclusion on field b in inclusion projection",
        ),
        (
            r#"{"a": 0, "b": 1}"#,
            31253,
            "Cannot do inclusion on field b in exclusion projection",
        ),
        (
            r#"{"a": 1, "a.b": 1}"#,
            31249,
            "Path collision at a.b remaining portion b",
        ),
        (r#"{"a.b": 1, "a": 1}"#, 31250, "Path collision at a"),
        (r#"{"a": {"b": 1}, "a.b": 1}"#, 31250, "Path collision at a.b"),
        (
            r#"{"a": 0, "x": {"$add": [1, 2]}}"#,
            31252,
            "Cannot use expression other than $meta in exclusion projection",
        ),
        (
            r#"{"a": 0, "x": "y"}"#,
            31310,
            r#"Cannot use an expression x: "y" in an exclusion projection"#,
        ),
        (r#"{"a": {}}"#, 51270, ""),
        (r#"{"a": {"$foo": 1}}"#, 31325, "Unknown expression $foo"),
        (r#"{"$a": 1}"#, 16410, ""),
        (r#"{"": 1}"#, 40352, ""),
        (r#"{"a.": 1}"#, 40353, ""),
        (r#"{"a.$": 1, "b.$": 1}"#, 31276, ""),
        (r#"{"a.$": 0}"#, 31395, ""),
        (r#"{"a.$": "x"}"#, 31308, ""),
        (r#"{"a.$": {"b": 1}}"#, 31271, ""),
        (r#"{"a.$.b": 1}"#, 31394, ""),
        (r#"{"a.$": 1, "b": {"$elemMatch": {"c": 1}}}"#, 31255, ""),
        (r#"{"b": {"$elemMatch": {"c": 1}}, "a.$": 1}"#, 31256, ""),
        (
            r#"{"a": {"$elemMatch": 1}}"#,
            31274,
            "elemMatch: Invalid argument, object required, but got int",
        ),
        (r#"{"a.b": {"$elemMatch": {"c": 1}}}"#, 31275, ""),
    ];
    for (projection, code, message) in cases {
        let error = find(projection, "{}", "{}").unwrap_err();
        assert_eq!(error.code.0, code, "{projection}: {}", error.message);
        assert!(error.message.starts_with(message), "{projection}: {}", error.message);
    }
}
