//! The context in which filters, updates and pipelines of inputs run: with an end, as commands have one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bolide_model::UnixMillis;
use bolide_mql::context::Interrupt;
use bolide_mql::{Code, Context, Error, Result};

/// Steps after which the work of an input ends.
const STEPS: u64 = 50_000;

struct Steps(AtomicU64);

impl Interrupt for Steps {
    fn check(&self, steps: u64) -> Result<()> {
        match self.0.fetch_add(steps.max(1), Ordering::Relaxed) {
            0..STEPS => Ok(()),
            _ => Err(Error::new(Code::MAX_TIME_MS_EXPIRED, "many steps")),
        }
    }
}

/// A context for one input.
pub fn context() -> Context {
    Context {
        interrupt: Arc::new(Steps(AtomicU64::new(0))),
        ..Context::new(UnixMillis(1_700_000_000_123))
    }
}

/// Whether work gives the same result again: not if it is random, as far as the text tells.
pub fn is_repeatable(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text).to_ascii_lowercase();
    !["rand", "sample", "\\u"].iter().any(|part| text.contains(part))
}
