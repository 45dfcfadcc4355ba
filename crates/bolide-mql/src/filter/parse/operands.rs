//! Operands that are numbers.

use bson::RawBsonRef;

use super::{array, is_number};
use crate::error::{Code, Error, Result};
use crate::filter::bits::{Bits, Test};
use crate::filter::predicate::Predicate;
use crate::value::number::Number;
use crate::value::text::render;

/// A value with its name, as the texts of errors show it: `$size: "a"`.
pub(in crate::filter) struct Named<'n, 'v> {
    pub(in crate::filter) name: &'n str,
    pub(in crate::filter) value: RawBsonRef<'v>,
}

impl Named<'_, '_> {
    fn shown(&self) -> String {
        format!("{}: {}", self.name, render(self.value))
    }

    /// Returns a whole number.
    ///
    /// # Errors
    /// `FailedToParse`
    pub(in crate::filter) fn whole(&self) -> Result<i64> {
        let failed = |problem: &str| Error::new(Code::FAILED_TO_PARSE, format!("{problem}: {}", self.shown()));
        let Some(number) = Number::of(self.value) else {
            return Err(failed("Expected a number in"));
        };
        match (number.whole(), number.truncated()) {
            (Some(whole), _) => Ok(whole),
            _ if number.is_nan() => Err(failed("Expected an integer, but found NaN in")),
            (None, Some(_)) => Err(failed("Expected an integer")),
            (None, None) => Err(failed("Cannot represent as a 64-bit integer")),
        }
    }

    /// Returns a whole number that is not negative.
    ///
    /// # Errors
    /// `FailedToParse`
    pub(in crate::filter) fn not_negative(&self) -> Result<u64> {
        u64::try_from(self.whole()?).map_err(|_| {
            let text = format!("Expected a non-negative number in: {}", self.shown());
            Error::new(Code::FAILED_TO_PARSE, text)
        })
    }

    /// Returns a whole number that is not negative and fits an `i32`.
    ///
    /// # Errors
    /// `BadValue`, after the words of `context`.
    fn not_negative_i32(&self, context: &str) -> Result<u32> {
        let checked = self.not_negative().and_then(|number| {
            let fits = i32::try_from(number).map(i32::unsigned_abs);
            fits.map_err(|_| Error::bad_value(format!("Cannot represent as a 32-bit integer: {}", self.shown())))
        });
        checked.map_err(|error| Error::bad_value(format!("{context} {}", error.message)))
    }
}

/// Parses `$size`.
pub(super) fn size(value: RawBsonRef<'_>) -> Result<Predicate> {
    let named = Named { name: "$size", value };
    let size = named.not_negative_i32("Failed to parse $size.")?;
    Ok(Predicate::Size(usize::try_from(size).unwrap_or(usize::MAX)))
}

/// Parses `$mod`.
pub(super) fn modulo(value: RawBsonRef<'_>) -> Result<Predicate> {
    let malformed = |problem: &str| Error::bad_value(format!("malformed mod, {problem}"));
    let RawBsonRef::Array(array) = value else {
        return Err(malformed("needs to be an array"));
    };
    let mut items = array.into_iter();
    let mut next = |what: &str| {
        let item = items.next().ok_or_else(|| malformed("not enough elements"))?;
        let Some(number) = Number::of(item.map_err(Error::malformed)?) else {
            return Err(malformed(&format!("{what} not a number")));
        };
        number.truncated().ok_or_else(|| {
            let reason = match number.is_finite() {
                true => "Out of bounds coercing to integral value",
                false => "Unable to coerce NaN/Inf to integral type",
            };
            malformed(&format!("{what} value is invalid :: caused by :: {reason}"))
        })
    };
    let (divisor, remainder) = (next("divisor")?, next("remainder")?);
    if items.next().is_some() {
        return Err(malformed("too many elements"));
    }
    if divisor == 0 {
        return Err(Error::bad_value("divisor cannot be 0"));
    }
    Ok(Predicate::Mod { divisor, remainder })
}

/// Parses the operand of an operator on bits: a mask, binary data, or an array of positions.
pub(super) fn bits(path: &str, operator: &str, value: RawBsonRef<'_>) -> Result<Predicate> {
    let positions = match value {
        RawBsonRef::Array(_) => positions(operator, value)?,
        RawBsonRef::Binary(data) => set_bits(data.bytes),
        value if is_number(value) => {
            let named = Named { name: operator, value };
            set_bits(&named.not_negative()?.to_le_bytes())
        }
        value => {
            let received = format!("{operator}: {}", render(value));
            let text = format!("{path} takes an Array, a number, or a BinData but received: {received}");
            return Err(Error::bad_value(text));
        }
    };
    let test = match operator {
        "$bitsAllSet" => Test::AllSet,
        "$bitsAnySet" => Test::AnySet,
        "$bitsAllClear" => Test::AllClear,
        _ => Test::AnyClear,
    };
    Ok(Predicate::Bits(Bits { positions, test }))
}

fn positions(operator: &str, value: RawBsonRef<'_>) -> Result<Vec<u32>> {
    let mut positions = Vec::new();
    for (index, item) in array(operator, value)?.into_iter().enumerate() {
        let named = Named {
            name: &index.to_string(),
            value: item.map_err(Error::malformed)?,
        };
        positions.push(named.not_negative_i32("Failed to parse bit position.")?);
    }
    Ok(positions)
}

fn set_bits(bytes: &[u8]) -> Vec<u32> {
    let of_byte = |(at, byte): (usize, &u8)| {
        let first = u32::try_from(at).unwrap_or(u32::MAX / 8) * 8;
        let byte = *byte;
        (0..8)
            .filter(move |bit| byte >> bit & 1 == 1)
            .map(move |bit| first + bit)
    };
    bytes.iter().enumerate().flat_map(of_byte).collect()
}
