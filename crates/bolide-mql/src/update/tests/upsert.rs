use bson::{RawBson, RawDocumentBuf, oid::ObjectId, rawdoc};

use super::upsert;

fn check_upserts(cases: Vec<(RawDocumentBuf, RawDocumentBuf, RawDocumentBuf)>) {
    for (filter, update, expected) in cases {
        let result = upsert(&filter, &update).map_err(|error| (error.code, error.message));
        assert_eq!(result, Ok(expected), "{filter:?} {update:?}");
    }
}

#[test]
fn equality_conditions_become_fields() {
    check_upserts(vec![
        (
            rawdoc! {"_id": 1},
            rawdoc! {"$set": {"a": 1}},
            rawdoc! {"_id": 1, "a": 1},
        ),
        (
            rawdoc! {"x": 1, "_id": 1},
            rawdoc! {"$inc": {"x": 2}},
            rawdoc! {"_id": 1, "x": 3},
        ),
        (
            rawdoc! {"_id": 1, "a.b": 1, "a.c": 2},
            rawdoc! {"$set": {"d": 1}},
            rawdoc! {"_id": 1, "a": {"b": 1, "c": 2}, "d": 1},
        ),
        (
            rawdoc! {"_id.x": 1, "_id.y": 2},
            rawdoc! {"$set": {"a": 1}},
            rawdoc! {"_id": {"x": 1, "y": 2}, "a": 1},
        ),
        (
            rawdoc! {"_id": 1, "a": 5},
            rawdoc! {"$setOnInsert": {"b": 1}, "$set": {"a": 6}},
            rawdoc! {"_id": 1, "a": 6, "b": 1},
        ),
        (
            rawdoc! {"a": 5},
            rawdoc! {"$setOnInsert": {"_id": 7}},
            rawdoc! {"_id": 7, "a": 5},
        ),
        (
            rawdoc! {},
            rawdoc! {"$set": {"z": 1, "_id": 7}},
            rawdoc! {"_id": 7, "z": 1},
        ),
        (rawdoc! {"_id": 1}, rawdoc! {"$unset": {"a": 1}}, rawdoc! {"_id": 1}),
        (rawdoc! {"_id": 1}, rawdoc! {"$set": {}}, rawdoc! {"_id": 1}),
    ]);
}

#[test]
fn only_conditions_of_equality_are_taken() {
    let update = || rawdoc! {"$set": {"a": 1}};
    let taken = vec![
        rawdoc! {"_id": 1, "x": {"$eq": 1}},
        rawdoc! {"_id": 1, "x": {"$in": [1]}},
        rawdoc! {"_id": {"$in": [1]}, "x": {"$all": [1]}},
        rawdoc! {"$and": [{"_id": 1}, {"x": {"$eq": 1}}]},
        rawdoc! {"_id": 1, "$or": [{"x": 1}]},
        rawdoc! {"_id": 1, "x": {"$eq": 1, "$gt": 0}},
    ];
    for filter in taken {
        check_upserts(vec![(filter, update(), rawdoc! {"_id": 1, "x": 1, "a": 1})]);
    }
    let not_taken = vec![
        rawdoc! {"_id": 1, "x": {"$gt": 1}},
        rawdoc! {"_id": 1, "x": {"$ne": 1}},
        rawdoc! {"_id": 1, "x": {"$in": [1, 2]}},
        rawdoc! {"_id": 1, "x": {"$elemMatch": {"$eq": 1}}},
        rawdoc! {"_id": 1, "x": {"$exists": true}},
        rawdoc! {"_id": 1, "x": {"$not": {"$eq": 1}}},
        rawdoc! {"_id": 1, "$or": [{"x": 1}, {"x": 2}]},
        rawdoc! {"_id": 1, "$nor": [{"x": 1}]},
    ];
    for filter in not_taken {
        check_upserts(vec![(filter, update(), rawdoc! {"_id": 1, "a": 1})]);
    }
    check_upserts(vec![(
        rawdoc! {"_id": 1, "x": {"x.x": 1}},
        update(),
        rawdoc! {"_id": 1, "x": {"x.x": 1}, "a": 1},
    )]);
}

