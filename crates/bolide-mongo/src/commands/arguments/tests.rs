use bson::spec::BinarySubtype;
use bson::{Binary, Decimal128, RawDocumentBuf, rawdoc};

use super::*;
use crate::commands::fixture;

fn code<T: std::fmt::Debug>(result: Result<T>) -> (i32, String) {
    let error = result.expect_err("refused");
    (error.code.0, error.message)
}

#[test]
fn texts_of_errors_are_those_of_mongodb() {
    let command = rawdoc! { "find": "c", "$db": "db", "limit": "x", "filter": 1, "singleBatch": "y" };
    let message = fixture::message(&command, &[]);
    let mut arguments = Arguments::of_command("find", &message).expect("well formed");
    let expected = "BSON field 'find.limit' is the wrong type 'string', expected types '[long, int, decimal, double']";
    assert_eq!(code(arguments.integer("limit")), (14, expected.to_owned()));
    let expected = "BSON field 'find.filter' is the wrong type 'int', expected type 'object'";
    assert_eq!(code(arguments.document("filter")), (14, expected.to_owned()));
    let expected =
        "BSON field 'find.singleBatch' is the wrong type 'string', expected types '[bool, long, int, decimal, double']";
    assert_eq!(code(arguments.boolean("singleBatch")), (14, expected.to_owned()));
    let missing = arguments.string("x").expect("nothing");
    let expected = "BSON field 'find.x' is missing but a required field";
    assert_eq!(code(arguments.required("x", missing)), (40414, expected.to_owned()));
}

#[test]
fn unknown_fields_are_refused_and_global_ones_are_not() {
    let finish = |command: RawDocumentBuf| {
        let message = fixture::message(&command, &[]);
        let mut arguments = Arguments::of_command("find", &message).expect("well formed");
        arguments.document("filter").expect("a document");
        arguments.finish()
    };
    let global = rawdoc! {
        "find": "c", "$db": "db", "filter": {}, "comment": null, "lsid": {}, "$readPreference": {}, "apiVersion": "1", "stmtId": 1,
        "maxTimeMS": 1, "rawData": true, "readConcern": {}, "recoveryToken": {}, "help": true, "$clusterTime": {},
    };
    assert!(finish(global).is_ok());
    let unknown = rawdoc! { "find": "c", "filtr": {}, "$db": "db" };
    assert_eq!(
        code(finish(unknown)),
        (40415, "BSON field 'find.filtr' is an unknown field.".to_owned())
    );
    // Not global inside of the command.
    let inner = rawdoc! { "comment": 1 };
    let arguments = Arguments::of_document("find.collation", &inner).expect("well formed");
    let expected = "BSON field 'find.collation.comment' is an unknown field.";
    assert_eq!(code(arguments.finish()), (40415, expected.to_owned()));
}

#[test]
fn fields_are_there_once() {
    for fields in [2, 40] {
        let mut command = rawdoc! { "find": "c" };
        for field in 0..fields {
            let name = format!("f{field}");
            command.append(<&bson::raw::CStr>::try_from(name.as_str()).expect("no NUL"), 1);
        }
        assert!(Arguments::of_document("find", &command).is_ok());
        command.append(bson::raw::cstr!("f1"), 1);
        let expected = "BSON field 'find.f1' is a duplicate field";
        assert_eq!(
            code(Arguments::of_document("find", &command)),
            (40413, expected.to_owned())
        );
    }
}

#[test]
fn the_number_of_fields_is_bounded() {
    let mut command = RawDocumentBuf::new();
    for field in 0..=limits::COMMAND_FIELDS {
        let name = format!("f{field}");
        command.append(<&bson::raw::CStr>::try_from(name.as_str()).expect("no NUL"), 1);
    }
    assert_eq!(code(Arguments::of_document("find", &command)).0, 9);
}

#[test]
fn numbers_and_booleans_of_every_type() {
    let decimal: Decimal128 = "7".parse().expect("a number");
    let document = rawdoc! {
        "int": 7, "long": 7_i64, "double": 7.9, "decimal": decimal, "null": null, "negative": -1, "zero": 0.0, "yes": true,
        "text": "7",
    };
    let mut arguments = Arguments::of_document("c", &document).expect("well formed");
    for field in ["int", "long", "double", "decimal"] {
        assert_eq!(arguments.integer(field).expect(field), Some(7), "{field}");
        assert_eq!(arguments.non_negative(field).expect(field), Some(7), "{field}");
        assert_eq!(arguments.boolean(field).expect(field), Some(true), "{field}");
    }
    assert_eq!(arguments.boolean("zero").expect("a number"), Some(false));
    assert_eq!(arguments.boolean("yes").expect("a boolean"), Some(true));
    assert_eq!(arguments.strict_boolean("int").expect_err("a number").code.0, 14);
    for missing in ["null", "absent"] {
        assert_eq!(arguments.integer(missing).expect("nothing"), None);
        assert_eq!(arguments.boolean(missing).expect("nothing"), None);
    }
    assert!(arguments.any_value("null").is_some());
    let expected = "BSON field 'negative' value must be >= 0, actual value '-1'";
    assert_eq!(code(arguments.non_negative("negative")), (51024, expected.to_owned()));
    assert_eq!(code(arguments.integer("yes")).0, 14);
    assert_eq!(code(arguments.integer("text")).0, 14);
}

