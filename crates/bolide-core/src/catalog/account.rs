//! What belongs to the account as a whole: switches, and the numbers that partitions are named by.

use std::sync::Arc;
use std::time::Duration;

use bolide_model::{Error, ErrorKind, Result, UnixMillis};
use bolide_storage::{Ask, Engine, PartitionId};
use bytes::Bytes;

use super::budget::{Definition, DefinitionUsage};
use super::records::{AccountRow, account_key, container_key, dropped_key};
use super::{Catalog, Moment};
use crate::clock;
use crate::container::{Change, Container, ContainerState};
use crate::partition::Alarm;

/// How soon to ask again for the outcome of a commit.
const TRY_AGAIN: Duration = Duration::from_millis(50);

impl Catalog {
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// What wakes the keeper.
    pub fn alarm(&self) -> &Arc<Alarm> {
        &self.alarm
    }

    pub async fn now(&self) -> Result<UnixMillis> {
        clock::exact_now(self.engine.as_ref()).await
    }

    /// What definitions take, and may take.
    pub fn definitions(&self) -> DefinitionUsage {
        self.budget.lock().usage()
    }

    /// Whether MongoDB documents may have a ttl of their own (TTL-288).
    pub fn mongo_document_ttl(&self) -> bool {
        self.memory.read().account.mongo_document_ttl
    }

    pub async fn set_mongo_document_ttl(&self, is_on: bool) -> Result<()> {
        let mut account = self.memory.read().account.clone();
        account.mongo_document_ttl = is_on;
        self.commit_account(account).await
    }

    async fn commit_account(&self, account: AccountRow) -> Result<()> {
        let committed = account.clone();
        self.commit(move |round| {
            Moment::begin(round);
            round.put(account_key(), account.encode());
            Ok(())
        })
        .await?;
        self.memory.write().account = committed;
        Ok(())
    }

    /// The number of the database that will be created next.
    pub fn next_database(&self) -> u32 {
        self.memory.read().account.next_database
    }

    /// Gives no database a number below `upto`.
    pub async fn leave_out_databases(&self, upto: u32) -> Result<()> {
        let mut account = self.memory.read().account.clone();
        account.next_database = account.next_database.max(upto);
        self.commit_account(account).await
    }

    /// Takes `count` new partition ids and returns the first. They are named for removal until [`Catalog::commit_split`] says otherwise
    /// or they are removed, so a crash in between leaves nothing behind.
    pub async fn take_partition_ids(&self, count: u64) -> Result<u64> {
        let mut account = self.memory.read().account.clone();
        let first = account.next_partition;
        account.next_partition += count;
        let committed = account.clone();
        self.commit(move |round| {
            Moment::begin(round);
            round.put(account_key(), account.encode());
            for id in first..first + count {
                round.put(dropped_key(PartitionId(id)), Bytes::new());
            }
            Ok(())
        })
        .await?;
        self.memory.write().account = committed;
        Ok(first)
    }

    /// Puts a container's new ranges into force, and names the partition for removal that they take the place of. Where the outcome of the commit is
    /// unknown, waits until it is known, or until `is_closing`: what was written into the wrong ranges would be lost.
    ///
    /// # Errors
    /// `Timeout` if the outcome is unknown; otherwise nothing has changed.
    pub async fn commit_split(
        &self,
        container: &Arc<Container>,
        change: &Change<'_>,
        after: ContainerState,
        parent: PartitionId,
        is_closing: impl Fn() -> bool,
    ) -> Result<()> {
        let rid = container.rid();
        let state = after.clone();
        let committed = self.commit(move |round| {
            Moment::begin(round);
            round.extend(container_key(rid), Definition::Container(&state.to_row()));
            for partition in &state.layout.partitions {
                round.delete(dropped_key(partition.id));
            }
            round.put(dropped_key(parent), Bytes::new());
            Ok(())
        });
        if let Err(error) = committed.await {
            let is_unknown = error.kind == ErrorKind::Timeout;
            if !(is_unknown && self.is_named_for_removal(parent, is_closing).await?) {
                let kind = if is_unknown { ErrorKind::Unavailable } else { error.kind };
                return Err(Error::new(kind, error.message));
            }
        }
        change.replace(after);
        Ok(())
    }

    /// Finds out whether a commit of unknown outcome has named a partition for removal.
    async fn is_named_for_removal(&self, partition: PartitionId, is_closing: impl Fn() -> bool) -> Result<bool> {
        loop {
            // Once another commit is made, the one before has happened or never will.
            let fenced = self.commit(|round| {
                Moment::begin(round);
                Ok(())
            });
            let found = async {
                fenced.await?;
                let ask = Ask {
                    gets: vec![dropped_key(partition)],
                    ..Ask::default()
                };
                self.partition.read(ask).await
            };
            match found.await {
                Ok(reply) => return Ok(reply.gets.iter().flatten().next().is_some()),
                Err(error) if is_closing() => return Err(Error::new(ErrorKind::Timeout, error.message)),
                Err(_) => tokio::time::sleep(TRY_AGAIN).await,
            }
        }
    }
}
