//! Writes of single items: create, upsert, replace, delete. Each is decided by the partition's worker ([`super::logical_partition`]).

use std::sync::Arc;

use bolide_model::epk::Epk;
use bolide_model::error::ItemOperation;
use bolide_model::{Lsn, RequestUnits, charge};

use super::logical_partition::LogicalPartition;
use super::prepare::{PreparedItem, epk_of_document, epk_of_key};
use super::{CreateItem, DeleteItem, ItemWritten, ReplaceItem, UpsertItem};
use crate::container::{Container, ReadGuard};
use crate::partition::write_batch::{Decision, WriteBatch};
use crate::response::{ChargedResult, Refusal, Response};
use crate::runtime::{RequestContext, Runtime};

impl Runtime {
    /// See `Account::create_item`.
    pub(crate) async fn create_item(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        create: CreateItem,
    ) -> ChargedResult<ItemWritten> {
        let guard = container.enter().await?;
        guard.state.check_is_not_collection(ItemOperation::Write)?;
        let epk = epk_of_document(&guard.state, &create.document, create.partition_key.as_ref())?;
        let draft = PreparedItem::new(create.document, &guard.state)?;
        self.write(ctx, container, &guard, epk, move |item, batch| {
            item.create(batch, &draft)
        })
        .await
    }

    /// See `Account::upsert_item`.
    pub(crate) async fn upsert_item(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        upsert: UpsertItem,
    ) -> ChargedResult<ItemWritten> {
        let guard = container.enter().await?;
        guard.state.check_is_not_collection(ItemOperation::Write)?;
        let epk = epk_of_document(&guard.state, &upsert.document, upsert.partition_key.as_ref())?;
        let draft = PreparedItem::new(upsert.document, &guard.state)?;
        let if_match = upsert.if_match;
        self.write(ctx, container, &guard, epk, move |item, batch| {
            item.upsert(batch, &draft, if_match.as_deref())
        })
        .await
    }

    /// See `Account::replace_item`.
    pub(crate) async fn replace_item(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        replace: ReplaceItem,
    ) -> ChargedResult<ItemWritten> {
        let guard = container.enter().await?;
        guard.state.check_is_not_collection(ItemOperation::Write)?;
        let epk = epk_of_document(&guard.state, &replace.document, Some(&replace.partition_key))?;
        let draft = PreparedItem::new(replace.document, &guard.state)?;
        let (target, if_match) = (replace.target, replace.if_match);
        self.write(ctx, container, &guard, epk, move |item, batch| {
            item.replace(batch, &target, &draft, if_match.as_deref())
        })
        .await
    }

    /// See `Account::delete_item`.
    pub(crate) async fn delete_item(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        delete: DeleteItem,
    ) -> ChargedResult<()> {
        let guard = container.enter().await?;
        guard.state.check_is_not_collection(ItemOperation::Write)?;
        let epk = epk_of_key(&guard.state, &delete.partition_key)?;
        let (target, if_match) = (delete.target, delete.if_match);
        self.write(ctx, container, &guard, epk, move |item, batch| {
            item.delete(batch, &target, if_match.as_deref())
        })
        .await
    }

    /// Carries out a decision on one item in the partition of `epk`, and charges its cost.
    pub(super) async fn write<T, F>(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        guard: &ReadGuard<'_>,
        epk: Epk,
        decide: F,
    ) -> ChargedResult<T>
    where
        T: Send + 'static,
        F: FnMut(&LogicalPartition, &mut WriteBatch<'_>) -> Decision<Written<T>> + Send + 'static,
    {
        self.write_as(Kind::Single, ctx, container, guard, epk, decide).await
    }

    /// Like [`Runtime::write`], for a decision on one item or on many.
    pub(super) async fn write_as<T, F>(
        &self,
        kind: Kind,
        ctx: &RequestContext,
        container: &Arc<Container>,
        guard: &ReadGuard<'_>,
        epk: Epk,
        mut decide: F,
    ) -> ChargedResult<T>
    where
        T: Send + 'static,
        F: FnMut(&LogicalPartition, &mut WriteBatch<'_>) -> Decision<Written<T>> + Send + 'static,
    {
        let partition = guard.state.layout.partition_of(&epk)?.clone();
        self.admit(ctx, &partition, guard)?;
        let logical = LogicalPartition::new(container.clone(), guard.state.clone(), partition.clone(), epk);
        let decide = move |batch: &mut WriteBatch<'_>| decide(&logical, batch);
        let outcome = match kind {
            Kind::Single => partition.write(decide).await,
            Kind::Batch => partition.write_batch(decide).await,
        };
        match outcome {
            Ok(Written { value, lsn, charge }) => {
                let cost = self.charge(ctx, &partition, guard, charge, lsn);
                Ok(Response { value, cost })
            }
            Err(error) => {
                // A refused write is charged as a read that finds nothing.
                let cost = self.charge(ctx, &partition, guard, charge::point_read(0), partition.lsn());
                Err(Refusal { error, cost })
            }
        }
    }
}

/// Whether a decision is about one item or many.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Single,
    Batch,
}

/// The result of a decided write.
pub(crate) struct Written<T> {
    pub value: T,
    pub lsn: Lsn,
    pub charge: RequestUnits,
}

impl<T> Written<T> {
    /// Returns the result of a decision that writes nothing.
    pub fn nothing(batch: &WriteBatch<'_>, value: T) -> Written<T> {
        Written {
            value,
            lsn: batch.head(),
            charge: charge::point_read(0),
        }
    }

    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Written<U> {
        Written {
            value: f(self.value),
            lsn: self.lsn,
            charge: self.charge,
        }
    }
}
