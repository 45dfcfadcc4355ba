//! `$dateFromString`.

use bson::RawBsonRef;

use super::{date, read, zone_of};
use crate::error::{Code, Error, Result};
use crate::expression::call::Operation;
use crate::expression::operand::{Operand, is_nullish, render, type_name};
use crate::expression::operators::Named;
use crate::expression::scope::Scope;

pub(super) const FROM_STRING: Named = Named {
    not_object: 40540,
    unknown: 40541,
    parameters: &[
        ("dateString", Some(40542)),
        ("format", None),
        ("timezone", None),
        ("onNull", None),
        ("onError", None),
    ],
};

const ON_NULL: usize = 3;
const ON_ERROR: usize = 4;

fn null<'a>() -> Option<Operand<'a>> {
    Some(Operand::Borrowed(RawBsonRef::Null))
}

/// `onNull` answers a null string, `onError` one that is no date.
pub(super) fn date_from_string<'a>(operation: &'a Operation, scope: &Scope<'a>) -> Result<Option<Operand<'a>>> {
    let text = operation.argument(0, scope)?;
    let format = operation.argument(1, scope)?;
    let zone = operation.argument(2, scope)?;
    let zone = match operation.is_given(2) {
        true => zone_of(zone.as_ref().map(Operand::as_raw))?.map(Some),
        false => Some(None),
    };
    let raw_format = format.as_ref().map(Operand::as_raw);
    let format = match raw_format {
        value if is_nullish(value) => None,
        Some(RawBsonRef::String(format)) => Some(super::format::pieces(format, true)?),
        value => {
            let (found, shown) = (type_name(value), render(value));
            return Err(Error::new(
                40684,
                format!("$dateFromString requires that 'format' be a string, found: {found} with value {shown}"),
            ));
        }
    };
    let value = text.as_ref().map(Operand::as_raw);
    let parsed = match value {
        value if is_nullish(value) => {
            return match operation.is_given(ON_NULL) {
                true => operation.argument(ON_NULL, scope),
                false => Ok(null()),
            };
        }
        Some(RawBsonRef::String(text)) => {
            let Some(zone) = zone else {
                return Ok(null());
            };
            match format {
                None if operation.is_given(1) => return Ok(null()),
                None => read::free(text, zone.as_ref()),
                Some(format) => read::with_format(text, &format, zone.as_ref()),
            }
        }
        value => {
            let (found, shown) = (type_name(value), render(value));
            Err(Error::new(
                Code::CONVERSION_FAILURE,
                format!("$dateFromString requires that 'dateString' be a string, found: {found} with value {shown}"),
            ))
        }
    };
    match parsed {
        Err(error) if error.code == Code::CONVERSION_FAILURE && operation.is_given(ON_ERROR) => {
            operation.argument(ON_ERROR, scope)
        }
        parsed => Ok(Some(Operand::Owned(date(parsed?)))),
    }
}
