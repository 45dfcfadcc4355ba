//! Statistics about expiry, for the admin interface (TTL-272, TTL-273). Reading them changes nothing.

use std::ops::ControlFlow;
use std::sync::Arc;

use bolide_model::epk::Epk;
use bolide_model::partition_key::PartitionKey;
use bolide_model::ttl::{Class, Own, Policy, Settings, Stamp};
use bolide_model::{RequestUnits, Result, UnixSeconds};
use bolide_storage::Head;

use super::figures::Totals;
use super::forecast::{self, Ends, SLICES};
use super::{dates, ghosts};
use crate::admin::Admin;
use crate::background::jobs::delete_by_key;
use crate::container::{Container, ContainerState, PolicyPeriod};
use crate::content::StoredItem;
use crate::content::logical;
use crate::executor::Watch;
use crate::format::keys::{ExpiryPosition, LogPosition};
use crate::format::queues::{Queue, QueueEntry};
use crate::format::record::Record;
use crate::items::{IdLookup, epk_of_key};
use crate::partition::state::PartitionState;
use crate::partition::statistics::Statistics;
use crate::partition::tombstones::TombstoneView;
use crate::partition::{Partition, RawPages};

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;

/// Overview of a container's expiry.
#[derive(Debug, Clone, PartialEq)]
pub struct TtlReport {
    /// The default in force.
    pub policy: Policy,
    /// Number of ghosts now.
    pub backlog_items: u64,
    /// Bytes of the ghosts' documents.
    pub backlog_bytes: u64,
    /// Seconds between the earliest expiry among the ghosts and server time; 0 without ghosts.
    pub oldest_pending_seconds: i64,
    /// Ghosts removed since the container's creation, by the purge or by writers.
    pub purged_total: u64,
    /// Ghosts removed per second, averaged over the last minute.
    pub purge_rate: f64,
    /// Request units spent on removing them.
    pub ru_spent_total: RequestUnits,
    /// The part of them that was billed (serverless).
    pub ru_billed_total: RequestUnits,
    /// Request units that the purge may spend now; `None` without a limit.
    pub credit: Option<f64>,
    /// State of the purge.
    pub state: TtlState,
    /// The second at which the next live item expires, if any will.
    pub next_expiry_seconds: Option<i64>,
    /// Number of live items by the time of their expiry.
    pub forecast: Vec<ForecastSlice>,
}

/// State of a container's purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TtlState {
    /// TTL is off, no date rule is in force, and nothing is left to purge.
    Disabled,
    /// There are no ghosts.
    Idle,
    /// Ghosts are being removed.
    Active,
    /// Ghosts wait for credit.
    Waiting,
    /// Ghosts wait for the hold after a step of the clock to end (TTL-204).
    Held,
}

/// The live items that expire within a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForecastSlice {
    /// First second of the span.
    pub from_seconds: i64,
    /// First second after the span; `i64::MAX` if it has no end.
    pub to_seconds: i64,
    /// Live items that expire in it under the settings in force.
    pub items: u64,
}

/// The effect that another default would have on the items that are live now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TtlPreview {
    /// Items that would be expired at once.
    pub expire_now: u64,
    /// Items that would expire within the next hour.
    pub expire_within_hour: u64,
    /// Items that would expire within the next day, that hour included.
    pub expire_within_day: u64,
    /// Items that would never expire.
    pub never_expire: u64,
}

/// Why an item is live or expired.
#[derive(Debug, Clone, PartialEq)]
pub struct TtlWhy {
    /// `None` if no item is stored under this id.
    pub item: Option<StoredItem>,
    /// Whether the item is live.
    pub is_live: bool,
    /// The second at which the item expires or expired; `None` if it never does. For a date, the second that contains it.
    pub expires_at_seconds: Option<i64>,
    /// For a document of a MongoDB collection, the millisecond at which it expires or expired.
    pub expires_at_millis: Option<i64>,
    /// The rule that decides.
    pub rule: TtlRule,
    /// The name of the TTL index whose date rule decides, if it still exists.
    pub index: Option<String>,
    /// For a document of a MongoDB collection, its own ttl as it counts.
    pub own: Own,
    /// The default in force.
    pub policy: Policy,
}

impl TtlWhy {
    /// The answer if nothing is stored under the id.
    pub(super) fn absent(policy: Policy) -> TtlWhy {
        TtlWhy {
            item: None,
            is_live: false,
            expires_at_seconds: None,
            expires_at_millis: None,
            rule: TtlRule::Never,
            index: None,
            own: Own::Absent,
            policy,
        }
    }
}

