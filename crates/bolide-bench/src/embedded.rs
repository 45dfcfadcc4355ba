//! An account on the embedded engine in the benchmark's own process, with one container of items without `ttl`. Their ids are their
//! partition keys.

use std::sync::Arc;

use bolide_core::{Account, AccountOptions, Container, UpsertItem};
use bolide_model::container::ContainerProperties;
use bolide_model::document::Document;
use bolide_storage_lsm::LsmEngine;
use serde_json::json;

use crate::{Result, item};

/// The number of items that are loaded before the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Load {
    /// Number of items to load.
    #[arg(long, default_value_t = Load::default().items)]
    pub items: u64,
}

impl Default for Load {
    fn default() -> Load {
        Load { items: 1_000_000 }
    }
}

/// See the module.
pub struct Embedded {
    pub account: Arc<Account>,
    pub container: Arc<Container>,
}

impl Embedded {
    /// A new account with an empty container.
    pub async fn create(engine: Arc<LsmEngine>) -> Result<Embedded> {
        let account = Account::open(engine, AccountOptions::default()).await.map_err(text)?;
        let ctx = account.begin().await.map_err(text)?;
        let database = account.create_database(&ctx, "bench", None).await.map_err(text)?;
        let definition = json!({"id": "items", "partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2}});
        let properties = ContainerProperties::from_json(&definition).map_err(text)?;
        let created = account.create_container(&ctx, database.rid, properties, None);
        let container = created.await.map_err(text)?;
        Ok(Embedded { account, container })
    }

    /// Creates the item of a number.
    pub async fn create_item(&self, number: u64) -> Result<()> {
        item::create(&self.account, &self.container, &item::document(&item::id(number), None)).await
    }

    /// Writes an item again.
    pub async fn update(&self, number: u64, ttl: Option<i32>) -> Result<()> {
        let document = item::document(&item::id(number), ttl);
        let upsert = UpsertItem {
            document: Document::parse(document.as_bytes()).map_err(text)?,
            partition_key: None,
            if_match: None,
        };
        let ctx = self.account.begin().await.map_err(text)?;
        let upserted = self.account.upsert_item(&ctx, &self.container, upsert).await;
        upserted.map_err(|refusal| refusal.error.to_string())?;
        Ok(())
    }

    /// Ends the account.
    pub async fn close(&self) -> Result<()> {
        Ok(self.account.close().await.map_err(text)?)
    }
}

/// The item for request `number`: a random one below `items`, the same in every run.
pub fn any_of(items: u64, number: u64) -> u64 {
    fastrand::Rng::with_seed(number).u64(..items)
}

/// The text of an error for the report of a benchmark.
pub fn text(error: bolide_model::Error) -> String {
    error.to_string()
}
