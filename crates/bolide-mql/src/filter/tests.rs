mod errors;
mod facts;
pub(crate) mod model;
mod schema;

use bolide_model::UnixMillis;
use bson::spec::BinarySubtype;
use bson::{Binary, RawBson, RawDocumentBuf, rawdoc};

use super::Filter;
use crate::collation::Collation;
use crate::context::Context;

fn context() -> Context {
    Context::new(UnixMillis(0))
}

fn regex(pattern: &str, options: &str) -> bson::Regex {
    bson::Regex {
        pattern: pattern.try_into().unwrap(),
        options: options.try_into().unwrap(),
    }
}

fn decimal(text: &str) -> bson::Decimal128 {
    text.parse().unwrap()
}

/// Binary data of the old form.
fn old(bytes: &[u8]) -> Binary {
    let subtype = BinarySubtype::BinaryOld;
    let bytes = bytes.to_vec();
    Binary { subtype, bytes }
}

fn matches(filter: &RawDocumentBuf, document: &RawDocumentBuf) -> bool {
    Filter::parse(filter).unwrap().matches(document, &context()).unwrap()
}

fn check(cases: Vec<(RawDocumentBuf, RawDocumentBuf, bool)>) {
    for (filter, document, expected) in cases {
        assert_eq!(matches(&filter, &document), expected, "{filter:?} {document:?}");
    }
}

#[test]
fn comparisons_stay_within_a_bracket_of_types() {
    let nan = f64::NAN;
    check(vec![
        (rawdoc! {}, rawdoc! {"a": 1}, true),
        (rawdoc! {"a": 1}, rawdoc! {"a": 1.0}, true),
        (rawdoc! {"a": 1}, rawdoc! {"a": "1"}, false),
        (rawdoc! {"a": {"$gt": 1}}, rawdoc! {"a": 2_i64}, true),
        (rawdoc! {"a": {"$gt": 1}}, rawdoc! {"a": "x"}, false),
        (rawdoc! {"a": {"$gt": 1}}, rawdoc! {"a": true}, false),
        (rawdoc! {"a": {"$lt": "b"}}, rawdoc! {"a": "a"}, true),
        (rawdoc! {"a": {"$lt": "b"}}, rawdoc! {"a": 1}, false),
        (rawdoc! {"a": {"$gt": 1, "$lt": 3}}, rawdoc! {"a": 2}, true),
        (rawdoc! {"a": {"$gt": 1, "$lt": 3}}, rawdoc! {"a": 3}, false),
        (rawdoc! {"a": {"$gte": RawBson::MinKey}}, rawdoc! {"a": "x"}, true),
        (rawdoc! {"a": {"$gt": RawBson::MinKey}}, rawdoc! {}, true),
        (rawdoc! {"a": {"$lt": RawBson::MaxKey}}, rawdoc! {"a": "x"}, true),
        (rawdoc! {"a": {"$gt": RawBson::MaxKey}}, rawdoc! {"a": "x"}, false),
        (rawdoc! {"a": RawBson::MinKey}, rawdoc! {"a": RawBson::MinKey}, true),
        (rawdoc! {"a": {"$lt": 1}}, rawdoc! {"a": nan}, false),
        (rawdoc! {"a": {"$gte": nan}}, rawdoc! {"a": nan}, true),
        (rawdoc! {"a": {"$gt": nan}}, rawdoc! {"a": 1}, false),
        (rawdoc! {"a": nan}, rawdoc! {"a": nan}, true),
        (rawdoc! {"a": {"b": 1}}, rawdoc! {"a": {"b": 1.0}}, true),
        (rawdoc! {"a": {"b": 1}}, rawdoc! {"a": {"b": 1, "c": 2}}, false),
        (rawdoc! {"a": {"b": 1, "c": 2}}, rawdoc! {"a": {"c": 2, "b": 1}}, false),
        (rawdoc! {"a": {"$gt": {"b": 1}}}, rawdoc! {"a": {"b": 2}}, true),
        (
            rawdoc! {"a": {"$ref": "c", "$id": 1}},
            rawdoc! {"a": {"$ref": "c", "$id": 1}},
            true,
        ),
    ]);
}