impl PartialEq for StoredItem {
    fn eq(&self, other: &StoredItem) -> bool {
        self.record() == other.record()
    }
}

/// The rule that decides when an item expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TtlRule {
    /// Its own ttl.
    Own,
    /// The container's default.
    Default,
    /// It never expires, by its own ttl or by the container's default.
    Never,
    /// The container's TTL is off, so it does not expire now, whatever its own ttl is.
    Off,
    /// It had already expired under earlier settings.
    Floor,
    /// A date in it, by the rule of a TTL index on a date field.
    Date,
}

impl Admin<'_> {
    /// See `Account::ttl_report`.
    pub(crate) async fn ttl_report(&self, container: &Arc<Container>) -> Result<TtlReport> {
        let guard = container.enter_uninterruptible().await?;
        let state = &guard.state;
        self.runtime.begin_admin().await?;
        let (all, now) = ghosts::counted_together(state).await?;
        let statistics: Vec<Statistics> = all.iter().map(Statistics::of).collect();
        let totals = Totals::of(state, &statistics, now);
        let mut report = TtlReport {
            policy: state.settings.policy,
            backlog_items: totals.ghosts.items,
            backlog_bytes: totals.ghosts.bytes,
            oldest_pending_seconds: totals.lag_seconds,
            purged_total: totals.purged_total,
            purge_rate: totals.purge_rate,
            ru_spent_total: totals.spent_total,
            ru_billed_total: totals.billed_total,
            credit: totals.credit,
            state: totals.state(state, self.background.is_held()),
            next_expiry_seconds: None,
            forecast: empty_forecast(now),
        };
        for (partition, counted) in state.layout.partitions.iter().zip(&all) {
            if state.settings.dates.is_empty() {
                let ends = forecast::counted(state, partition).await?;
                report.add_ends(state, partition, counted, &ends, now).await?;
            } else {
                let now = partition.now().await?.max(now.millis());
                let next = dates::add_ends(&mut report.forecast, &state.settings, partition, now).await?;
                report.next_expiry_seconds = earliest(report.next_expiry_seconds, next);
            }
        }
        Ok(report)
    }

    /// See `Account::ttl_preview`.
    pub(crate) async fn ttl_preview(&self, container: &Arc<Container>, policy: Policy) -> Result<TtlPreview> {
        let guard = container.enter_interruptible().await?;
        let state = &guard.state;
        let now = self.runtime.begin_admin().await?.now;
        let before = state.settings.clone();
        let after = before.change(policy, now.seconds());
        let state = state.clone();
        let walk = move |watch: Arc<Watch>| async move {
            let mut preview = TtlPreview::default();
            if !before.dates.is_empty() {
                for partition in &state.layout.partitions {
                    dates::add_preview(&mut preview, partition, &watch, (&before, &after), now).await?;
                }
                return Ok(preview);
            }
            let (before, after) = (before.horizon(now), after.horizon(now));
            let count = |stamp: Stamp| {
                if stamp.is_live(&before) {
                    preview.count(stamp.is_live(&after), stamp.ends_at(policy), now.seconds());
                }
            };
            for_each_stamp(&state, &watch, count).await?;
            Ok(preview)
        };
        self.runtime.execute_until(container.ending(), walk).await
    }

    /// See `Account::ttl_why`.
    pub(crate) async fn ttl_why(&self, container: &Arc<Container>, id: &str, key: &PartitionKey) -> Result<TtlWhy> {
        let guard = container.enter().await?;
        let state = &guard.state;
        if let Some(collection) = &state.collection {
            let place = epk_of_key(state, key)?;
            let now = self.runtime.begin_admin().await?.now;
            return dates::why((container, state), collection, (&place, id), now).await;
        }
        let definition = &state.properties.partition_key;
        definition.check_full(key)?;
        let epk = logical::of(definition, key);
        let partition = state.layout.partition_of(&epk)?;
        let now = self.runtime.begin_admin().await?.now;
        let (record, head) = stored_under(partition, &epk, id).await?;
        let policy = state.settings.policy;
        let Some(record) = record else {
            return Ok(TtlWhy::absent(policy));
        };
        let now = now.max(head.stamp).seconds();
        Ok(why(container, state, record, now))
    }
}

