//! Request units: what operations cost.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// An amount of request units. A charge is never negative; the difference a purge corrects may be.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct RequestUnits(pub f64);

impl RequestUnits {
    /// Nothing.
    pub const ZERO: RequestUnits = RequestUnits(0.0);

    /// Rounds to hundredths, as charges are reported.
    #[must_use]
    pub fn rounded(self) -> RequestUnits {
        RequestUnits((self.0 * 100.0).round() / 100.0)
    }
}

impl Add for RequestUnits {
    type Output = RequestUnits;
    fn add(self, other: RequestUnits) -> RequestUnits {
        RequestUnits(self.0 + other.0)
    }
}

impl Sub for RequestUnits {
    type Output = RequestUnits;
    fn sub(self, other: RequestUnits) -> RequestUnits {
        RequestUnits(self.0 - other.0)
    }
}

impl AddAssign for RequestUnits {
    fn add_assign(&mut self, other: RequestUnits) {
        self.0 += other.0;
    }
}

impl SubAssign for RequestUnits {
    fn sub_assign(&mut self, other: RequestUnits) {
        self.0 -= other.0;
    }
}

impl Sum for RequestUnits {
    fn sum<I: Iterator<Item = RequestUnits>>(units: I) -> RequestUnits {
        units.fold(RequestUnits::ZERO, Add::add)
    }
}

/// Published charges by item size: bytes, point read, write (create, replace, upsert or delete of an item of that size).
///
/// Source: design §7.
const TABLE: [(f64, f64, f64); 12] = [
    (1024.0, 1.0, 4.95),
    (2048.0, 1.04, 6.29),
    (4096.0, 1.14, 6.67),
    (8192.0, 1.33, 7.04),
    (16384.0, 1.67, 9.52),
    (32768.0, 2.19, 11.23),
    (65536.0, 4.76, 22.67),
    (131_072.0, 9.95, 48.19),
    (262_144.0, 20.28, 98.29),
    (524_288.0, 40.95, 184.57),
    (1_048_576.0, 145.9, 625.0),
    (2_097_152.0, 291.8, 1250.0),
];

/// Charge of a point read of an item of `bytes`; a missing item costs as much as the smallest item (TTL-254).
pub fn point_read(bytes: usize) -> RequestUnits {
    interpolate(bytes, |row| row.1)
}

/// Charge of a create, replace, upsert or delete of an item of `bytes`.
pub fn write(bytes: usize) -> RequestUnits {
    interpolate(bytes, |row| row.2)
}

/// Charge of a query page: a fixed start, the data loaded, and the data returned.
///
/// Our own formula, as the service publishes none. Calibrated so that a query that finds one 1 KB item costs about 2.8 units, as in published samples.
pub fn query(loaded_items: usize, loaded_bytes: usize, returned_bytes: usize) -> RequestUnits {
    (QUERY_START + query_work(loaded_items, loaded_bytes, returned_bytes)).rounded()
}

/// The fixed start of a query page.
pub const QUERY_START: RequestUnits = RequestUnits(2.3);

/// The charge of a query page without its start, not rounded. Linear, so that it can be added up range by range.
pub fn query_work(loaded_items: usize, loaded_bytes: usize, returned_bytes: usize) -> RequestUnits {
    RequestUnits(
        0.02 * loaded_items as f64 + (loaded_bytes as f64 / 1024.0) * 0.05 + (returned_bytes as f64 / 1024.0) * 0.4,
    )
}

/// The charge of reading entries of an index whose items are not loaded, not rounded.
pub fn index_entries(entries: usize) -> RequestUnits {
    RequestUnits(0.001 * entries as f64)
}

fn interpolate(bytes: usize, column: impl Fn(&(f64, f64, f64)) -> f64) -> RequestUnits {
    let bytes = bytes as f64;
    let above = TABLE.partition_point(|row| row.0 < bytes);
    let charge = match above {
        0 => column(&TABLE[0]),
        n if n == TABLE.len() => column(&TABLE[n - 1]) * bytes / TABLE[n - 1].0,
        n => {
            let (low, high) = (&TABLE[n - 1], &TABLE[n]);
            column(low) + (column(high) - column(low)) * (bytes - low.0) / (high.0 - low.0)
        }
    };
    RequestUnits(charge).rounded()
}

#[cfg(test)]
mod tests;
