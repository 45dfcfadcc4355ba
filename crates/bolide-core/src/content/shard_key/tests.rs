use bolide_mql::bson::oid::ObjectId;
use bolide_mql::bson::{Decimal128, rawdoc};

use super::*;
use crate::content::logical;

fn place(value: impl Into<RawBson>) -> Epk {
    let key = ShardKey::parse("k").expect("a shard key");
    key.place_of(value.into().as_raw_bson_ref())
}

fn decimal(text: &str) -> Decimal128 {
    text.parse().expect("a decimal")
}

#[test]
fn equal_values_have_one_place_whatever_their_types() {
    for equal in [place(1_i64), place(1.0), place(decimal("1.00"))] {
        assert_eq!(equal, place(1_i32));
    }
    assert_eq!(place(-0.0), place(0_i32));
    assert_eq!(place(decimal("0.1")), place(decimal("0.10")));
    assert_eq!(place(f64::NAN), place(decimal("NaN")));
}

#[test]
fn different_values_have_different_places() {
    let places = [
        place(1_i32),
        place("1"),
        place(true),
        place(RawBson::Null),
        place(0.1),
        place(decimal("0.1")),
        // The nearest double of both is the same.
        place(9_007_199_254_740_993_i64),
        place(9_007_199_254_740_992_i64),
        place(rawdoc! {"a": 1}),
        place(ObjectId::from_bytes([1; 12])),
        place(ObjectId::from_bytes([2; 12])),
    ];
    for (at, one) in places.iter().enumerate() {
        assert!(!places[..at].contains(one), "{at}");
    }
}

#[test]
fn a_place_begins_with_the_hash_of_the_partition_key_and_is_as_long_as_a_logical_partition() {
    let shard_key = ShardKey::parse("a.b").expect("a shard key");
    let definition = shard_key.definition();
    for (value, component) in [
        (RawBson::String("x".to_owned()), Component::String("x".to_owned())),
        (RawBson::Int32(5), Component::Number(5.0)),
        (RawBson::Null, Component::Null),
        (RawBson::Boolean(false), Component::Bool(false)),
    ] {
        let key = PartitionKey(vec![component]);
        let place = shard_key.place_of(value.as_raw_bson_ref());
        assert!(
            place.as_bytes().starts_with(Epk::of(definition, &key).as_bytes()),
            "{value:?}"
        );
        assert_eq!(
            logical::length_in(definition, place.as_bytes()),
            Some(place.as_bytes().len())
        );
        assert_eq!(shard_key.place_of_key(&key), place);
    }
}

#[test]
fn documents_without_a_shard_key_or_with_arrays_on_its_path_are_refused() {
    let key = ShardKey::parse("a.b").expect("a shard key");
    let code = |document: RawBson| {
        key.place_in(document.as_document().expect("a document"))
            .map_err(|error| error.code)
    };
    assert!(code(RawBson::Document(rawdoc! {"a": {"b": RawBson::Null}})).is_ok());
    for (document, expected) in [
        (rawdoc! {"a": 1}, Code::SHARD_KEY_NOT_FOUND),
        (rawdoc! {"a": {"c": 1}}, Code::SHARD_KEY_NOT_FOUND),
        (rawdoc! {"a": {"b": [1]}}, Code::BAD_VALUE),
        (rawdoc! {"a": [{"b": 1}]}, Code::BAD_VALUE),
    ] {
        assert_eq!(code(RawBson::Document(document.clone())), Err(expected), "{document:?}");
    }
}
