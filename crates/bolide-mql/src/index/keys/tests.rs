use bson::raw::RawBson;
use bson::{rawbson, rawdoc};

use super::super::specification::ParseOptions;
use super::*;

fn index(specification: &RawDocument) -> IndexDefinition {
    IndexDefinition::parse(specification, &ParseOptions::default()).expect("an index")
}

fn count(definition: &IndexDefinition, document: &RawDocument) -> Option<usize> {
    keys(definition, document).ok().map(|keys| keys.keys.len())
}

fn only_key(definition: &IndexDefinition, document: &RawDocument) -> Vec<u8> {
    let keys = keys(definition, document).expect("keys").keys;
    assert_eq!(keys.len(), 1, "{}", value::text::render_document(document));
    keys[0].clone()
}

#[test]
fn equal_values_have_one_key_and_missing_is_null() {
    let a = index(&rawdoc! {"key": {"a": 1}, "name": "n"});
    let decimal: bson::Decimal128 = "1.0".parse().expect("a decimal");
    let one = only_key(&a, &rawdoc! {"a": 1});
    assert_eq!(only_key(&a, &rawdoc! {"a": 1.0}), one);
    assert_eq!(only_key(&a, &rawdoc! {"a": 1_i64}), one);
    assert_eq!(only_key(&a, &rawdoc! {"a": decimal}), one);
    assert_ne!(only_key(&a, &rawdoc! {"a": true}), one);
    let null = only_key(&a, &rawdoc! {"a": RawBson::Null});
    assert_eq!(only_key(&a, &rawdoc! {}), null);
    assert_ne!(only_key(&a, &rawdoc! {"a": []}), null);
}

