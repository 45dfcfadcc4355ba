//! Makes each second durable shortly before it begins, while there are requests, so that none has to wait for it (`crate::clock`). While requests are
//! judged by date rules, the same for the next milliseconds.
//!
//! This job belongs to the account and not to a partition, and runs independently of the purge, because it must not wait for a purge's step.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bolide_model::UnixSeconds;
use tokio::sync::watch;

use crate::background::Background;
use crate::clock;
use crate::partition::Wakeup;

/// Makes seconds durable; see the module.
#[derive(Default)]
pub(in crate::background) struct DurableSecond {
    /// The number of requests when a second was last made durable.
    requests: u64,
}

impl DurableSecond {
    /// Makes the next second durable if it is about to begin and there were requests. Returns how long to wait until the next step.
    pub async fn step(&mut self, background: &Background) -> Duration {
        let now = background.server_time();
        let next = UnixSeconds(now.seconds().0.saturating_add(1)).millis();
        let left = Duration::from_millis(next.0.saturating_sub(now.0).unsigned_abs());
        if left > clock::AHEAD {
            return left - clock::AHEAD;
        }
        if background.requests() != self.requests {
            self.requests = background.requests();
            clock::make_durable(background.engine.as_ref(), next).await;
        }
        clock::AHEAD
    }
}

/// Runs the job until it is told to stop, or the account is dropped.
pub(in crate::background) async fn run(
    background: Weak<Background>,
    wakeup: Arc<Wakeup>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut job = DurableSecond::default();
    loop {
        let Some(open) = background.upgrade() else { return };
        let pause = job.step(&open).await;
        let monotonic = open.clock.clone();
        drop(open);
        // In this order and not in one by chance, so that a simulation can be repeated.
        tokio::select! {
            biased;
            _ = stopped.changed() => return,
            () = monotonic.sleep(pause) => {}
            () = wakeup.exact_time_expected() => {
                let Some(open) = background.upgrade() else { return };
                clock::keep_exact(open.engine.as_ref(), open.server_time()).await;
            }
        }
    }
}

#[cfg(test)]
mod tests;