/// Returns the item stored under an id, expired or not, unless it was deleted with its partition key; and the head at which it was read.
async fn stored_under(partition: &Partition, epk: &Epk, id: &str) -> Result<(Option<Record>, Head)> {
    let mut lookup = IdLookup::new(epk, id.as_bytes());
    loop {
        let (mut reply, tombstones) = partition.read_raw_with_tombstones(|| lookup.request()).await?;
        if let ControlFlow::Break(item) = lookup.take(reply.gets.first().and_then(Option::as_ref)) {
            let record = reply.gets.drain(1..).flatten().next().map(Record::decode).transpose()?;
            let stored = item.zip(record);
            let stored =
                stored.filter(|(item, record)| !tombstones.hides(&item.bytes, record.version().lsn, record.stamp()));
            return Ok((stored.map(|(_, record)| record), reply.head));
        }
    }
}

fn why(container: &Container, state: &ContainerState, record: Record, now: UnixSeconds) -> TtlWhy {
    let stamp = record.stamp();
    let policy = state.settings.policy;
    let is_live = stamp.is_live(&state.settings.horizon(now.millis()));
    let end = stamp.ends_at(policy);
    let by_policy = end.is_some_and(|end| end <= now.0);
    let rule = match stamp.class {
        _ if !is_live && !by_policy => TtlRule::Floor,
        _ if !policy.is_on() => TtlRule::Off,
        _ if end.is_none() => TtlRule::Never,
        Class::Own => TtlRule::Own,
        Class::Inherited => TtlRule::Default,
        Class::Never => TtlRule::Never,
    };
    let expires_at_seconds = if is_live {
        end
    } else {
        moment_of_expiry(stamp, &state.history, now).or(end)
    };
    TtlWhy {
        item: Some(StoredItem::new(container.rid(), record)),
        is_live,
        expires_at_seconds,
        rule,
        ..TtlWhy::absent(policy)
    }
}

impl TtlReport {
    /// Adds the expiry times of a partition's live items.
    async fn add_ends(
        &mut self,
        state: &ContainerState,
        partition: &Partition,
        counted: &PartitionState,
        ends: &Ends,
        now: UnixSeconds,
    ) -> Result<()> {
        for (slice, items) in self.forecast.iter_mut().zip(ends.items) {
            slice.items += items;
        }
        let next = next_end(state, partition, ends).await?;
        self.next_expiry_seconds = earliest(self.next_expiry_seconds, next);
        // Items that were deleted with their partition key are counted until they are removed.
        let horizon = state.settings.horizon(now.millis());
        delete_by_key::for_each_hidden(partition, counted, |record| {
            let stamp = record.stamp();
            let end = stamp.ends_at(state.settings.policy).filter(|_| stamp.is_live(&horizon));
            let slice = end.and_then(|end| self.forecast.iter_mut().find(|slice| end < slice.to_seconds));
            if let Some(slice) = slice {
                slice.items = slice.items.saturating_sub(1);
            }
        })
        .await
    }
}

/// Returns the slices from `now` on, with counts of zero.
fn empty_forecast(now: UnixSeconds) -> Vec<ForecastSlice> {
    let mut from_seconds = now.0;
    let slice = |end: i64| {
        let to_seconds = now.0.saturating_add(end);
        let slice = ForecastSlice {
            from_seconds,
            to_seconds,
            items: 0,
        };
        from_seconds = to_seconds;
        slice
    };
    SLICES.into_iter().map(slice).collect()
}

impl TtlState {
    /// Returns the state of the purge of a container with this number of ghosts and this credit in request units.
    pub(crate) fn of(settings: &Settings, ghosts: u64, credit: Option<f64>, is_held: bool) -> TtlState {
        match (ghosts, credit) {
            (0, _) if !settings.is_on() => TtlState::Disabled,
            (0, _) => TtlState::Idle,
            _ if is_held => TtlState::Held,
            (_, Some(credit)) if credit <= 0.0 => TtlState::Waiting,
            _ => TtlState::Active,
        }
    }

    /// All states.
    pub const ALL: [TtlState; 5] = [
        TtlState::Disabled,
        TtlState::Idle,
        TtlState::Active,
        TtlState::Waiting,
        TtlState::Held,
    ];

    /// Returns its name in statistics (TTL-272).
    pub fn name(self) -> &'static str {
        match self {
            TtlState::Disabled => "disabled",
            TtlState::Idle => "idle",
            TtlState::Active => "active",
            TtlState::Waiting => "waiting",
            TtlState::Held => "held",
        }
    }
}

