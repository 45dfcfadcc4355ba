//! Transactions of scripts at one partition: one at a time, with pauses for others between them.
//!
//! ```text
//!   script ████████            script ████            script
//!   others ········ written while the scripts pause ████ written …
//!                  ├─ as long ─┤          ├as long┤
//! ```
//!
//! A script keeps the other writes of its partition waiting. If any waited when it ended, the next script begins only after the partition was theirs
//! for as long: scripts, however many, leave others half of the time. Scripts alone pay for it; other writes know nothing of it.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_model::Result;
use bolide_model::time::Monotonic;
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use super::admission_queue::{AdmissionQueue, crowded};

/// What is shorter is not paid back: the write batch of those who waited, which comes next anyway, takes about as long.
const MIN_HELD: Duration = Duration::from_millis(5);
/// Most that is paid back: the time that a script has. What it took beyond that was for ending it and for its commit, and a longer pause would use
/// up the timeout of those in the queue.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Tells whether others wait to write a partition.
pub(crate) type OthersWait = Arc<dyn Fn() -> bool + Send + Sync>;

/// The queue of scripts of a partition.
pub(crate) struct Orders {
    queue: AdmissionQueue,
    others_wait: OthersWait,
    /// When the next script may begin.
    paused_until: Arc<Mutex<Option<Instant>>>,
}

/// Keeps other scripts' transactions from a partition until it is dropped.
pub(crate) struct Order {
    clock: Monotonic,
    began: Option<Instant>,
    others_wait: OthersWait,
    paused_until: Arc<Mutex<Option<Instant>>>,
    _permit: OwnedSemaphorePermit,
}

impl Orders {
    /// A line in which nobody waits.
    pub fn new(others_wait: OthersWait) -> Orders {
        Orders {
            queue: AdmissionQueue::new(1),
            others_wait,
            paused_until: Arc::default(),
        }
    }

    /// How many wait for those before them, or for the end of a pause.
    pub fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    /// Waits for the scripts that came before, and for the pause after the last of them, until `clock` shows `until`.
    ///
    /// # Errors
    /// `Throttled` if too many wait, or the partition is not free for a script in time.
    pub async fn next(&self, clock: &Monotonic, until: Instant) -> Result<Order> {
        let _waiting = self.queue.join()?;
        let permit = self.queue.permit(clock, until).await?;
        // Nobody but who has the permit sets it.
        let paused_until = *self.paused_until.lock();
        if let Some(paused_until) = paused_until {
            clock.sleep_until(paused_until.min(until)).await;
            if paused_until > until {
                return Err(crowded());
            }
        }
        Ok(Order {
            clock: clock.clone(),
            began: None,
            others_wait: self.others_wait.clone(),
            paused_until: self.paused_until.clone(),
            _permit: permit,
        })
    }
}

impl Order {
    /// The script has the partition from now on; said again when its transaction is run again.
    pub fn begin(&mut self) {
        self.began.get_or_insert_with(|| self.clock.now());
    }

    /// Tells whether others wait to write the partition.
    pub fn others_wait(&self) -> OthersWait {
        self.others_wait.clone()
    }
}

impl Drop for Order {
    fn drop(&mut self) {
        let held = self.began.map_or(Duration::ZERO, |began| self.clock.since(began));
        if held >= MIN_HELD && (self.others_wait)() {
            *self.paused_until.lock() = Some(self.clock.now() + held.min(LONGEST_PAUSE));
        }
    }
}
