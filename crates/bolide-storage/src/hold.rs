//! Held snapshots: what outlives a call, and is bounded in number and time for that reason.
//!
//! [`Engine::hold`](crate::Engine::hold) answers with a [`Held`]. An engine keeps what stands behind it, a snapshot `S`, in its [`Holds`], and gives
//! the caller a [`Hold`]. What it keeps goes when the caller drops the hold, when its time is over, or when the engine needs it back
//! ([`Holds::release_all`]); whoever still reads then is told [`HoldError::Expired`].

use std::fmt;
use std::sync::{Arc, Weak};

use bolide_model::UnixMillis;
use parking_lot::Mutex;

use crate::{EngineError, EngineFuture, PartitionId, ReadRequest, ReadResponse};

/// The longest a snapshot is held, in milliseconds of server time.
pub const MAX_HOLD_MS: i64 = 60_000;

/// Most snapshots that an engine holds at once.
pub const MAX_HOLDS: usize = 1_024;

/// A read snapshot of all partitions of a home. Dropping it frees what it holds.
pub trait Held: Send + Sync + fmt::Debug {
    /// Reads keys and ranges of one partition as they were when the snapshot was taken, whatever was committed or removed since.
    ///
    /// # Errors
    /// - [`HoldError::Expired`]: the snapshot is gone. So it is for every later read.
    /// - [`HoldError::Engine`]: as [`Engine::read`](crate::Engine::read); [`EngineError::NoPartition`] for one that was not there then, or lies in another home.
    fn read(&self, partition: PartitionId, request: ReadRequest) -> EngineFuture<'_, Result<ReadResponse, HoldError>>;
}

/// Why a held snapshot cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HoldError {
    /// Its time is over, or the engine could not hold it for so long. Take another one.
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

/// A snapshot that is held, as its reader has it.
#[derive(Debug)]
pub struct Hold<S> {
    /// It is held while server time is below.
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
    /// Holds a snapshot until server time reaches `until`, for [`MAX_HOLD_MS`] from `now` at most.
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

    /// Lets go of snapshots whose time is over at `now`.
    pub fn expire(&self, now: UnixMillis) {
        self.release(|hold| hold.until <= now);
    }

    /// Lets go of all snapshots.
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
        // Behind the lock: closing a snapshot may take a while.
        drop(released);
    }
}

impl<S> Hold<S> {
    /// The snapshot, if it is still held at `now`.
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
