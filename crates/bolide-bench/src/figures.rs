//! Statistics of measurements.

use std::time::Duration;

/// How long requests took.
#[derive(Debug, Default)]
pub struct Latencies {
    sorted: Vec<Duration>,
}

impl FromIterator<Duration> for Latencies {
    fn from_iter<I: IntoIterator<Item = Duration>>(latencies: I) -> Latencies {
        let mut sorted: Vec<Duration> = latencies.into_iter().collect();
        sorted.sort_unstable();
        Latencies { sorted }
    }
}

impl Latencies {
    /// Number of latencies.
    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    /// The latency that `percent` of all requests did not exceed, by nearest rank; zero without requests.
    pub fn percentile(&self, percent: f64) -> Duration {
        let rank = (percent / 100.0 * self.sorted.len() as f64).ceil() as usize;
        self.sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }
}

/// A number of bytes in whole megabytes, for a table.
pub fn megabytes(bytes: u64) -> String {
    format!("{:.0}", bytes as f64 / 1e6)
}

/// The median; of an even number of values, the mean of the middle two; 0 without values.
pub fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = numbers.into_iter().collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// The median of the ratios of pairs measured in the same round.
pub fn median_ratio(pairs: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    median(pairs.into_iter().map(|(part, whole)| part / whole))
}

/// Microseconds, for tables.
pub fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// A ratio as a percentage, for tables.
pub fn percent(ratio: f64) -> String {
    format!("{:.0} %", ratio * 100.0)
}

#[cfg(test)]
mod tests;
