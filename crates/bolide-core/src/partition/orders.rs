//! Orders the transactions of scripts at one partition: one at a time, with pauses between them for other writes.
//!
//! ```text
//!   script ████████            script ████            script
//!   others ········ written while the scripts pause ████ written …
//!                  ├─ as long ─┤          ├as long┤
//! ```
//!
//! While a script runs, the other writes of its partition wait. If any were waiting when it ended, the next script begins only after a pause that is
//! as long as the script was, so that scripts, however many, leave half of the time to other writes. Only scripts are delayed by this; other writes
//! need not know of it.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_model::Result;
use bolide_model::time::Monotonic;
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use super::admission_queue::{AdmissionQueue, crowded};

/// Minimum duration of a script that is followed by a pause. After a shorter script the write batch of the waiting writes, which is committed next
/// anyway, takes about as long as the pause would.
const MIN_HELD: Duration = Duration::from_millis(5);
/// Maximum pause: the time limit of a script. A script that held the partition longer needed the rest for its abort and its commit, and a longer
/// pause would use up the timeout of the scripts in the queue.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A function that tells whether other writes wait for a partition.
pub(crate) type OthersWait = Arc<dyn Fn() -> bool + Send + Sync>;

/// The queue of the scripts of a partition.
pub(crate) struct Orders {
    queue: AdmissionQueue,
    others_wait: OthersWait,
    /// The end of the current pause: the next script may begin then.
    paused_until: Arc<Mutex<Option<Instant>>>,
}

/// The right of one script to run at a partition. No other script runs until it is dropped.
pub(crate) struct Order {
    clock: Monotonic,
    began: Option<Instant>,
    others_wait: OthersWait,
    paused_until: Arc<Mutex<Option<Instant>>>,
    _permit: OwnedSemaphorePermit,
}

impl Orders {
    /// Returns an empty queue.
    pub fn new(others_wait: OthersWait) -> Orders {
        Orders {
            queue: AdmissionQueue::new(1),
            others_wait,
            paused_until: Arc::default(),
        }
    }

    /// Returns the number of scripts that wait for a script before them, or for the end of a pause.
    pub fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    /// Waits for the earlier scripts, and for the pause after the last of them, until `clock` shows `until`.
    ///
    /// # Errors
    /// `Throttled` if the queue is full, or if no script may begin in time.
    pub async fn next(&self, clock: &Monotonic, until: Instant) -> Result<Order> {
        let _waiting = self.queue.join()?;
        let permit = self.queue.permit(clock, until).await?;
        // Only the holder of the permit sets it.
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
    /// Records that the script has the partition from now on. Called again when its transaction is run again.
    pub fn begin(&mut self) {
        self.began.get_or_insert_with(|| self.clock.now());
    }

    /// Returns the function that tells whether other writes wait for the partition.
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
