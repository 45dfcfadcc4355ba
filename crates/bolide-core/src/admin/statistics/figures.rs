//! Quota figures, without ghosts from the second of their expiry (TTL-068, TTL-253).

use std::sync::Arc;

use bolide_model::rid::ContainerRid;
use bolide_model::{ErrorKind, Result, UnixSeconds};

use super::{TtlState, ghosts, report};
use crate::admin::Admin;
use crate::background::jobs::delete_by_key as drops;
use crate::container::{Container, ContainerState};
use crate::partition::Partition;
use crate::partition::state::{Amount, PartitionState};

/// What a container holds.
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

/// What a container holds and has purged, for metrics.
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
    /// Request units spent on that.
    pub ru_spent_total: f64,
    /// Of these, units billed.
    pub ru_billed_total: f64,
    /// How far behind the purge is: server time less the earliest moment of expiry among the ghosts; 0 without any.
    pub lag_seconds: i64,
    /// What the purge may spend now; `None` without a limit.
    pub credit: Option<f64>,
    /// Ghosts removed in a second, in the mean of the last minute.
    pub purge_rate: f64,
    /// What the purge is up to.
    pub state: TtlState,
}

impl Admin<'_> {
    /// See `Account::usage`.
    pub(crate) async fn usage(&self, container: &Arc<Container>) -> Result<Usage> {
        Ok(self.figures_of(container).await?.usage)
    }

    /// See `Account::range_usage`.
    pub(crate) async fn range_usage(&self, container: &Arc<Container>) -> Result<Vec<(u32, Usage)>> {
        let guard = container.enter_uninterruptible().await?;
        let mut ranges = Vec::new();
        let (all, now) = ghosts::counted_together(&guard.state).await?;
        for (partition, counted) in guard.state.layout.partitions.iter().zip(all) {
            let (_, usage) = amounts(&guard.state, partition, &counted, now).await?;
            ranges.push((partition.range, usage));
        }
        Ok(ranges)
    }

    /// See `Account::container_figures`.
    pub(crate) async fn container_figures(&self) -> Result<Vec<ContainerFigures>> {
        let mut all = Vec::new();
        for container in self.all_containers() {
            match self.figures_of(&container).await {
                Err(gone) if gone.kind == ErrorKind::NotFound => {}
                figures => all.push(figures?),
            }
            // There may be thousands, and nothing to wait for in any.
            tokio::task::yield_now().await;
        }
        Ok(all)
    }

    /// `NotFound` if the container was deleted.
    async fn figures_of(&self, container: &Arc<Container>) -> Result<ContainerFigures> {
        let guard = container.enter_uninterruptible().await?;
        let info = container.info();
        let mut figures = ContainerFigures {
            rid: container.rid(),
            database_id: info.database_id,
            id: info.properties.id.clone(),
            usage: Usage::default(),
            ghosts: Usage::default(),
            purged_total: 0,
            ru_spent_total: 0.0,
            ru_billed_total: 0.0,
            lag_seconds: 0,
            credit: None,
            purge_rate: 0.0,
            state: TtlState::Idle,
        };
        let (all, now) = ghosts::counted_together(&guard.state).await?;
        for (partition, counted) in guard.state.layout.partitions.iter().zip(all) {
            let (ghosts, usage) = amounts(&guard.state, partition, &counted, now).await?;
            if ghosts.items > 0 {
                let oldest = report::oldest_ghost(&guard.state, partition, &counted, now).await?;
                figures.lag_seconds = figures.lag_seconds.max(oldest.map_or(0, |oldest| now.0 - oldest));
            }
            let credit = partition.meter().lock().credit(now);
            let others = figures.credit.filter(|_| guard.state.shared_meter().is_none());
            figures.credit = credit.map(|credit| credit + others.unwrap_or(0.0));
            figures.usage.items += usage.items;
            figures.usage.bytes += usage.bytes;
            figures.ghosts.items += ghosts.items;
            figures.ghosts.bytes += ghosts.bytes;
            figures.purged_total += counted.purged_total;
            figures.purge_rate += partition.purge_rate(now);
            figures.ru_spent_total += counted.spent_total.0;
            figures.ru_billed_total += counted.billed_total.0;
        }
        let policy = guard.state.settings.policy;
        figures.state = TtlState::of(policy, figures.ghosts.items, figures.credit, self.background.is_held());
        Ok(figures)
    }
}

/// A partition's ghosts, and what is live in it: what is stored without the ghosts. What was deleted with its partition key is neither.
pub(crate) async fn amounts(
    state: &ContainerState,
    partition: &Partition,
    counted: &PartitionState,
    now: UnixSeconds,
) -> Result<(Usage, Usage)> {
    let hidden = drops::hidden(partition, counted, state.settings.horizon(now)).await?;
    let due = counted.ghosts.counted;
    let live = counted.stored.without(due).without(hidden.live);
    Ok((Usage::of(due.without(hidden.expired)), Usage::of(live)))
}
