//! Sums whose result has the widest type of what was added, and whose doubles lose nothing on the way.

use crate::value::number::{Decimal, Number};

/// A sum of numbers of any type.
///
/// Whole numbers are added exactly; doubles with an error term, so that ten times 0.1 is 1. The type of the sum is the widest of its terms: int, long,
/// double, decimal. An int sum that does not fit is a long, a long sum that does not fit is a double.
#[derive(Debug, Clone, Default)]
pub struct Total {
    whole: i128,
    /// The sum of the doubles that are finite, and what was lost by rounding it.
    double: (f64, f64),
    /// The sum of infinities and NaN.
    special: Option<f64>,
    decimal: Option<Decimal>,
    has_long: bool,
    has_double: bool,
    count: u64,
}

impl Total {
    /// Adds a number.
    pub fn add(&mut self, number: Number) {
        self.count += 1;
        match number {
            Number::Int32(value) => self.whole = self.whole.wrapping_add(value.into()),
            Number::Int64(value) => {
                self.has_long = true;
                self.whole = self.whole.wrapping_add(value.into());
            }
            Number::Double(value) => {
                self.has_double = true;
                if value.is_finite() {
                    self.double = sum_with_error(self.double, value);
                } else {
                    self.special = Some(self.special.map_or(value, |sum| sum + value));
                }
            }
            Number::Decimal(value) => {
                self.decimal = Some(self.decimal.map_or(value, |sum| sum.add(value)));
            }
        }
    }

    /// The number of terms.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The sum; an int zero of nothing.
    pub fn value(&self) -> Number {
        if let Some(decimal) = self.decimal {
            return Number::Decimal(self.with_decimal(decimal));
        }
        if self.has_double {
            return Number::Double(self.as_double());
        }
        match (i32::try_from(self.whole), i64::try_from(self.whole)) {
            (Ok(sum), _) if !self.has_long => Number::Int32(sum),
            (_, Ok(sum)) => Number::Int64(sum),
            _ => Number::Double(self.as_double()),
        }
    }

    /// The sum divided by the number of terms, a double or decimal; `None` of nothing.
    pub fn mean(&self) -> Option<Number> {
        if self.count == 0 {
            return None;
        }
        let count = i64::try_from(self.count).unwrap_or(i64::MAX);
        Some(match self.value() {
            Number::Decimal(sum) => Number::Decimal(sum.div(Decimal::from(count))),
            _ => Number::Double(self.as_double() / Number::Int64(count).to_f64()),
        })
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "what the first conversion loses is added by the second"
    )]
    fn as_double(&self) -> f64 {
        if let Some(special) = self.special {
            return special;
        }
        let high = self.whole as f64;
        let low = self.whole.wrapping_sub(high as i128) as f64;
        let (sum, error) = sum_with_error(sum_with_error(self.double, high), low);
        sum + error
    }

    fn with_decimal(&self, decimal: Decimal) -> Decimal {
        if let Some(special) = self.special {
            return decimal.add(Decimal::from_f64(special));
        }
        let whole = Decimal::parse(&self.whole.to_string()).unwrap_or_else(|| Decimal::from_f64(self.as_double()));
        let (sum, error) = self.double;
        let doubles = if self.has_double {
            exact(sum).add(exact(error))
        } else {
            Decimal::from(0)
        };
        decimal.add(whole).add(doubles)
    }
}

/// A double with the first 34 of its decimal digits.
fn exact(value: f64) -> Decimal {
    let parsed = if value == 0.0 {
        None
    } else {
        // A whole number stays one without digits after the point.
        match format!("{value}") {
            short if value.fract() == 0.0 && short.len() <= 34 => Decimal::parse(&short),
            _ => Decimal::parse(&format!("{value:.33e}")),
        }
    };
    parsed.unwrap_or_else(|| Decimal::from_f64(value))
}

/// Adds a double to a sum with an error term, by the algorithm of Knuth and Neumaier.
fn sum_with_error((sum, error): (f64, f64), term: f64) -> (f64, f64) {
    let next = sum + term;
    if !next.is_finite() {
        return (next, 0.0);
    }
    let of_sum = next - term;
    let lost = (sum - of_sum) + (term - (next - of_sum));
    (next, error + lost)
}
