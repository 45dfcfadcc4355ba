//! `$bitsAllSet $bitsAnySet $bitsAllClear $bitsAnyClear`.
//!
//! Bits are those of a whole number, extended with its sign, or of binary data, least significant byte first, extended with zeros. As in MongoDB, a double
//! with a fraction has none, and a decimal is rounded; the old form of binary data has its length before its bytes.

use bson::RawBsonRef;
use bson::spec::BinarySubtype;

use crate::value::number::Number;

/// The positions of bits, and what they must be.
#[derive(Debug, Clone)]
pub(super) struct Bits {
    pub(super) positions: Vec<u32>,
    pub(super) test: Test,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Test {
    AllSet,
    AnySet,
    AllClear,
    AnyClear,
}

fn integer(value: RawBsonRef<'_>) -> Option<i64> {
    match Number::of(value)? {
        Number::Decimal(value) => value.rounded(),
        number => number.whole(),
    }
}

impl Bits {
    /// Tells whether the bits of a value are as they must be; false for a value without bits.
    pub(super) fn matches(&self, value: RawBsonRef<'_>) -> bool {
        match value {
            RawBsonRef::Binary(data) => {
                let length = u32::try_from(data.bytes.len()).unwrap_or(u32::MAX).to_le_bytes();
                let prefix: &[u8] = match data.subtype {
                    BinarySubtype::BinaryOld => &length,
                    _ => &[],
                };
                self.holds(|position| {
                    let byte = usize::try_from(position / 8).ok();
                    let byte = byte.and_then(|at| prefix.iter().chain(data.bytes).nth(at));
                    byte.is_some_and(|byte| byte >> (position % 8) & 1 == 1)
                })
            }
            value => match integer(value) {
                Some(number) => self.holds(|position| number >> position.min(63) & 1 == 1),
                None => false,
            },
        }
    }

    fn holds(&self, is_set: impl Fn(u32) -> bool) -> bool {
        let mut positions = self.positions.iter();
        match self.test {
            Test::AllSet => positions.all(|position| is_set(*position)),
            Test::AnySet => positions.any(|position| is_set(*position)),
            Test::AllClear => positions.all(|position| !is_set(*position)),
            Test::AnyClear => positions.any(|position| !is_set(*position)),
        }
    }
}
