//! Splits a range in two while it is in use (cosmos-rest §7.3).
//!
//! ```text
//!   requests:  ── parent ──────────────────────────────────────┤ wait ├── children ──
//!   split:     take ids ─▶ pages ─▶ catch up ─▶ … ─▶ catch up ─▶ seal ─▶ remove the parent
//! ```
//!
//! The children get every record unchanged, with the entries that it has in the parent, so expiry, feeds, etags and the purge continue as before
//! (TTL-277); their logs continue at the parent's LSN. Pages of the parent are copied while it is written, and rows that change in the copied part are
//! copied again ([`copy`]). At the end requests wait for the last changes and for one commit of the catalog, which replaces the parent by the new
//! ranges and lists it for removal. Until then, a crash or an error leaves only partitions that nothing refers to and that are listed for removal.

mod child;
mod copy;
mod running;

use std::sync::Arc;

use bolide_model::epk::EpkRange;
use bolide_model::{Error, ErrorKind, Reason, Result};
use bolide_storage::PartitionId;
use futures_util::FutureExt as _;

use crate::admin::Admin;
use crate::catalog::{Catalog, Offer, OfferResource};
use crate::container::{Container, ContainerState, Layout, WriteGuard};
use crate::partition::{Partition, Placement};
use crate::throughput::Meter;
use child::Child;
use copy::Copy;
use running::RunningSplit;
pub(crate) use running::Splits;

/// The result of a split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitReport {
    /// The range that was split.
    pub parents: Vec<u32>,
    /// The ranges that replace it.
    pub children: Vec<u32>,
}

impl Admin<'_> {
    /// See `Account::split`.
    pub(crate) async fn split(&self, container: &Arc<Container>, range: Option<u32>) -> Result<SplitReport> {
        let split = Split {
            catalog: self.catalog.clone(),
            container: container.clone(),
            running: Arc::new(self.splits.begin().await),
        };
        let split = tokio::spawn(async move { split.run(range).await });
        split.await.unwrap_or_else(|_| Err(Error::internal("a split panicked")))
    }

    /// Splits ranges until a container has the minimum that its throughput needs. (A new container gets more ranges than that, so that it need not be
    /// split soon.)
    pub(crate) async fn split_for_throughput(&self, offer: &Offer) -> Result<()> {
        let OfferResource::Container(rid) = offer.resource else {
            return Ok(());
        };
        let container = self.container_by_rid(rid)?;
        if container.state().is_unsharded() {
            // It has one range, whatever its throughput is.
            return Ok(());
        }
        while container.ranges().ranges.len() < offer.throughput.least_ranges() as usize {
            self.split(&container, None).await?;
        }
        Ok(())
    }
}

/// A split of one range.
struct Split {
    catalog: Arc<Catalog>,
    container: Arc<Container>,
    running: Arc<RunningSplit>,
}

impl Split {
    async fn run(&self, range: Option<u32>) -> Result<SplitReport> {
        let _alone = self.container.split_alone().await;
        self.running.check()?;
        let state = self.container.enter().await?.state.clone();
        if state.is_unsharded() {
            state.check_has_items(
                "it is unsharded, and the documents of an unsharded collection are in one range, which cannot be split",
            )?;
        }
        let parent = match range {
            Some(range) => state.layout.partition_with_id(range)?.clone(),
            None => largest(&state.layout).await?,
        };
        let halves = halves(&state, &parent)?;
        let take = |catalog: Arc<Catalog>| async move { catalog.take_partition_ids(2).await };
        let first_id = self.catalog.carry_out(take).await?;
        let mut placements = Vec::new();
        for (at, epk) in (0u32..).zip(halves) {
            let mut parents = parent.parents.clone();
            parents.push(parent.range);
            placements.push(Placement {
                id: PartitionId(first_id + u64::from(at)),
                range: state.next_range + at,
                epk,
                parents,
            });
        }
        let children: Vec<PartitionId> = placements.iter().map(|child| child.id).collect();
        match self.copy_and_seal(&parent, placements).await {
            Ok(report) => {
                self.remove(vec![parent.id]).await;
                Ok(report)
            }
            Err(error) => {
                // If it is unknown whether the children are in force, they stay; the next start decides.
                if !matches!(error.kind, ErrorKind::Timeout | ErrorKind::Internal) {
                    self.remove(children).await;
                }
                let is_deleted = self.container.state().is_deleted;
                Err(if is_deleted { deleted() } else { error })
            }
        }
    }

