//! Choices that repeat with the seed.

/// A generator of choices.
pub struct RandomChoices(fastrand::Rng);

impl RandomChoices {
    pub fn new(seed: u64) -> RandomChoices {
        RandomChoices(fastrand::Rng::with_seed(seed))
    }

    /// Returns a number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0.u64(..sides)
    }

    pub fn percent(&mut self, chance: u64) -> bool {
        self.roll(100) < chance
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.roll(from.len() as u64)).expect("below a length")]
    }
}
