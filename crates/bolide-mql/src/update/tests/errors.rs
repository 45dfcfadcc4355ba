use bson::{RawDocumentBuf, rawdoc};

use super::{apply, parse, updated};

fn check_errors(cases: Vec<(RawDocumentBuf, RawDocumentBuf, i32, &str)>) {
    for (old, update, code, message) in cases {
        let error = apply(&old, &update).unwrap_err();
        assert_eq!((error.code.0, error.message.as_str()), (code, message), "{update:?}");
    }
}

#[test]
fn malformed_updates() {
    let cases = vec![
        (
            rawdoc! {"$foo": {}},
            9,
            "Unknown modifier: $foo. Expected a valid update modifier or pipeline-style update specified as an array",
        ),
        (
            rawdoc! {"$pushAll": {"a": [1]}},
            9,
            "Unknown modifier: $pushAll. Expected a valid update modifier or pipeline-style update specified as an array",
        ),
        (
            rawdoc! {"$set": {"a": 1}, "b": 1},
            9,
            "Unknown modifier: b. Expected a valid update modifier or pipeline-style update specified as an array",
        ),
        (
            rawdoc! {"$set": 5},
            9,
            "Modifiers operate on fields but we found type int instead. For example: {$mod: {<field>: ...}} not {$set: 5}",
        ),
        (
            rawdoc! {"a": 1, "$set": {"b": 1}},
            52,
            "The dollar ($) prefixed field '$set' in '$set' is not allowed in the context of an update's replacement document. \
             Consider using an aggregation pipeline with $replaceWith.",
        ),
        (rawdoc! {"$set": {"": 1}}, 56, "An empty update path is not valid."),
        (
            rawdoc! {"$set": {"a..b": 1}},
            56,
            "The update path 'a..b' contains an empty field name, which is not allowed.",
        ),
        (
            rawdoc! {"$set": {"a.": 1}},
            56,
            "The update path 'a.' contains an empty field name, which is not allowed.",
        ),
        (
            rawdoc! {"$set": {"$": 1}},
            2,
            "Cannot have positional (i.e. '$') element in the first position in path '$'",
        ),
        (
            rawdoc! {"$set": {"$[].a": 1}},
            2,
            "Cannot have array filter identifier (i.e. '$[<id>]') element in the first position in path '$[].a'",
        ),
        (
            rawdoc! {"$set": {"a.$.b.$": 1}},
            2,
            "Too many positional (i.e. '$') elements found in path 'a.$.b.$'",
        ),
        (
            rawdoc! {"$inc": {"a": "x"}},
            14,
            "Cannot increment with non-numeric argument: {a: \"x\"}",
        ),
        (
            rawdoc! {"$mul": {"a": null}},
            14,
            "Cannot multiply with non-numeric argument: {a: null}",
        ),
    ];
    for (update, code, message) in cases {
        let error = parse(&update).unwrap_err();
        assert_eq!((error.code.0, error.message.as_str()), (code, message), "{update:?}");
    }
}

#[test]
fn malformed_arguments_of_array_operators() {
    let cases = vec![
        (
            rawdoc! {"$push": {"a": {"$each": 1}}},
            2,
            "The argument to $each in $push must be an array but it was of type: int",
        ),
        (
            rawdoc! {"$push": {"a": {"$each": [], "$foo": 1}}},
            2,
            "Unrecognized clause in $push: $foo",
        ),
        (
            rawdoc! {"$push": {"a": {"$each": [], "$slice": "x"}}},
            2,
            "The value for $slice must be an integer value but was given type: string",
        ),
        (
            rawdoc! {"$push": {"a": {"$each": [], "$position": 1.5}}},
            2,
            "The value for $position must be an integer value, not of type: double",
        ),
        (
            rawdoc! {"$push": {"a": {"$each": [], "$sort": 2}}},
            2,
            "The $sort element value must be either 1 or -1",
        ),
        (
            rawdoc! {"$push": {"a": {"$each": [], "$sort": "x"}}},
            2,
            "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields",
        ),
        (
            rawdoc! {"$push": {"a": {"$each": [], "$sort": {}}}},
            2,
            "The $sort pattern is empty when it should be a set of fields.",
        ),
        (
            rawdoc! {"$addToSet": {"a": {"$each": 1}}},
            14,
            "The argument to $each in $addToSet must be an array but it was of type int",
        ),
        (
            rawdoc! {"$addToSet": {"a": {"$each": [1], "b": 1}}},
            2,
            "Found unexpected fields after $each in $addToSet: { $each: [ 1 ], b: 1 }",
        ),
        (
            rawdoc! {"$pull": {"a": {"$or": [{"x": 1}, {"$expr": true}]}}},
            224,
            "$expr is not allowed in this context",
        ),
        (
            rawdoc! {"$pull": {"a": {"$where": "true"}}},
            2,
            "$where is not allowed in this context",
        ),
        (
            rawdoc! {"$pullAll": {"a": 1}},
            2,
            "$pullAll requires an array argument but was given a int",
        ),
        (rawdoc! {"$pop": {"a": "x"}}, 9, "Expected a number in: a: \"x\""),
        (rawdoc! {"$pop": {"a": 5}}, 9, "$pop expects 1 or -1, found: 5"),
    ];
    for (update, code, message) in cases {
        let error = parse(&update).unwrap_err();
        assert_eq!((error.code.0, error.message.as_str()), (code, message), "{update:?}");
    }
}

