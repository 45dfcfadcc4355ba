use bolide_model::UnixMillis;
use bson::{RawArrayBuf, RawDocumentBuf, Regex, Timestamp, rawdoc};

use super::{MAX_LEVELS, prepare_insert};
use crate::context::Context;

fn prepare(document: &RawDocumentBuf) -> Result<RawDocumentBuf, (i32, String)> {
    let ctx = Context::new(UnixMillis(1_700_000_000_123));
    prepare_insert(document, &ctx, false).map_err(|error| (error.code.0, error.message))
}

fn nested(levels: usize) -> RawDocumentBuf {
    let mut document = rawdoc! {"x": 1};
    for _ in 2..levels {
        document = rawdoc! {"x": document};
    }
    rawdoc! {"_id": 1, "x": document}
}

#[test]
fn id_is_the_first_field() {
    let id_in_front = prepare(&rawdoc! {"a": 1, "_id": 7, "b": 2});
    assert_eq!(id_in_front, Ok(rawdoc! {"_id": 7, "a": 1, "b": 2}));
    let with_new_id = prepare(&rawdoc! {"a": 1}).unwrap();
    let id = with_new_id.get_object_id("_id").unwrap();
    assert_eq!(with_new_id, rawdoc! {"_id": id, "a": 1});
    assert_eq!(id.timestamp().timestamp_millis(), 1_700_000_000_000);
    let other = prepare(&rawdoc! {}).unwrap();
    assert_ne!(other.get_object_id("_id").unwrap(), id);
}

#[test]
fn names_with_dots_and_dollars_are_stored() {
    for document in [
        rawdoc! {"_id": 1, "$a": 1, "a.b": {"$c": 1}},
        rawdoc! {"_id": {"a.b": 1}},
        rawdoc! {"_id": 1, "a": {"_id": [1]}},
    ] {
        assert_eq!(prepare(&document), Ok(document.clone()));
    }
}

#[test]
fn ids_that_are_refused() {
    let cases = vec![
        (rawdoc! {"_id": [1]}, 53, "The '_id' value cannot be of type array"),
        (
            rawdoc! {"_id": Regex { pattern: bson::raw::cstr!("a").into(), options: bson::raw::cstr!("").into() }},
            53,
            "The '_id' value cannot be of type regex",
        ),
        (
            rawdoc! {"_id": bson::RawBson::Undefined},
            53,
            "The '_id' value cannot be of type undefined",
        ),
        (
            rawdoc! {"_id": {"a": 1, "$b": 1}},
            52,
            "_id fields may not contain '$'-prefixed fields: The dollar ($) prefixed field '$b' is not valid for storage.",
        ),
    ];
    for (document, code, message) in cases {
        assert_eq!(prepare(&document), Err((code, message.to_owned())));
    }
    let mut twice = rawdoc! {"_id": 1};
    twice.append(bson::raw::cstr!("_id"), 2);
    assert_eq!(
        prepare(&twice),
        Err((2, "can't have multiple _id fields in one document".to_owned()))
    );
}

#[test]
fn empty_timestamps_on_the_top_level_become_the_current_time() {
    let empty = Timestamp { time: 0, increment: 0 };
    let now = Timestamp {
        time: 1_700_000_000,
        increment: 1,
    };
    let document = rawdoc! {"_id": empty, "t": empty, "u": {"t": empty}};
    assert_eq!(
        prepare(&document),
        Ok(rawdoc! {"_id": empty, "t": now, "u": {"t": empty}})
    );
    let ctx = Context::new(UnixMillis(0));
    assert_eq!(prepare_insert(&document, &ctx, true).unwrap(), document);
}

#[test]
fn size_is_limited() {
    // {_id: 1, x: "…"} has 22 bytes without the text.
    let of_bytes = |bytes: usize| rawdoc! {"_id": 1, "x": "x".repeat(bytes - 22)};
    let largest = of_bytes(16 * 1024 * 1024);
    assert_eq!(largest.as_bytes().len(), 16 * 1024 * 1024);
    assert!(prepare(&largest).is_ok());
    assert_eq!(
        prepare(&of_bytes(16 * 1024 * 1024 + 1)),
        Err((
            2,
            "object to insert too large. size in bytes: 16777217, max size: 16777216".to_owned()
        ))
    );
    assert_eq!(
        prepare(&of_bytes(16_793_601)),
        Err((
            10334,
            "BSONObj size: 16793601 (0x1004001) is invalid. Size must be between 0 and 16793600(16MB)".to_owned()
        ))
    );
}

#[test]
fn depth_is_limited() {
    assert!(prepare(&nested(MAX_LEVELS)).is_ok());
    assert_eq!(
        prepare(&nested(MAX_LEVELS + 1)),
        Err((
            15,
            "cannot insert document because it exceeds 180 levels of nesting".to_owned()
        ))
    );
    let mut array = RawArrayBuf::new();
    for _ in 2..MAX_LEVELS {
        let mut outer = RawArrayBuf::new();
        outer.push(array);
        array = outer;
    }
    assert!(prepare(&rawdoc! {"_id": 1, "x": array.clone()}).is_ok());
    let mut outer = RawArrayBuf::new();
    outer.push(array);
    assert_eq!(prepare(&rawdoc! {"_id": 1, "x": outer}).unwrap_err().0, 15);
}
