use std::sync::Arc;

use bson::{RawBson, RawDocumentBuf, Timestamp, rawbson, rawdoc};

use super::{context, parse_with};
use crate::context::Context;
use crate::error::Result;
use crate::filter::{Filter, MatchDetails};
use crate::update::{Delta, ParseOptions, Update};

fn parse(stages: RawBson) -> Result<Update> {
    parse_with(stages, None, ParseOptions::default())
}

fn apply(old: &RawDocumentBuf, stages: RawBson) -> Result<RawDocumentBuf> {
    Ok(parse(stages)?
        .apply(old, &MatchDetails::default(), &context())?
        .document)
}

#[test]
fn stages_follow_each_other() {
    let old = rawdoc! {"_id": 1, "x": 1, "y": [{"z": 1, "foo": 1}], "t": {"u": {"v": 1}}};
    let cases = vec![
        (
            rawbson!([{"$set": {"foo": 4}}, {"$addFields": {"bar": "$foo"}}]),
            rawdoc! {"_id": 1, "x": 1, "y": [{"z": 1, "foo": 1}], "t": {"u": {"v": 1}}, "foo": 4, "bar": 4},
        ),
        (rawbson!([{"$project": {"x": 1}}]), rawdoc! {"_id": 1, "x": 1}),
        (rawbson!([{"$project": {"_id": 0, "x": 1}}]), rawdoc! {"_id": 1, "x": 1}),
        (
            rawbson!([{"$unset": ["x", "y.z", "t"]}]),
            rawdoc! {"_id": 1, "y": [{"foo": 1}]},
        ),
        (rawbson!([{"$replaceWith": "$t"}]), rawdoc! {"_id": 1, "u": {"v": 1}}),
        (
            rawbson!([{"$replaceRoot": {"newRoot": "$t.u"}}]),
            rawdoc! {"_id": 1, "v": 1},
        ),
        (
            rawbson!([{"$replaceWith": {"$literal": {"$a": 1, "b.c": 2}}}]),
            rawdoc! {"_id": 1, "$a": 1, "b.c": 2},
        ),
        (
            rawbson!([]),
            rawdoc! {"_id": 1, "x": 1, "y": [{"z": 1, "foo": 1}], "t": {"u": {"v": 1}}},
        ),
    ];
    for (stages, expected) in cases {
        let result = apply(&old, stages.clone()).map_err(|error| (error.code, error.message));
        assert_eq!(result, Ok(expected), "{stages:?}");
    }
}

#[test]
fn empty_timestamps_stay() {
    let empty = Timestamp { time: 0, increment: 0 };
    let stages = rawbson!([{"$set": {"t": empty}}]);
    assert_eq!(
        apply(&rawdoc! {"_id": 1}, stages).unwrap(),
        rawdoc! {"_id": 1, "t": empty}
    );
}

#[test]
fn changes_are_those_between_the_documents() {
    let old = rawdoc! {"_id": 1, "x": 1, "s": "a text that is longer than the description"};
    let update = parse(rawbson!([{"$set": {"x": 1}}])).unwrap();
    let updated = update.apply(&old, &MatchDetails::default(), &context()).unwrap();
    assert!(!updated.changed);
    let update = parse(rawbson!([{"$set": {"x": {"$add": ["$x", 1]}}}])).unwrap();
    let updated = update.apply(&old, &MatchDetails::default(), &context()).unwrap();
    assert!(updated.changed);
    let Delta::Fields(changes) = updated.delta else {
        panic!("not a replacement");
    };
    assert_eq!(changes.updated.len(), 1);
    assert_eq!(changes.updated[0].0.to_string(), "x");
    assert_eq!(changes.updated[0].1, RawBson::Int32(2));
    let update = parse(rawbson!([{"$replaceWith": {"n": 1}}])).unwrap();
    let updated = update.apply(&old, &MatchDetails::default(), &context()).unwrap();
    assert_eq!(updated.delta, Delta::Replacement);
}

#[test]
fn upserts_begin_with_the_conditions_of_the_filter() {
    let cases = vec![
        (
            rawbson!([{"$set": {"foo": 4}}]),
            rawdoc! {"_id": 1, "x": 1, "y": 1, "foo": 4},
        ),
        (rawbson!([{"$project": {"x": "foo"}}]), rawdoc! {"_id": 1, "x": "foo"}),
        (rawbson!([{"$unset": ["x"]}]), rawdoc! {"_id": 1, "y": 1}),
    ];
    let filter = Filter::parse(&rawdoc! {"x": 1, "_id": 1, "y": {"$eq": 1}}).unwrap();
    for (stages, expected) in cases {
        assert_eq!(parse(stages).unwrap().upsert(&filter, &context()).unwrap(), expected);
    }
}

#[test]
fn constants_are_variables() {
    let mut ctx: Context = context();
    ctx.variables = Arc::new([("foo".to_owned(), RawBson::Document(rawdoc! {"$add": [1, 2]}))]);
    let options = ParseOptions {
        has_constants: true,
        ..ParseOptions::default()
    };
    let stages = rawbson!([{"$set": {"x": "$$foo"}}]);
    let update = Update::parse(stages.as_raw_bson_ref(), None, options, &ctx).unwrap();
    let updated = update
        .apply(&rawdoc! {"_id": 1}, &MatchDetails::default(), &ctx)
        .unwrap();
    assert_eq!(updated.document, rawdoc! {"_id": 1, "x": {"$add": [1, 2]}});
}

#[test]
fn pipelines_that_are_refused() {
    let cases = vec![
        (
            rawbson!([{"$match": {"x": 1}}]),
            72,
            "$match is not allowed to be used within an update",
        ),
        (
            rawbson!([{"$lookup": {"from": "y", "as": "a", "localField": "a", "foreignField": "b"}}]),
            72,
            "$lookup is not allowed to be used within an update",
        ),
        (
            rawbson!([{"$foo": 1}]),
            40324,
            "Unrecognized pipeline stage name: '$foo'",
        ),
        (
            rawbson!([{"$set": {"a": 1}, "$unset": "b"}]),
            40323,
            "A pipeline stage specification object must contain exactly one field.",
        ),
        (
            rawbson!([1]),
            14,
            "Each element of the 'pipeline' array must be an object",
        ),
        (
            rawbson!([{"$set": {"_id": 2}}]),
            66,
            "After applying the update, the (immutable) field '_id' was found to have been altered to _id: 2",
        ),
    ];
    for (stages, code, message) in cases {
        let error = apply(&rawdoc! {"_id": 1}, stages).unwrap_err();
        assert_eq!((error.code.0, error.message.as_str()), (code, message));
    }
    let filters = bson::RawArrayBuf::from_iter([rawdoc! {"i": 1}]);
    let error = parse_with(rawbson!([{"$set": {"a": 1}}]), Some(&filters), ParseOptions::default()).unwrap_err();
    assert_eq!(
        (error.code.0, error.message.as_str()),
        (9, "arrayFilters may not be specified for pipeline-syle updates")
    );
}

/// Mongoose's tests: an update with such a pipeline that finds no document succeeds.
#[test]
fn errors_of_constants_wait_for_a_document() {
    let update = parse(rawbson!([{"$set": {"a": {"$round": [{"$add": ["a", 1]}, 0]}}}]));
    update.expect("it may find nothing to update");
    let stages = rawbson!([{"$set": {"a": {"$round": [{"$add": ["a", 1]}, 0]}}}]);
    let error = apply(&rawdoc! {"_id": 1}, stages).unwrap_err();
    assert_eq!(error.code, crate::error::Code::TYPE_MISMATCH);
}
