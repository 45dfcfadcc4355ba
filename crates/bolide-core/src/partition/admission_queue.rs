//! A bounded number of permits, and a bounded queue of requests that wait for one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bolide_model::time::Monotonic;
use bolide_model::{Error, ErrorKind, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of requests that wait in one queue; further ones are refused at once.
const WAITING_MAX: usize = 256;
/// The time after which a refused client should try again.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A bounded number of permits, and a bounded queue of requests that wait for one.
pub(crate) struct AdmissionQueue {
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl AdmissionQueue {
    /// Returns a queue with this number of permits and no waiting request.
    pub fn new(permits: usize) -> AdmissionQueue {
        AdmissionQueue {
            permits: Arc::new(Semaphore::new(permits)),
            waiting: AtomicUsize::new(0),
        }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Joins the queue. The request leaves it when the result is dropped.
    ///
    /// # Errors
    /// `Throttled` if the queue is full.
    pub(crate) fn join(&self) -> Result<Waiting<'_>> {
        let joined = Waiting(&self.waiting);
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        if before < WAITING_MAX {
            Ok(joined)
        } else {
            Err(crowded())
        }
    }

    /// Waits for a permit until `clock` shows `until`.
    ///
    /// # Errors
    /// `Throttled` if none becomes free in time.
    pub(crate) async fn permit(&self, clock: &Monotonic, until: Instant) -> Result<OwnedSemaphorePermit> {
        match clock.timeout_at(until, self.permits.clone().acquire_owned()).await {
            Some(Ok(permit)) => Ok(permit),
            _ => Err(crowded()),
        }
    }
}

/// A request's place in the queue.
pub(crate) struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(crate) fn crowded() -> Error {
    let kind = ErrorKind::Throttled {
        retry_after: RETRY_AFTER,
    };
    Error::new(kind, "Too many scripts run or wait at once; try again later.")
}
