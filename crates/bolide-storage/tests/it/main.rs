//! The contract suite on the memory engine, and on the memory engine in trouble.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::sync::Arc;

use bolide_model::time::Clock;
use bolide_storage::Engine;
use bolide_storage::faults::{Faults, FaultyEngine};
use bolide_storage::memory::MemoryEngine;
use bolide_storage::suite::Stage;

mod faults;

mod memory {
    bolide_storage::engine_suite!(super::Memory);
}

mod memory_on_a_bad_day {
    bolide_storage::engine_suite!(super::BadDay);
}

struct Memory;

impl Stage for Memory {
    fn open(&self, clock: Arc<Clock>) -> Arc<dyn Engine> {
        Arc::new(MemoryEngine::new(clock))
    }

    fn is_durable(&self) -> bool {
        false
    }
}

struct BadDay;

impl Stage for BadDay {
    fn open(&self, clock: Arc<Clock>) -> Arc<dyn Engine> {
        Arc::new(FaultyEngine::new(
            Arc::new(MemoryEngine::new(clock)),
            Faults::bad_day(7),
        ))
    }

    fn is_durable(&self) -> bool {
        false
    }
}
