//! The running splits of an account. Closing the account ends them.

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
    /// Running splits hold the read lock. Whoever waits for their end takes the write lock.
    running: Arc<RwLock<()>>,
}

impl Splits {
    /// Returns an empty set of splits that measure time by `clock`.
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

    /// Tells all splits to end, including later ones. They end before their next page.
    pub fn end(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
    }

    /// Like [`Splits::end`], and waits until they have ended.
    pub async fn close(&self) {
        self.end();
        drop(self.running.write().await);
    }
}

/// A running split.
#[derive(Debug)]
pub(crate) struct RunningSplit {
    splits: Arc<Splits>,
    _running: OwnedRwLockReadGuard<()>,
}

impl RunningSplit {
    /// Returns the clock that it uses.
    pub fn clock(&self) -> &Monotonic {
        &self.splits.clock
    }

    /// Tells whether the account is closing.
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