    async fn copy_and_seal(&self, parent: &Arc<Partition>, placements: Vec<Placement>) -> Result<SplitReport> {
        let now = self.catalog.now().await?;
        let indexes = self.container.state().indexes.clone();
        let mut children = Vec::new();
        for placement in placements {
            children.push(Child::create(self.catalog.engine().clone(), indexes.clone(), placement, now).await?);
        }
        let mut copy = Copy::begin(parent.clone(), children, self.running.clone()).await?;
        copy.copy_pages().await?;
        let (container, parent, running) = (self.container.clone(), parent.clone(), self.running.clone());
        let seal = |catalog: Arc<Catalog>| async move { seal(&catalog, &container, &parent, copy, &running).await };
        self.catalog.carry_out(seal).await
    }

    /// Removes partitions that are listed for removal. If that fails, the next start removes them.
    async fn remove(&self, partitions: Vec<PartitionId>) {
        let remove = |catalog: Arc<Catalog>| async move { catalog.remove_dropped(partitions).await };
        if let Err(error) = self.catalog.carry_out(remove).await {
            tracing::warn!(%error, "partitions that a split leaves behind will be removed by the next start");
        }
    }
}

/// Replaces the parent by the children.
async fn seal(
    catalog: &Catalog,
    container: &Arc<Container>,
    parent: &Arc<Partition>,
    mut copy: Copy,
    running: &RunningSplit,
) -> Result<SplitReport> {
    let long_work = container.hold_long_work().await;
    // Requests continued while long work ended.
    copy.catch_up_until_few().await?;
    let change = long_work.lock().await;
    let replaced = replace(catalog, &change, (container, parent), copy, running);
    catalog.sealed(container, &change, replaced.boxed()).await
}

async fn replace(
    catalog: &Catalog,
    change: &WriteGuard<'_>,
    (container, parent): (&Arc<Container>, &Arc<Partition>),
    mut copy: Copy,
    running: &RunningSplit,
) -> Result<SplitReport> {
    let state = change.state();
    if state.is_deleted {
        return Err(deleted());
    }
    let now = catalog.now().await?;
    copy.read_by_change(state.layout.partition_with_id(parent.range)?);
    copy.finish(now).await?;
    let mut children = Vec::new();
    for child in &copy.children {
        let count = state.layout.partitions.len() + 1;
        let own = Meter::shared(&state.pacing, count, now.seconds());
        let meter = state.shared_meter().cloned().unwrap_or(own);
        let opened = Partition::open(
            catalog.engine().clone(),
            child.placement.clone(),
            meter,
            catalog.signals().clone(),
        );
        let opened = opened.await?;
        let settings = change.sealed().map_or(state.settings_number, |sealed| sealed.number);
        opened.raise_settings(settings).await?;
        children.push(opened);
    }
    let report = SplitReport {
        parents: vec![parent.range],
        children: children.iter().map(|child| child.range).collect(),
    };
    let after = with_children(&state, parent, children);
    let copied = copy
        .children
        .first()
        .map(|child| child.indexes().clone())
        .unwrap_or_default();
    after.pace_meters(now.seconds());
    catalog
        .commit_split(container, change, (after, copied), parent.id, || running.must_end())
        .await?;
    Ok(report)
}

fn deleted() -> Error {
    Reason::ContainerDeleted.into()
}

/// Returns the two halves of a partition's range of keys.
fn halves(state: &ContainerState, parent: &Partition) -> Result<[EpkRange; 2]> {
    let middle = parent
        .epk
        .midpoint(&state.properties.partition_key)
        .ok_or_else(|| Error::bad_request(format!("range {} is too narrow to be split", parent.range)))?;
    Ok([
        EpkRange::new(parent.epk.min.clone(), middle.clone()),
        EpkRange::new(middle, parent.epk.max.clone()),
    ])
}

async fn largest(layout: &Layout) -> Result<Arc<Partition>> {
    let mut largest: Option<(u64, &Arc<Partition>)> = None;
    for partition in &layout.partitions {
        let items = partition.background(|batch| Ok(batch.state.stored.items)).await?;
        if largest.is_none_or(|(max, _)| items > max) {
            largest = Some((items, partition));
        }
    }
    largest
        .map(|(_, partition)| partition.clone())
        .ok_or_else(|| Error::internal("a container without ranges"))
}

fn with_children(state: &ContainerState, parent: &Partition, children: Vec<Arc<Partition>>) -> ContainerState {
    let next_range = state.next_range + children.len() as u32;
    let mut partitions = state.layout.partitions.clone();
    let at = partitions
        .iter()
        .position(|partition| partition.id == parent.id)
        .unwrap_or_default();
    partitions.splice(at..=at, children);
    let layout = Arc::new(Layout {
        version: state.layout.version + 1,
        partitions,
    });
    ContainerState {
        layout,
        next_range,
        ..state.clone()
    }
}
