//! Splitting a range in two (cosmos-rest §7.3).
//!
//! Requests wait while it lasts. The children get every record and entry as they are, so verdicts, feeds, etags and the purge go on
//! (TTL-277); their logs go on from the parent's LSN. The new ranges come into force with one commit of the catalog, which also names
//! the parent for removal; until then a crash leaves only partitions that nobody refers to.

use std::sync::Arc;

use bolide_model::epk::{Epk, EpkRange};
use bolide_model::{Error, ErrorKind, Lsn, Result, UnixMillis};
use bolide_storage::{Batch, CommitToken, Head, Key, Outcome, PartitionId, Put, Space};
use bytes::Bytes;

use crate::account::Account;
use crate::catalog::{Catalog, Offer, OfferResource};
use crate::change_log::HistoryEntry;
use crate::container::{Change, Container, ContainerState, Layout};
use crate::format::keys;
use crate::format::record::{ExpiryEntry, LogEntry, Record};
use crate::partition::state::PartitionState;
use crate::partition::{Partition, Placement, RawPages, down};
use crate::throughput::Meter;

/// Rows of one commit into a child.
const COMMIT_ROWS: usize = 1_000;

/// What a split made of what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SplitReport {
    /// The range that is gone.
    pub parents: Vec<u32>,
    /// The ranges in its place.
    pub children: Vec<u32>,
}

impl Account {
    /// Splits a range in two; by default the one with the most items.
    ///
    /// # Errors
    /// `RangeGone` if there is no such range; `BadRequest` if it is too narrow to be split.
    pub async fn split(&self, container: &Arc<Container>, range: Option<u32>) -> Result<SplitReport> {
        let container = container.clone();
        let split = |catalog: Arc<Catalog>| async move { catalog.split(&container, range).await };
        self.catalog().carry_out(split).await
    }
}

impl Catalog {
    /// See [`Account::split`].
    pub async fn split(&self, container: &Arc<Container>, range: Option<u32>) -> Result<SplitReport> {
        let change = container.lock().await;
        let layout = change.state().layout.clone();
        let parent = match range {
            Some(range) => layout.partition_with_id(range)?.clone(),
            None => largest(&layout).await?,
        };
        self.split_partition(container, &change, &parent).await
    }

    /// Splits ranges until a container has as many as its throughput needs at least. (A new one gets more: a split is avoided, not made.)
    pub async fn split_for_throughput(&self, offer: &Offer) -> Result<()> {
        let OfferResource::Container(rid) = offer.resource else {
            return Ok(());
        };
        let container = self.container_by_rid(rid)?;
        while container.ranges().ranges.len() < offer.throughput.least_ranges() as usize {
            self.split(&container, None).await?;
        }
        Ok(())
    }

    async fn split_partition(
        &self,
        container: &Arc<Container>,
        change: &Change<'_>,
        parent: &Arc<Partition>,
    ) -> Result<SplitReport> {
        let state = change.state();
        let middle = parent
            .epk
            .midpoint(&state.properties.partition_key)
            .ok_or_else(|| Error::bad_request(format!("range {} is too narrow to be split", parent.range)))?;
        let mut parents = parent.parents.clone();
        parents.push(parent.range);
        let first_id = self.take_partition_ids(2).await?;
        let halves = [
            EpkRange::new(parent.epk.min.clone(), middle.clone()),
            EpkRange::new(middle, parent.epk.max.clone()),
        ];
        // What was purged stays counted, once: in the first child.
        let (mut figures, before) = parent
            .upkeep(|round| Ok((round.state.purge_figures(), round.state.clone())))
            .await?;
        let mut children = Vec::new();
        for (at, epk) in (0u32..).zip(halves) {
            let id = PartitionId(first_id + u64::from(at));
            let placement = Placement {
                id,
                range: state.next_range + at,
                epk,
                parents: parents.clone(),
            };
            let counters = PartitionState {
                history_from: before.history_from,
                tombstones: before
                    .tombstones
                    .filtered(|dropped| is_inside(&placement.epk, &dropped.epk)),
                ..std::mem::take(&mut figures)
            };
            self.copy(parent, &placement, counters).await?;
            let own = Meter::shared(
                &state.pacing,
                state.layout.partitions.len() + 1,
                self.now().await?.seconds(),
            );
            let meter = state.shared_meter().cloned().unwrap_or(own);
            children.push(Partition::open(self.engine().clone(), placement, meter, self.alarm().clone()).await?);
        }
        let report = SplitReport {
            parents: vec![parent.range],
            children: children.iter().map(|child| child.range).collect(),
        };
        let after = with_children(&state, parent, children);
        after.pace_meters(self.now().await?.seconds());
        self.commit_split(container, change, after, parent.id, || false).await?;
        self.remove_named(vec![parent.id]).await;
        Ok(report)
    }

