use bson::{RawDocumentBuf, rawdoc};

use super::*;
use crate::commands::fixture::Shell;

#[test]
fn read_concerns() {
    let parse = |document: RawDocumentBuf| ReadConcern::parse(Some(&document));
    for level in ["local", "available", "majority"] {
        let concern = parse(rawdoc! { "level": level }).expect(level);
        assert_eq!(concern.level, ReadConcernLevel::Local);
    }
    let linearizable = parse(rawdoc! { "level": "linearizable" }).expect("valid");
    assert_eq!(linearizable.level, ReadConcernLevel::Linearizable);
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
        (rawdoc! { "wtimeout": "x" }, Ok(None)),
        (rawdoc! { "wtimeout": 2_147_483_648_i64 }, Err(9)),
        (rawdoc! { "provenance": "clientSupplied" }, Ok(None)),
        (rawdoc! { "provenance": "x" }, Err(2)),
        (rawdoc! { "provenance": 1 }, Err(14)),
        (rawdoc! { "x": 1 }, Err(40415)),
    ] {
        assert_eq!(error(document.clone()), expected, "{document:?}");
    }
    let unacknowledged = WriteConcern::parse(Some(&rawdoc! { "w": 0 })).expect("valid");
    assert!(unacknowledged.is_unacknowledged());
    assert!(!WriteConcern::default().is_unacknowledged());
}

#[tokio::test(flavor = "multi_thread")]
async fn linearizable_is_not_for_pipelines_that_write() {
    let shell = Shell::new().await;
    shell.insert("c", &[rawdoc! { "_id": 1 }]).await;
    let aggregate = |stage: RawDocumentBuf| {
        let concern = rawdoc! { "level": "linearizable" };
        rawdoc! { "aggregate": "c", "pipeline": [stage], "cursor": {}, "readConcern": concern }
    };
    shell.ok(aggregate(rawdoc! { "$match": {} })).await;
    for stage in [rawdoc! { "$out": "d" }, rawdoc! { "$merge": "d" }] {
        assert_eq!(shell.code(aggregate(stage)).await, 72);
    }
    assert!(shell.state.account.find_collection("db", "d").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn write_concerns_hold_for_pipelines_that_write() {
    let shell = Shell::new().await;
    shell.insert("c", &[rawdoc! { "_id": 1 }]).await;
    let aggregate = |stage: RawDocumentBuf| {
        rawdoc! { "aggregate": "c", "pipeline": [stage], "cursor": {}, "writeConcern": { "w": 5 } }
    };
    let written = shell.run(aggregate(rawdoc! { "$out": "d" })).await;
    let error = written.get_document("writeConcernError").expect("an error");
    assert_eq!(error.get_i32("code").expect("a code"), 100);
    assert!(shell.state.account.find_collection("db", "d").is_some());
    let read = shell.run(aggregate(rawdoc! { "$match": {} })).await;
    assert!(read.get("writeConcernError").expect("valid").is_none());
}
