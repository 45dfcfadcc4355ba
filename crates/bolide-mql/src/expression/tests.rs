//! Tables of expressions and their values, written by hand from `mongo.md §13` and the manual of MongoDB 7.0.

mod accumulate;
mod arithmetic;
mod arrays;
mod conversion;
mod dates;
mod laws;
mod objects;
mod paths;
mod strings;

use bolide_model::UnixMillis;
use bson::oid::ObjectId;
use bson::{DateTime, RawBson, RawBsonRef, RawDocumentBuf, Timestamp, rawdoc};

use super::{Expression, ParseScope, Scope};
use crate::context::Context;
use crate::error::Result;

/// 2020-02-29T12:34:56.789Z, a Saturday.
const LEAP_DAY: i64 = 1_582_979_696_789;

/// The document that the cases read.
fn document() -> RawDocumentBuf {
    rawdoc! {
        "_id": 1,
        "n": 5,
        "text": "abc",
        "nothing": null,
        "list": [1, 2, 3],
        "items": [{ "x": 1 }, { "x": 2 }, { "y": 3 }, 4, [{ "x": 5 }]],
        "sub": { "k": "v", "deep": { "z": true } },
        "date": DateTime::from_millis(LEAP_DAY),
        "id": ObjectId::from_bytes([0x5E, 0x5A, 0x5B, 0xF0, 1, 2, 3, 4, 5, 6, 7, 8]),
        "stamp": Timestamp { time: 1_582_979_696, increment: 7 },
    }
}

fn context() -> Context {
    let mut context = Context::new(UnixMillis(LEAP_DAY));
    context.variables = [("given".to_owned(), RawBson::Int32(42))].into();
    context
}

/// Evaluates on [`document`].
fn evaluate(expression: RawBsonRef<'_>) -> Result<Option<RawBson>> {
    let (context, document) = (context(), document());
    let expression = Expression::parse(expression, &mut ParseScope::new(&context))?;
    expression.evaluate(&Scope::new(&context, &document))
}

/// Checks that an expression has a value of the same type and bytes.
fn check(expression: &RawBson, expected: &RawBson) {
    let found = evaluate(expression.as_raw_bson_ref());
    let shown = crate::value::text::render(expression.as_raw_bson_ref());
    match found {
        Ok(Some(found)) => assert_eq!(
            bytes(&found),
            bytes(expected),
            "{shown} is {found:?} and should be {expected:?}"
        ),
        other => panic!("{shown} is {other:?} and should be {expected:?}"),
    }
}

fn bytes(value: &RawBson) -> RawDocumentBuf {
    rawdoc! { "v": value.clone() }
}

fn check_missing(expression: &RawBson) {
    let found = evaluate(expression.as_raw_bson_ref());
    assert!(
        matches!(found, Ok(None)),
        "{expression:?} is {found:?} and should be missing"
    );
}

fn check_code(expression: &RawBson, code: i32) {
    let found = evaluate(expression.as_raw_bson_ref());
    let shown = crate::value::text::render(expression.as_raw_bson_ref());
    match found {
        Err(error) => assert_eq!(error.code.0, code, "{shown} fails with {error:?}"),
        Ok(found) => panic!("{shown} is {found:?} and should fail with {code}"),
    }
}

/// Checks expressions and their values.
macro_rules! values {
    ($($expression:tt => $expected:tt,)*) => {
        $($crate::expression::tests::check(&bson::rawbson!($expression), &bson::rawbson!($expected));)*
    };
}

/// Checks expressions that fail, and their codes.
macro_rules! codes {
    ($($expression:tt => $code:literal,)*) => {
        $($crate::expression::tests::check_code(&bson::rawbson!($expression), $code);)*
    };
}

/// Checks expressions whose value is missing.
macro_rules! missing {
    ($($expression:tt,)*) => {
        $($crate::expression::tests::check_missing(&bson::rawbson!($expression));)*
    };
}

pub(crate) use {codes, missing, values};

/// A decimal in a table.
fn decimal(text: &str) -> RawBson {
    RawBson::Decimal128(text.parse().unwrap())
}

/// A date in a table, in milliseconds.
fn date(millis: i64) -> RawBson {
    RawBson::DateTime(DateTime::from_millis(millis))
}
