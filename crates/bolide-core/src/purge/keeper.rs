//! The keeper: the background task that makes server time durable and runs the purge.
//!
//! With a virtual clock it does neither: tests purge by a call (TTL-206), and server time is made durable before a request is answered
//! by it.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bolide_model::UnixMillis;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::PurgeMode;
use crate::account::Account;
use crate::container::Container;

/// How often the keeper looks for something to do.
const TICK: Duration = Duration::from_millis(200);
/// Server time is made durable at least this often while requests are answered by it (TTL-203).
const TIME_DURABLE_EVERY: Duration = Duration::from_secs(1);
/// While users are there, the purge rests this many times as long as its last step took.
const RESTS_BESIDE_USERS: u32 = 9;
/// A forward step of the wall clock larger than this holds the purge (TTL-204).
const STEP_HOLDS: Duration = Duration::from_secs(24 * 3600);

/// The running background task.
pub(crate) struct Keeper {
    stop: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

/// How the background purge is held back, besides its budget.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// Most items a second in the whole account.
    pub items_per_second: Option<u32>,
    /// How long a large step of the clock holds the purge; zero: not at all.
    pub hold: Duration,
}

impl Keeper {
    /// Starts the task. It ends by itself when the account is gone.
    pub fn start(account: Weak<Account>, pace: Pace) -> Keeper {
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(keep(account, pace, stopped));
        Keeper {
            stop,
            task: Mutex::new(Some(task)),
        }
    }

    /// Stops the task, and waits for the step it is in.
    pub async fn stop(&self) {
        let _ = self.stop.send(true);
        let task = self.task.lock().take();
        if let Some(task) = task {
            let _ = task.await;
        }
    }
}

async fn keep(account: Weak<Account>, pace: Pace, mut stopped: watch::Receiver<bool>) {
    let mut watch = ClockWatch::default();
    let mut time_durable = Instant::now();
    loop {
        tokio::select! {
            () = tokio::time::sleep(TICK) => {}
            _ = stopped.changed() => return,
        }
        let Some(account) = account.upgrade() else { return };
        if time_durable.elapsed() >= TIME_DURABLE_EVERY {
            account.make_time_durable().await;
            time_durable = Instant::now();
        }
        let is_held = watch.look(account.server_time(), pace.hold);
        account.set_purge_held(is_held);
        if !is_held {
            purge_due(&account, pace, &stopped).await;
        }
    }
}

/// Purges what is due, a step of each partition in turn, for one tick.
async fn purge_due(account: &Arc<Account>, pace: Pace, stopped: &watch::Receiver<bool>) {
    let mut allowance = pace
        .items_per_second
        .map(|items| u64::from(items) * TICK.as_millis() as u64 / 1000);
    let deadline = Instant::now() + TICK;
    let containers = account.all_containers();
    loop {
        let mut is_busy = false;
        for container in &containers {
            if *stopped.borrow() || Instant::now() >= deadline || allowance == Some(0) {
                return;
            }
            is_busy |= purge_container(account, container, &mut allowance).await;
        }
        if !is_busy {
            return;
        }
    }
}

/// One step in each partition that may have something due; tells whether there is more to do.
async fn purge_container(account: &Arc<Account>, container: &Arc<Container>, allowance: &mut Option<u64>) -> bool {
    let now = account.server_time().seconds();
    let layout = container.state().layout.clone();
    let mut is_busy = false;
    for partition in layout.partitions.iter().filter(|partition| partition.may_be_due(now)) {
        let Ok(visit) = container.enter().await else {
            return false;
        };
        let most = allowance.unwrap_or(u64::MAX);
        let (began, requests) = (Instant::now(), account.requests());
        match account
            .purge_step(container, &visit, partition, PurgeMode::Paced, most)
            .await
        {
            Ok(step) => {
                is_busy |= !step.is_last;
                if let Some(allowance) = allowance {
                    *allowance = allowance.saturating_sub(step.purged);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the purge failed and will be tried again");
                return false;
            }
        }
        drop(visit);
        // Users first, in CPU and disk as in everything else (TTL-265): beside them the purge rests most of the time.
        if account.requests() > requests {
            tokio::time::sleep(began.elapsed() * RESTS_BESIDE_USERS).await;
        } else {
            tokio::task::yield_now().await;
        }
    }
    is_busy
}

/// Notices steps of the wall clock by comparing it with the monotonic one.
#[derive(Default)]
struct ClockWatch {
    last: Option<(UnixMillis, Instant)>,
    held_until: Option<Instant>,
}

impl ClockWatch {
    /// Whether the purge is held now.
    fn look(&mut self, now: UnixMillis, hold: Duration) -> bool {
        let instant = Instant::now();
        if let Some((last, at)) = self.last.replace((now, instant)) {
            let stepped = now.0 - last.0 - instant.duration_since(at).as_millis() as i64;
            if stepped > STEP_HOLDS.as_millis() as i64 && !hold.is_zero() {
                tracing::error!(
                    stepped_seconds = stepped / 1000,
                    hold_seconds = hold.as_secs(),
                    "the wall clock stepped forward by more than a day: expired items are hidden, their purge is held"
                );
                self.held_until = Some(instant + hold);
            }
        }
        self.held_until.is_some_and(|until| instant < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_more_than_a_day_holds_the_purge() {
        // TTL-204
        let hold = Duration::from_secs(600);
        let mut watch = ClockWatch::default();
        assert!(!watch.look(UnixMillis(0), hold));
        assert!(
            !watch.look(UnixMillis(3_600_000), hold),
            "an hour is a pause of the machine"
        );
        assert!(watch.look(UnixMillis(3_600_000 + 25 * 3_600_000), hold));
        assert!(
            watch.look(UnixMillis(3_600_000 + 25 * 3_600_000), hold),
            "still within the hold"
        );
        assert!(!ClockWatch::default().look(UnixMillis(i64::MAX), Duration::ZERO));
    }
}
