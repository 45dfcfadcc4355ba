use bson::{RawDocumentBuf, rawdoc};

use super::regex;
use crate::collation::Collation;
use crate::filter::Filter;
use crate::value::text::render;

fn parse(filter: &RawDocumentBuf) -> Filter {
    Filter::parse(filter).unwrap()
}

#[test]
fn equalities_are_what_an_upsert_takes() {
    let cases = [
        (
            rawdoc! {"a": 1, "b": {"$eq": "x"}, "c": {"$gt": 1}},
            vec!["a: 1", "b: \"x\""],
        ),
        (rawdoc! {"$and": [{"b": 2}, {"a.b": null}]}, vec!["b: 2", "a.b: null"]),
        (rawdoc! {"$or": [{"a": 1}]}, vec!["a: 1"]),
        (rawdoc! {"$or": [{"a": 1}, {"b": 1}]}, vec![]),
        (
            rawdoc! {"a": {"$in": [1]}, "b": {"$in": [1, 2]}, "c": {"$all": [3]}},
            vec!["a: 1", "c: 3"],
        ),
        (rawdoc! {"a": {"$in": [regex("x", "")]}, "b": regex("x", "")}, vec![]),
        (
            rawdoc! {"a": {"$ne": 1}, "b": {"$not": {"$eq": 1}}, "$nor": [{"c": 1}]},
            vec![],
        ),
        (rawdoc! {"a": {"$elemMatch": {"b": 1}}}, vec![]),
    ];
    for (filter, expected) in cases {
        let parsed = parse(&filter);
        let found = parsed.equalities().unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|(path, value)| format!("{path}: {}", render(value.as_raw_bson_ref())))
            .collect();
        assert_eq!(found, expected, "{filter:?}");
    }
}

#[test]
fn equalities_on_overlapping_paths_are_refused() {
    let cases = [
        (
            rawdoc! {"a": 1, "$and": [{"a": 1}]},
            "cannot infer query fields to set, path 'a' is matched twice",
        ),
        (
            rawdoc! {"a": {"$all": [1, 2]}},
            "cannot infer query fields to set, path 'a' is matched twice",
        ),
        (
            rawdoc! {"a.b": 1, "a": 1},
            "cannot infer query fields to set, both paths 'a.b' and 'a' are matched",
        ),
    ];
    for (filter, message) in cases {
        let error = parse(&filter).equalities().unwrap_err();
        assert_eq!((error.code.0, error.message.as_str()), (54, message));
    }
    assert!(
        parse(&rawdoc! {"ab": 1, "a": 1, "a!": 1, "b.c": 1})
            .equalities()
            .is_ok()
    );
}

#[test]
fn ids_are_known_where_the_filter_states_them() {
    let collation = Collation::parse(&rawdoc! {"locale": "en", "strength": 2}).unwrap();
    let cases = [
        (rawdoc! {"_id": 1}, Some(1), Some(1)),
        (rawdoc! {"_id": "x"}, Some(1), None),
        (rawdoc! {"_id": {"$in": [1, 2]}, "a": 1}, Some(2), Some(2)),
        (rawdoc! {"_id": {"$in": [1, "x"]}}, Some(2), None),
        (
            rawdoc! {"$and": [{"_id": {"$in": [1, 2]}}, {"_id": 1}]},
            Some(1),
            Some(1),
        ),
        (rawdoc! {"$or": [{"_id": 1}, {"_id": 2}]}, None, None),
        (rawdoc! {"_id": {"$gt": 1}}, None, None),
        (rawdoc! {"_id": null}, None, None),
        (rawdoc! {"_id": regex("x", "")}, None, None),
        (rawdoc! {"_id": {"$in": [regex("x", "")]}}, None, None),
        (rawdoc! {"_id": {"$in": []}}, Some(0), Some(0)),
        (rawdoc! {"a": 1}, None, None),
    ];
    for (filter, plain, collated) in cases {
        let parsed = parse(&filter);
        assert_eq!(parsed.id_in(None).map(|ids| ids.len()), plain, "{filter:?}");
        assert_eq!(
            parsed.id_in(collation.as_deref()).map(|ids| ids.len()),
            collated,
            "{filter:?}"
        );
        assert_eq!(parsed.id_equality(None).is_some(), plain == Some(1), "{filter:?}");
    }
}

#[test]
fn emptiness_and_paths() {
    assert!(parse(&rawdoc! {}).is_empty() && parse(&rawdoc! {"$comment": "x"}).is_empty());
    assert!(!parse(&rawdoc! {"a": 1}).is_empty() && !parse(&rawdoc! {"$or": [{}]}).is_empty());
    let filter = rawdoc! {"a": {"$gt": 1, "$ne": 2}, "$or": [{"b.c": 1}, {"a": 1}], "d": {"$elemMatch": {"e": 1}}};
    assert_eq!(parse(&filter).paths(), ["a", "b.c", "d"]);
}
