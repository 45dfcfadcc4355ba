//! Two accounts over one engine, as two processes that share a store: what one changes in the catalog, the other sees and keeps.

mod changes;
mod names;
mod race;

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

    /// Each account reaches the engine through what `wrap` makes of it.
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

    /// Another account over the same engine, which reads everything.
    async fn third(&self) -> Arc<Account> {
        Account::open(self.engine.clone(), options()).await.expect("an account")
    }
}

/// A definition with partition key `/pk`, and what `more` adds to it.
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