#[test]
fn documents_come_as_an_array_or_as_a_sequence() {
    let documents = [rawdoc! { "a": 1 }, rawdoc! { "a": 2 }];
    let array = rawdoc! { "insert": "c", "documents": [{ "a": 1 }, { "a": 2 }] };
    let without = rawdoc! { "insert": "c" };
    for message in [
        fixture::message(&array, &[]),
        fixture::message(&without, &[("documents", &documents)]),
    ] {
        let mut arguments = Arguments::of_command("insert", &message).expect("well formed");
        let found = arguments.documents("documents").expect("documents").expect("some");
        assert_eq!(found, [&*documents[0], &*documents[1]]);
        arguments.finish().expect("all are known");
    }
    let message = fixture::message(&without, &[("docs", &documents)]);
    let mut arguments = Arguments::of_command("insert", &message).expect("well formed");
    assert!(arguments.documents("documents").expect("nothing").is_none());
    let expected = "BSON field 'insert.docs' is an unknown field.";
    assert_eq!(code(arguments.finish()), (40415, expected.to_owned()));
}

#[test]
fn batches_have_one_to_a_hundred_thousand_documents() {
    let without = rawdoc! { "insert": "c" };
    let many = vec![RawDocumentBuf::new(); limits::WRITE_BATCH + 1];
    let count = |documents: &[RawDocumentBuf]| {
        let message = fixture::message(&without, &[("documents", documents)]);
        let mut arguments = Arguments::of_command("insert", &message).expect("well formed");
        arguments
            .documents("documents")
            .map(|found| found.map(|found| found.len()))
    };
    assert_eq!(count(&many[1..]).expect("the most"), Some(limits::WRITE_BATCH));
    let expected = "Write batch sizes must be between 1 and 100000. Got 100001 operations.";
    assert_eq!(code(count(&many)), (16, expected.to_owned()));
    assert_eq!(code(count(&[])).0, 16);
}

#[test]
fn elements_of_a_batch_are_documents() {
    let message = fixture::message(&rawdoc! { "insert": "c", "documents": [{}, 1] }, &[]);
    let mut arguments = Arguments::of_command("insert", &message).expect("well formed");
    let expected = "BSON field 'insert.documents.1' is the wrong type 'int', expected type 'object'";
    assert_eq!(code(arguments.documents("documents")), (14, expected.to_owned()));
}

#[test]
fn the_collection_is_the_first_value() {
    let collection = |command: RawDocumentBuf| {
        let message = fixture::message(&command, &[]);
        let arguments = Arguments::of_command("find", &message).expect("well formed");
        arguments.collection("db").map(|namespace| namespace.to_string())
    };
    assert_eq!(collection(rawdoc! { "find": "c" }).expect("a name"), "db.c");
    let expected = "Failed to parse namespace element";
    assert_eq!(code(collection(rawdoc! { "find": 1 })), (73, expected.to_owned()));
    for (name, number) in [("insert", 73), ("createIndexes", 2), ("dropIndexes", 2)] {
        let message = fixture::message(&rawdoc! { "x": 1 }, &[]);
        let arguments = Arguments::of_command(name, &message).expect("well formed");
        let expected = "collection name has invalid type int";
        assert_eq!(code(arguments.collection("db")), (number, expected.to_owned()));
    }
    assert_eq!(code(collection(rawdoc! { "find": "" })).0, 73);
}

#[test]
fn binary_data() {
    let bytes = Binary {
        subtype: BinarySubtype::Generic,
        bytes: vec![1, 2],
    };
    let document = rawdoc! { "payload": bytes, "text": "x" };
    let mut arguments = Arguments::of_document("c", &document).expect("well formed");
    assert_eq!(arguments.binary("payload").expect("binary"), Some(&[1, 2][..]));
    assert_eq!(code(arguments.binary("text")).0, 14);
}

/// Source: what MongoDB 7.0 does with numbers of options: NaN is 0, infinities are the ends of the range, decimals are rounded half to even.
#[test]
fn numbers_become_64_bit_integers() {
    let decimal = |text: &str| text.parse::<Decimal128>().expect("a number");
    for (value, expected) in [
        (bson::RawBson::Double(2.9), 2),
        (bson::RawBson::Double(-2.9), -2),
        (bson::RawBson::Double(f64::NAN), 0),
        (bson::RawBson::Double(f64::INFINITY), i64::MAX),
        (bson::RawBson::Double(-1e300), i64::MIN),
        (bson::RawBson::Decimal128(decimal("1.5")), 2),
        (bson::RawBson::Decimal128(decimal("2.5")), 2),
        (bson::RawBson::Decimal128(decimal("2.51")), 3),
        (bson::RawBson::Decimal128(decimal("-0.5")), 0),
        (bson::RawBson::Decimal128(decimal("-0.9")), -1),
        (bson::RawBson::Decimal128(decimal("NaN")), 0),
        (bson::RawBson::Decimal128(decimal("-Infinity")), i64::MIN),
    ] {
        let command = rawdoc! { "x": value };
        let mut arguments = Arguments::of_document("find", &command).expect("well formed");
        assert_eq!(arguments.integer("x").expect("a number"), Some(expected), "{command:?}");
    }
}
