use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, RawBson};

use super::{codes, date, decimal, values};

fn id() -> RawBson {
    RawBson::ObjectId(ObjectId::from_bytes([0x5E, 0x5A, 0x5B, 0xF0, 1, 2, 3, 4, 5, 6, 7, 8]))
}

fn binary(subtype: BinarySubtype, bytes: &[u8]) -> RawBson {
    RawBson::Binary(Binary {
        subtype,
        bytes: bytes.to_vec(),
    })
}

#[test]
fn names_of_types() {
    values! {
        {"$type": "$n"} => "int",
        {"$type": "$missing"} => "missing",
        {"$type": [null]} => "null",
        {"$type": [[1]]} => "array",
        {"$type": (1_i64)} => "long",
        {"$isNumber": 1.5} => true,
        {"$isNumber": "$text"} => false,
    }
}

#[test]
fn to_numbers() {
    values! {
        {"$toInt": "42"} => 42,
        {"$toInt": "-7"} => (-7),
        {"$toInt": 2.9} => 2,
        {"$toInt": (-2.9)} => (-2),
        {"$toInt": true} => 1,
        {"$toInt": (decimal("2.9"))} => 2,
        {"$toInt": null} => null,
        {"$toInt": "$missing"} => null,
        {"$toInt": ["5"]} => 5,
        {"$toLong": "$date"} => 1_582_979_696_789_i64,
        {"$toLong": 5} => 5_i64,
        {"$toDouble": "1e3"} => 1000.0,
        {"$toDouble": "-1.5"} => (-1.5),
        {"$toDouble": "$date"} => 1_582_979_696_789.0,
        {"$toDouble": false} => 0.0,
        {"$toDouble": (decimal("2.5"))} => 2.5,
        {"$toDecimal": 2.5} => (decimal("2.50000000000000")),
        {"$toDecimal": "1.10"} => (decimal("1.10")),
        {"$toDecimal": 5_i64} => (decimal("5")),
        {"$toDecimal": (-0.0)} => (decimal("-0")),
    }
    codes! {
        {"$toInt": "abc"} => 241,
        {"$toInt": ""} => 241,
        {"$toInt": "1.5"} => 241,
        {"$toInt": "0x10"} => 241,
        {"$toInt": "2147483648"} => 241,
        {"$toInt": 2_147_483_648_i64} => 241,
        {"$toInt": (f64::NAN)} => 241,
        {"$toInt": (f64::INFINITY)} => 241,
        {"$toInt": "$date"} => 241,
        {"$toInt": "$sub"} => 241,
        {"$toLong": 1e19} => 241,
        {"$toDouble": "x"} => 241,
        {"$toDouble": (decimal("1E+1000"))} => 241,
        {"$toDecimal": "x"} => 241,
        {"$toInt": [1, 2]} => 50723,
    }
}

#[test]
fn to_other_types() {
    values! {
        {"$toBool": "false"} => true,
        {"$toBool": ""} => true,
        {"$toBool": 0} => false,
        {"$toBool": (f64::NAN)} => true,
        {"$toBool": "$date"} => true,
        {"$toBool": "$sub"} => true,
        {"$toBool": null} => null,
        {"$toString": 2.5} => "2.5",
        {"$toString": 3.0} => "3",
        {"$toString": 1e20} => "1e+20",
        {"$toString": (f64::NEG_INFINITY)} => "-Infinity",
        {"$toString": true} => "true",
        {"$toString": "$id"} => "5e5a5bf00102030405060708",
        {"$toString": "$date"} => "2020-02-29T12:34:56.789Z",
        {"$toString": (decimal("1.10"))} => "1.10",
        {"$toString": 12_i64} => "12",
        {"$toObjectId": "5e5a5bf00102030405060708"} => (id()),
        {"$toDate": "$id"} => (date(1_582_980_080_000)),
        {"$toDate": "2020-02-29T12:34:56.789Z"} => (date(1_582_979_696_789)),
        {"$toDate": 1000_i64} => (date(1000)),
        {"$toDate": 1000.9} => (date(1000)),
        {"$toDate": "$stamp"} => (date(1_582_979_696_000)),
    }
    codes! {
        {"$toString": "$sub"} => 241,
        {"$toString": "$list"} => 241,
        {"$toObjectId": "abc"} => 241,
        {"$toObjectId": "zzzzzzzzzzzzzzzzzzzzzzzz"} => 241,
        {"$toObjectId": 1} => 241,
        {"$toDate": 1} => 241,
        {"$toDate": true} => 241,
        {"$toDate": "tomorrow"} => 241,
    }
}

#[test]
fn convert_with_its_options() {
    values! {
        {"$convert": {"input": "5", "to": "int"}} => 5,
        {"$convert": {"input": "5", "to": 16}} => 5,
        {"$convert": {"input": "x", "to": "int", "onError": "bad"}} => "bad",
        {"$convert": {"input": null, "to": "int", "onNull": "none"}} => "none",
        {"$convert": {"input": "$missing", "to": "int"}} => null,
        {"$convert": {"input": 1, "to": null}} => null,
        {"$convert": {"input": "$sub", "to": "array", "onError": 0}} => 0,
    }
    codes! {
        {"$convert": 1} => 9,
        {"$convert": {"input": 1}} => 9,
        {"$convert": {"to": "int"}} => 9,
        {"$convert": {"input": 1, "to": "int", "x": 1}} => 9,
        {"$convert": {"input": 1, "to": "foo"}} => 2,
        {"$convert": {"input": 1, "to": 1.5}} => 9,
        {"$convert": {"input": 1, "to": 99}} => 9,
        {"$convert": {"input": 1, "to": true}} => 9,
        {"$convert": {"input": 1, "to": "object"}} => 241,
    }
}

#[test]
fn binary_data() {
    let uuid: Vec<u8> = vec![
        0x8f, 0xe0, 0xa6, 0x6f, 0x1b, 0x4e, 0x4e, 0x0c, 0x9d, 0x0a, 0x4d, 0x5a, 0x6e, 0x0d, 0x5e, 0x3c,
    ];
    let uuid = || binary(BinarySubtype::Uuid, &uuid);
    let bytes = || binary(BinarySubtype::Generic, b"hi");
    values! {
        {"$toUUID": "8fe0a66f-1b4e-4e0c-9d0a-4d5a6e0d5e3c"} => (uuid()),
        {"$toString": (uuid())} => "8fe0a66f-1b4e-4e0c-9d0a-4d5a6e0d5e3c",
        {"$convert": {"input": "aGk=", "to": "binData", "format": "base64"}} => (bytes()),
        {"$convert": {"input": "6869", "to": {"type": "binData", "subtype": 0}, "format": "hex"}} => (bytes()),
        {"$convert": {"input": (bytes()), "to": "string", "format": "base64"}} => "aGk=",
        {"$convert": {"input": (bytes()), "to": "string", "format": "utf8"}} => "hi",
    }
    codes! {
        {"$toUUID": "x"} => 241,
        {"$convert": {"input": "aGk=", "to": {"type": "binData", "subtype": 4}, "format": "base64"}} => 241,
        {"$convert": {"input": "8fe0a66f-1b4e-4e0c-9d0a-4d5a6e0d5e3c", "to": "binData", "format": "uuid"}} => 241,
        {"$convert": {"input": "aGk=", "to": "binData"}} => 9,
        {"$convert": {"input": (bytes()), "to": "string", "format": "x"}} => 241,
        {"$convert": {"input": 1, "to": "binData", "format": "hex"}} => 241,
    }
}
