use bson::{RawBson, Timestamp, rawdoc};

use super::{apply, check, context, parse_with, updated};
use crate::filter::MatchDetails;
use crate::update::{Delta, ParseOptions};

#[test]
fn replacement_keeps_the_id_in_front() {
    check(
        rawdoc! {"_id": 1, "a": 1},
        vec![
            (
                rawdoc! {"b": 2, "c": {"$d": 1, "e.f": 2}},
                rawdoc! {"_id": 1, "b": 2, "c": {"$d": 1, "e.f": 2}},
            ),
            (rawdoc! {"b": 2, "_id": 1, "c": 3}, rawdoc! {"_id": 1, "b": 2, "c": 3}),
            (rawdoc! {}, rawdoc! {"_id": 1}),
            (rawdoc! {"a.b": 1}, rawdoc! {"_id": 1, "a.b": 1}),
        ],
    );
    let updated = updated(&rawdoc! {"_id": 1, "a": 1}, &rawdoc! {"a": 2}).unwrap();
    assert_eq!(updated.delta, Delta::Replacement);
}

#[test]
fn replacement_with_another_id_is_refused() {
    let error = apply(&rawdoc! {"_id": 1, "a": 1}, &rawdoc! {"_id": 2}).unwrap_err();
    assert_eq!(
        (error.code.0, error.message.as_str()),
        (
            66,
            "After applying the update, the (immutable) field '_id' was found to have been altered to _id: 2"
        )
    );
}

#[test]
fn empty_timestamps_become_the_current_time() {
    let empty = Timestamp { time: 0, increment: 0 };
    let now = Timestamp {
        time: 1_700_000_000,
        increment: 1,
    };
    let replacement = rawdoc! {"t": empty, "u": {"t": empty}, "v": Timestamp { time: 0, increment: 1 }};
    let old = rawdoc! {"_id": 1};
    assert_eq!(
        apply(&old, &replacement).unwrap(),
        rawdoc! {"_id": 1, "t": now, "u": {"t": empty}, "v": Timestamp { time: 0, increment: 1 }}
    );
    let options = ParseOptions {
        keeps_empty_timestamps: true,
        ..ParseOptions::default()
    };
    let update = parse_with(rawdoc! {"t": empty}.into(), None, options).unwrap();
    let updated = update.apply(&old, &MatchDetails::default(), &context()).unwrap();
    assert_eq!(updated.document, rawdoc! {"_id": 1, "t": empty});
    assert_eq!(
        apply(&old, &rawdoc! {"$set": {"t": empty}}).unwrap(),
        rawdoc! {"_id": 1, "t": empty}
    );
}

#[test]
fn forms_that_are_refused() {
    let parse = |update: RawBson, options| parse_with(update, None, options).unwrap_err();
    let multi = ParseOptions {
        multi: true,
        ..ParseOptions::default()
    };
    let error = parse(rawdoc! {"a": 1}.into(), multi);
    assert_eq!(
        (error.code.0, error.message.as_str()),
        (9, "multi update is not supported for replacement-style update")
    );
    let constants = ParseOptions {
        has_constants: true,
        ..ParseOptions::default()
    };
    for update in [rawdoc! {"a": 1}, rawdoc! {"$set": {"a": 1}}] {
        assert_eq!(parse(update.into(), constants).code.0, 51198);
    }
    let error = parse(RawBson::Int32(1), ParseOptions::default());
    assert_eq!(
        (error.code.0, error.message.as_str()),
        (9, "Update argument must be either an object or an array")
    );
}