#[test]
fn null_means_null_or_missing() {
    check(vec![
        (rawdoc! {"a": null}, rawdoc! {}, true),
        (rawdoc! {"a": null}, rawdoc! {"a": null}, true),
        (rawdoc! {"a": null}, rawdoc! {"a": RawBson::Undefined}, true),
        (rawdoc! {"a": null}, rawdoc! {"a": [1, null]}, true),
        (rawdoc! {"a": null}, rawdoc! {"a": []}, false),
        (rawdoc! {"a": null}, rawdoc! {"a": 0}, false),
        (rawdoc! {"a.b": null}, rawdoc! {"a": 5}, true),
        (rawdoc! {"a.b": null}, rawdoc! {"a": []}, false),
        (rawdoc! {"a.b": null}, rawdoc! {"a": [5]}, false),
        (rawdoc! {"a.b": null}, rawdoc! {"a": [{"b": 1}, {}]}, true),
        (rawdoc! {"a": {"$gte": null}}, rawdoc! {}, true),
        (rawdoc! {"a": {"$gt": null}}, rawdoc! {}, false),
        (rawdoc! {"a": {"$ne": null}}, rawdoc! {}, false),
        (rawdoc! {"a": {"$ne": null}}, rawdoc! {"a": 1}, true),
        (rawdoc! {"a": {"$in": [null]}}, rawdoc! {}, true),
        (rawdoc! {"a": {"$nin": [null, 1]}}, rawdoc! {"a": 2}, true),
        (rawdoc! {"a": {"$exists": true}}, rawdoc! {"a": null}, true),
        (rawdoc! {"a": {"$exists": 0}}, rawdoc! {"a": null}, false),
        (rawdoc! {"a": {"$exists": false}}, rawdoc! {}, true),
        (rawdoc! {"a.b": {"$exists": false}}, rawdoc! {"a": []}, true),
    ]);
}

#[test]
fn arrays_are_opened_once() {
    check(vec![
        (rawdoc! {"a": 1}, rawdoc! {"a": [2, 1]}, true),
        (rawdoc! {"a": 1}, rawdoc! {"a": [[1]]}, false),
        (rawdoc! {"a": [1]}, rawdoc! {"a": [1]}, true),
        (rawdoc! {"a": [1]}, rawdoc! {"a": [[1], 2]}, true),
        (rawdoc! {"a": {"$ne": 1}}, rawdoc! {"a": [2, 1]}, false),
        (rawdoc! {"a": {"$gt": 1, "$lt": 1}}, rawdoc! {"a": [0, 2]}, true),
        (rawdoc! {"a": {"$not": {"$gt": 1}}}, rawdoc! {"a": [0, 2]}, false),
        (rawdoc! {"a": {"$not": {"$gt": 1}}}, rawdoc! {}, true),
        (rawdoc! {"a": {"$gt": [1]}}, rawdoc! {"a": [2]}, true),
        (rawdoc! {"a.0": 1}, rawdoc! {"a": [1, 2]}, true),
        (rawdoc! {"a.1": 1}, rawdoc! {"a": [1, 2]}, false),
        (rawdoc! {"a.0": {"$exists": true}}, rawdoc! {"a": []}, false),
        (rawdoc! {"a.0.b": 4}, rawdoc! {"a": [{"b": 4}]}, true),
        (rawdoc! {"a.b": 4}, rawdoc! {"a": [{"b": [3, 4]}]}, true),
        (rawdoc! {"a": {"$size": 2}}, rawdoc! {"a": [1, 2]}, true),
        (rawdoc! {"a": {"$size": 2.0}}, rawdoc! {"a": [[1, 2]]}, false),
        (rawdoc! {"a": {"$size": 0}}, rawdoc! {}, false),
        (rawdoc! {"a.b": {"$size": 1}}, rawdoc! {"a": [{"b": [1]}]}, true),
        (rawdoc! {"a": {"$all": [1, 2]}}, rawdoc! {"a": [2, 3, 1]}, true),
        (rawdoc! {"a": {"$all": [1, 2]}}, rawdoc! {"a": [1]}, false),
        (rawdoc! {"a": {"$all": [1]}}, rawdoc! {"a": 1}, true),
        (rawdoc! {"a": {"$all": []}}, rawdoc! {"a": []}, false),
        (rawdoc! {"a": {"$all": [[1, 2]]}}, rawdoc! {"a": [1, 2]}, true),
        (rawdoc! {"a": {"$all": [regex("^x", "")]}}, rawdoc! {"a": ["xy"]}, true),
        (
            rawdoc! {"a": {"$all": [{"$elemMatch": {"b": 1}}, {"$elemMatch": {"c": 2}}]}},
            rawdoc! {"a": [{"b": 1}, {"c": 2}]},
            true,
        ),
    ]);
}

