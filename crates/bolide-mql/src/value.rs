//! BSON values: order, equality, types, numbers, their canonical encoding.
//!
//! Values are borrowed from raw BSON ([`RawBsonRef`]) or owned ([`RawBson`](bson::RawBson)). A missing value is `None`, never a value of its own.

pub mod collation;
mod depth;
mod field;
pub mod json;
pub mod key;
pub mod number;
pub mod order;
pub mod regex;
pub mod text;
pub mod types;
mod validation;

use bson::RawBsonRef;

pub use field::field;
pub use order::{compare, compare_with, equal, equal_with};
pub use validation::{DEPTH_LIMIT, validate};

use number::Number;

/// Tells whether a value counts as true: everything but false, zero, null and undefined. NaN counts as true.
pub fn is_truthy(value: RawBsonRef<'_>) -> bool {
    match value {
        RawBsonRef::Boolean(value) => value,
        RawBsonRef::Null | RawBsonRef::Undefined => false,
        value => Number::of(value).is_none_or(|number| !number.is_zero()),
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
