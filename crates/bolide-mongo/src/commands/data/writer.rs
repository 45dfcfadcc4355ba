//! Where a command writes: directly, or in the transaction of its session.

use std::sync::Arc;

use bolide_core::{Account, Consumed, Container, DocumentBatch, OpenTransaction, ReadScope, RequestContext, Undecided};
use bolide_model::Reason;
use bolide_model::epk::Epk;
use bolide_mql::Result;
use bson::Timestamp;

use super::super::concerns::ReadConcernLevel;
use super::super::context::CommandContext;
use super::collections;
use crate::codes;
use crate::namespace::Namespace;
use crate::snapshots::SnapshotRead;

/// The time of a command, and the transaction in which it runs.
#[derive(Clone)]
pub struct DataContext {
    account: Arc<Account>,
    /// The request, at the time of the command.
    pub request: RequestContext,
    /// The transaction of its session, or the snapshot that it reads.
    pub transaction: Option<Arc<OpenTransaction>>,
    /// The request units that the command has consumed.
    pub consumed: Consumed,
    /// The snapshot that it reads outside of a transaction.
    snapshot: Option<SnapshotRead>,
    /// Whether it is a part of a transaction or reads a snapshot, which are limited to unsharded collections.
    is_unsharded: bool,
}

impl DataContext {
    /// Begins the reads and writes of a command.
    ///
    /// # Errors
    /// Of the engine's clock.
    pub async fn begin(context: &CommandContext<'_>) -> Result<DataContext> {
        let request = context.begin().await?;
        let account = context.state.account.clone();
        let concern = &context.global.read_concern;
        if context.transaction.is_none() && concern.level == ReadConcernLevel::Snapshot {
            let snapshots = &context.state.snapshots;
            let read = snapshots.read(&account, context.database, concern.at, request.now);
            let read = read.await?;
            return Ok(DataContext {
                account,
                request,
                transaction: read.view.clone(),
                consumed: context.consumed.clone(),
                snapshot: Some(read),
                is_unsharded: true,
            });
        }
        let transaction = match &context.transaction {
            None => None,
            Some(transaction) => {
                // All unsharded collections of a database are in one snapshot. Without any there is nothing to read.
                match collections::first_unsharded(&account, context.database) {
                    None => transaction.begun_view().await?,
                    Some(container) => Some(transaction.view(&account, &container, request.now).await?),
                }
            }
        };
        Ok(DataContext {
            account,
            request,
            transaction,
            consumed: context.consumed.clone(),
            snapshot: None,
            is_unsharded: context.transaction.is_some(),
        })
    }

    /// Begins further writes of a command that is in no transaction, at the time that it is now.
    ///
    /// # Errors
    /// Of the engine's clock.
    pub async fn outside_of_transactions(context: &CommandContext<'_>) -> Result<DataContext> {
        Ok(DataContext {
            account: context.state.account.clone(),
            request: context.begin().await?,
            transaction: None,
            consumed: context.consumed.clone(),
            snapshot: None,
            is_unsharded: false,
        })
    }

    /// Returns the collection of a namespace for a write; creates it if there is none.
    ///
    /// # Errors
    /// As [`collections::find_or_create`].
    pub async fn find_or_create(
        &mut self,
        context: &CommandContext<'_>,
        namespace: &Namespace,
    ) -> Result<Arc<Container>> {
        let container = collections::find_or_create(context, namespace).await?;
        if context.transaction.is_some() && self.transaction.is_none() {
            // There was no collection before that the transaction could begin on.
            self.transaction = DataContext::begin(context).await?.transaction;
        }
        Ok(container)
    }

    /// Returns a collection that the command reads; `None` if there is none.
    ///
    /// # Errors
    /// `SnapshotUnavailable` if it was dropped since the time of the command's snapshot.
    pub fn find(&self, context: &CommandContext<'_>, namespace: &Namespace) -> Result<Option<Arc<Container>>> {
        let found = collections::find(context, namespace);
        if let (None, Some(snapshot)) = (&found, &self.snapshot) {
            snapshot.check_missing(&namespace.collection)?;
        }
        Ok(found)
    }

    /// Returns the time of the snapshot that the command reads outside of a transaction.
    pub fn snapshot_time(&self) -> Option<Timestamp> {
        self.snapshot.as_ref().map(|snapshot| snapshot.at)
    }

    /// Returns what the command reads.
    pub fn scope(&self) -> ReadScope {
        match &self.transaction {
            Some(transaction) => ReadScope::in_transaction(self.request.now, transaction.clone()),
            None => {
                let scope = self.account.read_scope(&self.request).counted_by(self.consumed.clone());
                match self.is_unsharded {
                    true => scope.without_sharded(),
                    false => scope,
                }
            }
        }
    }

    /// Decides and carries out writes of documents at one place. They are one commit, or part of the transaction.
    ///
    /// # Errors
    /// `OperationNotSupportedInTransaction` for a sharded collection in a transaction; those of the core; nothing was written.
    pub async fn write<T, F>(
        &self,
        context: &CommandContext<'_>,
        (container, place): (&Arc<Container>, Epk),
        decide: F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut DocumentBatch<'_, '_>) -> Result<T, Undecided> + Send + 'static,
    {
        if self.is_unsharded && container.is_sharded() {
            return Err(codes::error(&Reason::OtherDatabase.into()));
        }
        if let Some(transaction) = &self.transaction {
            let written = transaction.write(container, decide).await;
            return written.map_err(|error| codes::error(&error));
        }
        let account = &context.state.account;
        match account.write_documents(&self.request, (container, place), decide).await {
            Ok(written) => {
                self.consumed.add(written.cost.charge);
                Ok(written.value)
            }
            Err(refusal) => {
                self.consumed.add(refusal.cost.charge);
                Err(codes::error(&refusal.error))
            }
        }
    }
}