#[test]
fn one_element_satisfies_all_of_elem_match() {
    check(vec![
        (
            rawdoc! {"a": {"$elemMatch": {"$gt": 1, "$lt": 3}}},
            rawdoc! {"a": [0, 2]},
            true,
        ),
        (
            rawdoc! {"a": {"$elemMatch": {"$gt": 1, "$lt": 1}}},
            rawdoc! {"a": [0, 2]},
            false,
        ),
        (rawdoc! {"a": {"$elemMatch": {"$gt": 1}}}, rawdoc! {"a": 2}, false),
        (rawdoc! {"a": {"$elemMatch": {"$gt": 1}}}, rawdoc! {"a": [[2]]}, false),
        (
            rawdoc! {"a": {"$elemMatch": {"$not": {"$gt": 1}}}},
            rawdoc! {"a": [2, 0]},
            true,
        ),
        (
            rawdoc! {"a": {"$elemMatch": {"$elemMatch": {"$gt": 1}}}},
            rawdoc! {"a": [[2]]},
            true,
        ),
        (
            rawdoc! {"a": {"$elemMatch": {"b": 1, "c": 2}}},
            rawdoc! {"a": [{"b": 1}, {"c": 2}]},
            false,
        ),
        (
            rawdoc! {"a": {"$elemMatch": {"b": 1, "c": 2}}},
            rawdoc! {"a": [{"b": 1, "c": 2}]},
            true,
        ),
        (rawdoc! {"a": {"$elemMatch": {}}}, rawdoc! {"a": [1, {}]}, true),
        (rawdoc! {"a": {"$elemMatch": {}}}, rawdoc! {"a": [1]}, false),
        (rawdoc! {"a": {"$elemMatch": {"0": 1}}}, rawdoc! {"a": [[1]]}, true),
        (
            rawdoc! {"a": {"$elemMatch": {"$or": [{"b": 1}, {"b": 2}]}}},
            rawdoc! {"a": [{"b": 2}]},
            true,
        ),
        (
            rawdoc! {"a.b": {"$elemMatch": {"c": 1}}},
            rawdoc! {"a": [{"b": [{"c": 1}]}]},
            true,
        ),
        (
            rawdoc! {"a": {"$elemMatch": {"$in": [1, 2], "$exists": true}}},
            rawdoc! {"a": [2]},
            true,
        ),
    ]);
}

