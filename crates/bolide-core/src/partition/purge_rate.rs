//! The number of ghosts removed in each of the last seconds (TTL-272).

use std::collections::VecDeque;

use bolide_model::UnixSeconds;
use parking_lot::Mutex;

/// Number of seconds over which the rate is averaged.
const SECONDS: i64 = 60;

/// Removed ghosts by the second of their commit, oldest first.
#[derive(Debug, Default)]
pub(crate) struct PurgeRate(Mutex<VecDeque<(i64, u64)>>);

impl PurgeRate {
    /// Records the number of ghosts that a commit has removed.
    pub fn note(&self, now: UnixSeconds, ghosts: u64) {
        if ghosts == 0 {
            return;
        }
        let mut seconds = self.0.lock();
        match seconds.back_mut() {
            Some((second, sum)) if *second == now.0 => *sum += ghosts,
            _ => seconds.push_back((now.0, ghosts)),
        }
        while seconds.len() > SECONDS as usize {
            seconds.pop_front();
        }
    }

    /// Returns the number of ghosts removed per second, averaged over the last minute.
    pub fn per_second(&self, now: UnixSeconds) -> f64 {
        let seconds = self.0.lock();
        let recent = seconds.iter().filter(|(second, _)| now.0 - second < SECONDS);
        recent.map(|(_, ghosts)| *ghosts).sum::<u64>() as f64 / SECONDS as f64
    }
}
