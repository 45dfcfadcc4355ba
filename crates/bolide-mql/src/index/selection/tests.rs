use bson::raw::{RawBson, RawDocumentBuf};
use bson::{rawbson, rawdoc};

use super::super::specification::ParseOptions;
use super::*;

fn select(value: RawBson) -> Result<Selected, (i32, String)> {
    let specifications: Vec<RawDocumentBuf> = vec![
        rawdoc! {"key": {"_id": 1}, "name": "_id_"},
        rawdoc! {"key": {"a": 1}, "name": "a_1"},
        rawdoc! {"key": {"b": 1}, "name": "b_1"},
        rawdoc! {"key": {"b": 1}, "name": "b_2", "sparse": true},
    ];
    let existing: Vec<IndexDefinition> = specifications
        .iter()
        .map(|each| IndexDefinition::parse(each, &ParseOptions::default()).expect("an index"))
        .collect();
    IndexSelection::parse(value.as_raw_bson_ref())
        .and_then(|selection| selection.select(&existing))
        .map_err(|error| (error.code.0, error.message))
}

fn selected(positions: &[usize]) -> Result<Selected, (i32, String)> {
    Ok(Selected {
        positions: positions.to_vec(),
        message: None,
    })
}

#[test]
fn indexes_are_named_or_described() {
    assert_eq!(select(rawbson!("a_1")), selected(&[1]));
    assert_eq!(select(rawbson!(["b_2", "a_1", "a_1"])), selected(&[1, 3]));
    assert_eq!(select(RawBson::Document(rawdoc! {"a": 1.0})), selected(&[1]));
    let all = Selected {
        positions: vec![1, 2, 3],
        message: Some("non-_id indexes dropped for collection"),
    };
    assert_eq!(select(rawbson!("*")), Ok(all));
}

#[test]
fn what_cannot_be_dropped_is_an_error() {
    for (value, code, text) in [
        (rawbson!("x"), 27, "index not found with name [x]"),
        (rawbson!(["a_1", "x"]), 27, "index not found with name [x]"),
        (rawbson!(["*"]), 27, "index not found with name [*]"),
        (rawbson!("_id_"), 72, "cannot drop _id index"),
        (RawBson::Document(rawdoc! {"_id": 1}), 72, "cannot drop _id index"),
        (
            RawBson::Document(rawdoc! {"x": 1}),
            27,
            "can't find index with key: { x: 1 }",
        ),
        (
            RawBson::Document(rawdoc! {"b": 1}),
            181,
            "2 indexes found for key: { b: 1 }, identify by name instead. Conflicting indexes: \
             { v: 2, key: { b: 1 }, name: \"b_1\" }, { v: 2, key: { b: 1 }, name: \"b_2\", sparse: true }",
        ),
        (
            rawbson!(5),
            14,
            "BSON field 'dropIndexes.index' is the wrong type 'int', expected types '[string, object']",
        ),
        (
            rawbson!(["a_1", 5]),
            14,
            "BSON field 'dropIndexes.index' is the wrong type 'array', expected types '[string']",
        ),
    ] {
        assert_eq!(select(value), Err((code, text.to_owned())));
    }
}
