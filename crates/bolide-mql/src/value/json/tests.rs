use bson::oid::ObjectId;
use bson::raw::cstr;
use bson::spec::BinarySubtype;
use bson::{Binary, RawBson, Regex, Timestamp, rawdoc};

use super::*;

fn shown(value: impl Into<RawBson>) -> String {
    let text = item(&rawdoc! {"_id": "i", "v": value.into()});
    let text = String::from_utf8(text).unwrap();
    let value = text.strip_prefix(r#"{"id":"i","_id":"i","v":"#).unwrap();
    value.strip_suffix('}').unwrap().to_owned()
}

fn object_id() -> ObjectId {
    ObjectId::parse_str("0123456789abcdef01234567").unwrap()
}

#[test]
fn each_type_has_its_json() {
    // docs/mongodb.md, "One data set through both APIs".
    let binary = Binary {
        subtype: BinarySubtype::Uuid,
        bytes: vec![0, 1, 254],
    };
    let regex = Regex {
        pattern: cstr!("a\"b").into(),
        options: cstr!("i").into(),
    };
    let cases: [(RawBson, &str); 24] = [
        ("a\"\n\u{1}é".into(), r#""a\"\n\u0001é""#),
        (true.into(), "true"),
        (RawBson::Null, "null"),
        (7_i32.into(), "7"),
        (i64::MAX.into(), "9223372036854775807"),
        (1.0.into(), "1.0"),
        (0.1.into(), "0.1"),
        (1e300.into(), "1e300"),
        (f64::NAN.into(), r#""NaN""#),
        (f64::NEG_INFINITY.into(), r#""-Infinity""#),
        (RawBson::Decimal128("1.10".parse().unwrap()), r#""1.10""#),
        (
            RawBson::DateTime(DateTime::from_millis(0)),
            r#""1970-01-01T00:00:00.000Z""#,
        ),
        (
            RawBson::DateTime(DateTime::from_millis(-1)),
            r#""1969-12-31T23:59:59.999Z""#,
        ),
        (
            RawBson::DateTime(DateTime::from_millis(LAST_DATE)),
            r#""9999-12-31T23:59:59.999Z""#,
        ),
        (
            RawBson::DateTime(DateTime::from_millis(FIRST_DATE)),
            r#""0000-01-01T00:00:00.000Z""#,
        ),
        (
            RawBson::DateTime(DateTime::from_millis(LAST_DATE + 1)),
            r#"{"$date":{"$numberLong":"253402300800000"}}"#,
        ),
        (object_id().into(), r#""0123456789abcdef01234567""#),
        (RawBson::Binary(binary), r#""AAH+""#),
        (
            RawBson::RegularExpression(regex),
            r#"{"$regularExpression":{"pattern":"a\"b","options":"i"}}"#,
        ),
        (
            RawBson::Timestamp(Timestamp { time: 1, increment: 2 }),
            r#"{"$timestamp":{"t":1,"i":2}}"#,
        ),
        (RawBson::MinKey, r#"{"$minKey":1}"#),
        (RawBson::Undefined, r#"{"$undefined":true}"#),
        (RawBson::JavaScriptCode("x".to_owned()), r#"{"$code":"x"}"#),
        (
            rawdoc! {"b": [1, {"a": []}], "a": {}}.into(),
            r#"{"b":[1,{"a":[]}],"a":{}}"#,
        ),
    ];
    for (value, expected) in cases {
        assert_eq!(shown(value), expected);
    }
}

#[test]
fn properties_of_items_are_not_taken_from_the_document() {
    let text = item(&rawdoc! {"id": 5, "_rid": 1, "_id": object_id(), "_etag": 1, "n": {"id": 1}});
    let expected = concat!(
        r#"{"id":"{\"$oid\":\"0123456789abcdef01234567\"}","#,
        r#""_id":"0123456789abcdef01234567","n":{"id":1}}"#
    );
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

#[test]
fn ids_are_read_back() {
    let binary = Binary {
        subtype: BinarySubtype::Generic,
        bytes: vec![255],
    };
    let mut twice = rawdoc! {"a": 1};
    twice.append(bson::raw::cstr!("a"), "x");
    let cases: [(RawBson, &str); 11] = [
        (object_id().into(), r#"{"$oid":"0123456789abcdef01234567"}"#),
        (1_i32.into(), r#"{"$numberInt":"1"}"#),
        (1_i64.into(), r#"{"$numberLong":"1"}"#),
        (1.5.into(), r#"{"$numberDouble":"1.5"}"#),
        (f64::INFINITY.into(), r#"{"$numberDouble":"Infinity"}"#),
        (
            RawBson::DateTime(DateTime::from_millis(-5)),
            r#"{"$date":{"$numberLong":"-5"}}"#,
        ),
        (
            RawBson::Binary(binary),
            r#"{"$binary":{"base64":"/w==","subType":"00"}}"#,
        ),
        (rawdoc! {"b": 1, "a": "x"}.into(), r#"{"b":{"$numberInt":"1"},"a":"x"}"#),
        (RawBson::Boolean(false), "false"),
        (twice.into(), r#"{"a":{"$numberInt":"1"},"a":"x"}"#),
        (
            RawBson::Timestamp(Timestamp { time: 7, increment: 1 }),
            r#"{"$timestamp":{"t":7,"i":1}}"#,
        ),
    ];
    for (value, text) in cases {
        assert_eq!(item_id(value.as_raw_bson_ref()), text);
        assert_eq!(parse_canonical(text), Some(value));
    }
    for text in [
        "",
        "a",
        "1",
        "{",
        r#"{"$oid":"x"}"#,
        r#"{"$oid":"0123456789abcdef01234567","a":1}"#,
        r#"{"$x":1}"#,
    ] {
        assert_eq!(parse_canonical(text), None, "{text}");
    }
}

#[test]
fn lines_give_the_same_bytes_again() {
    let nested = |levels: usize| (0..levels).fold(rawdoc! {"_id": 1}, |inner, _| rawdoc! {"_id": 1, "a": inner});
    let readable = rawdoc! {"_id": 1, "n": 1.5, "s": "é\n", "l": i64::MIN, "a": [1, {"b": RawBson::Null}], "z": -0.0};
    for (document, is_readable) in [
        (readable, true),
        (rawdoc! {"_id": {"$x": 1}}, false),
        (rawdoc! {"_id": 1, "$oid": "0123456789abcdef01234567"}, true),
        // A NaN with other bits than the usual one.
        (rawdoc! {"_id": 1, "n": f64::from_bits(0x7ff8_0000_0000_0001)}, false),
        (nested(100), true),
        (nested(150), false),
        (rawdoc! {"_id": "x".repeat(1024 * 1024)}, false),
    ] {
        let line = write_line(&document, 17);
        let start = if is_readable {
            r#"{"_ts":17,"document":{"_id":"#
        } else {
            r#"{"_ts":17,"bson":""#
        };
        assert!(
            line.starts_with(start.as_bytes()),
            "{}",
            String::from_utf8_lossy(&line[..60])
        );
        let (time, again) = read_line(&line).unwrap();
        assert_eq!((time, again.as_bytes()), (17, document.as_bytes()));
    }
}

#[test]
fn canonical_and_relaxed_extended_json_are_read_alike() {
    let object_id = object_id();
    for (text, expected) in [
        (r#"{"n": 7}"#, rawdoc! {"n": 7_i32}),
        (r#"{"n": 2147483648}"#, rawdoc! {"n": 2_147_483_648_i64}),
        (r#"{"n": {"$numberLong": "7"}}"#, rawdoc! {"n": 7_i64}),
        (r#"{"n": 7.0}"#, rawdoc! {"n": 7.0}),
        (
            r#"{"n": {"$numberDouble": "-Infinity"}}"#,
            rawdoc! {"n": f64::NEG_INFINITY},
        ),
        (
            r#"{"_id": {"$oid": "0123456789abcdef01234567"}}"#,
            rawdoc! {"_id": object_id},
        ),
        (
            r#"{"at": {"$date": "1970-01-01T00:00:00.001Z"}}"#,
            rawdoc! {"at": DateTime::from_millis(1)},
        ),
        (
            r#"{"at": {"$lt": {"$date": {"$numberLong": "-1"}}}}"#,
            rawdoc! {"at": {"$lt": DateTime::from_millis(-1)}},
        ),
        // Operators are not types.
        (
            r#"{"s": {"$regex": "a", "$options": "i"}, "t": {"$type": "int"}}"#,
            rawdoc! {"s": {"$regex": "a", "$options": "i"}, "t": {"$type": "int"}},
        ),
        // The order of fields stays.
        (r#"{"b": 1, "a": 2}"#, rawdoc! {"b": 1, "a": 2}),
    ] {
        assert_eq!(parse_extended(text.as_bytes()).unwrap(), expected, "{text}");
    }
}

#[test]
fn what_canonical_writes_is_read_again() {
    let document = rawdoc! {
        "binary": Binary { subtype: BinarySubtype::Uuid, bytes: vec![7; 16] },
        "regex": Regex { pattern: cstr!("a/b").into(), options: cstr!("im").into() },
        "at": Timestamp { time: 1, increment: 2 },
        "decimal": RawBson::Decimal128("1.10".parse().unwrap()),
        "code": RawBson::JavaScriptCode("f()".to_owned()),
        "min": RawBson::MinKey,
        "max": RawBson::MaxKey,
        "nothing": RawBson::Undefined,
        "old": RawBson::Symbol("s".to_owned()),
        "within": [{"a": i64::MAX}, f64::MIN_POSITIVE, DateTime::from_millis(i64::MIN)],
    };
    let text = canonical(RawBsonRef::Document(&document));
    assert_eq!(parse_extended(text.as_bytes()).unwrap(), document);
}
