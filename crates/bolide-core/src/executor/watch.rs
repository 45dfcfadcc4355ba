//! What tells a piece of work that it must end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bolide_query::{Interrupt, Interrupts};
use parking_lot::Mutex;

use super::priority;

/// How much processor time one item may take, or compiling the text of a query: `bolide_query` counts work too, but not exactly.
const ITEM: Duration = Duration::from_millis(500);

/// Watches one piece of work.
pub(crate) struct Watch {
    is_cancelled: AtomicBool,
    /// Of all work: the account closes.
    is_closing: Arc<AtomicBool>,
    deadline: Instant,
}

impl Watch {
    pub fn new(is_closing: Arc<AtomicBool>, deadline: Instant) -> Watch {
        Watch {
            is_cancelled: AtomicBool::new(false),
            is_closing,
            deadline,
        }
    }

    /// Ends the work.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Why the work must end, if it must.
    pub fn pending(&self) -> Option<Interrupt> {
        if self.is_cancelled.load(Ordering::Relaxed) || self.is_closing.load(Ordering::Relaxed) {
            Some(Interrupt::Cancelled)
        } else if Instant::now() >= self.deadline {
            Some(Interrupt::DeadlineExceeded)
        } else {
            None
        }
    }

    /// What an execution, or a compilation, on this thread asks.
    pub fn interrupts(self: &Arc<Self>) -> Arc<dyn Interrupts> {
        Arc::new(ItemWatch {
            watch: self.clone(),
            item: Mutex::new((0, priority::thread_time())),
        })
    }
}

/// Watches the items of one execution.
struct ItemWatch {
    watch: Arc<Watch>,
    /// The item that was asked about last, and the thread's time when it was first asked about.
    item: Mutex<(u64, Duration)>,
}

impl Interrupts for ItemWatch {
    fn pending(&self, item: u64) -> Option<Interrupt> {
        let now = priority::thread_time();
        let mut known = self.item.lock();
        if known.0 != item {
            *known = (item, now);
        }
        let is_long = now.saturating_sub(known.1) > ITEM;
        let pending = self.watch.pending();
        pending.or(is_long.then_some(Interrupt::TooMuchWork))
    }
}
