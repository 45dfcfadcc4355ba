//! Operations on items: create, read, change, delete, and batches. Functions here and in `script_runs` have the same shape on purpose: each is the
//! signature of a call with its errors; the code is elsewhere.

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
    /// - `BadRequest`, `PartitionKeyMismatch`, `TooLarge`: for the reason in the message; nothing was changed (TTL-218).
    pub async fn create_item(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        create: CreateItem,
    ) -> ChargedResult<ItemWritten> {
        let write = |create| self.runtime().create_item(ctx, container, create);
        self.by_current_settings(container, create, write).await
    }

    /// Creates an item, or replaces the live one with its id.
    ///
    /// # Errors
    /// As [`Account::create_item`] without `Conflict`; `PreconditionFailed` if a live item has another version.
    pub async fn upsert_item(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        upsert: UpsertItem,
    ) -> ChargedResult<ItemWritten> {
        let write = |upsert| self.runtime().upsert_item(ctx, container, upsert);
        self.by_current_settings(container, upsert, write).await
    }

    /// Replaces a live item.
    ///
    /// # Errors
    /// - `NotFound`: no live item has this id; takes precedence over a condition that does not hold (TTL-242).
    /// - `PreconditionFailed`: the item has another version.
    /// - `Conflict`: the document has another id, which a live item has.
    /// - otherwise as [`Account::create_item`].
    pub async fn replace_item(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        replace: ReplaceItem,
    ) -> ChargedResult<ItemWritten> {
        let write = |replace| self.runtime().replace_item(ctx, container, replace);
        self.by_current_settings(container, replace, write).await
    }

    /// Deletes a live item.
    ///
    /// # Errors
    /// `NotFound` and `PreconditionFailed` as in [`Account::replace_item`].
    pub async fn delete_item(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        delete: DeleteItem,
    ) -> ChargedResult<()> {
        let write = |delete| self.runtime().delete_item(ctx, container, delete);
        self.by_current_settings(container, delete, write).await
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
        let write = |patch| self.runtime().patch_item(ctx, container, patch);
        self.by_current_settings(container, patch, write).await
    }

    /// Reads an item.
    ///
    /// # Errors
    /// - `NotFound`: no live item has this id; an expired item counts as absent, whatever condition was set (TTL-236).
    /// - `PartitionKeyMismatch`: the key has too few or too many components.
    pub async fn read_item(
        &self,
        ctx: &RequestContext,
        container: &Container,
        read: &ReadItem,
    ) -> ChargedResult<ItemRead> {
        let read = |()| self.runtime().read_item(ctx, container, read);
        self.by_current_settings(container, (), read).await
    }

    /// Executes a batch.
    ///
    /// # Errors
    /// Only for the batch as a whole, such as a partition key with the wrong number of components; a refused operation is part of the response.
    pub async fn batch(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        batch: Batch,
    ) -> ChargedResult<BatchResponse> {
        let write = |batch| self.runtime().batch(ctx, container, batch);
        self.by_current_settings(container, batch, write).await
    }

    /// Deletes all items of a partition key. They are invisible to every request that begins after the response, and are removed in the background,
    /// also after a restart; the all-versions feed shows the delete of each item when the item is removed.
    ///
    /// # Errors
    /// - `PartitionKeyMismatch`: the key has too few or too many components.
    /// - `Forbidden`: too many deletions of keys, or of this key, wait for the removal of their items.
    pub async fn delete_all_of_key(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        key: &PartitionKey,
    ) -> ChargedResult<()> {
        let delete = |()| self.runtime().delete_all_of_key(ctx, container, key);
        self.by_current_settings(container, (), delete).await
    }
}
