use bson::{RawArrayBuf, RawBson, RawDocumentBuf, rawbson, rawdoc};

use super::{check, context, parse, parse_filtered};
use crate::filter::{Filter, MatchDetails};

macro_rules! rawarray {
    ($($element:tt)*) => {
        match rawbson!([$($element)*]) {
            RawBson::Array(array) => array,
            _ => unreachable!(),
        }
    };
}

fn apply_filtered(
    old: &RawDocumentBuf,
    update: &RawDocumentBuf,
    filters: &RawArrayBuf,
) -> Result<RawDocumentBuf, (i32, String)> {
    let error = |error: crate::Error| (error.code.0, error.message);
    let update = parse_filtered(update, filters).map_err(error)?;
    let updated = update.apply(old, &MatchDetails::default(), &context()).map_err(error)?;
    Ok(updated.document)
}

#[test]
fn the_matched_element() {
    let cases = vec![
        (1, rawdoc! {"$set": {"a.$": 9}}, rawdoc! {"_id": 1, "a": [1, 9, 3]}),
        (0, rawdoc! {"$inc": {"a.$": 9}}, rawdoc! {"_id": 1, "a": [10, 2, 3]}),
        (
            2,
            rawdoc! {"$set": {"a.$": 9, "a.0": 8}},
            rawdoc! {"_id": 1, "a": [8, 2, 9]},
        ),
        (2, rawdoc! {"$unset": {"a.$": 1}}, rawdoc! {"_id": 1, "a": [1, 2, null]}),
    ];
    let old = rawdoc! {"_id": 1, "a": [1, 2, 3]};
    for (index, update, expected) in cases {
        let matched = MatchDetails {
            array_index: Some(index),
        };
        let updated = parse(&update).unwrap().apply(&old, &matched, &context()).unwrap();
        assert_eq!(updated.document, expected, "{update:?}");
    }
    let update = parse(&rawdoc! {"$set": {"a.$": 9, "a.2": 8}}).unwrap();
    let matched = MatchDetails { array_index: Some(2) };
    let error = update.apply(&old, &matched, &context()).unwrap_err();
    assert_eq!(
        (error.code.0, error.message.as_str()),
        (40, "Update created a conflict at 'a.2'")
    );
}

#[test]
fn the_query_finds_the_matched_element() {
    let old = rawdoc! {"_id": 1, "a": [1, 5, 7], "d": [{"x": 1, "y": 1}, {"x": 2, "y": 1}]};
    let cases = vec![
        (
            rawdoc! {"a": {"$gt": 1}},
            rawdoc! {"$set": {"a.$": 0}},
            "a",
            rawbson!([1, 0, 7]),
        ),
        (
            rawdoc! {"_id": 1, "a": 7},
            rawdoc! {"$unset": {"a.$": 0}},
            "a",
            rawbson!([1, 5, null]),
        ),
        (
            rawdoc! {"d.x": 2},
            rawdoc! {"$inc": {"d.$.y": 5}},
            "d",
            rawbson!([{"x": 1, "y": 1}, {"x": 2, "y": 6}]),
        ),
        (
            rawdoc! {"d": {"$elemMatch": {"x": 2, "y": 1}}},
            rawdoc! {"$set": {"d.$.z": 5}},
            "d",
            rawbson!([{"x": 1, "y": 1}, {"x": 2, "y": 1, "z": 5}]),
        ),
    ];
    for (filter, update, field, expected) in cases {
        let ctx = context();
        let matched = Filter::parse(&filter)
            .unwrap()
            .matches_with(&old, &ctx)
            .unwrap()
            .unwrap();
        let updated = parse(&update).unwrap().apply(&old, &matched, &ctx).unwrap();
        let value = updated.document.get(field).unwrap().map(RawBson::from);
        assert_eq!(value, Some(expected), "{filter:?}");
    }
}

#[test]
fn only_updates_with_dollar_use_the_matched_element() {
    let cases = [
        (rawdoc! {"$set": {"a.$.b": 1}}, true),
        (rawdoc! {"$set": {"a.$[].b": 1, "a$": 2, "b.$c": 3}}, false),
        (rawdoc! {"a": 1}, false),
    ];
    for (update, expected) in cases {
        assert_eq!(parse(&update).unwrap().uses_matched_element(), expected, "{update:?}");
    }
}

#[test]
fn every_element() {
    check(
        rawdoc! {"_id": 1, "a": [1, 2], "d": [{"x": 1}, {"y": [1, 2]}], "e": []},
        vec![
            (
                rawdoc! {"$inc": {"a.$[]": 1}},
                rawdoc! {"_id": 1, "a": [2, 3], "d": [{"x": 1}, {"y": [1, 2]}], "e": []},
            ),
            (
                rawdoc! {"$set": {"d.$[].x": 7, "e.$[]": 1}},
                rawdoc! {"_id": 1, "a": [1, 2], "d": [{"x": 7}, {"y": [1, 2], "x": 7}], "e": []},
            ),
            (
                rawdoc! {"$unset": {"a.$[]": 1, "d.$[].x": 1}},
                rawdoc! {"_id": 1, "a": [null, null], "d": [{}, {"y": [1, 2]}], "e": []},
            ),
        ],
    );
}