impl TtlPreview {
    pub(super) fn count(&mut self, is_live_after: bool, end: Option<i64>, now: UnixSeconds) {
        match end {
            _ if !is_live_after => self.expire_now += 1,
            None => self.never_expire += 1,
            Some(end) => {
                self.expire_within_hour += u64::from(end <= now.0 + HOUR);
                self.expire_within_day += u64::from(end <= now.0 + DAY);
            }
        }
    }
}

/// Returns when a version that is expired at `now` expired: the minimum of max(base + ttl, start) over the policy periods in which it could expire
/// (TTL-225).
pub(super) fn moment_of_expiry(stamp: Stamp, history: &[PolicyPeriod], now: UnixSeconds) -> Option<i64> {
    let ends = history.iter().enumerate().filter_map(|(at, period)| {
        let end_of_period = history.get(at + 1).map_or(now.0, |next| next.start.0).min(now.0);
        let end = stamp.ends_at(period.policy)?;
        (end_of_period >= end).then_some(end.max(period.start.0))
    });
    ends.min()
}

/// Returns the earliest expiry among a partition's ghosts. In each queue it is that of the first ghost, since an older version never expires later
/// than a younger one in the same queue.
pub(super) fn oldest_pending(state: &ContainerState, statistics: &Statistics, now: UnixSeconds) -> Option<i64> {
    let horizon = state.settings.horizon(now.millis());
    let ghosts = statistics.oldest.into_iter().flatten();
    let ghosts = ghosts.filter(|stamp| !stamp.is_live(&horizon));
    let by_dates = dates::oldest_pending(&state.settings.dates, &statistics.oldest_dates);
    ghosts
        .filter_map(|stamp| moment_of_expiry(stamp, &state.history, now))
        .chain(by_dates)
        .min()
}

/// Returns the second at which the first live item of a partition expires, if any will.
async fn next_end(state: &ContainerState, partition: &Partition, ends: &Ends) -> Result<Option<i64>> {
    let end = |stamp: Option<Stamp>| stamp.and_then(|stamp| stamp.ends_at(state.settings.policy));
    let mut next = None;
    if let Some(from) = ends.own {
        next = end(first_in(partition, from).await?);
    }
    if let Some(from) = ends.inherited {
        next = earliest(next, end(first_in(partition, from).await?));
    }
    Ok(next)
}

/// Returns the stamp of the first item of a queue from a position on.
async fn first_in<P: Queue>(partition: &Partition, from: P) -> Result<Option<Stamp>> {
    let mut pages = RawPages::behind(partition, P::SPACE, from.to_bytes());
    loop {
        let rows = pages.next().await?;
        if rows.is_empty() {
            return Ok(None);
        }
        for (key, value) in &rows {
            let entry = P::entry(key, value)?;
            if entry.belongs() && !is_hidden(&entry, pages.tombstones()) {
                return Ok(Some(entry.stamp));
            }
        }
    }
}

/// Tells whether an entry's item was deleted with its partition key.
fn is_hidden<P>(entry: &QueueEntry<P>, tombstones: &TombstoneView) -> bool {
    tombstones.hides(&entry.item_key, entry.version.lsn, entry.stamp)
}

fn earliest(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one.into_iter().chain(other).min()
}

/// Calls `visit` with the stamp of every stored item of a container that was not deleted with its partition key.
async fn for_each_stamp(state: &ContainerState, watch: &Watch, mut visit: impl FnMut(Stamp)) -> Result<()> {
    for partition in &state.layout.partitions {
        // The log has an entry for every item; the base of items with a ttl of their own is in the other queue.
        for_each_entry::<ExpiryPosition>(partition, watch, &mut visit).await?;
        let others = |stamp: Stamp| {
            if stamp.class != Class::Own {
                visit(stamp);
            }
        };
        for_each_entry::<LogPosition>(partition, watch, others).await?;
    }
    Ok(())
}

async fn for_each_entry<P: Queue>(partition: &Partition, watch: &Watch, mut visit: impl FnMut(Stamp)) -> Result<()> {
    let mut pages = RawPages::over(partition, P::SPACE);
    loop {
        watch.check()?;
        let rows = pages.next().await?;
        if rows.is_empty() {
            return Ok(());
        }
        for (key, value) in &rows {
            let entry = P::entry(key, value)?;
            if !is_hidden(&entry, pages.tombstones()) {
                visit(entry.stamp);
            }
        }
    }
}

#[cfg(test)]
mod tests;
