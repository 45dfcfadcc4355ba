use super::{rendered, stage};

#[test]
fn fields_are_added_in_place_or_at_the_end() {
    let input = r#"{"_id": 1, "a": 2, "b": {"c": 3}, "d": [{"e": 4}, 5]}"#;
    let cases = [
        (
            r#"{"a": "$b.c", "x": 1}"#,
            r#"{"_id": 1, "a": 3, "b": {"c": 3}, "d": [{"e": 4}, 5], "x": 1}"#,
        ),
        (
            r#"{"b.x": "$a"}"#,
            r#"{"_id": 1, "a": 2, "b": {"c": 3, "x": 2}, "d": [{"e": 4}, 5]}"#,
        ),
        (
            r#"{"b": {"x": "$a"}}"#,
            r#"{"_id": 1, "a": 2, "b": {"c": 3, "x": 2}, "d": [{"e": 4}, 5]}"#,
        ),
        (
            r#"{"d.x": 0}"#,
            r#"{"_id": 1, "a": 2, "b": {"c": 3}, "d": [{"e": 4, "x": 0}, {"x": 0}]}"#,
        ),
        (
            r#"{"a.x": 0}"#,
            r#"{"_id": 1, "a": {"x": 0}, "b": {"c": 3}, "d": [{"e": 4}, 5]}"#,
        ),
        (
            r#"{"a": "$$REMOVE", "b": "$missing"}"#,
            r#"{"_id": 1, "d": [{"e": 4}, 5]}"#,
        ),
        (
            r#"{"a": 0, "d": true}"#,
            r#"{"_id": 1, "a": 0, "b": {"c": 3}, "d": true}"#,
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(stage("$addFields", spec, input).unwrap(), rendered(expected), "{spec}");
    }
}

#[test]
fn other_stages() {
    let input = r#"{"_id": 1, "a": 2, "b": {"c": 3, "d": 4}}"#;
    let cases = [
        ("$unset", r#""a""#, r#"{"_id": 1, "b": {"c": 3, "d": 4}}"#),
        ("$unset", r#"["a", "b.c", "_id"]"#, r#"{"b": {"d": 4}}"#),
        ("$replaceRoot", r#"{"newRoot": "$b"}"#, r#"{"c": 3, "d": 4}"#),
        ("$replaceRoot", r#"{"newRoot": {"x": "$a"}}"#, r#"{"x": 2}"#),
        (
            "$replaceWith",
            r#"{"$mergeObjects": ["$$ROOT", "$b"]}"#,
            r#"{"_id": 1, "a": 2, "b": {"c": 3, "d": 4}, "c": 3, "d": 4}"#,
        ),
        (
            "$project",
            r#"{"x": "$b", "a": 1}"#,
            r#"{"_id": 1, "a": 2, "x": {"c": 3, "d": 4}}"#,
        ),
        (
            "$project",
            r#"{"b": {"c": 1, "x": "$a"}}"#,
            r#"{"_id": 1, "b": {"c": 3, "x": 2}}"#,
        ),
        ("$project", r#"{"a": 0}"#, r#"{"_id": 1, "b": {"c": 3, "d": 4}}"#),
        ("$project", r#"{"_id": "$a"}"#, r#"{"_id": 2}"#),
        ("$project", r#"{"a.x": "$b.c"}"#, r#"{"_id": 1, "a": {"x": 3}}"#),
    ];
    for (name, spec, expected) in cases {
        assert_eq!(stage(name, spec, input).unwrap(), rendered(expected), "{name} {spec}");
    }
}

#[test]
fn bad_stages_have_the_codes_of_mongodb() {
    let cases = [
        ("$project", "1", 15969, "$project specification must be an object"),
        (
            "$project",
            "{}",
            51272,
            "Invalid $project :: caused by :: projection specification must have at least one field",
        ),
        ("$project", r#"{"a.$": 1}"#, 31324, "Invalid $project :: caused by :: "),
        ("$project", r#"{"a": {"$elemMatch": {}}}"#, 168, ""),
        (
            "$addFields",
            "1",
            40272,
            "$addFields specification stage must be an object, got int",
        ),
        (
            "$set",
            r#""x""#,
            40272,
            "$set specification stage must be an object, got string",
        ),
        ("$addFields", "{}", 40177, ""),
        (
            "$addFields",
            r#"{"a": {}}"#,
            40180,
            "Invalid $addFields :: caused by :: an empty object is not a valid value.",
        ),
        ("$addFields", r#"{"a": 1, "a.b": 1}"#, 40176, ""),
        ("$addFields", r#"{"a": {"$add": [1], "b": 1}}"#, 40181, ""),
        ("$addFields", r#"{"a": {"b.c": 1}}"#, 40183, ""),
        ("$addFields", r#"{"$a": 1}"#, 16410, ""),
        ("$unset", "1", 31002, ""),
        ("$unset", "[]", 31119, ""),
        ("$unset", "[1]", 31120, ""),
        (
            "$replaceRoot",
            "1",
            40229,
            "expected an object as specification for $replaceRoot stage, got int",
        ),
        (
            "$replaceRoot",
            "{}",
            40414,
            "BSON field '$replaceRoot.newRoot' is missing but a required field",
        ),
        (
            "$replaceRoot",
            r#"{"newRoot": {}, "x": 1}"#,
            40415,
            "BSON field '$replaceRoot.x' is an unknown field.",
        ),
        (
            "$replaceRoot",
            r#"{"newRoot": "$x"}"#,
            40228,
            "'newRoot' expression  must evaluate to an object, but resulting value was: MISSING",
        ),
        (
            "$replaceWith",
            r#"{"$add": [1, 2]}"#,
            40228,
            "'replacement document'  must evaluate to an object, but resulting value was: 3",
        ),
    ];
    for (name, spec, code, message) in cases {
        let error = stage(name, spec, "{}").unwrap_err();
        assert_eq!(error.code.0, code, "{name} {spec}: {}", error.message);
        assert!(error.message.starts_with(message), "{name} {spec}: {}", error.message);
    }
}

#[test]
fn documents_nested_too_deeply_are_refused() {
    // 120 levels.
    let deep = format!("{}1{}", r#"{"x": "#.repeat(120), "}".repeat(120));
    let level = |count: usize| format!("{}\"$$ROOT\"{}", r#"{"y": "#.repeat(count), "}".repeat(count));
    assert!(stage("$replaceWith", &level(80), &deep).is_ok());
    assert_eq!(stage("$replaceWith", &level(81), &deep).unwrap_err().code.0, 15);
    assert!(stage("$project", &level(80), &deep).is_ok());
    assert_eq!(stage("$project", &level(81), &deep).unwrap_err().code.0, 15);
}
