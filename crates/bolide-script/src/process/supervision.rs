//! Supervision of a running script: its time limit, and its end.

use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use crate::grant::Cancel;

/// The process or thread that runs scripts.
pub enum Runner {
    /// A process, which can be killed.
    Process(Child),
    /// A thread, which can only be asked to end.
    Thread(Cancel),
}

impl Runner {
    /// Ends it at once. Whoever waits for its pipes sees them closed.
    pub fn kill(&mut self) {
        match self {
            // Fails only if it has already ended.
            Runner::Process(child) => drop(child.kill()),
            Runner::Thread(cancel) => cancel.cancel(),
        }
    }

    /// Ends it and waits until it is gone. Returns how it ended, if known.
    pub fn end(&mut self) -> Option<ExitStatus> {
        self.kill();
        match self {
            Runner::Process(child) => child.wait().ok(),
            Runner::Thread(_) => None,
        }
    }

    /// Whether it has not ended by itself.
    pub fn is_alive(&mut self) -> bool {
        match self {
            Runner::Process(child) => matches!(child.try_wait(), Ok(None)),
            Runner::Thread(_) => true,
        }
    }
}

/// A process or thread that is lent to a script.
pub struct Supervision {
    pub runner: Mutex<Runner>,
    cancel: Cancel,
    /// When it is killed; `None` while nothing runs.
    until: Mutex<Option<Instant>>,
    is_killed: AtomicBool,
}

impl Supervision {
    /// `cancel` ends it at once.
    pub fn new(runner: Runner, cancel: Cancel) -> Supervision {
        Supervision {
            runner: Mutex::new(runner),
            cancel,
            until: Mutex::new(None),
            is_killed: AtomicBool::new(false),
        }
    }

    /// Sets the time limit of what runs in it; `None` if nothing runs.
    pub fn set_until(&self, until: Option<Instant>) {
        *self.until.lock() = until;
    }

    /// Ends it if it is late or cancelled.
    pub fn check(&self, now: Instant) {
        let is_late = self.until.lock().is_some_and(|until| now >= until);
        if is_late || self.cancel.is_cancelled() {
            self.kill();
        }
    }

    /// Ends it: it is late, or nobody waits for it.
    pub fn kill(&self) {
        self.is_killed.store(true, Ordering::SeqCst);
        self.runner.lock().kill();
    }

    /// Whether the supervisor ended it.
    pub fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::SeqCst)
    }
}
