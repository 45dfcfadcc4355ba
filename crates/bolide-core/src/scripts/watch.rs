//! How long and how much a script may, and how many at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bolide_model::{Error, ErrorKind, RequestUnits, Result, UnixMillis};
use bolide_query::{Interrupt, Interrupts};
use bolide_script::{Limits, Pace, Settings};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// After this long no further operation is accepted: the script is to return with a continuation of its own.
const ACCEPTS_FOR: Duration = Duration::from_secs(4);
/// After this long a script is ended (cosmos-rest §11.2).
pub(super) const RUNS_FOR: Duration = Duration::from_secs(5);
/// How much longer to wait for a script that was told to end, before it is left behind on its thread.
pub(super) const GRACE: Duration = Duration::from_secs(1);
/// Request units after which no further operation is accepted.
const CHARGE: f64 = 50_000.0;
/// Bytes written after which no further operation is accepted: they become one commit.
const WRITTEN_BYTES: usize = 32 * 1024 * 1024;
/// Scripts at one time, those included that wait for their partition. A thread that was left behind keeps its place.
const SLOTS: usize = 64;
/// Stack of a script's thread: the engine's own, and what the host needs beside it.
pub(super) const THREAD_STACK_BYTES: usize = 4 * 1024 * 1024;

/// The places for scripts of an account.
pub(crate) struct Slots(Arc<Semaphore>);

/// A place; kept by the thread of a script until that ends.
pub(crate) type Slot = Arc<OwnedSemaphorePermit>;

impl Default for Slots {
    fn default() -> Slots {
        Slots(Arc::new(Semaphore::new(SLOTS)))
    }
}

impl Slots {
    /// Waits for a place.
    ///
    /// # Errors
    /// `Unavailable` if none becomes free in time.
    pub async fn take(&self) -> Result<Slot> {
        match tokio::time::timeout(RUNS_FOR * 2, self.0.clone().acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Arc::new(permit)),
            _ => Err(Error::new(
                ErrorKind::Unavailable,
                format!("too many scripts run at once. limit={SLOTS}"),
            )),
        }
    }
}

/// Watches one run: shared by the script's thread and whoever serves it.
pub(super) struct Watch {
    started: Instant,
    /// Server time when it began.
    now: UnixMillis,
    /// The clock moves by hand only, so time stands still for a script.
    is_virtual: bool,
    is_stopped: AtomicBool,
    used: Mutex<Used>,
    charge_limit: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Used {
    charge: f64,
    written_bytes: usize,
}

impl Watch {
    /// A run that begins now. `charge_limit`: what the throughput lets it use, where that is enforced.
    pub fn start(now: UnixMillis, is_virtual: bool, charge_limit: Option<f64>) -> Arc<Watch> {
        Arc::new(Watch {
            started: Instant::now(),
            now,
            is_virtual,
            is_stopped: AtomicBool::new(false),
            used: Mutex::default(),
            charge_limit: charge_limit.unwrap_or(CHARGE).min(CHARGE),
        })
    }

    /// Ends the script as soon as it can be.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Counts what an operation used.
    pub fn used(&self, charge: RequestUnits, written_bytes: usize) {
        let mut used = self.used.lock();
        used.charge += charge.0;
        used.written_bytes += written_bytes;
    }

    /// What all operations so far used.
    pub fn charge(&self) -> RequestUnits {
        RequestUnits(self.used.lock().charge)
    }

    /// Whether one more operation is accepted.
    pub fn accepts(&self) -> bool {
        let used = *self.used.lock();
        self.started.elapsed() < ACCEPTS_FOR
            && used.charge < self.charge_limit
            && used.written_bytes < WRITTEN_BYTES
            && !self.is_stopped.load(Ordering::Relaxed)
    }

    /// How long it may still run, with its grace.
    pub fn left(&self) -> Duration {
        (RUNS_FOR + GRACE).saturating_sub(self.started.elapsed())
    }

    /// The surroundings of a script that this watches.
    pub fn settings(self: &Arc<Self>) -> Settings {
        Settings {
            limits: Limits::default(),
            pace: self.clone(),
            random_seed: crate::query::random_seed(),
        }
    }
}

impl Interrupts for Watch {
    fn pending(&self, _item: u64) -> Option<Interrupt> {
        self.is_over().then_some(Interrupt::DeadlineExceeded)
    }
}

impl Pace for Watch {
    fn is_over(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed) || self.started.elapsed() >= RUNS_FOR
    }

    fn now_ms(&self) -> i64 {
        if self.is_virtual {
            return self.now.0;
        }
        let elapsed = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(0);
        self.now.0.saturating_add(elapsed)
    }
}