#[test]
fn malformed_arguments_of_bit_and_current_date() {
    let cases = vec![
        (
            rawdoc! {"$bit": {"a": 1}},
            "The $bit modifier is not compatible with a int. You must pass in an embedded document: {$bit: {field: {and/or/xor: #}}",
        ),
        (
            rawdoc! {"$bit": {"a": {}}},
            "You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}",
        ),
        (
            rawdoc! {"$bit": {"a": {"not": 1}}},
            "The $bit modifier only supports 'and', 'or', and 'xor', not 'not' which is an unknown operator: {not: 1}",
        ),
        (
            rawdoc! {"$bit": {"a": {"or": "x"}}},
            "The $bit modifier field must be an Integer(32/64 bit); a 'string' is not supported here: {or: \"x\"}",
        ),
        (
            rawdoc! {"$currentDate": {"a": 1}},
            "int is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({$type: 'timestamp/date'}).",
        ),
        (
            rawdoc! {"$currentDate": {"a": {"$type": "time"}}},
            "The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: 'date'}}}",
        ),
        (
            rawdoc! {"$currentDate": {"a": {"foo": 1}}},
            "Unrecognized $currentDate option: foo",
        ),
    ];
    for (update, message) in cases {
        let error = parse(&update).unwrap_err();
        assert_eq!((error.code.0, error.message.as_str()), (2, message), "{update:?}");
    }
}

#[test]
fn conflicting_paths() {
    let cases = vec![
        (rawdoc! {"$set": {"a": 1}, "$inc": {"a": 1}}, "a", "a"),
        (rawdoc! {"$set": {"a": 1}, "$inc": {"a.b": 1}}, "a.b", "a"),
        (rawdoc! {"$set": {"a.b": 1}, "$unset": {"a": 1}}, "a", "a"),
        (rawdoc! {"$set": {"a.b.c": 1, "a.b": 2}}, "a.b", "a.b"),
        (rawdoc! {"$set": {"a.$[]": 1, "a.$": 2}}, "a.$", "a"),
        (rawdoc! {"$set": {"a.$[]": 1, "a.0": 2}}, "a.0", "a"),
        (rawdoc! {"$set": {"a.b": 1, "a.$[]": 2}}, "a.$[]", "a"),
        (rawdoc! {"$rename": {"a": "b"}, "$set": {"a.c": 1}}, "a.c", "a"),
        (rawdoc! {"$rename": {"a": "b"}, "$set": {"b": 1}}, "b", "b"),
        (rawdoc! {"$setOnInsert": {"a": 1}, "$set": {"a": 1}}, "a", "a"),
    ];
    for (update, path, at) in cases {
        let error = parse(&update).unwrap_err();
        let message = format!("Updating the path '{path}' would create a conflict at '{at}'");
        assert_eq!((error.code.0, error.message), (40, message), "{update:?}");
    }
}

