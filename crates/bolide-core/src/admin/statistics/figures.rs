//! Storage used by containers, without ghosts from the second of their expiry (TTL-068, TTL-253), and statistics for metrics.
//!
//! The storage used is exact at the moment of the request: it is requested from the partitions' workers. Statistics for metrics are read from memory:
//! each commit of a partition publishes them, and a background job updates them when items expire (`crate::background::jobs::count_ghosts`).

use std::sync::Arc;

use bolide_model::rid::ContainerRid;
use bolide_model::{ErrorKind, RequestUnits, Result, UnixSeconds};

use super::{TtlState, ghosts, report};
use crate::admin::Admin;
use crate::container::{Container, ContainerState};
use crate::partition::Partition;
use crate::partition::state::Amount;
use crate::partition::statistics::Statistics;

/// The live items of a container.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Live items.
    pub items: u64,
    /// Bytes of their documents.
    pub bytes: u64,
}

impl Usage {
    fn of(amount: Amount) -> Usage {
        Usage {
            items: amount.items,
            bytes: amount.bytes,
        }
    }
}

/// The items of a container and the work of its purge, for metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerFigures {
    /// The container.
    pub rid: ContainerRid,
    /// Name of its database.
    pub database_id: String,
    /// Its name.
    pub id: String,
    /// Live items and their bytes.
    pub usage: Usage,
    /// Ghosts and their bytes.
    pub ghosts: Usage,
    /// Ghosts removed since the container's creation.
    pub purged_total: u64,
    /// Request units spent on removing them.
    pub ru_spent_total: f64,
    /// The part of them that was billed.
    pub ru_billed_total: f64,
    /// Delay of the purge in seconds: server time minus the earliest expiry among the ghosts; 0 without ghosts.
    pub lag_seconds: i64,
    /// Request units that the purge may spend now; `None` without a limit.
    pub credit: Option<f64>,
    /// Ghosts removed per second, averaged over the last minute.
    pub purge_rate: f64,
    /// State of the purge.
    pub state: TtlState,
}

impl Admin<'_> {
    /// See `Account::usage`.
    pub(crate) async fn usage(&self, container: &Arc<Container>) -> Result<Usage> {
        let guard = container.enter_uninterruptible().await?;
        let (all, _) = exact(&guard.state).await?;
        let live = all.iter().map(|statistics| statistics.live);
        Ok(Usage::of(live.fold(Amount::default(), Amount::with)))
    }

    /// See `Account::range_usage`.
    pub(crate) async fn range_usage(&self, container: &Arc<Container>) -> Result<Vec<(u32, Usage)>> {
        let guard = container.enter_uninterruptible().await?;
        let (all, _) = exact(&guard.state).await?;
        let ranges = guard.state.layout.partitions.iter().zip(all);
        Ok(ranges
            .map(|(partition, statistics)| (partition.range, Usage::of(statistics.live)))
            .collect())
    }

    /// See `Account::container_figures`.
    pub(crate) async fn container_figures(&self) -> Result<Vec<ContainerFigures>> {
        let mut all = Vec::new();
        for container in self.all_containers() {
            match self.figures_of(&container).await {
                Err(gone) if gone.kind == ErrorKind::NotFound => {}
                figures => all.push(figures?),
            }
            // There may be thousands of containers, and none of them may need to wait, so other tasks get a chance to run here.
            tokio::task::yield_now().await;
        }
        Ok(all)
    }

    /// Returns the statistics of one container, from memory if possible; `NotFound` if it was deleted.
    async fn figures_of(&self, container: &Arc<Container>) -> Result<ContainerFigures> {
        let state = container.state();
        let (state, all, now) = match self.in_memory(&state).await? {
            Some((all, now)) if !state.is_deleted => (state, all, now),
            _ => {
                let guard = container.enter_uninterruptible().await?;
                let (all, now) = exact(&guard.state).await?;
                (guard.state.clone(), all, now)
            }
        };
        let totals = Totals::of(&state, &all, now);
        let info = container.info();
        Ok(ContainerFigures {
            rid: container.rid(),
            database_id: info.database_id,
            id: info.properties.id.clone(),
            usage: Usage::of(totals.live),
            ghosts: Usage::of(totals.ghosts),
            purged_total: totals.purged_total,
            ru_spent_total: totals.spent_total.0,
            ru_billed_total: totals.billed_total.0,
            lag_seconds: totals.lag_seconds,
            credit: totals.credit,
            purge_rate: totals.purge_rate,
            state: totals.state(&state, self.background.is_held()),
        })
    }

    /// Returns the statistics that the newest commits of all partitions published, and the second at which they are valid. Returns `None` if they must
    /// be requested from the workers: a partition has not counted its ghosts since it was opened; no background jobs run, and there may be expired items
    /// that are not counted; or other processes commit to the same partitions.
    async fn in_memory(&self, state: &ContainerState) -> Result<Option<(Vec<Statistics>, UnixSeconds)>> {
        if self.runtime.engine().is_shared() {
            return Ok(None);
        }
        let has_background = !self.runtime.has_virtual_clock();
        let now = match has_background {
            true => self.runtime.server_time(),
            false => self.runtime.begin_admin().await?.now,
        };
        let now = now.seconds();
        // Dates end in the middle of a second, and `next_count` rounds up.
        let until = now.0.saturating_add(i64::from(!state.settings.dates.is_empty()));
        let is_current = |partition: &&Arc<Partition>| has_background || partition.next_count() > until;
        let partitions = state.layout.partitions.iter();
        let all = partitions.map(|partition| Some(partition).filter(is_current)?.statistics());
        Ok(all.collect::<Option<Vec<_>>>().map(|all| (all, now)))
    }
}

