//! Type checks (cosmos-sql §18.2): always true or false.

use super::{Call, Function, calendar};
use crate::value::{Kind, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::lenient("IS_DEFINED", 1, 1, |c| Value::Bool(c.arg(0).is_defined())),
    Function::lenient("IS_NULL", 1, 1, |c| is(c, Kind::Null)),
    Function::lenient("IS_BOOL", 1, 1, |c| is(c, Kind::Bool)),
    // The .NET and Java SDKs write this when they continue an ORDER BY with a filter.
    Function::lenient("IS_BOOLEAN", 1, 1, |c| is(c, Kind::Bool)),
    Function::lenient("IS_NUMBER", 1, 1, |c| is(c, Kind::Number)),
    Function::lenient("IS_STRING", 1, 1, |c| is(c, Kind::String)),
    Function::lenient("IS_ARRAY", 1, 1, |c| is(c, Kind::Array)),
    Function::lenient("IS_OBJECT", 1, 1, |c| is(c, Kind::Object)),
    Function::lenient("IS_PRIMITIVE", 1, 1, |c| Value::Bool(c.arg(0).is_primitive())),
    Function::lenient("IS_FINITE_NUMBER", 1, 1, |c| {
        Value::Bool(c.f64(0).is_some_and(f64::is_finite))
    }),
    Function::lenient("IS_INTEGER", 1, 1, |c| Value::Bool(c.i64(0).is_some())),
    Function::lenient("IS_DATETIME", 1, 1, |c| {
        Value::Bool(c.str(0).and_then(calendar::parse).is_some())
    }),
];

fn is<'a>(call: &Call<'_, 'a>, kind: Kind) -> Value<'a> {
    Value::Bool(call.arg(0).kind() == kind)
}
