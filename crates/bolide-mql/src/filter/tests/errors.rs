use bson::{RawBson, RawDocumentBuf, rawdoc};

use super::regex;
use crate::filter::{DEPTH_LIMIT, Filter};

#[test]
fn bad_filters_are_refused_as_mongodb_does() {
    let unknown = "unknown top level operator: $foo. If you have a field name that starts with a '$' symbol, consider using $getField or $setField.";
    let cases = [
        (rawdoc! {"$foo": 1}, 2, unknown),
        (rawdoc! {"a": {"$foo": 1}}, 2, "unknown operator: $foo"),
        (rawdoc! {"a": {"$gt": 1, "b": 2}}, 2, "unknown operator: b"),
        (rawdoc! {"$and": 1}, 2, "$and must be an array"),
        (rawdoc! {"$or": []}, 2, "$and/$or/$nor must be a nonempty array"),
        (
            rawdoc! {"$nor": [1]},
            2,
            "$or/$and/$nor entries need to be full objects",
        ),
        (rawdoc! {"a": {"$in": 1}}, 2, "$in needs an array"),
        (rawdoc! {"a": {"$nin": {}}}, 2, "$nin needs an array"),
        (rawdoc! {"a": {"$in": [{"$gt": 1}]}}, 2, "cannot nest $ under $in"),
        (rawdoc! {"a": {"$all": 1}}, 2, "$all needs an array"),
        (
            rawdoc! {"a": {"$all": [{"$elemMatch": {}}, 1]}},
            2,
            "$all/$elemMatch has to be consistent",
        ),
        (rawdoc! {"a": {"$all": [{"$gt": 1}]}}, 2, "no $ expressions in $all"),
        (
            rawdoc! {"a": {"$all": [1, {"$elemMatch": {}}]}},
            2,
            "no $ expressions in $all",
        ),
        (rawdoc! {"a": {"$not": 1}}, 2, "$not needs a regex or a document"),
        (rawdoc! {"a": {"$not": {}}}, 2, "$not cannot be empty"),
        (rawdoc! {"a": {"$not": {"b": 1}}}, 2, "unknown operator: b"),
        (rawdoc! {"a": {"$elemMatch": 1}}, 2, "$elemMatch needs an Object"),
        (
            rawdoc! {"a": {"$size": "x"}},
            2,
            "Failed to parse $size. Expected a number in: $size: \"x\"",
        ),
        (
            rawdoc! {"a": {"$size": 1.5}},
            2,
            "Failed to parse $size. Expected an integer: $size: 1.5",
        ),
        (
            rawdoc! {"a": {"$size": -1}},
            2,
            "Failed to parse $size. Expected a non-negative number in: $size: -1",
        ),
        (
            rawdoc! {"a": {"$size": f64::NAN}},
            2,
            "Failed to parse $size. Expected an integer, but found NaN in: $size: nan.0",
        ),
        (rawdoc! {"a": {"$mod": 1}}, 2, "malformed mod, needs to be an array"),
        (rawdoc! {"a": {"$mod": [1]}}, 2, "malformed mod, not enough elements"),
        (
            rawdoc! {"a": {"$mod": ["1", 2]}},
            2,
            "malformed mod, divisor not a number",
        ),
        (
            rawdoc! {"a": {"$mod": [1, "2"]}},
            2,
            "malformed mod, remainder not a number",
        ),
        (
            rawdoc! {"a": {"$mod": [1, 2, 3]}},
            2,
            "malformed mod, too many elements",
        ),
        (rawdoc! {"a": {"$mod": [0.5, 2]}}, 2, "divisor cannot be 0"),
        (
            rawdoc! {"a": {"$mod": [f64::NAN, 2]}},
            2,
            "malformed mod, divisor value is invalid :: caused by :: Unable to coerce NaN/Inf to integral type",
        ),
        (rawdoc! {"a": {"$type": []}}, 9, "a must match at least one type"),
        (rawdoc! {"a": {"$type": "x"}}, 2, "Unknown type name alias: x"),
        (rawdoc! {"a": {"$regex": 1}}, 2, "$regex has to be a string"),
        (
            rawdoc! {"a": {"$regex": "x", "$options": 1}},
            2,
            "$options has to be a string",
        ),
        (rawdoc! {"a": {"$options": "i"}}, 2, "$options needs a $regex"),
        (
            rawdoc! {"a": {"$regex": regex("x", "i"), "$options": "m"}},
            51075,
            "options set in both $regex and $options",
        ),
        (
            rawdoc! {"a": {"$options": "m", "$regex": regex("x", "i")}},
            51074,
            "options set in both $regex and $options",
        ),
        (
            rawdoc! {"a": {"$regex": "x", "$options": "z"}},
            51108,
            "invalid flag in regex options: z",
        ),
        (
            rawdoc! {"a": {"$gt": regex("x", "")}},
            2,
            "Can't have RegEx as arg to predicate over field 'a'.",
        ),
        (
            rawdoc! {"a": {"$ne": regex("x", "")}},
            2,
            "Can't have regex as arg to $ne.",
        ),
        (
            rawdoc! {"a": {"$eq": RawBson::Undefined}},
            2,
            "cannot compare to undefined",
        ),
        (
            rawdoc! {"a": {"$bitsAllSet": "x"}},
            2,
            "a takes an Array, a number, or a BinData but received: $bitsAllSet: \"x\"",
        ),
        (
            rawdoc! {"a": {"$bitsAllSet": -1}},
            9,
            "Expected a non-negative number in: $bitsAllSet: -1",
        ),
        (
            rawdoc! {"a": {"$bitsAllSet": [1.5]}},
            2,
            "Failed to parse bit position. Expected an integer: 0: 1.5",
        ),
        (rawdoc! {"a": {"$where": "x"}}, 2, "$where cannot be applied to a field"),
        (
            rawdoc! {"$where": "x"},
            2,
            "$where is not supported: this server does not run JavaScript in queries",
        ),
        (
            rawdoc! {"a": {"$elemMatch": {"$expr": 1}}},
            2,
            "$expr can only be applied to the top-level document",
        ),
        (
            rawdoc! {"a": {"$geoWithin": {"$foo": [1, 2]}}},
            2,
            "unknown geo specifier: $foo: [ 1, 2 ]",
        ),
        (
            rawdoc! {"$sampleRate": "1"},
            2,
            "argument to $sampleRate must be numeric",
        ),
        (
            rawdoc! {"$sampleRate": 1.5},
            2,
            "numeric argument to $sampleRate must be in [0, 1]",
        ),
        (
            rawdoc! {"$alwaysTrue": 2},
            9,
            "$alwaysTrue must be an integer value of 1",
        ),
    ];
    for (filter, code, message) in cases {
        let error = Filter::parse(&filter).unwrap_err();
        assert_eq!((error.code.0, error.message.as_str()), (code, message), "{filter:?}");
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |levels: usize| (0..levels).fold(rawdoc! {"a": 1}, |inner, _| rawdoc! {"$and": [inner]});
    assert!(Filter::parse(&nested(DEPTH_LIMIT)).is_ok());
    let error = Filter::parse(&nested(DEPTH_LIMIT + 1)).unwrap_err();
    assert_eq!(
        (error.code.0, error.message.as_str()),
        (2, "exceeded maximum query tree depth")
    );
    let elements = |levels: usize| (0..levels).fold(rawdoc! {"a": 1}, |inner, _| rawdoc! {"a": {"$elemMatch": inner}});
    assert!(Filter::parse(&elements(DEPTH_LIMIT + 1)).is_err());
    let negated = (0..DEPTH_LIMIT + 1).fold(rawdoc! {"$gt": 1}, |inner, _| rawdoc! {"$not": inner});
    assert!(Filter::parse(&rawdoc! {"a": negated}).is_err());
}

#[test]
fn broken_operands_are_errors() {
    let filter: RawDocumentBuf =
        rawdoc! {"a": {"$in": [1, "x"]}, "b": {"$elemMatch": {"c": [1]}}, "$or": [{"d": {"$type": 2}}]};
    let bytes = filter.into_bytes();
    for at in 4..bytes.len() - 1 {
        for value in [0, 1, 3, 4, 0x7F, 0xFF] {
            let mut broken = bytes.clone();
            broken[at] = value;
            if let Ok(broken) = RawDocumentBuf::from_bytes(broken) {
                // Any result, but no panic.
                let _ = Filter::parse(&broken).map(|filter| filter.is_empty());
            }
        }
    }
}