/// Requests statistics from the workers of a container's partitions. Returns them, exact at one second for all partitions, and that second.
async fn exact(state: &ContainerState) -> Result<(Vec<Statistics>, UnixSeconds)> {
    let (all, now) = ghosts::counted_together(state).await?;
    Ok((all.iter().map(Statistics::of).collect(), now))
}

/// Sums of the statistics of a container's partitions.
pub(super) struct Totals {
    pub live: Amount,
    pub ghosts: Amount,
    pub purged_total: u64,
    pub spent_total: RequestUnits,
    pub billed_total: RequestUnits,
    pub lag_seconds: i64,
    pub credit: Option<f64>,
    pub purge_rate: f64,
}

impl Totals {
    pub fn of(state: &ContainerState, all: &[Statistics], now: UnixSeconds) -> Totals {
        let mut totals = Totals {
            live: Amount::default(),
            ghosts: Amount::default(),
            purged_total: 0,
            spent_total: RequestUnits::ZERO,
            billed_total: RequestUnits::ZERO,
            lag_seconds: 0,
            credit: None,
            purge_rate: 0.0,
        };
        for (partition, statistics) in state.layout.partitions.iter().zip(all) {
            totals.live = totals.live.with(statistics.live);
            totals.ghosts = totals.ghosts.with(statistics.ghosts);
            totals.purged_total += statistics.purged_total;
            totals.spent_total += statistics.spent_total;
            totals.billed_total += statistics.billed_total;
            let oldest = report::oldest_pending(state, statistics, now);
            totals.lag_seconds = oldest.map_or(0, |oldest| now.0 - oldest).max(totals.lag_seconds);
            let credit = partition.meter().lock().credit(now);
            let others = totals.credit.filter(|_| state.shared_meter().is_none());
            totals.credit = credit.map(|credit| credit + others.unwrap_or(0.0));
            totals.purge_rate += partition.purge_rate(now);
        }
        totals
    }

    /// Returns the state of the purge.
    pub fn state(&self, state: &ContainerState, is_held: bool) -> TtlState {
        TtlState::of(&state.settings, self.ghosts.items, self.credit, is_held)
    }
}