#[test]
fn other_operators() {
    let data = |bytes: &[u8]| Binary {
        subtype: BinarySubtype::Generic,
        bytes: bytes.to_vec(),
    };
    check(vec![
        (rawdoc! {"$and": [{"a": 1}, {"b": 2}]}, rawdoc! {"a": 1, "b": 2}, true),
        (rawdoc! {"$or": [{"a": 2}, {"b": 2}]}, rawdoc! {"a": 1, "b": 2}, true),
        (rawdoc! {"$nor": [{"a": 2}, {"b": 2}]}, rawdoc! {"a": 1, "b": 2}, false),
        (rawdoc! {"$nor": [{"a": 2}, {"b": 1}]}, rawdoc! {"a": 1, "b": 2}, true),
        (rawdoc! {"$comment": "x", "a": 1}, rawdoc! {"a": 1}, true),
        (rawdoc! {"$alwaysFalse": 1}, rawdoc! {}, false),
        (rawdoc! {"$alwaysTrue": 1.0}, rawdoc! {}, true),
        (rawdoc! {"a": {"$in": [1, "x"]}}, rawdoc! {"a": "x"}, true),
        (rawdoc! {"a": {"$in": []}}, rawdoc! {"a": 1}, false),
        (rawdoc! {"a": {"$in": [regex("^X", "i")]}}, rawdoc! {"a": "xy"}, true),
        (rawdoc! {"a": {"$in": [[1, 2]]}}, rawdoc! {"a": [1, 2]}, true),
        (rawdoc! {"a": {"$nin": [1]}}, rawdoc! {"a": [1, 2]}, false),
        (rawdoc! {"a": {"$type": "number"}}, rawdoc! {"a": 1_i64}, true),
        (rawdoc! {"a": {"$type": 2}}, rawdoc! {"a": [1, "x"]}, true),
        (rawdoc! {"a": {"$type": "array"}}, rawdoc! {"a": [1]}, true),
        (rawdoc! {"a": {"$type": ["bool", "null"]}}, rawdoc! {}, false),
        (rawdoc! {"a": regex("^b", "")}, rawdoc! {"a": "bc"}, true),
        (rawdoc! {"a": regex("^b", "")}, rawdoc! {"a": ["x", "bc"]}, true),
        (rawdoc! {"a": regex("^b", "")}, rawdoc! {"a": 5}, false),
        (rawdoc! {"a": regex("^b", "")}, rawdoc! {"a": regex("^b", "")}, true),
        (rawdoc! {"a": {"$eq": regex("^b", "")}}, rawdoc! {"a": "bc"}, false),
        (
            rawdoc! {"a": {"$eq": regex("^b", "")}},
            rawdoc! {"a": regex("^b", "")},
            true,
        ),
        (
            rawdoc! {"a": {"$regex": "B", "$options": "i"}},
            rawdoc! {"a": "abc"},
            true,
        ),
        (
            rawdoc! {"a": {"$options": "i", "$regex": "B"}},
            rawdoc! {"a": "abc"},
            true,
        ),
        (rawdoc! {"a": {"$regex": regex("B", "i")}}, rawdoc! {"a": "abc"}, true),
        (rawdoc! {"a": {"$not": regex("b", "")}}, rawdoc! {"a": "abc"}, false),
        (rawdoc! {"a": {"$not": {"$regex": "x"}}}, rawdoc! {"a": "abc"}, true),
        (rawdoc! {"a": {"$mod": [4, 1]}}, rawdoc! {"a": 5.9}, true),
        (rawdoc! {"a": {"$mod": [4.7, 1.9]}}, rawdoc! {"a": 9}, true),
        (rawdoc! {"a": {"$mod": [4, -1]}}, rawdoc! {"a": -5}, true),
        (rawdoc! {"a": {"$mod": [-1, 0]}}, rawdoc! {"a": i64::MIN}, true),
        (rawdoc! {"a": {"$mod": [4, 1]}}, rawdoc! {"a": "5"}, false),
        (rawdoc! {"a": {"$bitsAllSet": [1, 5]}}, rawdoc! {"a": 34}, true),
        (rawdoc! {"a": {"$bitsAllSet": 35}}, rawdoc! {"a": 34}, false),
        (rawdoc! {"a": {"$bitsAnySet": 35}}, rawdoc! {"a": 34.0}, true),
        (rawdoc! {"a": {"$bitsAllClear": [0, 2]}}, rawdoc! {"a": 34}, true),
        (rawdoc! {"a": {"$bitsAnyClear": [1, 200]}}, rawdoc! {"a": 34}, true),
        (rawdoc! {"a": {"$bitsAllSet": [200]}}, rawdoc! {"a": -1}, true),
        (
            rawdoc! {"a": {"$bitsAllSet": [200]}},
            rawdoc! {"a": data(&[0xFF])},
            false,
        ),
        (rawdoc! {"a": {"$bitsAllSet": [9]}}, rawdoc! {"a": data(&[0, 2])}, true),
        (rawdoc! {"a": {"$bitsAllSet": data(&[0, 2])}}, rawdoc! {"a": 512}, true),
        (rawdoc! {"a": {"$bitsAllSet": 1}}, rawdoc! {"a": 1.5}, false),
        (
            rawdoc! {"a": {"$bitsAllSet": 42}},
            rawdoc! {"a": decimal("42.13")},
            true,
        ),
        // One byte, after its length in four.
        (rawdoc! {"a": {"$bitsAllSet": [0, 33]}}, rawdoc! {"a": old(&[2])}, true),
    ]);
}

