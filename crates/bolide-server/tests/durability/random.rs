//! Random choices that repeat with the seed.

use std::ops::Range;

/// A generator of random numbers.
#[derive(Debug)]
pub struct Random(fastrand::Rng);

impl Random {
    /// A generator for one purpose of a run, independent of the others.
    pub fn new(seed: u64, purpose: u64) -> Random {
        let mut seeds = fastrand::Rng::with_seed(seed);
        Random(fastrand::Rng::with_seed(seeds.u64(..) ^ purpose))
    }

    /// A number in a non-empty range.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        self.0.u64(range)
    }

    /// One of several values.
    pub fn choice<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.within(0..of.len() as u64)).expect("below a length")]
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.within(0..n) == 0
    }
}

/// A number in the environment.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |value| {
        value.parse().unwrap_or_else(|_| panic!("{name} is a number: {value}"))
    })
}
