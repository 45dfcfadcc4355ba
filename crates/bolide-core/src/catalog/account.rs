//! Settings and counters of the account: switches, and the numbers of databases and partitions.

use std::sync::Arc;

use bolide_model::rid::DatabaseRid;
use bolide_model::{Lsn, Result, UnixMillis};
use bolide_storage::Engine;

use super::Catalog;
use super::budget::DefinitionUsage;
use super::events;
use super::rows::{AccountRow, RowKey};
use crate::clock;
use crate::partition::{Partition, Signals};

/// The numbers that an account gives next; none is given twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextNumbers {
    /// Of databases.
    pub database: u32,
    /// Of offers.
    pub offer: u32,
    /// Of partitions.
    pub partition: u64,
}

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

    /// Returns the numbers that are given next.
    pub fn next_numbers(&self) -> NextNumbers {
        let memory = self.memory.read();
        NextNumbers {
            database: memory.account.next_database,
            offer: memory.account.next_offer,
            partition: memory.account.next_partition,
        }
    }

    /// Makes the next numbers at least these. Containers count in their database, but each takes at least one partition; so none has had a number
    /// from that of the next partition on.
    pub async fn leave_out_numbers(&self, numbers: NextNumbers) -> Result<()> {
        let databases: Vec<DatabaseRid> = self.list_databases().iter().map(|database| database.rid).collect();
        let containers = u32::try_from(numbers.partition).unwrap_or(u32::MAX);
        self.commit(move |batch| {
            for database in &databases {
                let mut row = batch.database(*database)?;
                row.next_container = row.next_container.max(containers);
                batch.replace(RowKey::Database(*database), row)?;
            }
            let mut account = batch.account()?;
            account.next_database = account.next_database.max(numbers.database);
            account.next_offer = account.next_offer.max(numbers.offer);
            account.next_partition = account.next_partition.max(numbers.partition);
            batch.replace(RowKey::Account, account)
        })
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
