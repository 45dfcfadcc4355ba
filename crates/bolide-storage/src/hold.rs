//! Held snapshots: they outlive a call, so they are bounded in number and time.
//!
//! [`Engine::hold`](crate::Engine::hold) returns a [`HeldSnapshot`]. The engine keeps the snapshot `S` behind it in its [`Holds`], and gives the caller a
//! [`Hold`]. The snapshot ends when the caller drops the hold, when its time is over, or when the engine needs the resources back
//! ([`Holds::release_all`]). Later reads return [`HoldError::Expired`].

use std::fmt;
use std::sync::{Arc, Weak};

use bolide_model::UnixMillis;
use parking_lot::Mutex;

use crate::{EngineError, EngineFuture, PartitionId, ReadRequest, ReadResponse};

/// The longest a snapshot is held, in milliseconds of server time.
pub const MAX_HOLD_MS: i64 = 60_000;

/// The maximum number of snapshots that an engine holds at once.
pub const MAX_HOLDS: usize = 1_024;

/// A read snapshot of all partitions of a home. Dropping it frees what it holds.
pub trait HeldSnapshot: Send + Sync + fmt::Debug {
    /// Reads keys and ranges of one partition as they were when the snapshot was taken, whatever was committed or removed later.
    ///
    /// # Errors
    /// - [`HoldError::Expired`]: the snapshot has ended, for every later read too.
    /// - [`HoldError::Engine`]: as for [`Engine::read`](crate::Engine::read); [`EngineError::NoPartition`] if the partition did not exist then, or
    ///   lies in another home.
    fn read(&self, partition: PartitionId, request: ReadRequest) -> EngineFuture<'_, Result<ReadResponse, HoldError>>;
}

/// Why a held snapshot cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HoldError {
    /// Its time is over, or the engine could not hold it for that long. Take another snapshot.
    #[error("the held snapshot has expired")]
    Expired,
    /// The engine cannot serve this read.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// The snapshots that an engine holds.
#[derive(Debug)]
pub struct Holds<S> {
    holds: Mutex<Vec<Weak<Hold<S>>>>,
}

/// A snapshot that is held, as its reader sees it.
#[derive(Debug)]
pub struct Hold<S> {
    /// The snapshot is held while server time is below this.
    until: UnixMillis,
    /// `None` once it expired.
    snapshot: Mutex<Option<Arc<S>>>,
}

impl<S> Default for Holds<S> {
    fn default() -> Holds<S> {
        Holds {
            holds: Mutex::default(),
        }
    }
}

impl<S> Holds<S> {
    /// Holds a snapshot until server time reaches `until`, but no longer than [`MAX_HOLD_MS`] from `now`.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] while [`MAX_HOLDS`] others are held.
    pub fn add(&self, snapshot: S, until: UnixMillis, now: UnixMillis) -> Result<Arc<Hold<S>>, EngineError> {
        self.expire(now);
        let mut holds = self.holds.lock();
        if holds.len() >= MAX_HOLDS {
            return Err(EngineError::Unavailable(format!(
                "too many snapshots are held. limit={MAX_HOLDS}"
            )));
        }
        let hold = Arc::new(Hold {
            until: until.min(UnixMillis(now.0.saturating_add(MAX_HOLD_MS))),
            snapshot: Mutex::new(Some(Arc::new(snapshot))),
        });
        holds.push(Arc::downgrade(&hold));
        Ok(hold)
    }

    /// Ends the snapshots whose time is over at `now`.
    pub fn expire(&self, now: UnixMillis) {
        self.release(|hold| hold.until <= now);
    }

    /// Ends all snapshots.
    pub fn release_all(&self) {
        self.release(|_| true);
    }

    fn release(&self, is_over: impl Fn(&Hold<S>) -> bool) {
        let mut released = Vec::new();
        self.holds.lock().retain(|hold| {
            let hold = hold.upgrade().filter(|hold| hold.is_held());
            hold.is_some_and(|hold| {
                let is_over = is_over(&hold);
                if is_over {
                    released.push(hold.take());
                }
                !is_over
            })
        });
        // After the lock is released: closing a snapshot may take a while.
        drop(released);
    }
}

impl<S> Hold<S> {
    /// The snapshot, if it has not ended at `now`.
    pub fn snapshot(&self, now: UnixMillis) -> Result<Arc<S>, HoldError> {
        if now >= self.until {
            drop(self.take());
        }
        self.snapshot.lock().clone().ok_or(HoldError::Expired)
    }

    fn is_held(&self) -> bool {
        self.snapshot.lock().is_some()
    }

    fn take(&self) -> Option<Arc<S>> {
        self.snapshot.lock().take()
    }
}

#[cfg(test)]
mod tests;
