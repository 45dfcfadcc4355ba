//! Looking after containers: splits, checks, loading, figures.

use std::sync::Arc;

use bolide_model::Result;
use bolide_model::partition_key::PartitionKey;
use bolide_model::ttl::Policy;
use bytes::Bytes;
use futures_util::Stream;

use super::Account;
use crate::admin::{ContainerFigures, SplitReport, TtlPreview, TtlReport, TtlWhy, Usage, VerifyReport};
use crate::container::Container;

impl Account {
    /// Splits a range in two; by default the one with the most items. It stays in use meanwhile; requests wait for the last changes only. Goes
    /// on to its end if it is dropped. Splits of a container go one after the other.
    ///
    /// # Errors
    /// `RangeGone` if there is no such range; `BadRequest` if it is too narrow to be split; `NotFound` if the container was deleted;
    /// `Unavailable` if more is written than can be copied, or if the account closes. Then nothing has changed.
    pub async fn split(&self, container: &Arc<Container>, range: Option<u32>) -> Result<SplitReport> {
        self.admin().split(container, range).await
    }

    /// What a container holds now, exactly.
    ///
    /// # Errors
    /// From the engine.
    pub async fn usage(&self, container: &Arc<Container>) -> Result<Usage> {
        self.admin().usage(container).await
    }

    /// What each range of a container holds now, by the range's id.
    ///
    /// # Errors
    /// From the engine.
    pub async fn range_usage(&self, container: &Arc<Container>) -> Result<Vec<(u32, Usage)>> {
        self.admin().range_usage(container).await
    }

    /// Figures of every container, but for those that are deleted meanwhile: of the newest commits and counts, from memory. With a virtual clock, over
    /// an engine that others commit to, and the first time after a start the workers of partitions are asked for what is not counted yet.
    ///
    /// # Errors
    /// From the engine.
    pub async fn container_figures(&self) -> Result<Vec<ContainerFigures>> {
        self.admin().container_figures().await
    }

    /// A container's expiry at a glance.
    ///
    /// # Errors
    /// From the engine.
    pub async fn ttl_report(&self, container: &Arc<Container>) -> Result<TtlReport> {
        self.admin().ttl_report(container).await
    }

    /// What another default would do now; changes nothing.
    ///
    /// # Errors
    /// From the engine.
    pub async fn ttl_preview(&self, container: &Arc<Container>, policy: Policy) -> Result<TtlPreview> {
        self.admin().ttl_preview(container, policy).await
    }

    /// Why an item is there or not.
    ///
    /// # Errors
    /// `PartitionKeyMismatch`; and from the engine.
    pub async fn ttl_why(&self, container: &Arc<Container>, id: &str, key: &PartitionKey) -> Result<TtlWhy> {
        self.admin().ttl_why(container, id, key).await
    }

    /// Checks all items of a container against indexes, unique keys, queues, counters and the history, beside requests. It ends when it is
    /// dropped.
    ///
    /// # Errors
    /// From the engine; `NotFound` if the container was deleted meanwhile; `Throttled` if there is no memory for the items of a history;
    /// `Unavailable` if it was disturbed too often. What does not fit together is no error but in the report.
    pub async fn verify(&self, container: &Arc<Container>) -> Result<VerifyReport> {
        self.admin().verify(container).await
    }

    /// Loads items that keep their `_ts`, one JSON object a line, from parts of a text. Returns how many were written.
    ///
    /// # Errors
    /// - `BadRequest`: the container is not fresh (TTL-275), or a line is no item; the message has the line's number. Lines are all
    ///   checked before anything is written.
    /// - `Conflict`, `UniqueKeyConflict`: two lines hold the same id or unique key; nothing is written either.
    /// - `TooLarge`: a line is longer than an item may be. `Throttled`: there is no memory for what must be known of each line.
    /// - Those of `parts`.
    pub async fn import<S>(&self, container: &Arc<Container>, parts: S) -> Result<u64>
    where
        S: Stream<Item = Result<Bytes>> + Unpin,
    {
        self.admin().import(container, parts).await
    }
}
