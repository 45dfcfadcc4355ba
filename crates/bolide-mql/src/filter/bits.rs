//! `$bitsAllSet $bitsAnySet $bitsAllClear $bitsAnyClear`.
//!
//! Bits are those of a whole number, extended with its sign, or of binary data, least significant byte first, extended with zeros.

use bson::RawBsonRef;

use crate::value::number::whole;

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

impl Bits {
    /// Tells whether the bits of a value are as they must be; false for a value without bits.
    pub(super) fn matches(&self, value: RawBsonRef<'_>) -> bool {
        match value {
            RawBsonRef::Binary(data) => self.holds(|position| {
                let byte = usize::try_from(position / 8).ok().and_then(|at| data.bytes.get(at));
                byte.is_some_and(|byte| byte >> (position % 8) & 1 == 1)
            }),
            value => match whole(value) {
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
