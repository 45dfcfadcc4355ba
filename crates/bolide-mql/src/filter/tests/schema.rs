use bson::{RawDocumentBuf, rawdoc};

use super::check;
use crate::filter::Filter;

fn validates(schema: RawDocumentBuf, document: RawDocumentBuf, expected: bool) {
    check(vec![(rawdoc! {"$jsonSchema": schema}, document, expected)]);
}

#[test]
fn keywords_judge_values_of_their_type() {
    let a = |keywords: RawDocumentBuf| rawdoc! {"properties": {"a": keywords}};
    let cases = [
        (rawdoc! {}, rawdoc! {"a": 1}, true),
        (rawdoc! {"required": ["a", "b"]}, rawdoc! {"b": 1, "a": null}, true),
        (rawdoc! {"required": ["a", "b"]}, rawdoc! {"a": 1}, false),
        (rawdoc! {"bsonType": "object"}, rawdoc! {}, true),
        (rawdoc! {"type": "array"}, rawdoc! {}, false),
        (a(rawdoc! {"bsonType": "int"}), rawdoc! {"a": 1}, true),
        (a(rawdoc! {"bsonType": "int"}), rawdoc! {"a": 1.0}, false),
        (a(rawdoc! {"bsonType": "int"}), rawdoc! {}, true),
        (a(rawdoc! {"bsonType": ["int", "string"]}), rawdoc! {"a": "x"}, true),
        (a(rawdoc! {"type": "number"}), rawdoc! {"a": 1_i64}, true),
        (a(rawdoc! {"type": "boolean"}), rawdoc! {"a": 1}, false),
        // An array is not judged by its elements.
        (a(rawdoc! {"type": "number"}), rawdoc! {"a": [1]}, false),
        (a(rawdoc! {"minimum": 2}), rawdoc! {"a": 2.0}, true),
        (
            a(rawdoc! {"minimum": 2, "exclusiveMinimum": true}),
            rawdoc! {"a": 2},
            false,
        ),
        (a(rawdoc! {"maximum": 2}), rawdoc! {"a": 3}, false),
        (a(rawdoc! {"maximum": 2}), rawdoc! {"a": "3"}, true),
        (a(rawdoc! {"multipleOf": 0.1}), rawdoc! {"a": 0.3}, true),
        (a(rawdoc! {"multipleOf": 2}), rawdoc! {"a": 3}, false),
        (a(rawdoc! {"minLength": 2}), rawdoc! {"a": "öö"}, true),
        (a(rawdoc! {"maxLength": 1}), rawdoc! {"a": "öö"}, false),
        (a(rawdoc! {"pattern": "^x"}), rawdoc! {"a": "yx"}, false),
        (a(rawdoc! {"minItems": 1}), rawdoc! {"a": []}, false),
        (a(rawdoc! {"maxItems": 1}), rawdoc! {"a": [1]}, true),
        (a(rawdoc! {"uniqueItems": true}), rawdoc! {"a": [1, 2, 1.0]}, false),
        (
            a(rawdoc! {"uniqueItems": true}),
            rawdoc! {"a": [{"x": 1, "y": 2}, {"y": 2, "x": 1}]},
            false,
        ),
        (a(rawdoc! {"uniqueItems": true}), rawdoc! {"a": [1, 2]}, true),
        (a(rawdoc! {"items": {"type": "number"}}), rawdoc! {"a": [1, "x"]}, false),
        (
            a(rawdoc! {"items": [{"type": "number"}], "additionalItems": false}),
            rawdoc! {"a": [1]},
            true,
        ),
        (
            a(rawdoc! {"items": [{"type": "number"}], "additionalItems": false}),
            rawdoc! {"a": [1, 2]},
            false,
        ),
        (
            a(rawdoc! {"items": [{"type": "number"}], "additionalItems": {"type": "string"}}),
            rawdoc! {"a": [1, "x"]},
            true,
        ),
        (
            a(rawdoc! {"enum": [1, "x", {"p": 1, "q": 2}]}),
            rawdoc! {"a": {"q": 2, "p": 1}},
            true,
        ),
        (a(rawdoc! {"enum": [1, "x"]}), rawdoc! {"a": 2}, false),
        (rawdoc! {"minProperties": 2}, rawdoc! {"a": 1}, false),
        (rawdoc! {"maxProperties": 1}, rawdoc! {"a": 1}, true),
        (
            rawdoc! {"properties": {"a": {}}, "additionalProperties": false},
            rawdoc! {"a": 1, "b": 1},
            false,
        ),
        (
            rawdoc! {"properties": {"a": {}}, "additionalProperties": {"type": "string"}},
            rawdoc! {"a": 1, "b": "x"},
            true,
        ),
        (
            rawdoc! {"patternProperties": {"^n": {"type": "number"}}, "additionalProperties": false},
            rawdoc! {"n1": 1},
            true,
        ),
        (
            rawdoc! {"patternProperties": {"^n": {"type": "number"}}},
            rawdoc! {"n1": "x"},
            false,
        ),
        (rawdoc! {"dependencies": {"a": ["b"]}}, rawdoc! {"a": 1}, false),
        (
            rawdoc! {"dependencies": {"a": {"required": ["b"]}}},
            rawdoc! {"a": 1, "b": 1},
            true,
        ),
        (
            rawdoc! {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            rawdoc! {"b": 1},
            true,
        ),
        (
            rawdoc! {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            rawdoc! {"a": 1, "b": 1},
            false,
        ),
        (
            rawdoc! {"allOf": [{"required": ["a"]}, {"required": ["b"]}]},
            rawdoc! {"b": 1},
            false,
        ),
        (rawdoc! {"not": {"required": ["a"]}}, rawdoc! {"b": 1}, true),
        (rawdoc! {"title": "t", "description": "d"}, rawdoc! {}, true),
        (
            rawdoc! {"properties": {"a": {"bsonType": "object", "properties": {"b": {"bsonType": "int"}}}}},
            rawdoc! {"a": {"b": "x"}},
            false,
        ),
    ];
    for (schema, document, expected) in cases {
        validates(schema, document, expected);
    }
}

#[test]
fn bad_schemas_are_refused() {
    let cases = [
        (rawdoc! {"x": 1}, 9, "Unknown $jsonSchema keyword: x"),
        (
            rawdoc! {"$ref": "x"},
            9,
            "$jsonSchema keyword '$ref' is not currently supported",
        ),
        (
            rawdoc! {"type": "integer"},
            9,
            "$jsonSchema type 'integer' is not currently supported.",
        ),
        (rawdoc! {"bsonType": "x"}, 2, "Unknown type name alias: x"),
        (
            rawdoc! {"type": 1},
            14,
            "$jsonSchema keyword 'type' must be either a string or an array of strings",
        ),
        (
            rawdoc! {"required": []},
            9,
            "$jsonSchema keyword 'required' cannot be an empty array",
        ),
        (
            rawdoc! {"required": ["a", "a"]},
            9,
            "$jsonSchema keyword 'required' array cannot contain duplicate values",
        ),
        (
            rawdoc! {"required": "a"},
            14,
            "$jsonSchema keyword 'required' must be an array",
        ),
        (
            rawdoc! {"properties": 1},
            14,
            "$jsonSchema keyword 'properties' must be an object",
        ),
        (
            rawdoc! {"properties": {"a": 1}},
            14,
            "Nested schema for $jsonSchema property 'a' must be an object",
        ),
        (
            rawdoc! {"minimum": "1"},
            14,
            "$jsonSchema keyword 'minimum' must be a number",
        ),
        (
            rawdoc! {"exclusiveMaximum": true},
            9,
            "$jsonSchema keyword 'maximum' must be a present if exclusiveMaximum is present",
        ),
        (
            rawdoc! {"multipleOf": 0},
            9,
            "$jsonSchema keyword 'multipleOf' must have a positive value",
        ),
        (
            rawdoc! {"maxLength": -1},
            9,
            "Expected a non-negative number in: maxLength: -1",
        ),
        (
            rawdoc! {"anyOf": []},
            9,
            "$jsonSchema keyword 'anyOf' cannot be an empty array",
        ),
        (rawdoc! {"title": 1}, 14, "$jsonSchema keyword 'title' must be a string"),
        (
            rawdoc! {"enum": [1, 1.0]},
            9,
            "$jsonSchema keyword 'enum' array cannot contain duplicate values.",
        ),
    ];
    for (schema, code, message) in cases {
        let error = Filter::parse(&rawdoc! {"$jsonSchema": schema}).unwrap_err();
        assert_eq!((error.code.0, error.message.as_str()), (code, message));
    }
    assert_eq!(Filter::parse(&rawdoc! {"$jsonSchema": 1}).unwrap_err().code.0, 14);
    let deep = (0..150).fold(rawdoc! {}, |inner, _| rawdoc! {"not": inner});
    assert!(Filter::parse(&rawdoc! {"$jsonSchema": deep}).is_err());
}
