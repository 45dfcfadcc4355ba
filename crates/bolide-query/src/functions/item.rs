//! Functions of the item as a whole (cosmos-sql §18.10).

use super::{Call, Function};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[Function::volatile("DOCUMENTID", 1, 1, document_id)];

/// An integer that is unique in the partition.
fn document_id<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    // Resource ids stay far below 2^53, so JavaScript clients read them exactly.
    if call.arg(0).is_primitive() {
        Value::Undefined
    } else {
        Value::int((call.rid & ((1 << 53) - 1)) as i64)
    }
}