#[test]
fn replacements_take_only_the_id_of_the_filter() {
    check_upserts(vec![
        (rawdoc! {"_id": 1, "x": 1}, rawdoc! {"a": 1}, rawdoc! {"_id": 1, "a": 1}),
        (rawdoc! {"x": 1, "x.x": 2, "_id": 1}, rawdoc! {}, rawdoc! {"_id": 1}),
        (rawdoc! {"x": 1}, rawdoc! {"a": 1, "_id": 3}, rawdoc! {"_id": 3, "a": 1}),
        (
            rawdoc! {"_id": 3},
            rawdoc! {"a": 1, "_id": 3},
            rawdoc! {"_id": 3, "a": 1},
        ),
    ]);
}

#[test]
fn a_new_id_has_the_time_of_the_command() {
    for update in [rawdoc! {"$set": {"a": 1}}, rawdoc! {"a": 1}] {
        let document = upsert(&rawdoc! {}, &update).unwrap();
        let (name, id) = document.iter().next().unwrap().unwrap();
        assert_eq!(name.as_str(), "_id");
        let id: ObjectId = id.as_object_id().unwrap();
        assert_eq!(id.timestamp().timestamp_millis(), 1_700_000_000_000);
        assert_eq!(document.get("a").unwrap().map(RawBson::from), Some(RawBson::Int32(1)));
    }
}

#[test]
fn upserts_that_are_refused() {
    let cases = vec![
        (
            rawdoc! {"x": 1, "x.y": 1},
            rawdoc! {"$set": {"a": 1}},
            54,
            "cannot infer query fields to set, both paths 'x.y' and 'x' are matched",
        ),
        (
            rawdoc! {"x.y": 1, "x": 1},
            rawdoc! {"$set": {"a": 1}},
            54,
            "cannot infer query fields to set, both paths 'x.y' and 'x' are matched",
        ),
        (
            rawdoc! {"$and": [{"x": 1}, {"x": 2}]},
            rawdoc! {"$set": {"a": 1}},
            54,
            "cannot infer query fields to set, path 'x' is matched twice",
        ),
        (
            rawdoc! {"$and": [{"_id": 1}, {"_id": 2}]},
            rawdoc! {"a": 1},
            54,
            "cannot infer query fields to set, path '_id' is matched twice",
        ),
        (
            rawdoc! {"_id.x": 1},
            rawdoc! {"a": 1},
            111,
            "field at '_id' must be exactly specified, field at sub-path '_id.x'found",
        ),
        (
            rawdoc! {"_id": 1},
            rawdoc! {"_id": 2},
            66,
            "After applying the update, the (immutable) field '_id' was found to have been altered to _id: 2",
        ),
        (
            rawdoc! {"_id": 1},
            rawdoc! {"$set": {"_id": 2}},
            66,
            "Performing an update on the path '_id' would modify the immutable field '_id'",
        ),
        (
            rawdoc! {},
            rawdoc! {"_id": [1, 2]},
            53,
            "The '_id' value cannot be of type array",
        ),
        (
            rawdoc! {},
            rawdoc! {"$set": {"_id": {"$x": 1}}},
            52,
            "_id fields may not contain '$'-prefixed fields: The dollar ($) prefixed field '$x' is not valid for storage.",
        ),
        (
            rawdoc! {"a": 1},
            rawdoc! {"$set": {"b.$": 1}},
            2,
            "The positional operator did not find the match needed from the query.",
        ),
    ];
    for (filter, update, code, message) in cases {
        let error = upsert(&filter, &update).unwrap_err();
        assert_eq!(
            (error.code.0, error.message.as_str()),
            (code, message),
            "{filter:?} {update:?}"
        );
    }
}

/// Mongoose's tests: only documents that are there do not get such names.
#[test]
fn an_inserted_document_may_have_names_with_dollar() {
    let made = upsert(
        &rawdoc! {"_id": 1},
        &rawdoc! {"$set": {"$mine": 1}, "$setOnInsert": {"v": 0}},
    )
    .expect("inserted");
    assert_eq!(made, rawdoc! {"_id": 1, "$mine": 1, "v": 0});
}