#[test]
fn strings_compare_by_the_collation_of_the_context() {
    let context = Context {
        collation: Collation::parse(&rawdoc! {"locale": "en", "strength": 2}).unwrap(),
        ..context()
    };
    let cases = [
        (rawdoc! {"a": "X"}, rawdoc! {"a": "x"}, true),
        (rawdoc! {"a": {"$in": ["X", "Y"]}}, rawdoc! {"a": "y"}, true),
        (rawdoc! {"a": {"$ne": "X"}}, rawdoc! {"a": "x"}, false),
        (rawdoc! {"a": {"$gt": "B"}}, rawdoc! {"a": "a"}, false),
        (rawdoc! {"a": {"b": "X"}}, rawdoc! {"a": {"b": "x"}}, true),
        (rawdoc! {"a": regex("X", "")}, rawdoc! {"a": "x"}, false),
    ];
    for (filter, document, expected) in cases {
        let found = Filter::parse(&filter).unwrap().matches(&document, &context).unwrap();
        assert_eq!(found, expected, "{filter:?} {document:?}");
    }
}

#[test]
fn one_filter_can_be_evaluated_under_several_collations() {
    let filter = Filter::parse(&rawdoc! {"a": {"$in": ["X", "é"]}}).unwrap();
    let found = |collation: RawDocumentBuf, text: &str| {
        let context = Context {
            collation: Collation::parse(&collation).unwrap(),
            ..context()
        };
        filter.matches(&rawdoc! {"a": text}, &context).unwrap()
    };
    let (second, first) = (
        rawdoc! {"locale": "en", "strength": 2},
        rawdoc! {"locale": "en", "strength": 1},
    );
    assert_eq!([found(second.clone(), "x"), found(second, "e")], [true, false]);
    assert_eq!([found(first.clone(), "x"), found(first, "e")], [true, true]);
    assert!(!found(rawdoc! {"locale": "simple"}, "x"));
}