    /// Copies what of a partition lies inside a child's range into the child, whose counters start at `state`.
    async fn copy(&self, parent: &Partition, child: &Placement, state: PartitionState) -> Result<()> {
        let now = self.now().await?;
        let mut copy = Copy {
            catalog: self,
            partition: child.id,
            head: Head::first(now),
            puts: Vec::new(),
            state,
        };
        // A crash may have left a child of the same name half done; ids are never handed out twice, so this one is new.
        self.engine().create(child.id, copy.head).await.map_err(down)?;
        for (key, value) in read_space(parent, Space::Item).await? {
            if is_inside(&child.epk, keys::epk_of_item(&key)) {
                copy.state.added(&key, &Record::decode(value.clone())?);
                copy.put(Space::Item, key, value).await?;
            }
        }
        for (key, value) in read_space(parent, Space::Index).await? {
            let epk = keys::epk_and_rest_of_index(&key)
                .ok_or_else(|| Error::new(ErrorKind::Corrupt, "an index entry is damaged"))?;
            if is_inside(&child.epk, epk) {
                copy.put(Space::Index, key, value).await?;
            }
        }
        for (key, value) in read_space(parent, Space::Log).await? {
            if is_inside(&child.epk, keys::epk_of_item(&LogEntry::decode(&value)?.item_key)) {
                copy.put(Space::Log, key, value).await?;
            }
        }
        for (key, value) in read_space(parent, Space::Expiry).await? {
            if is_inside(&child.epk, keys::epk_of_item(&ExpiryEntry::decode(&value)?.item_key)) {
                copy.put(Space::Expiry, key, value).await?;
            }
        }
        copy.history(parent, &child.epk).await?;
        copy.finish(parent.lsn(), now).await
    }
}

/// All rows of one space, held in memory.
async fn read_space(partition: &Partition, space: Space) -> Result<Vec<(Bytes, Bytes)>> {
    let mut pages = RawPages::over(partition, space);
    let mut rows = Vec::new();
    loop {
        let page = pages.next().await?;
        if page.is_empty() {
            return Ok(rows);
        }
        rows.extend(page);
    }
}

/// Whether a key that begins with an effective partition key lies in a range.
fn is_inside(range: &EpkRange, key: &[u8]) -> bool {
    key >= range.min.as_bytes() && (range.max == Epk::end() || key < range.max.as_bytes())
}

async fn largest(layout: &Layout) -> Result<Arc<Partition>> {
    let mut largest: Option<(u64, &Arc<Partition>)> = None;
    for partition in &layout.partitions {
        let items = partition.upkeep(|round| Ok(round.state.stored.items)).await?;
        if largest.is_none_or(|(most, _)| items > most) {
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

/// Rows on their way into a child.
struct Copy<'a> {
    catalog: &'a Catalog,
    partition: PartitionId,
    head: Head,
    puts: Vec<Put>,
    state: PartitionState,
}

impl Copy<'_> {
    async fn put(&mut self, space: Space, key: Bytes, value: Bytes) -> Result<()> {
        self.puts.push(Put {
            key: Key::new(space, key),
            value,
        });
        if self.puts.len() >= COMMIT_ROWS {
            self.commit(self.head.lsn.next(), self.head.stamp).await?;
        }
        Ok(())
    }

    /// Copies what the history of a parent says of items in a range.
    async fn history(&mut self, parent: &Partition, epk: &EpkRange) -> Result<()> {
        let mut pages = RawPages::over_history(parent);
        loop {
            let page = pages.next().await?;
            if page.is_empty() {
                return Ok(());
            }
            for (key, value) in page {
                if is_inside(epk, keys::epk_of_item(&HistoryEntry::decode(&value)?.item_key)) {
                    self.put(Space::Log, key, value).await?;
                }
            }
        }
    }

    /// Commits the counters, and sets the head to where the parent's stands.
    async fn finish(&mut self, lsn: Lsn, now: UnixMillis) -> Result<()> {
        self.puts.push(Put {
            key: keys::state(),
            value: self.state.encode(),
        });
        self.commit(lsn.max(self.head.lsn.next()), now).await
    }

    async fn commit(&mut self, next: Lsn, stamp: UnixMillis) -> Result<()> {
        let batch = Batch {
            base: self.head.lsn,
            next,
            stamp,
            edition: self.head.edition,
            token: CommitToken(u128::from(self.partition.0) << 64 | u128::from(next.0)),
            puts: std::mem::take(&mut self.puts),
            deletes: Vec::new(),
            may_block: false,
        };
        match self
            .catalog
            .engine()
            .commit(self.partition, batch)
            .await
            .map_err(down)?
        {
            Outcome::Done(head) => {
                self.head = head;
                Ok(())
            }
            Outcome::Refused(why) => Err(Error::new(ErrorKind::StorageFull, why)),
            // Nobody else writes here; the copy is given up, and what is there of it is never referred to.
            Outcome::Stale | Outcome::Unknown(_) => Err(Error::new(
                ErrorKind::Unavailable,
                "the split could not be carried out; nothing has changed",
            )),
        }
    }
}
