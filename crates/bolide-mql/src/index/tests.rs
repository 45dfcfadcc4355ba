//! Random documents: keys and dates against a plain evaluation of one path, and nothing that panics.

use std::collections::BTreeSet;

use bson::raw::{RawArrayBuf, RawBson, RawBsonRef, RawDocument, RawDocumentBuf};
use bson::{DateTime, rawdoc};
use proptest::prelude::*;

use super::definition::append;
use super::*;
use crate::value;

const PATHS: [&str; 4] = ["a", "a.b", "b.a", "a.b.a"];

fn scalar() -> impl Strategy<Value = RawBson> {
    prop_oneof![
        Just(RawBson::Null),
        (-2..3_i32).prop_map(RawBson::Int32),
        (-2..3_i32).prop_map(|number| RawBson::Double(number.into())),
        "[xy]{0,2}".prop_map(RawBson::String),
        (-3..3_i64).prop_map(|millis| RawBson::DateTime(DateTime::from_millis(millis))),
    ]
}

fn value() -> impl Strategy<Value = RawBson> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(array),
            prop::collection::vec(("[ab01]", inner), 0..3).prop_map(|fields| RawBson::Document(document(fields))),
        ]
    })
}

fn array(items: Vec<RawBson>) -> RawBson {
    let mut array = RawArrayBuf::new();
    for item in items {
        array.push(item);
    }
    RawBson::Array(array)
}

/// Names come once: the first value stays.
fn document(fields: Vec<(String, RawBson)>) -> RawDocumentBuf {
    let mut document = RawDocumentBuf::new();
    let mut names = BTreeSet::new();
    for (name, value) in fields {
        if names.insert(name.clone()) {
            append(&mut document, &name, value.as_raw_bson_ref());
        }
    }
    document
}

fn root() -> impl Strategy<Value = RawDocumentBuf> {
    prop::collection::vec(("[ab]", value()), 0..3).prop_map(document)
}

/// The values of one path without numbers, as mongo.md §14 and §18.1 tell them.
fn plain_values(value: RawBsonRef<'_>, path: &[&str]) -> Vec<RawBson> {
    match (value, path) {
        (RawBsonRef::Array(items), []) if items.is_empty() => vec![RawBson::Undefined],
        (RawBsonRef::Array(items), []) => items.into_iter().flatten().map(RawBson::from).collect(),
        (value, []) => vec![value.into()],
        (RawBsonRef::Document(object), [name, rest @ ..]) => match object.get(*name).ok().flatten() {
            Some(inner) => plain_values(inner, rest),
            None => vec![RawBson::Null],
        },
        (RawBsonRef::Array(items), path) if !items.is_empty() => items
            .into_iter()
            .flatten()
            .flat_map(|item| match item {
                RawBsonRef::Document(_) => plain_values(item, path),
                _ => vec![RawBson::Null],
            })
            .collect(),
        _ => vec![RawBson::Null],
    }
}

fn index(specification: &RawDocument) -> IndexDefinition {
    IndexDefinition::parse(specification, &ParseOptions::default()).expect("an index")
}

fn on_path(path: &str) -> RawDocumentBuf {
    let mut key = RawDocumentBuf::new();
    append(&mut key, path, RawBsonRef::Int32(1));
    key
}

proptest! {
    #[test]
    fn keys_and_dates_are_those_of_the_path(document in root(), path in prop::sample::select(&PATHS[..])) {
        let definition = index(&rawdoc! {"key": on_path(path), "name": "n", "expireAfterSeconds": 1});
        let names: Vec<&str> = path.split('.').collect();
        let values = plain_values(RawBsonRef::Document(&document), &names);
        let expected: BTreeSet<Vec<u8>> = values.iter().map(|each| value::key::of(each.as_raw_bson_ref(), None)).collect();
        let found = keys(&definition, &document).expect("keys");
        prop_assert!(found.keys.windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert_eq!(found.keys.into_iter().collect::<BTreeSet<_>>(), expected);
        let dates = values.iter().filter_map(|each| match each {
            RawBson::DateTime(date) => Some(date.timestamp_millis()),
            _ => None,
        });
        let earliest = date_rule(&definition, &document, TtlMode::Mongodb).expect("a date");
        prop_assert_eq!(earliest.map(|date| date.0), dates.min());
    }

    #[test]
    fn no_document_panics(document in root()) {
        let specifications = [
            rawdoc! {"key": {"a.0.b": 1, "a.b": -1, "b.1": 1}, "name": "n"},
            rawdoc! {"key": {"a": 1, "b": 1}, "name": "n", "sparse": true},
            rawdoc! {"key": {"a.b": "hashed", "b": 1}, "name": "n"},
            rawdoc! {"key": {"$**": 1}, "name": "n"},
            rawdoc! {"key": {"a": "2dsphere"}, "name": "n"},
            rawdoc! {"key": {"a": "2d"}, "name": "n"},
            rawdoc! {"key": {"a": 1}, "name": "n", "partialFilterExpression": {"a.b": {"$gt": 0}}},
        ];
        for specification in specifications {
            let definition = index(&specification);
            if let Ok(found) = keys(&definition, &document) {
                for key in found.keys {
                    let error = duplicate_key_error(&definition, "db.c", &document, &key);
                    prop_assert_eq!(error.code.0, 11000);
                }
            }
        }
    }
}