#[test]
fn the_index_of_the_first_matching_element_is_known() {
    let cases = [
        (rawdoc! {"a": 5}, rawdoc! {"a": [4, 5, 5]}, Some(Some(1))),
        (rawdoc! {"a": 5}, rawdoc! {"a": 5}, Some(None)),
        (rawdoc! {"a": 5}, rawdoc! {"a": [4]}, None),
        (
            rawdoc! {"a.b": 5},
            rawdoc! {"a": [{"b": 4}, {"b": [4, 4, 5]}]},
            Some(Some(1)),
        ),
        (
            rawdoc! {"a": {"$elemMatch": {"$gt": 4}}},
            rawdoc! {"a": [4, 5]},
            Some(Some(1)),
        ),
        (
            rawdoc! {"a.b": {"$elemMatch": {"c": 1}}},
            rawdoc! {"a": [{}, {}, {"b": [{"c": 1}]}]},
            Some(Some(2)),
        ),
        (rawdoc! {"a.0": 5}, rawdoc! {"a": [5]}, Some(None)),
        (rawdoc! {"x": 1, "a": 5}, rawdoc! {"a": [4, 5], "x": [1]}, Some(Some(1))),
        (rawdoc! {"a": {"$ne": 5}}, rawdoc! {"a": [4]}, Some(None)),
        (
            rawdoc! {"$or": [{"a": 9}, {"a": 5}]},
            rawdoc! {"a": [4, 5]},
            Some(Some(1)),
        ),
    ];
    for (filter, document, expected) in cases {
        let found = Filter::parse(&filter)
            .unwrap()
            .matches_with(&document, &context())
            .unwrap();
        assert_eq!(
            found.map(|details| details.array_index),
            expected,
            "{filter:?} {document:?}"
        );
    }
}

#[test]
fn values_match_conditions_on_an_element() {
    let cases = [
        (rawdoc! {"x": {"$gt": 2}}, rawdoc! {"v": 3}, true),
        (rawdoc! {"x": {"$gt": 2}}, rawdoc! {"v": [3]}, true),
        (rawdoc! {"x.a": 1, "x.b": 2}, rawdoc! {"v": {"a": 1, "b": 2}}, true),
        (rawdoc! {"x.a": 1}, rawdoc! {"v": 1}, false),
        (rawdoc! {"$or": [{"x": 1}, {"x.a": 1}]}, rawdoc! {"v": {"a": 1}}, true),
        (rawdoc! {"x": {"$elemMatch": {"$gt": 2}}}, rawdoc! {"v": [3]}, true),
    ];
    for (filter, holder, expected) in cases {
        let value = holder.get("v").unwrap().unwrap();
        let found = Filter::parse(&filter)
            .unwrap()
            .matches_value(value, &context())
            .unwrap();
        assert_eq!(found, expected, "{filter:?} {holder:?}");
    }
}

#[test]
fn expr_compares_fields_and_variables_without_brackets() {
    let context = Context {
        variables: [("least".to_owned(), RawBson::Int32(3))].into(),
        ..context()
    };
    let scope = crate::expression::ParseScope::new(&context);
    let cases = [
        (rawdoc! {"$expr": {"$gt": ["$a", "$b"]}}, rawdoc! {"a": 2, "b": 1}, true),
        (
            rawdoc! {"$expr": {"$gt": ["$a", "$b"]}},
            rawdoc! {"a": "x", "b": 1},
            true,
        ),
        (rawdoc! {"$expr": {"$gte": ["$a", "$$least"]}}, rawdoc! {"a": 2}, false),
        (
            rawdoc! {"$or": [{"b": 1}, {"$expr": {"$eq": ["$a", 2]}}]},
            rawdoc! {"a": 2},
            true,
        ),
        (rawdoc! {"$expr": "$a"}, rawdoc! {"a": 0}, false),
    ];
    for (filter, document, expected) in cases {
        let parsed = Filter::parse_in(&filter, &scope).unwrap();
        assert_eq!(
            parsed.matches(&document, &context).unwrap(),
            expected,
            "{filter:?} {document:?}"
        );
    }
    let unknown = Filter::parse(&rawdoc! {"$expr": {"$eq": ["$$least", 1]}}).unwrap_err();
    assert_eq!(unknown.code.0, 17276);
}

#[test]
fn a_sample_has_about_the_rate_that_is_asked_for() {
    let sample = |rate: f64| {
        let filter = Filter::parse(&rawdoc! {"$sampleRate": rate}).unwrap();
        (0..2000)
            .filter(|_| filter.matches(&rawdoc! {}, &context()).unwrap())
            .count()
    };
    assert_eq!((sample(0.0), sample(1.0)), (0, 2000));
    let half = sample(0.5);
    assert!((700..1300).contains(&half), "{half}");
}
