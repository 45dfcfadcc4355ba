//! Administration of containers: splits, checks, loading, statistics.

use std::sync::Arc;

use bolide_model::Result;
use bolide_model::partition_key::PartitionKey;
use bolide_model::ttl::Policy;
use bytes::Bytes;
use futures_util::Stream;

use super::Account;
use crate::admin::{
    ContainerFigures, ExportPage, ExportPosition, IndexReport, SplitReport, TtlPreview, TtlReport, TtlWhy, Usage,
    VerifyReport,
};
use crate::container::Container;
use crate::runtime::RequestContext;

impl Account {
    /// Splits a range in two; by default the one with the most items. The range stays in use meanwhile; requests wait only while the last changes are
    /// copied. The split continues to its end if the future is dropped. Splits of a container run one after the other.
    ///
    /// # Errors
    /// `RangeGone` if there is no such range; `BadRequest` if it is too narrow to be split; `NotFound` if the container was deleted; `Unavailable` if
    /// users write faster than the split can copy, or if the account closes. After an error nothing has changed.
    pub async fn split(&self, container: &Arc<Container>, range: Option<u32>) -> Result<SplitReport> {
        let split = self.admin().split(container, range).await;
        // Its children may lack the entries of an index.
        self.index_signal().notify_one();
        split
    }

    /// Returns the property indexes of a container, and how far a running build is.
    ///
    /// # Errors
    /// `BadRequest` for a MongoDB collection; errors of the engine.
    pub async fn index_report(&self, container: &Container) -> Result<IndexReport> {
        self.admin().index_report(container).await
    }

    /// Returns the exact number and size of a container's items now.
    ///
    /// # Errors
    /// Errors of the engine.
    pub async fn usage(&self, container: &Arc<Container>) -> Result<Usage> {
        let count = |()| Box::pin(async move { self.admin().usage(container).await });
        self.by_current_settings(container, (), count).await
    }

    /// Returns the exact number and size of the items in each range of a container now, by the range's id.
    ///
    /// # Errors
    /// Errors of the engine.
    pub async fn range_usage(&self, container: &Arc<Container>) -> Result<Vec<(u32, Usage)>> {
        let count = |()| Box::pin(async move { self.admin().range_usage(container).await });
        self.by_current_settings(container, (), count).await
    }

    /// Returns statistics of every container, except those that are deleted meanwhile, and private collections. They are read from memory, where the newest commits and counts
    /// published them. They are requested from the partitions' workers only in the first call after a start; with a virtual clock, if ghosts may be
    /// uncounted; and on an engine to which other processes commit.
    ///
    /// # Errors
    /// Errors of the engine.
    pub async fn container_figures(&self) -> Result<Vec<ContainerFigures>> {
        let mut figures = self.admin().container_figures().await?;
        figures.retain(|container| self.container_by_rid(container.rid).is_ok());
        Ok(figures)
    }

    /// Returns a summary of a container's expiry.
    ///
    /// # Errors
    /// Errors of the engine.
    pub async fn ttl_report(&self, container: &Arc<Container>) -> Result<TtlReport> {
        let report = |()| Box::pin(async move { self.admin().ttl_report(container).await });
        self.by_current_settings(container, (), report).await
    }

    /// Returns what another default ttl would change now; changes nothing.
    ///
    /// # Errors
    /// Errors of the engine.
    pub async fn ttl_preview(&self, container: &Arc<Container>, policy: Policy) -> Result<TtlPreview> {
        let preview = |()| Box::pin(async move { self.admin().ttl_preview(container, policy).await });
        self.by_current_settings(container, (), preview).await
    }

    /// Explains why an item is visible or not.
    ///
    /// # Errors
    /// `PartitionKeyMismatch`, and those of the engine.
    pub async fn ttl_why(&self, container: &Arc<Container>, id: &str, key: &PartitionKey) -> Result<TtlWhy> {
        let explain = |()| Box::pin(async move { self.admin().ttl_why(container, id, key).await });
        self.by_current_settings(container, (), explain).await
    }

    /// Checks all items of a container against indexes, unique keys, queues, counters and the history, while requests continue. The check ends when
    /// the future is dropped.
    ///
    /// # Errors
    /// Errors of the engine; `NotFound` if the container was deleted meanwhile; `Throttled` if there is no memory for the items of a history;
    /// `Unavailable` if concurrent changes interrupted it too often. Inconsistencies are not errors but part of the report.
    pub async fn verify(&self, container: &Arc<Container>) -> Result<VerifyReport> {
        let verify = |()| Box::pin(async move { self.admin().verify(container).await });
        self.by_current_settings(container, (), verify).await
    }

    /// Returns the next part of an export: the live items of a container, or the live documents of a collection, as lines of JSON.
    ///
    /// # Errors
    /// From the engine; `NotFound` if the container was deleted.
    pub async fn export(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        position: ExportPosition,
    ) -> Result<ExportPage> {
        let export = |position| Box::pin(async move { self.admin().export(ctx, container, position).await });
        self.by_current_settings(container, position, export).await
    }

    /// Loads items, or documents of a collection, that keep their `_ts`, one JSON object per line, from parts of a text. Returns their number.
    ///
    /// # Errors
    /// - `BadRequest`: the container is not fresh (TTL-275), or a line is not an item; the message has the line's number. All lines are
    ///   checked before anything is written.
    /// - `Conflict`, `UniqueKeyConflict`: two lines hold the same id or unique key; nothing is written in this case either.
    /// - `TooLarge`: a line is longer than an item may be. `Throttled`: there is no memory for the data that must be kept for each line.
    /// - The errors of `parts`.
    pub async fn import<S>(&self, container: &Arc<Container>, parts: S) -> Result<u64>
    where
        S: Stream<Item = Result<Bytes>> + Unpin,
    {
        self.admin().import(container, self.draft_options(), parts).await
    }
}
