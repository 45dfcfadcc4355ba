use bolide_model::UnixMillis;
use bolide_model::container::ContainerProperties;
use bolide_model::time::Clock;
use bolide_storage::memory::MemoryEngine;
use serde_json::json;

use super::*;
use crate::api::Account;
use crate::runtime::AccountOptions;

/// Regression: a dashboard slowed the purge of a server without other requests.
#[tokio::test]
async fn whoever_looks_at_figures_is_no_user() {
    let engine = MemoryEngine::new(Arc::new(Clock::virtual_at(UnixMillis(1_000))));
    let options = AccountOptions {
        virtual_clock: true,
        ..AccountOptions::default()
    };
    let account = Account::open(Arc::new(engine), options).await.expect("a new account");
    let ctx = account.begin().await.expect("a clock");
    let database = account.create_database(&ctx, "d", None).await.expect("a database");
    let definition = json!({"id": "c", "partitionKey": {"paths": ["/pk"]}, "defaultTtl": 10});
    let properties = ContainerProperties::from_json(&definition).expect("a definition");
    let created = account.create_container(&ctx, database.rid, properties, None);
    let container = created.await.expect("a container");
    let requests = account.requests();
    account.ttl_report(&container).await.expect("a report");
    account.container_figures().await.expect("figures");
    let key = PartitionKey::from_header("[\"p\"]").expect("a key");
    account.ttl_why(&container, "a", &key).await.expect("a reason");
    account.begin_admin().await.expect("a clock");
    assert_eq!(account.requests(), requests);
    account.begin().await.expect("a clock");
    assert_eq!(account.requests(), requests + 1);
}
