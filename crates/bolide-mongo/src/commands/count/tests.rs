use bson::{Decimal128, RawBson, rawdoc};

use crate::commands::fixture::Shell;

/// Source: MongoDB's manual, `count`: a negative limit counts like its absolute value.
#[tokio::test(flavor = "multi_thread")]
async fn limits_are_whole_numbers_of_any_sign() {
    let shell = Shell::new().await;
    shell
        .insert("c", &[rawdoc! { "_id": 1 }, rawdoc! { "_id": 2 }, rawdoc! { "_id": 3 }])
        .await;
    let two: Decimal128 = "2".parse().expect("a number");
    for limit in [
        RawBson::Int32(2),
        RawBson::Int64(-2),
        RawBson::Double(2.0),
        RawBson::Decimal128(two),
    ] {
        let count = rawdoc! { "count": "c", "limit": limit };
        assert_eq!(shell.ok(count).await, rawdoc! { "n": 2 });
    }
    for (limit, code) in [
        (RawBson::String("2".to_owned()), 2),
        (RawBson::Boolean(true), 2),
        (RawBson::Int64(i64::MIN), 2),
        (RawBson::Double(1.5), 9),
        (RawBson::Double(f64::NAN), 9),
    ] {
        let count = rawdoc! { "count": "c", "limit": limit };
        assert_eq!(shell.code(count).await, code);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hints_are_checked() {
    let shell = Shell::new().await;
    shell.insert("c", &[rawdoc! { "_id": 1 }]).await;
    shell.ok(rawdoc! { "count": "c", "hint": { "$natural": -1 } }).await;
    for (hint, code) in [
        (RawBson::Int32(1), 9),
        (RawBson::Document(rawdoc! { "$natural": 2 }), 2),
        (RawBson::Document(rawdoc! { "$natural": 1, "a": 1 }), 2),
        (RawBson::String("none".to_owned()), 2),
    ] {
        let count = rawdoc! { "count": "c", "hint": hint };
        assert_eq!(shell.code(count).await, code);
    }
}
