//! Settings and counters of the account: switches, and the numbers of databases and partitions.

use std::sync::Arc;

use bolide_model::{Result, UnixMillis};
use bolide_storage::Engine;

use super::Catalog;
use super::budget::DefinitionUsage;
use super::rows::{AccountRow, RowKey};
use crate::clock;
use crate::partition::Wakeup;

impl Catalog {
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Returns the wakeup of the purge's scheduler.
    pub fn wakeup(&self) -> &Arc<Wakeup> {
        &self.wakeup
    }

    pub async fn now(&self) -> Result<UnixMillis> {
        clock::exact_now(self.engine.as_ref()).await
    }

    /// Returns the memory that definitions take and their limit.
    pub fn definitions(&self) -> DefinitionUsage {
        self.budget.lock().usage()
    }

    /// Tells whether MongoDB documents may have a ttl of their own (TTL-288).
    pub fn mongo_document_ttl(&self) -> bool {
        self.memory.read().account.mongo_document_ttl
    }

    pub async fn set_mongo_document_ttl(&self, is_on: bool) -> Result<()> {
        self.change_account(move |account| account.mongo_document_ttl = is_on)
            .await
    }

    /// Returns the number of the database that will be created next.
    pub fn next_database(&self) -> u32 {
        self.memory.read().account.next_database
    }

    /// Makes the next database number at least `upto`.
    pub async fn leave_out_databases(&self, upto: u32) -> Result<()> {
        self.change_account(move |account| account.next_database = account.next_database.max(upto))
            .await
    }

    async fn change_account(&self, change: impl Fn(&mut AccountRow) + Send + 'static) -> Result<()> {
        self.commit(move |batch| {
            let mut account = batch.account()?;
            change(&mut account);
            batch.replace(RowKey::Account, account)
        })
        .await
    }
}
