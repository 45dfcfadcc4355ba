//! Numbers of every type as one sequence.
//!
//! ```text
//! NaN   −∞   negative           0   positive           +∞        the first byte: rank::NUMBER + 0 … 5
//!            inverted magnitude     magnitude
//!
//! magnitude: the f64 nearest from zero's side (8 bytes), then 00 if it is the number,
//!            else 01, the power of ten of the first digit (i16 + 2^15), pairs of digits (each + 1), 00
//! ```
//!
//! Between two neighbouring doubles the decimal digits decide, so an `i64` near 2^63 and a Decimal128 with 34 digits keep their exact places.

use super::{Encoder, invert, rank};
use crate::decimal::Decimal;

const NAN: u8 = rank::NUMBER;
const NEGATIVE_INFINITY: u8 = rank::NUMBER + 1;
const NEGATIVE: u8 = rank::NUMBER + 2;
const ZERO: u8 = rank::NUMBER + 3;
const POSITIVE: u8 = rank::NUMBER + 4;
const POSITIVE_INFINITY: u8 = rank::NUMBER + 5;

const IS_THE_DOUBLE: u8 = 0;
const HAS_DIGITS: u8 = 1;

impl Encoder<'_> {
    /// Appends a whole number.
    pub fn i64(&mut self, value: i64) {
        const EXACT_BELOW: u64 = 1 << 53;
        let magnitude = value.unsigned_abs();
        if magnitude <= EXACT_BELOW {
            #[expect(clippy::cast_precision_loss, reason = "below 2^53 every whole number is a double")]
            self.f64(value as f64);
        } else {
            self.decimal(Decimal::from(value));
        }
    }

    /// Appends a double, also NaN and infinities.
    pub fn f64(&mut self, value: f64) {
        if value.is_nan() {
            self.nan();
        } else if value.is_infinite() {
            self.infinity(value < 0.0);
        } else if value == 0.0 {
            self.bytes.push(ZERO);
        } else {
            self.signed(value < 0.0, |encoder| {
                encoder.double(value.abs());
                encoder.bytes.push(IS_THE_DOUBLE);
            });
        }
    }

    /// Appends a finite decimal number.
    pub fn decimal(&mut self, value: Decimal) {
        if value.coefficient == 0 {
            self.bytes.push(ZERO);
            return;
        }
        self.signed(value.negative, |encoder| {
            let (double, is_exact) = value.magnitude_toward_zero();
            encoder.double(double);
            if is_exact {
                encoder.bytes.push(IS_THE_DOUBLE);
            } else {
                encoder.bytes.push(HAS_DIGITS);
                encoder.digits(value.without_trailing_zeros());
            }
        });
    }

    /// Appends NaN.
    pub fn nan(&mut self) {
        self.bytes.push(NAN);
    }

    /// Appends an infinity.
    pub fn infinity(&mut self, negative: bool) {
        self.bytes
            .push(if negative { NEGATIVE_INFINITY } else { POSITIVE_INFINITY });
    }

    fn signed(&mut self, negative: bool, magnitude: impl FnOnce(&mut Self)) {
        self.bytes.push(if negative { NEGATIVE } else { POSITIVE });
        let start = self.bytes.len();
        magnitude(self);
        if negative {
            invert(&mut self.bytes[start..]);
        }
    }

    /// Appends the bits of a double that is not negative: they are ordered as the doubles are.
    fn double(&mut self, value: f64) {
        self.bytes.extend_from_slice(&value.to_bits().to_be_bytes());
    }

    fn digits(&mut self, value: Decimal) {
        let power = u16::try_from(value.power() + (1 << 15)).unwrap_or(u16::MAX);
        self.bytes.extend_from_slice(&power.to_be_bytes());
        let digits = value.coefficient.to_string();
        for pair in digits.as_bytes().chunks(2) {
            let second = pair.get(1).copied().unwrap_or(b'0');
            self.bytes.push((pair[0] - b'0') * 10 + (second - b'0') + 1);
        }
        self.bytes.push(0);
    }
}
