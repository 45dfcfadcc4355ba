//! Settings and counters of the account: switches, and the numbers of databases and partitions.

use std::sync::Arc;

use bolide_model::{Lsn, Result, UnixMillis};
use bolide_storage::Engine;

use super::Catalog;
use super::budget::DefinitionUsage;
use super::events;
use super::rows::{AccountRow, RowKey};
use crate::clock;
use crate::partition::{Partition, Signals};

impl Catalog {
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Returns partition 0.
    pub fn partition(&self) -> &Arc<Partition> {
        &self.partition
    }

    /// Returns the commit of the catalog that memory shows.
    pub fn shown_lsn(&self) -> Lsn {
        self.memory.read().lsn
    }

    /// Tells whether events for change streams may have been removed once there are commits up to `head`.
    pub fn may_have_forgotten_events(&self, head: Lsn) -> bool {
        head.0 > events::KEPT
    }

    /// Returns what all partitions share.
    pub fn signals(&self) -> &Signals {
        &self.signals
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

    pub(super) async fn change_account(&self, change: impl Fn(&mut AccountRow) + Send + 'static) -> Result<()> {
        self.commit(move |batch| {
            let mut account = batch.account()?;
            change(&mut account);
            batch.replace(RowKey::Account, account)
        })
        .await
    }
}