#[test]
fn documents_of_another_shape() {
    let old = rawdoc! {"_id": 1, "a": 1, "l": [{"b": 0.0}], "s": "x", "n": null};
    let cases = vec![
        (
            rawdoc! {"$set": {"a.b": 1}},
            28,
            "Cannot create field 'b' in element {a: 1}",
        ),
        (
            rawdoc! {"$set": {"n.b": 1}},
            28,
            "Cannot create field 'b' in element {n: null}",
        ),
        (
            rawdoc! {"$set": {"l.b": 1}},
            28,
            "Cannot create field 'b' in element {l: [ { b: 0.0 } ]}",
        ),
        (
            rawdoc! {"$set": {"l.0.b.c": 1}},
            28,
            "Cannot create field 'c' in element {b: 0.0}",
        ),
        (
            rawdoc! {"$inc": {"s": 1}},
            14,
            "Cannot apply $inc to a value of non-numeric type. {_id: 1} has the field 's' of non-numeric type string",
        ),
        (
            rawdoc! {"$push": {"a": 1}},
            2,
            "The field 'a' must be an array but is of type int in document {_id: 1}",
        ),
        (
            rawdoc! {"$addToSet": {"a": 1}},
            2,
            "Cannot apply $addToSet to non-array field. Field named 'a' has non-array type int",
        ),
        (
            rawdoc! {"$pull": {"a": 1}},
            2,
            "Cannot apply $pull to a non-array value",
        ),
        (
            rawdoc! {"$pullAll": {"a": [1]}},
            2,
            "Cannot apply $pullAll to a non-array value",
        ),
        (
            rawdoc! {"$pop": {"a": 1}},
            14,
            "Path 'a' contains an element of non-array type 'int'",
        ),
        (
            rawdoc! {"$bit": {"s": {"or": 1}}},
            2,
            "Cannot apply $bit to a value of non-integral type._id: 1 has the field s of non-integer type string",
        ),
        (
            rawdoc! {"$pop": {"a.b.c": 1}},
            28,
            "Cannot use the part (b) of (a.b.c) to traverse the element ({a: 1})",
        ),
        (
            rawdoc! {"$pull": {"l.b": 1}},
            28,
            "Cannot use the part (b) of (l.b) to traverse the element ({l: [ { b: 0.0 } ]})",
        ),
        (
            rawdoc! {"$pullAll": {"n.b": [1]}},
            28,
            "Cannot use the part (b) of (n.b) to traverse the element ({n: null})",
        ),
        (
            rawdoc! {"$set": {"l.1500002": 1}},
            34,
            "can't backfill more than 1500000 elements",
        ),
        (
            rawdoc! {"$set": {"l.99999999999999999999999": 1}},
            34,
            "can't backfill more than 1500000 elements",
        ),
        (
            rawdoc! {"$set": {"a.$[]": 1}},
            2,
            "Cannot apply array updates to non-array element a: 1",
        ),
        (
            rawdoc! {"$set": {"none.$[].b": 1}},
            2,
            "The path 'none' must exist in the document in order to apply array updates.",
        ),
        (
            rawdoc! {"$set": {"l.$": 1}},
            2,
            "The positional operator did not find the match needed from the query.",
        ),
    ];
    check_errors(
        cases
            .into_iter()
            .map(|(update, code, message)| (old.clone(), update, code, message))
            .collect(),
    );
}

#[test]
fn integers_of_64_bits_do_not_overflow() {
    check_errors(vec![
        (
            rawdoc! {"_id": 1, "a": i64::MAX},
            rawdoc! {"$inc": {"a": 1}},
            2,
            "Failed to apply $inc operations to current value ((NumberLong)9223372036854775807) for document {_id: 1}",
        ),
        (
            rawdoc! {"_id": 1, "a": i64::MAX},
            rawdoc! {"$mul": {"a": 2_i64}},
            2,
            "Failed to apply $mul operations to current value ((NumberLong)9223372036854775807) for document {_id: 1}",
        ),
    ]);
}

#[test]
fn renames_that_cannot_be() {
    let old = rawdoc! {"_id": 1, "a": [{"x": 1}], "b": {"c": 1}, "s": 5};
    let cases = vec![
        (
            rawdoc! {"$rename": {"a": 1}},
            2,
            "The 'to' field for $rename must be a string: a: 1",
        ),
        (
            rawdoc! {"$rename": {"a": "a"}},
            2,
            "The source and target field for $rename must differ: a: \"a\"",
        ),
        (
            rawdoc! {"$rename": {"a": "a.b"}},
            2,
            "The source and target field for $rename must not be on the same path: a: \"a.b\"",
        ),
        (
            rawdoc! {"$rename": {"a.$[]": "b"}},
            2,
            "The source field for $rename may not be dynamic: a.$[]",
        ),
        (
            rawdoc! {"$rename": {"a": "b.$"}},
            2,
            "The destination field for $rename may not be dynamic: b.$",
        ),
        (
            rawdoc! {"$rename": {"a.0": "d"}},
            2,
            "The source field cannot be an array element, 'a.0' in doc with _id: 1 has an array field called 'a'",
        ),
        (
            rawdoc! {"$rename": {"s": "a.0"}},
            2,
            "The destination field cannot be an array element, 'a.0' in doc with _id: 1 has an array field called 'a'",
        ),
        (
            rawdoc! {"$rename": {"b.c": "s.x"}},
            28,
            "Cannot create field 'x' in element {s: 5}",
        ),
        (
            rawdoc! {"$rename": {"s.x": "y"}},
            28,
            "cannot use the part (s of s.x) to traverse the element ({s: 5})",
        ),
    ];
    check_errors(
        cases
            .into_iter()
            .map(|(update, code, message)| (old.clone(), update, code, message))
            .collect(),
    );
}

