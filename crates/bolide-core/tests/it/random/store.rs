//! The store of a program's data, which survives a restart.

use std::sync::Arc;
use std::time::Duration;

use bolide_model::time::Clock;
use bolide_storage::faults::Faults;
use bolide_storage::memory::MemoryEngine;
use bolide_storage_lsm::{Durability, LsmEngine, LsmOptions};
use tempfile::TempDir;

use crate::probe::Probe;

/// The kind of engine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Memory,
    /// The embedded engine: a restart opens the directory again.
    Embedded,
    /// The memory engine, with faults.
    InTrouble(u64),
    /// The memory engine under this number of accounts, with conflicts that do not exist and a clock that is not exact.
    Shared(usize),
    /// The same with all faults of a seed.
    SharedInTrouble(u64, usize),
}

impl Kind {
    /// Returns the number of accounts over the store.
    pub fn accounts(self) -> usize {
        match self {
            Kind::Shared(accounts) | Kind::SharedInTrouble(_, accounts) => accounts,
            _ => 1,
        }
    }

    /// Returns whether the outcomes of commits may be unknown.
    pub fn is_in_trouble(self) -> bool {
        matches!(self, Kind::InTrouble(_) | Kind::SharedInTrouble(..))
    }
}

/// The store; see the module.
pub struct Store {
    clock: Arc<Clock>,
    home: Option<TempDir>,
    engine: Option<Arc<Probe>>,
}

impl Store {
    pub fn new(kind: Kind, clock: Arc<Clock>) -> Store {
        let memory = || Arc::new(MemoryEngine::new(clock.clone()));
        let (home, engine) = match kind {
            Kind::Memory => (None, Some(Probe::new(memory()))),
            Kind::InTrouble(seed) => (None, Some(Probe::with_faults(memory(), Faults::frequent(seed)))),
            Kind::Shared(_) => {
                let faults = Faults {
                    seed: 1,
                    stale_percent: 10,
                    unknown_percent: 0,
                    down_percent: 0,
                    span_ms: 3,
                };
                let engine = Probe::with_faults(Arc::new(MemoryEngine::shared(clock.clone())), faults);
                engine.be_calm(false);
                (None, Some(engine))
            }
            Kind::SharedInTrouble(seed, _) => {
                let engine = Arc::new(MemoryEngine::shared(clock.clone()));
                (None, Some(Probe::with_faults(engine, Faults::frequent(seed))))
            }
            Kind::Embedded => (Some(tempfile::tempdir().expect("a directory")), None),
        };
        let mut store = Store {
            clock,
            home,
            engine: engine.map(Arc::new),
        };
        if store.home.is_some() {
            store.open_home();
        }
        store
    }

    pub fn engine(&self) -> &Arc<Probe> {
        self.engine.as_ref().expect("open between restarts")
    }

    /// Opens the store again; no account may use it meanwhile. An engine in memory stays as it is, because closing it has no effect on its data.
    pub async fn reopen(&mut self) {
        if self.home.is_none() {
            return;
        }
        let mut engine = self.engine.take();
        // The workers of the account that was dropped release the engine when they next run.
        while let Some(held) = engine {
            match Arc::try_unwrap(held) {
                Ok(alone) => {
                    drop(alone);
                    break;
                }
                Err(held) => engine = Some(held),
            }
            tokio::time::sleep(Duration::from_micros(100)).await;
        }
        self.open_home();
    }

    fn open_home(&mut self) {
        let home = self.home.as_ref().expect("a directory").path();
        let options = LsmOptions {
            durability: Durability::Buffered,
            ..LsmOptions::default()
        };
        let engine = LsmEngine::open(home, self.clock.clone(), options).expect("a store");
        self.engine = Some(Arc::new(Probe::new(Arc::new(engine))));
    }
}