#[test]
fn elements_that_match_array_filters() {
    let cases = vec![
        (
            rawdoc! {"_id": 0, "a": [0, 1, 0]},
            rawdoc! {"$set": {"a.$[i]": 2}},
            rawarray![{"i": 0}],
            rawdoc! {"_id": 0, "a": [2, 1, 2]},
        ),
        (
            rawdoc! {"_id": 0, "a": [{"b": 0}, {"b": 1}]},
            rawdoc! {"$set": {"a.$[i].b": 2}},
            rawarray![{"i.b": 0}],
            rawdoc! {"_id": 0, "a": [{"b": 2}, {"b": 1}]},
        ),
        (
            rawdoc! {"_id": 0, "a": [[0, 1], [0, 1]]},
            rawdoc! {"$set": {"a.$[].$[j]": 2}},
            rawarray![{"j": 0}],
            rawdoc! {"_id": 0, "a": [[2, 1], [2, 1]]},
        ),
        (
            rawdoc! {"_id": 0, "a": [{"x": 0, "b": [{"y": 0, "c": 0, "d": 0}]}]},
            rawdoc! {"$set": {"a.$[i].b.$[k].c": 1, "a.$[j].b.$[k].d": 1}},
            rawarray![{"i.x": 0}, {"j.x": 0}, {"k.y": 0}],
            rawdoc! {"_id": 0, "a": [{"x": 0, "b": [{"y": 0, "c": 1, "d": 1}]}]},
        ),
    ];
    for (old, update, filters, expected) in cases {
        assert_eq!(apply_filtered(&old, &update, &filters), Ok(expected), "{update:?}");
    }
}

#[test]
fn conflicts_of_array_filters() {
    let old = rawdoc! {"_id": 0, "a": [{"x": 0, "b": [{"y": 0}]}, {"x": 1, "b": [{"y": 0}]}]};
    let update = rawdoc! {"$set": {"a.$[i].b.$[k].c": 1, "a.$[j].b.$[k].c": 2}};
    let both = rawarray![{"i.x": 0}, {"j.x": 0}, {"k.y": 0}];
    assert_eq!(
        apply_filtered(&old, &update, &both),
        Err((40, "Update created a conflict at 'a.0.b.$[k].c'".to_owned()))
    );
    let disjoint = rawarray![{"i.x": 0}, {"j.x": 1}, {"k.y": 0}];
    assert_eq!(
        apply_filtered(&old, &update, &disjoint),
        Ok(rawdoc! {"_id": 0, "a": [{"x": 0, "b": [{"y": 0, "c": 1}]}, {"x": 1, "b": [{"y": 0, "c": 2}]}]})
    );
    let update = rawdoc! {"$set": {"a.$[i].b.$[k].c": 1, "a.$[j].b.$[m].c": 2}};
    let inner = rawarray![{"i.x": 0}, {"j.x": 0}, {"k.y": 0}, {"m.y": 0}];
    assert_eq!(
        apply_filtered(&old, &update, &inner),
        Err((40, "Update created a conflict at 'a.0.b.0.c'".to_owned()))
    );
}

#[test]
fn malformed_array_filters() {
    let set_i = || rawdoc! {"$set": {"a.$[i]": 5}};
    let cases = vec![
        (
            set_i(),
            rawarray![],
            2,
            "No array filter found for identifier 'i' in path 'a.$[i]'",
        ),
        (
            set_i(),
            rawarray![{"i": 0}, {"j": 0}],
            9,
            "The array filter for identifier 'j' was not used in the update { $set: { a.$[i]: 5 } }",
        ),
        (
            set_i(),
            rawarray![{"i": 0}, {"i.x": 0}],
            9,
            "Found multiple array filters with the same top-level field name i",
        ),
        (
            set_i(),
            rawarray![{"i": 0, "j": 0}],
            9,
            "Error parsing array filter :: caused by :: Expected a single top-level field name, found 'i' and 'j'",
        ),
        (
            set_i(),
            rawarray![{}],
            9,
            "Error parsing array filter :: caused by :: Cannot use an expression without a top-level field name in arrayFilters",
        ),
        (
            rawdoc! {"$set": {"a.$[I]": 5}},
            rawarray![{"I": 0}],
            2,
            "Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric string beginning with \
             a lowercase letter, found 'I'",
        ),
        (
            set_i(),
            rawarray!["bad"],
            14,
            "BSON field 'update.updates.arrayFilters.0' is the wrong type 'string', expected type 'object'",
        ),
        (
            set_i(),
            rawarray![{"$expr": {"$eq": ["$foo", "$bar"]}}],
            224,
            "Error parsing array filter :: caused by :: $expr is not allowed in this context",
        ),
    ];
    for (update, filters, code, message) in cases {
        let error = parse_filtered(&update, &filters).unwrap_err();
        assert_eq!((error.code.0, error.message.as_str()), (code, message), "{filters:?}");
    }
    let error = parse_filtered(&rawdoc! {"a": 1}, &rawarray![{"i": 1}]).unwrap_err();
    assert_eq!(error.code.0, 9);
}
