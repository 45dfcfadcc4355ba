//! The contract suite on the memory engine, without and with injected faults.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

use std::sync::Arc;

use bolide_model::time::Clock;
use bolide_storage::Engine;
use bolide_storage::faults::{Faults, FaultyEngine};
use bolide_storage::memory::MemoryEngine;
use bolide_storage::suite::EngineFixture;

mod faults;

mod memory {
    bolide_storage::engine_suite!(super::Memory);
}

mod memory_with_faults {
    bolide_storage::engine_suite!(super::MemoryWithFaults);
}

struct Memory;

impl EngineFixture for Memory {
    fn open(&self, clock: Arc<Clock>) -> Arc<dyn Engine> {
        Arc::new(MemoryEngine::new(clock))
    }

    fn is_durable(&self) -> bool {
        false
    }
}

struct MemoryWithFaults;

impl EngineFixture for MemoryWithFaults {
    fn open(&self, clock: Arc<Clock>) -> Arc<dyn Engine> {
        Arc::new(FaultyEngine::new(
            Arc::new(MemoryEngine::new(clock)),
            Faults::frequent(7),
        ))
    }

    fn is_durable(&self) -> bool {
        false
    }
}