#[test]
fn id_does_not_change() {
    let old = rawdoc! {"_id": {"x": 1}, "a": 1};
    let cases = vec![
        (rawdoc! {"$set": {"_id": 2}}, "_id"),
        (rawdoc! {"$set": {"_id.x": 2}}, "_id.x"),
        (rawdoc! {"$set": {"_id.y": 2}}, "_id.y"),
        (rawdoc! {"$unset": {"_id": 1}}, "_id"),
        (rawdoc! {"$rename": {"_id": "b"}}, "_id"),
        (rawdoc! {"$rename": {"a": "_id"}}, "_id"),
        (rawdoc! {"$inc": {"_id.x": 1.0}}, "_id.x"),
    ];
    for (update, path) in cases {
        let error = apply(&old, &update).unwrap_err();
        let message = format!("Performing an update on the path '{path}' would modify the immutable field '_id'");
        assert_eq!((error.code.0, error.message), (66, message), "{update:?}");
    }
    let same = vec![
        rawdoc! {"$set": {"_id": {"x": 1}}},
        rawdoc! {"$set": {"_id.x": 1}},
        rawdoc! {"$inc": {"_id.x": 0}},
        rawdoc! {"$unset": {"_id.y": 1}},
        rawdoc! {"$setOnInsert": {"_id": 7}},
    ];
    for update in same {
        assert!(!updated(&old, &update).unwrap().changed, "{update:?}");
    }
}

#[test]
fn names_with_dollar_are_refused_on_the_top_level_only() {
    let old = rawdoc! {"_id": 1, "$a": 1, "b": {"$c": 1}};
    for (update, name, path) in [
        (rawdoc! {"$set": {"$z": 1}}, "$z", "$z"),
        (rawdoc! {"$inc": {"$a": 1}}, "$a", "$a"),
        (rawdoc! {"$set": {"$x.y": 1}}, "$x", "$x.y"),
    ] {
        let error = apply(&old, &update).unwrap_err();
        let message = format!(
            "The dollar ($) prefixed field '{name}' in '{path}' is not allowed in the context of an update's replacement \
             document. Consider using an aggregation pipeline with $replaceWith."
        );
        assert_eq!((error.code.0, error.message), (52, message), "{update:?}");
    }
    let allowed = vec![
        (
            rawdoc! {"$set": {"b.$c": 2, "b.$d": {"$e": 1}}},
            rawdoc! {"_id": 1, "$a": 1, "b": {"$c": 2, "$d": {"$e": 1}}},
        ),
        (rawdoc! {"$unset": {"$a": 1}}, rawdoc! {"_id": 1, "b": {"$c": 1}}),
    ];
    super::check(old, allowed);
}

#[test]
fn results_that_are_too_large_or_too_deep() {
    let text = "x".repeat(9 * 1024 * 1024);
    let old = rawdoc! {"_id": 1, "a": text.as_str()};
    let error = apply(&old, &rawdoc! {"$set": {"b": text.as_str()}}).unwrap_err();
    assert_eq!(error.code.0, 10334);
    let slightly = "x".repeat(7 * 1024 * 1024 + 1000);
    let error = apply(&old, &rawdoc! {"$set": {"b": slightly.as_str()}}).unwrap_err();
    assert_eq!(
        (error.code.0, error.message.as_str()),
        (17419, "Resulting document after update is larger than 16777216")
    );
    let many: RawDocumentBuf = (0..12)
        .map(|number| (bson::raw::CString::try_from(format!("a{number}.1500000")).unwrap(), 1))
        .collect();
    let arrays: RawDocumentBuf = (0..12)
        .map(|number| {
            (
                bson::raw::CString::try_from(format!("a{number}")).unwrap(),
                bson::RawArrayBuf::new(),
            )
        })
        .collect();
    let mut update = RawDocumentBuf::new();
    update.append(bson::raw::cstr!("$set"), many);
    assert_eq!(apply(&arrays, &update).unwrap_err().code.0, 10334);

    let path = |levels: usize| {
        let mut fields = RawDocumentBuf::new();
        fields.append(bson::raw::CString::try_from(vec!["x"; levels].join(".")).unwrap(), 1);
        let mut update = RawDocumentBuf::new();
        update.append(bson::raw::cstr!("$set"), fields);
        update
    };
    let old = rawdoc! {"_id": 1};
    assert!(apply(&old, &path(180)).is_ok());
    assert_eq!(apply(&old, &path(181)).unwrap_err().code.0, 15);
    assert_eq!(apply(&old, &path(100_000)).unwrap_err().code.0, 15);
}
