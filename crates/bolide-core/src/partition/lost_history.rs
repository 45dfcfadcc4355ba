//! A store that several servers share can lose commits that were acknowledged: a standby without them is promoted, or a backup is restored. A server that
//! has seen a later head than the store has now must not go on, because clients have seen what is gone: it refuses all requests until it is started again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bolide_model::time::Monotonic;
use bolide_model::{Error, ErrorKind, Lsn, Result};
use bolide_storage::{Head, PartitionId};
use parking_lot::Mutex;

/// Interval at which the loss is logged.
const LOGGED: Duration = Duration::from_secs(60);

/// Whether the store has lost commits that this process has seen. See the module.
#[derive(Default)]
pub(crate) struct LostHistory {
    /// Whether there is a loss: every request asks.
    is_lost: AtomicBool,
    loss: Mutex<Option<Loss>>,
}

struct Loss {
    text: String,
    clock: Monotonic,
    logged: Option<Instant>,
}

impl LostHistory {
    /// Compares a head with the newest commit that was known before it was read.
    ///
    /// # Errors
    /// As [`LostHistory::check`].
    pub fn compare(&self, partition: PartitionId, known: Lsn, head: Head) -> Result<()> {
        if head.lsn >= known {
            return Ok(());
        }
        let text = format!(
            "the store has lost commits that were acknowledged: partition {partition} was at {}, and is at {}. Was a standby promoted that did not have them, \
             or a backup restored? What clients have seen is gone, so all requests are refused until this server is started again",
            known.0, head.lsn.0
        );
        self.loss.lock().get_or_insert_with(|| Loss {
            text,
            clock: Monotonic::system(),
            logged: None,
        });
        self.is_lost.store(true, Ordering::Release);
        self.check()
    }

    /// Refuses to go on if commits were lost, and logs it once a minute.
    ///
    /// # Errors
    /// `Unavailable`.
    pub fn check(&self) -> Result<()> {
        if !self.is_lost.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut loss = self.loss.lock();
        let Some(loss) = loss.as_mut() else { return Ok(()) };
        let now = loss.clock.now();
        if loss
            .logged
            .is_none_or(|logged| now.saturating_duration_since(logged) >= LOGGED)
        {
            loss.logged = Some(now);
            tracing::error!("{}", loss.text);
        }
        Err(Error::new(ErrorKind::Unavailable, loss.text.clone()))
    }
}
