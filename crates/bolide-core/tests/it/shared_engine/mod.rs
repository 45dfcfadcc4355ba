//! Two accounts over one engine, as two processes that share a store: catalog changes of one are seen and kept by the other.

mod changes;
mod names;
mod race;
mod reads;
mod settings;

use std::sync::Arc;

use bolide_core::Account;
use bolide_model::UnixMillis;
use bolide_model::container::ContainerProperties;
use bolide_model::time::Clock;
use bolide_storage::Engine;
use bolide_storage::memory::MemoryEngine;
use serde_json::{Value, json};

use crate::test_container::{START, options};

/// Two accounts over one engine.
struct Two {
    clock: Arc<Clock>,
    engine: Arc<MemoryEngine>,
    first: Arc<Account>,
    second: Arc<Account>,
}

impl Two {
    async fn open() -> Two {
        Two::through(|engine, _| engine).await
    }

    /// Creates both accounts; each uses the engine that `wrap` returns for it.
    async fn through(wrap: impl Fn(Arc<dyn Engine>, u64) -> Arc<dyn Engine>) -> Two {
        let clock = Arc::new(Clock::virtual_at(UnixMillis(START * 1000)));
        let engine = Arc::new(MemoryEngine::shared(clock.clone()));
        let open = async |number| {
            let engine = wrap(engine.clone(), number);
            Account::open(engine, options()).await.expect("an account")
        };
        Two {
            first: open(1).await,
            second: open(2).await,
            clock,
            engine,
        }
    }

    /// Opens another account over the same engine, which reads the whole catalog.
    async fn third(&self) -> Arc<Account> {
        Account::open(self.engine.clone(), options()).await.expect("an account")
    }
}

/// Returns a definition with partition key `/pk`, extended by `more`.
fn container(id: &str, more: &Value) -> ContainerProperties {
    ContainerProperties::from_json(&container_text(id, more)).expect("a definition")
}

fn container_text(id: &str, more: &Value) -> Value {
    let mut definition = json!({"id": id, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    for (name, value) in more.as_object().into_iter().flatten() {
        definition[name] = value.clone();
    }
    definition
}
