//! Standard deviations.

use bson::RawBson;

/// Mean and squared distances of numbers, updated number by number (Welford).
#[derive(Debug, Clone, Default)]
pub struct Deviation {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Deviation {
    /// Adds a number.
    pub fn add(&mut self, value: f64) {
        self.count += 1.0;
        let distance = value - self.mean;
        if self.mean.is_finite() {
            self.mean += distance / self.count;
        }
        self.squares += distance * (value - self.mean);
    }

    /// `$stdDevPop`: null of nothing.
    pub fn of_population(&self) -> RawBson {
        self.root(self.count)
    }

    /// `$stdDevSamp`: null of fewer than two numbers.
    pub fn of_sample(&self) -> RawBson {
        self.root(self.count - 1.0)
    }

    fn root(&self, divisor: f64) -> RawBson {
        if divisor <= 0.0 {
            return RawBson::Null;
        }
        RawBson::Double((self.squares / divisor).sqrt())
    }
}
