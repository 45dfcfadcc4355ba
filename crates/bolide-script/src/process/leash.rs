//! By which a running script is held, and ended.

use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use crate::grant::Cancel;

/// What runs scripts.
pub enum Life {
    /// A process, which can be killed.
    Process(Child),
    /// A thread, which can be asked.
    Thread(Cancel),
}

impl Life {
    /// Ends it at once. Whoever waits at its pipes is told by their end.
    pub fn kill(&mut self) {
        match self {
            // Fails only for one that has ended.
            Life::Process(child) => drop(child.kill()),
            Life::Thread(cancel) => cancel.cancel(),
        }
    }

    /// Ends it and waits until it is gone, so that nothing is left of it. How it ended, if that can be told.
    pub fn end(&mut self) -> Option<ExitStatus> {
        self.kill();
        match self {
            Life::Process(child) => child.wait().ok(),
            Life::Thread(_) => None,
        }
    }

    /// Whether it has not ended by itself.
    pub fn is_alive(&mut self) -> bool {
        match self {
            Life::Process(child) => matches!(child.try_wait(), Ok(None)),
            Life::Thread(_) => true,
        }
    }
}

/// A life that is lent out for a script.
pub struct Leash {
    pub life: Mutex<Life>,
    cancel: Cancel,
    /// When it is killed; `None` while nothing runs.
    until: Mutex<Option<Instant>>,
    is_killed: AtomicBool,
}

impl Leash {
    /// `cancel` ends it at once.
    pub fn new(life: Life, cancel: Cancel) -> Leash {
        Leash {
            life: Mutex::new(life),
            cancel,
            until: Mutex::new(None),
            is_killed: AtomicBool::new(false),
        }
    }

    /// Lets something run until then, or nothing.
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

    /// Ends it, for its time or because nobody waits for it.
    pub fn kill(&self) {
        self.is_killed.store(true, Ordering::SeqCst);
        self.life.lock().kill();
    }

    /// Whether it was ended from here.
    pub fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::SeqCst)
    }
}