#[test]
fn keys_are_in_the_order_of_the_index() {
    let up_down = index(&rawdoc! {"key": {"a": 1, "b": -1}, "name": "n"});
    let in_order = [
        rawdoc! {"b": 2},
        rawdoc! {"b": 1},
        rawdoc! {},
        rawdoc! {"a": -1, "b": 1},
        rawdoc! {"a": 1, "b": "x"},
        rawdoc! {"a": 1, "b": 10},
        rawdoc! {"a": 1, "b": 9.5},
        rawdoc! {"a": 1},
        rawdoc! {"a": "a", "b": "bb"},
        rawdoc! {"a": "a", "b": "b"},
        rawdoc! {"a": "a", "b": ""},
        rawdoc! {"a": "ab", "b": "z"},
        rawdoc! {"a": {"x": 1}},
    ];
    let keys: Vec<Vec<u8>> = in_order.iter().map(|document| only_key(&up_down, document)).collect();
    assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn arrays_have_a_key_for_each_value_once() {
    let a = index(&rawdoc! {"key": {"a": 1, "b": 1}, "name": "n"});
    let document = rawdoc! {"a": [3, 1, 3.0, 2], "b": 1};
    let found = keys(&a, &document).expect("keys");
    let expected = [1, 2, 3].map(|value| only_key(&a, &rawdoc! {"a": value, "b": 1}));
    assert_eq!(found.keys.as_slice(), &expected);
    assert!(found.is_multikey);
    assert!(!keys(&a, &rawdoc! {"a": 1}).expect("keys").is_multikey);
    let error = keys(&a, &rawdoc! {"a": [1], "b": [2]}).err();
    assert_eq!(error.map(|error| error.code), Some(Code::CANNOT_INDEX_PARALLEL_ARRAYS));
}

#[test]
fn sparse_indexes_leave_documents_out() {
    let sparse = index(&rawdoc! {"key": {"a": 1}, "name": "n", "sparse": true});
    assert_eq!(count(&sparse, &rawdoc! {"b": 1}), Some(0));
    assert_eq!(count(&sparse, &rawdoc! {"a": RawBson::Null}), Some(1));
    let compound = index(&rawdoc! {"key": {"a": 1, "b": 1}, "name": "n", "sparse": true});
    assert_eq!(count(&compound, &rawdoc! {"b": 1}), Some(1));
    assert_eq!(count(&compound, &rawdoc! {"c": 1}), Some(0));
}

#[test]
fn partial_indexes_leave_documents_out() {
    let filter = rawdoc! {"a": {"$gt": 5}};
    let partial = index(&rawdoc! {"key": {"a": 1}, "name": "n", "unique": true, "partialFilterExpression": filter});
    assert_eq!(count(&partial, &rawdoc! {"a": 6}), Some(1));
    assert_eq!(count(&partial, &rawdoc! {"a": 5}), Some(0));
    assert_eq!(count(&partial, &rawdoc! {}), Some(0));
    // All elements of a document that matches have keys.
    assert_eq!(count(&partial, &rawdoc! {"a": [1, 6]}), Some(2));
}

#[test]
fn strings_are_equal_by_the_collation() {
    let collation = rawdoc! {"locale": "en", "strength": 2};
    let folded = index(&rawdoc! {"key": {"a": 1}, "name": "n", "collation": collation});
    let lower = only_key(&folded, &rawdoc! {"a": "straw"});
    assert_eq!(only_key(&folded, &rawdoc! {"a": "STRAW"}), lower);
    assert_ne!(only_key(&folded, &rawdoc! {"a": "sträw"}), lower);
}

#[test]
fn hashed_keys_have_one_length_and_no_arrays() {
    let hashed = index(&rawdoc! {"key": {"a.b": "hashed", "c": -1}, "name": "n"});
    let long = only_key(&hashed, &rawdoc! {"a": {"b": "x".repeat(5000)}});
    assert_eq!(long.len(), only_key(&hashed, &rawdoc! {}).len());
    assert_eq!(
        only_key(&hashed, &rawdoc! {"a": {"b": 1}}),
        only_key(&hashed, &rawdoc! {"a": {"b": 1.0}})
    );
    let array = |document: &RawDocument| keys(&hashed, document).map_err(|error| (error.code.0, error.message));
    let text = "Error: hashed indexes do not currently support array values. Found array at path: ";
    assert_eq!(array(&rawdoc! {"a": [{"b": 1}]}), Err((16766, format!("{text}a"))));
    assert_eq!(array(&rawdoc! {"a": {"b": [1]}}), Err((16766, format!("{text}a.b"))));
    assert_eq!(array(&rawdoc! {"c": [1]}), Err((16766, format!("{text}c"))));
}

#[test]
fn wildcard_keys_begin_with_the_path() {
    let wildcard = index(&rawdoc! {"key": {"$**": 1}, "name": "n"});
    let document = rawdoc! {"_id": 1, "a": 1, "b": [1, 1, {"c": 2}]};
    assert_eq!(count(&wildcard, &document), Some(3));
    let mut expected = Vec::new();
    value::key::encode(RawBsonRef::String("a"), None, &mut expected);
    value::key::encode(RawBsonRef::Int32(1), None, &mut expected);
    assert_eq!(only_key(&wildcard, &rawdoc! {"a": 1}), expected);
}

#[test]
fn keys_without_end_are_refused() {
    let both = index(&rawdoc! {"key": {"big": 1, "items": 1}, "name": "n"});
    let mut items = RawArrayBuf::new();
    for item in 0..10_000 {
        items.push(item);
    }
    let document = rawdoc! {"big": "x".repeat(10_000), "items": items};
    let error = keys(&both, &document).err();
    assert_eq!(error.map(|error| error.code), Some(Code::CANNOT_BUILD_INDEX_KEYS));
}

#[test]
fn a_duplicate_is_told_as_mongodb_tells_it() {
    let cases = [
        (
            rawdoc! {"key": {"email": 1}, "name": "email_1", "unique": true},
            rawdoc! {"_id": 2, "email": "a@x"},
            "E11000 duplicate key error collection: db.c index: email_1 dup key: { email: \"a@x\" }",
            rawdoc! {"keyPattern": {"email": 1}, "keyValue": {"email": "a@x"}},
        ),
        (
            rawdoc! {"key": {"a": 1, "b.c": -1}, "name": "n", "unique": true},
            rawdoc! {"_id": 2, "b": {"c": 5}},
            "E11000 duplicate key error collection: db.c index: n dup key: { a: null, b.c: 5 }",
            rawdoc! {"keyPattern": {"a": 1, "b.c": -1}, "keyValue": {"a": RawBson::Null, "b.c": 5}},
        ),
        (
            rawdoc! {"key": {"_id": 1}, "name": "_id_"},
            rawdoc! {"_id": 1},
            "E11000 duplicate key error collection: db.c index: _id_ dup key: { _id: 1 }",
            rawdoc! {"keyPattern": {"_id": 1}, "keyValue": {"_id": 1}},
        ),
    ];
    for (specification, document, text, details) in cases {
        let definition = index(&specification);
        let key = only_key(&definition, &document);
        let error = duplicate_key_error(&definition, "db.c", &document, &key);
        assert_eq!((error.code.0, error.message.as_str()), (11000, text));
        assert_eq!(error.details.map(|details| *details), Some(details));
    }
}

#[test]
fn the_duplicate_of_an_array_is_the_value_in_question() {
    let definition = index(&rawdoc! {"key": {"tags": 1}, "name": "tags_1", "unique": true});
    let key = only_key(&definition, &rawdoc! {"tags": "b"});
    let error = duplicate_key_error(&definition, "db.c", &rawdoc! {"tags": ["a", "b"]}, &key);
    assert!(error.message.ends_with("dup key: { tags: \"b\" }"), "{}", error.message);
}

#[test]
fn a_duplicate_by_collation_shows_the_sort_key() {
    let collation = rawdoc! {"locale": "en", "strength": 2};
    let definition = index(&rawdoc! {"key": {"s": 1}, "name": "ix", "unique": true, "collation": collation});
    let document = rawdoc! {"s": "A"};
    let key = only_key(&definition, &document);
    let error = duplicate_key_error(&definition, "t.t", &document, &key);
    let head = "E11000 duplicate key error collection: t.t index: ix collation: { locale: \"en\", ";
    assert!(error.message.starts_with(head), "{}", error.message);
    let value = "dup key: { s: \"CollationKey(0x";
    assert!(error.message.contains(value), "{}", error.message);
    let details = error.details.expect("details");
    let hex = details
        .get_array("hexEncoded")
        .map(|flags| RawBson::Array(flags.to_owned()));
    assert_eq!(hex.ok(), Some(rawbson!([true])));
    assert!(details.get_document("collation").is_ok());
}
