use bson::spec::BinarySubtype;
use bson::{Binary, RawBson, rawbson};

use super::{codes, evaluate, missing, values};

#[test]
fn merging() {
    values! {
        {"$mergeObjects": [{"a": 1, "b": 1}, null, "$missing", {"b": 2, "c": 3}]} => {"a": 1, "b": 2, "c": 3},
        {"$mergeObjects": "$sub"} => {"k": "v", "deep": {"z": true}},
        {"$mergeObjects": []} => {},
        {"$mergeObjects": [[{"a": 1}, {"b": 2}]]} => {"a": 1, "b": 2},
    }
    codes! {
        {"$mergeObjects": [1]} => 40400,
    }
}

#[test]
fn fields_by_name() {
    values! {
        {"$getField": "n"} => 5,
        {"$getField": {"field": "k", "input": "$sub"}} => "v",
        {"$getField": {"field": {"$literal": "$x"}, "input": {"$literal": {"$x": 1}}}} => 1,
        {"$getField": {"field": {"$const": "a.b"}, "input": {"$arrayToObject": [[["a.b", 1]]]}}} => 1,
        {"$getField": {"field": "k", "input": null}} => null,
        {"$setField": {"field": "k", "input": "$sub", "value": 1}} => {"k": 1, "deep": {"z": true}},
        {"$setField": {"field": "a.b", "input": {}, "value": 1}} => {"a.b": 1},
        {"$setField": {"field": "k", "input": "$sub", "value": "$$REMOVE"}} => {"deep": {"z": true}},
        {"$setField": {"field": "k", "input": null, "value": 1}} => null,
        {"$unsetField": {"field": "k", "input": "$sub"}} => {"deep": {"z": true}},
    }
    missing! {
        {"$getField": {"field": "x", "input": "$sub"}},
        {"$getField": {"field": "x", "input": "$n"}},
        {"$getField": {"field": "x", "input": "$missing"}},
    }
    codes! {
        {"$getField": {"field": "x"}} => 3_041_703,
        {"$getField": {"input": {}}} => 3_041_702,
        {"$getField": {"field": "x", "input": {}, "y": 1}} => 3_041_701,
        {"$getField": {"$concat": ["$text", "a"]}} => 5_654_600,
        {"$getField": 1} => 5_654_601,
        {"$getField": "$text"} => 5_654_602,
        {"$setField": 1} => 4_161_100,
        {"$setField": {"x": 1}} => 4_161_101,
        {"$setField": {"input": {}, "value": 1}} => 4_161_102,
        {"$setField": {"field": "x", "input": {}}} => 4_161_103,
        {"$setField": {"field": "x", "input": 1, "value": 1}} => 4_161_105,
        {"$setField": {"field": {"$concat": ["$text"]}, "input": {}, "value": 1}} => 4_161_106,
        {"$setField": {"field": 1, "input": {}, "value": 1}} => 4_161_107,
        {"$setField": {"field": "$x", "input": {}, "value": 1}} => 4_161_108,
        {"$unsetField": {"field": "x"}} => 4_161_109,
    }
}

/// The first value is that of MongoDB's documentation; the others follow from the definition.
#[test]
fn hashes_of_indexes() {
    values! {
        {"$toHashedIndexKey": "string to hash"} => 763_543_691_661_428_748_i64,
        {"$toHashedIndexKey": 1} => 5_902_408_780_260_971_510_i64,
        {"$toHashedIndexKey": 1.9} => 5_902_408_780_260_971_510_i64,
        {"$toHashedIndexKey": "$no"} => 2_338_878_944_348_059_895_i64,
        {"$toHashedIndexKey": null} => 2_338_878_944_348_059_895_i64,
        {"$toHashedIndexKey": {"$literal": {"a": [true]}}} => 8_383_437_363_401_494_952_i64,
    }
    codes! {
        {"$toHashedIndexKey": [1, 2]} => 16020,
    }
}

#[test]
fn sizes() {
    let binary = RawBson::Binary(Binary {
        subtype: BinarySubtype::Generic,
        bytes: vec![1, 2, 3],
    });
    values! {
        {"$binarySize": "é"} => 2,
        {"$binarySize": (binary)} => 3,
        {"$binarySize": null} => null,
        {"$bsonSize": {"$literal": {"a": 1}}} => 12,
        {"$bsonSize": null} => null,
    }
    codes! {
        {"$binarySize": 1} => 51276,
        {"$bsonSize": 1} => 31393,
        {"$rand": 1} => 10065,
        {"$rand": {"a": 1}} => 3_040_501,
        {"$meta": "x"} => 17308,
        {"$meta": 1} => 17307,
    }
    missing! {
        {"$meta": "textScore"},
    }
}

#[test]
fn random_numbers_are_from_zero_to_one_and_differ() {
    let numbers: Vec<f64> = (0..100)
        .map(|_| {
            evaluate(rawbson!({"$rand": {}}).as_raw_bson_ref())
                .unwrap()
                .unwrap()
                .as_f64()
                .unwrap()
        })
        .collect();
    assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
    let low = numbers.iter().filter(|number| **number < 0.5).count();
    assert!((10..=90).contains(&low), "{low} of 100 are below one half");
}
