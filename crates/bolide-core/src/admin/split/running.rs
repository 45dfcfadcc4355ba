//! The splits of an account that are under way, so that closing it can end them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bolide_model::time::Monotonic;
use bolide_model::{Error, ErrorKind, Result};
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

/// See the module.
#[derive(Debug)]
pub(crate) struct Splits {
    clock: Monotonic,
    is_closing: AtomicBool,
    /// Splits hold the read side; who waits for their end takes the write side.
    running: Arc<RwLock<()>>,
}

impl Splits {
    /// No splits yet, that will go by a clock.
    pub fn new(clock: Monotonic) -> Splits {
        Splits {
            clock,
            is_closing: AtomicBool::new(false),
            running: Arc::default(),
        }
    }

    /// Registers a split.
    pub async fn begin(self: &Arc<Self>) -> RunningSplit {
        RunningSplit {
            splits: self.clone(),
            _running: self.running.clone().read_owned().await,
        }
    }

    /// Tells all splits to end, those to come included. They do so before their next page.
    pub fn end(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
    }

    /// As [`Splits::end`], and waits until they have.
    pub async fn close(&self) {
        self.end();
        drop(self.running.write().await);
    }
}

/// One split.
#[derive(Debug)]
pub(crate) struct RunningSplit {
    splits: Arc<Splits>,
    _running: OwnedRwLockReadGuard<()>,
}

impl RunningSplit {
    /// The clock that it goes by.
    pub fn clock(&self) -> &Monotonic {
        &self.splits.clock
    }

    /// Whether the account is closing.
    pub fn must_end(&self) -> bool {
        self.splits.is_closing.load(Ordering::SeqCst)
    }

    /// # Errors
    /// `Unavailable` if the account is closing.
    pub fn check(&self) -> Result<()> {
        if self.must_end() {
            return Err(Error::new(
                ErrorKind::Unavailable,
                "the split was ended, because the account is closing; nothing has changed",
            ));
        }
        Ok(())
    }
}
