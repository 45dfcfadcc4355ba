//! The contract suite on a PostgreSQL server that the tests start, with and without injected faults, and claims about this engine alone.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends there")]

mod citus;
mod claims;
mod locks;
mod lookups;
mod relay;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bolide_model::time::Clock;
use bolide_postgres_server::Database;
use bolide_storage::Engine;
use bolide_storage::faults::{Faults, FaultyEngine};
use bolide_storage::suite::EngineFixture;
use bolide_storage_postgres::{PostgresEngine, PostgresOptions, init};
use tokio::runtime::Handle;

mod suite {
    bolide_storage::engine_suite!(super::Store::new());
}

mod suite_with_faults {
    bolide_storage::engine_suite!(super::Faulty(super::Store::new()));
}

/// A store in a database of its own.
struct Store {
    database: Database,
    is_made: AtomicBool,
}

impl Store {
    fn new() -> Store {
        Store {
            database: Database::create().unwrap(),
            is_made: AtomicBool::new(false),
        }
    }

    fn options(&self) -> PostgresOptions {
        PostgresOptions::parse(&self.database.address()).unwrap()
    }

    async fn open_with(&self, clock: Arc<Clock>) -> PostgresEngine {
        if !self.is_made.swap(true, Ordering::Relaxed) {
            init(&self.options()).await.unwrap();
        }
        PostgresEngine::open(&self.options(), clock).await.unwrap()
    }
}

impl EngineFixture for Store {
    fn open(&self, clock: Arc<Clock>) -> Arc<dyn Engine> {
        let opened = tokio::task::block_in_place(|| Handle::current().block_on(self.open_with(clock)));
        Arc::new(opened)
    }

    fn is_durable(&self) -> bool {
        true
    }
}

/// The same, with injected faults.
struct Faulty(Store);

impl EngineFixture for Faulty {
    fn open(&self, clock: Arc<Clock>) -> Arc<dyn Engine> {
        Arc::new(FaultyEngine::new(self.0.open(clock), Faults::frequent(1)))
    }

    fn is_durable(&self) -> bool {
        true
    }
}
