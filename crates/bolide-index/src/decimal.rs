//! Finite decimal numbers, compared exactly with each other and with binary floating point.

use std::cmp::Ordering;

/// A finite number: `coefficient × 10^exponent`, negated if `negative`.
///
/// The coefficient has at most 38 decimal digits; a Decimal128 has at most 34, an `i64` at most 19.
#[derive(Debug, Clone, Copy)]
pub struct Decimal {
    /// Whether the number is below zero, or is negative zero.
    pub negative: bool,
    /// The digits.
    pub coefficient: u128,
    /// The power of ten of the last digit.
    pub exponent: i32,
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Decimal {
        Decimal {
            negative: value < 0,
            coefficient: u128::from(value.unsigned_abs()),
            exponent: 0,
        }
    }
}

/// Every `f64` is below ten to this power.
const F64_POWER_LIMIT: i32 = 309;
/// Every `f64` above zero is at least ten to this power.
const F64_LEAST_POWER: i32 = -324;

impl Decimal {
    /// Compares by value: 1.10 equals 1.1, and −0 equals 0.
    pub fn compare(&self, other: &Decimal) -> Ordering {
        self.signum().cmp(&other.signum()).then_with(|| match self.signum() {
            0 => Ordering::Equal,
            1 => self.compare_magnitude(other),
            _ => other.compare_magnitude(self),
        })
    }

    /// Compares with a number that is not NaN, without rounding either.
    pub fn compare_f64(&self, other: f64) -> Ordering {
        let other_signum = i32::from(other > 0.0) - i32::from(other < 0.0);
        self.signum().cmp(&other_signum).then_with(|| match other_signum {
            0 => Ordering::Equal,
            1 => self.compare_magnitude_f64(other),
            _ => self.compare_magnitude_f64(-other).reverse(),
        })
    }

    /// Returns the `f64` nearest to the magnitude from zero's side, and whether it is the magnitude itself.
    pub fn magnitude_toward_zero(&self) -> (f64, bool) {
        if self.coefficient == 0 {
            return (0.0, true);
        }
        let power = self.power();
        if power >= F64_POWER_LIMIT {
            return (f64::MAX, false);
        }
        if power < F64_LEAST_POWER {
            return (0.0, false);
        }
        let text = format!("{}e{}", self.coefficient, self.exponent);
        let nearest = text.parse().unwrap_or(f64::MAX).min(f64::MAX);
        match self.compare_magnitude_f64(nearest) {
            Ordering::Less => (nearest.next_down(), false),
            Ordering::Equal => (nearest, true),
            Ordering::Greater => (nearest, false),
        }
    }

    /// Returns the number with the same value whose coefficient does not end in zero. The coefficient of zero stays.
    pub fn without_trailing_zeros(&self) -> Decimal {
        let mut result = *self;
        while result.coefficient != 0 && result.coefficient.is_multiple_of(10) {
            result.coefficient /= 10;
            result.exponent = result.exponent.saturating_add(1);
        }
        result
    }

    /// Returns the power of ten of the first digit. Zero is counted as a digit.
    pub fn power(&self) -> i32 {
        let digits_after_first = self.coefficient.checked_ilog10().unwrap_or(0);
        self.exponent.saturating_add(digits_after_first.cast_signed())
    }

    fn signum(&self) -> i32 {
        match (self.coefficient, self.negative) {
            (0, _) => 0,
            (_, true) => -1,
            (_, false) => 1,
        }
    }

    /// Compares magnitudes. Neither is zero.
    fn compare_magnitude(&self, other: &Decimal) -> Ordering {
        self.power().cmp(&other.power()).then_with(|| {
            let own_shift = self.exponent.saturating_sub(other.exponent).max(0);
            let other_shift = other.exponent.saturating_sub(self.exponent).max(0);
            // The first digits have the same power, so the shifted coefficient has as many digits as the other: at most 38.
            let scale = |coefficient: u128, shift: i32| {
                coefficient.saturating_mul(10_u128.saturating_pow(shift.unsigned_abs()))
            };
            scale(self.coefficient, own_shift).cmp(&scale(other.coefficient, other_shift))
        })
    }

    /// Compares the magnitude with a finite or infinite number above or equal to zero. The magnitude is not zero.
    fn compare_magnitude_f64(&self, other: f64) -> Ordering {
        let power = self.power();
        if other == 0.0 || power >= F64_POWER_LIMIT && other.is_finite() {
            return Ordering::Greater;
        }
        if other.is_infinite() || power < F64_LEAST_POWER {
            return Ordering::Less;
        }
        let (mantissa, binary_exponent) = mantissa_and_exponent(other);
        // coefficient·5^e·2^e against mantissa·2^p, with negative powers moved to the other side.
        let own_twos = self.exponent - binary_exponent;
        let own = Natural::product(self.coefficient, self.exponent.max(0), own_twos.max(0));
        let other = Natural::product(u128::from(mantissa), (-self.exponent).max(0), (-own_twos).max(0));
        own.compare(&other)
    }
}

/// Returns `(m, p)` so that the number, which is above zero and finite, is `m × 2^p`.
fn mantissa_and_exponent(number: f64) -> (u64, i32) {
    const FRACTION_BITS: u32 = 52;
    let bits = number.to_bits();
    let fraction = bits & ((1 << FRACTION_BITS) - 1);
    let biased = (bits >> FRACTION_BITS) & 0x7FF;
    let biased = i32::try_from(biased).unwrap_or(0);
    if biased == 0 {
        (fraction, -1074)
    } else {
        (fraction | (1 << FRACTION_BITS), biased - 1075)
    }
}

/// A natural number, the least significant limb first, without zero limbs at the end.
struct Natural(Vec<u32>);

impl Natural {
    /// Returns `start × 5^fives × 2^twos`. Both powers are at most some 1500 here.
    fn product(start: u128, fives: i32, twos: i32) -> Natural {
        const FIVES_PER_STEP: u32 = 13;
        let (mut fives, twos) = (fives.unsigned_abs(), twos.unsigned_abs());
        let limb = |at: u32| u32::try_from((start >> (32 * at)) & 0xFFFF_FFFF).unwrap_or(0);
        let mut result = Natural((0..4).map(limb).collect());
        while fives > 0 {
            let step = fives.min(FIVES_PER_STEP);
            result.multiply(5_u32.pow(step));
            fives -= step;
        }
        result.multiply(1 << (twos % 32));
        let zero_limbs = usize::try_from(twos / 32).unwrap_or(0);
        result.0.splice(0..0, std::iter::repeat_n(0, zero_limbs));
        while result.0.last() == Some(&0) {
            result.0.pop();
        }
        result
    }

    fn multiply(&mut self, factor: u32) {
        let mut carry = 0_u64;
        for limb in &mut self.0 {
            let product = u64::from(*limb) * u64::from(factor) + carry;
            *limb = u32::try_from(product & 0xFFFF_FFFF).unwrap_or(0);
            carry = product >> 32;
        }
        if carry > 0 {
            self.0.push(u32::try_from(carry).unwrap_or(0));
        }
    }

    fn compare(&self, other: &Natural) -> Ordering {
        let lengths = self.0.len().cmp(&other.0.len());
        lengths.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }
}

#[cfg(test)]
mod tests;
