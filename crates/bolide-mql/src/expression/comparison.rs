//! `$cmp`, `$eq` and the like: any two values can be compared, of whatever types.

use std::cmp::Ordering;

use bson::{RawBson, RawBsonRef};

use super::call::Call;
use super::operators::{Arguments, Operator};
use super::scope::Scope;
use crate::error::Result;
use crate::value;

pub(super) const OPERATORS: &[Operator] = &[
    Operator::eager("$cmp", Arguments::Exactly(2), |call| {
        Ok(Some(RawBson::Int32(ordering(call) as i32)))
    }),
    Operator::eager("$eq", Arguments::Exactly(2), |call| holds(ordering(call).is_eq())),
    Operator::eager("$ne", Arguments::Exactly(2), |call| holds(ordering(call).is_ne())),
    Operator::eager("$gt", Arguments::Exactly(2), |call| holds(ordering(call).is_gt())),
    Operator::eager("$gte", Arguments::Exactly(2), |call| holds(ordering(call).is_ge())),
    Operator::eager("$lt", Arguments::Exactly(2), |call| holds(ordering(call).is_lt())),
    Operator::eager("$lte", Arguments::Exactly(2), |call| holds(ordering(call).is_le())),
];

/// Compares by the order of values and the command's collation. A missing value stands where undefined does, before null.
pub(super) fn compare(a: Option<RawBsonRef<'_>>, b: Option<RawBsonRef<'_>>, scope: &Scope<'_>) -> Ordering {
    let known = |value: Option<_>| value.unwrap_or(RawBsonRef::Undefined);
    value::compare_with(known(a), known(b), scope.context().collation.as_deref())
}

fn ordering(call: &Call<'_>) -> Ordering {
    compare(call.get(0), call.get(1), call.scope)
}

fn holds(result: bool) -> Result<Option<RawBson>> {
    Ok(Some(RawBson::Boolean(result)))
}
