//! Items: create, read, change, delete; several as one. Functions here and in `script_runs` are shaped alike on purpose: each is a call's signature and
//! its errors, and what it does is elsewhere.

use std::sync::Arc;

use super::Account;
use crate::container::Container;
use crate::items::{
    Batch, BatchResponse, CreateItem, DeleteItem, ItemRead, ItemWritten, PatchItem, ReadItem, ReplaceItem, UpsertItem,
};
use crate::response::ChargedResult;
use crate::runtime::RequestContext;
use bolide_model::partition_key::PartitionKey;

impl Account {
    /// Creates an item.
    ///
    /// # Errors
    /// - `Conflict`: a live item has this id in the partition. An expired one does not count (TTL-241).
    /// - `UniqueKeyConflict`: a live item holds one of its unique keys (TTL-251).
    /// - `BadRequest`, `PartitionKeyMismatch`, `TooLarge`: as the message says; nothing was changed (TTL-218).
    pub async fn create_item(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        create: CreateItem,
    ) -> ChargedResult<ItemWritten> {
        self.runtime().create_item(ctx, container, create).await
    }

    /// Creates an item, or replaces the live one with its id.
    ///
    /// # Errors
    /// As [`Account::create_item`] without `Conflict`; `PreconditionFailed` if a live item is another version.
    pub async fn upsert_item(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        upsert: UpsertItem,
    ) -> ChargedResult<ItemWritten> {
        self.runtime().upsert_item(ctx, container, upsert).await
    }

    /// Replaces a live item.
    ///
    /// # Errors
    /// - `NotFound`: no live item has this name; wins over a condition that does not hold (TTL-242).
    /// - `PreconditionFailed`: it is another version.
    /// - `Conflict`: the document has another id, and a live item has that one.
    /// - otherwise as [`Account::create_item`].
    pub async fn replace_item(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        replace: ReplaceItem,
    ) -> ChargedResult<ItemWritten> {
        self.runtime().replace_item(ctx, container, replace).await
    }

    /// Deletes a live item.
    ///
    /// # Errors
    /// `NotFound` and `PreconditionFailed` as [`Account::replace_item`].
    pub async fn delete_item(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        delete: DeleteItem,
    ) -> ChargedResult<()> {
        self.runtime().delete_item(ctx, container, delete).await
    }

    /// Changes parts of a live item.
    ///
    /// # Errors
    /// - `PatchConditionFailed`: the patch's condition is false.
    /// - `BadRequest`: an operation cannot be applied; the message has its number.
    /// - otherwise as [`Account::replace_item`].
    pub async fn patch_item(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        patch: PatchItem,
    ) -> ChargedResult<ItemWritten> {
        self.runtime().patch_item(ctx, container, patch).await
    }

    /// Reads an item.
    ///
    /// # Errors
    /// - `NotFound`: no live item has this name; an expired item counts as absent, whatever condition was set (TTL-236).
    /// - `PartitionKeyMismatch`: the key has too few or too many components.
    pub async fn read_item(
        &self,
        ctx: &RequestContext,
        container: &Container,
        read: &ReadItem,
    ) -> ChargedResult<ItemRead> {
        self.runtime().read_item(ctx, container, read).await
    }

    /// Carries out a batch.
    ///
    /// # Errors
    /// For the batch as a whole only, such as a partition key with the wrong number of components; a refused operation is an answer.
    pub async fn batch(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        batch: Batch,
    ) -> ChargedResult<BatchResponse> {
        self.runtime().batch(ctx, container, batch).await
    }

    /// As [`Account::batch`], for an answer with items that were written: with those of the operations that `answers_written` says. A
    /// batch whose answer would be larger than a page is refused.
    ///
    /// # Errors
    /// As [`Account::batch`].
    pub async fn batch_answering(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        batch: Batch,
        answers_written: Vec<bool>,
    ) -> ChargedResult<BatchResponse> {
        self.runtime()
            .batch_answering(ctx, container, batch, answers_written)
            .await
    }

    /// Deletes all items of a partition key. They are gone for every request that begins after the answer, and are removed in the
    /// background, which survives restarts; the all-versions feed shows each as a delete when it is removed.
    ///
    /// # Errors
    /// - `PartitionKeyMismatch`: the key has too few or too many components.
    /// - `Forbidden`: too many keys wait for the removal of their items, or this one too often.
    pub async fn delete_all_of_key(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        key: &PartitionKey,
    ) -> ChargedResult<()> {
        self.runtime().delete_all_of_key(ctx, container, key).await
    }
}
