use bson::{RawDocumentBuf, rawdoc};

use super::*;

#[test]
fn read_concerns() {
    let parse = |document: RawDocumentBuf| ReadConcern::parse(Some(&document));
    for level in ["local", "available", "majority", "linearizable"] {
        let concern = parse(rawdoc! { "level": level }).expect(level);
        assert_eq!(concern.level, ReadConcernLevel::Local);
    }
    let at = Timestamp { time: 5, increment: 1 };
    let snapshot = parse(rawdoc! { "level": "snapshot", "atClusterTime": at }).expect("valid");
    assert_eq!((snapshot.level, snapshot.at), (ReadConcernLevel::Snapshot, Some(at)));
    let code = |document| parse(document).expect_err("invalid").code.0;
    assert_eq!(code(rawdoc! { "level": "x" }), 2);
    assert_eq!(code(rawdoc! { "level": 1 }), 14);
    assert_eq!(code(rawdoc! { "atClusterTime": at }), 72);
    assert_eq!(code(rawdoc! { "x": 1 }), 40415);
}

#[test]
fn write_concerns() {
    let error = |document: RawDocumentBuf| {
        let concern = WriteConcern::parse(Some(&document)).map_err(|error| error.code.0)?;
        Ok(concern.error().map(|error| error.get_i32("code").expect("a code")))
    };
    for (document, expected) in [
        (rawdoc! {}, Ok(None)),
        (rawdoc! { "w": 1 }, Ok(None)),
        (rawdoc! { "w": 0 }, Ok(None)),
        (rawdoc! { "w": "majority", "j": true, "wtimeout": 100 }, Ok(None)),
        (rawdoc! { "w": 1.0, "wtimeout": 0.5 }, Ok(None)),
        (rawdoc! { "w": 2 }, Ok(Some(100))),
        (rawdoc! { "w": "tag" }, Ok(Some(79))),
        (rawdoc! { "w": 51 }, Err(9)),
        (rawdoc! { "w": -1 }, Err(9)),
        (rawdoc! { "w": true }, Err(9)),
        (rawdoc! { "j": "x" }, Err(14)),
        (rawdoc! { "wtimeout": "x" }, Err(14)),
        (rawdoc! { "x": 1 }, Err(40415)),
    ] {
        assert_eq!(error(document.clone()), expected, "{document:?}");
    }
    let unacknowledged = WriteConcern::parse(Some(&rawdoc! { "w": 0 })).expect("valid");
    assert!(unacknowledged.is_unacknowledged());
    assert!(!WriteConcern::default().is_unacknowledged());
}
