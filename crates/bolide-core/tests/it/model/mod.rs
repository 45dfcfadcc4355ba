//! A literal model of one container: what every answer must be, derived from the TTL specification alone.
//!
//! It keeps the whole history of settings and evaluates TTL-225 item by item. It has no floors, cursors, queues or counters, and calls no product
//! code to decide whether an item is live. From the product it takes only labels that it cannot know: etags, resource ids, and the charges of
//! requests.
//!
//!   history    settings and whether items are live       versions   the stored versions, ghosts included
//!   writes     the outcome of a write                    feeds      the content of pages and where the next one starts
//!   windows    what the purge may spend                  figures    counts, previews, reasons
//!   events     what the all-versions feed shows          tombstones items deleted with their partition key

mod events;
mod feeds;
mod figures;
mod history;
mod tombstones;
mod versions;
mod windows;
mod writes;

pub use events::{Event, Events, Happened};
pub use feeds::{ChangesPlace, Listed, Part};
pub use history::History;
pub use versions::{Change, Doc, Ttl, Version};
pub use windows::Budget;
pub use writes::{Plan, Write};

use bolide_model::epk::{Epk, EpkRange};
use windows::Windows;

/// Request units for purging an item: those of an explicit delete of an item below 1 KB. Source: the published table of charges.
const DELETE_RU: f64 = 4.95;

/// A container, and the history of its settings.
#[derive(Debug, Clone)]
pub struct Model {
    /// Server time in milliseconds (TTL-201).
    pub now_ms: i64,
    pub history: History,
    /// Live items and ghosts.
    pub versions: Vec<Version>,
    /// Items deleted with their partition key, and not removed yet.
    pub dropped: Vec<Version>,
    pub ranges: Vec<Range>,
    pub purged_total: u64,
    pub spent_total: f64,
    pub billed_total: f64,
    budget: Budget,
    delete_ru: Option<f64>,
    /// Whether the items of a logical partition must have different values of `u`.
    has_unique_key: bool,
    /// Number of writes and insertions so far.
    writes: u64,
    transactions: u64,
    is_in_transaction: bool,
    /// The events of the all-versions feed.
    pub events: Events,
}

/// How many items a paced purge may remove in a range.
#[derive(Debug, Clone, Copy)]
pub struct Affordable {
    pub range: u32,
    /// Maximum number of ghosts, if nothing else is removed.
    pub ghosts: usize,
    /// Maximum number of ghosts and of items deleted with their key, together.
    pub all: usize,
}

/// A partition key range.
#[derive(Debug, Clone)]
pub struct Range {
    pub id: u32,
    pub epk: EpkRange,
    windows: Windows,
}

impl Model {
    /// Creates the model of a container created at `now_ms`.
    pub fn new(
        now_ms: i64,
        default_ttl: Option<i64>,
        has_unique_key: bool,
        budget: Budget,
        ranges: Vec<(u32, EpkRange)>,
    ) -> Model {
        let now = now_ms.div_euclid(1000);
        let share = budget.share(ranges.len());
        let range = |(id, epk)| Range {
            id,
            epk,
            windows: Windows::starting(now, share),
        };
        Model {
            now_ms,
            history: History::new(now, default_ttl),
            versions: Vec::new(),
            dropped: Vec::new(),
            ranges: ranges.into_iter().map(range).collect(),
            purged_total: 0,
            spent_total: 0.0,
            billed_total: 0.0,
            budget,
            delete_ru: None,
            has_unique_key,
            writes: 0,
            transactions: 0,
            is_in_transaction: false,
            events: Events::default(),
        }
    }

    /// Returns *T* in whole seconds.
    pub fn now(&self) -> i64 {
        self.now_ms.div_euclid(1000)
    }

    /// Sets the wall clock to `clock_ms`: server time follows it forwards, and stands still while the clock is behind (TTL-202).
    pub fn clock_shows(&mut self, clock_ms: i64) {
        self.now_ms = self.now_ms.max(clock_ms);
    }

    /// Returns whether a version is live, by TTL-225.
    pub fn is_live(&self, version: &Version) -> bool {
        !self.history.is_expired(version.written, version.own, self.now())
    }

    /// Returns the live item of this name.
    pub fn live(&self, pk: &str, id: &str) -> Option<&Version> {
        self.stored(pk, id).filter(|version| self.is_live(version))
    }

    /// Returns the live item or ghost of this name.
    pub fn stored(&self, pk: &str, id: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.is_called(pk, id))
    }

    pub fn live_items(&self) -> impl Iterator<Item = &Version> {
        self.versions.iter().filter(|version| self.is_live(version))
    }

    pub fn ghosts(&self) -> impl Iterator<Item = &Version> {
        self.versions.iter().filter(|version| !self.is_live(version))
    }

    /// Changes the default at *T* (TTL-227). No item is changed.
    pub fn set_default(&mut self, default_ttl: Option<i64>) {
        let now = self.now();
        self.history.change(now, default_ttl);
    }

    /// Splits a range in two (TTL-277): items and their positions stay, the new ranges start without credit (TTL-259).
    pub fn split(&mut self, parent: u32, children: [(u32, EpkRange); 2]) {
        let at = self.range_at(parent).expect("split ranges exist");
        let now = self.now();
        let share = self.budget.share(self.ranges.len() + 1);
        let children = children.map(|(id, epk)| Range {
            id,
            epk,
            windows: Windows::starting(now, share),
        });
        self.ranges.splice(at..=at, children);
        self.pace(self.budget, self.delete_ru);
    }

    /// Sets a budget, and the cost of purging an item if it is not that of deleting it.
    pub fn pace(&mut self, budget: Budget, delete_ru: Option<f64>) {
        (self.budget, self.delete_ru) = (budget, delete_ru);
        let (now, share) = (self.now(), budget.share(self.ranges.len()));
        for range in &mut self.ranges {
            range.windows.set_budget(now, share);
        }
    }

    /// Records a restart of the server: credit is 0 (TTL-259), everything else is unchanged (TTL-269).
    pub fn restarted(&mut self) {
        let now = self.now();
        for range in &mut self.ranges {
            range.windows.restart(now);
        }
    }

    /// Records that a user's request was charged `units` in a range.
    pub fn charged(&mut self, units: f64, range: u32) {
        let now = self.now();
        if let Some(range) = self.ranges.iter_mut().find(|known| known.id == range) {
            range.windows.charge(now, units);
        }
    }

    /// Consumes `units` as users would, if the budget of every range allows it; returns whether it did.
    pub fn consume(&mut self, units: f64) -> bool {
        let now = self.now();
        let share = units / self.ranges.len() as f64;
        let fits = self.ranges.iter_mut().all(|range| range.windows.has_room(now, share));
        if fits {
            for range in &mut self.ranges {
                range.windows.charge(now, share);
            }
        }
        fits
    }

    /// Returns the units that the purge may spend now, over all ranges; `None` without a limit.
    pub fn credit(&mut self) -> Option<f64> {
        let now = self.now();
        self.ranges.iter_mut().map(|range| range.windows.credit(now)).sum()
    }

    /// Returns how many items a paced purge may remove in each range: another one while there is credit left (TTL-259).
    pub fn affordable(&mut self) -> Vec<Affordable> {
        let (now, cost) = (self.now(), self.cost());
        let waiting: Vec<[usize; 2]> = (0..self.ranges.len()).map(|at| self.waiting_in(at)).collect();
        let ranges = self.ranges.iter_mut().zip(waiting);
        let affordable = ranges.map(|(range, [ghosts, dropped])| {
            let credit = range.windows.credit(now);
            let of = |items: usize| match credit {
                None => items,
                Some(credit) => (0..items)
                    .take_while(|begun| credit - *begun as f64 * cost > 0.0)
                    .count(),
            };
            Affordable {
                range: range.id,
                ghosts: of(ghosts),
                all: of(ghosts + dropped),
            }
        });
        affordable.collect()
    }

    /// Returns the number of ghosts, and of items deleted with their key, in a range.
    fn waiting_in(&self, range: usize) -> [usize; 2] {
        let epk = &self.ranges[range].epk;
        let ghosts = self.ghosts().filter(|ghost| epk.contains(&ghost.epk)).count();
        let dropped = self.dropped.iter().filter(|dropped| epk.contains(&dropped.epk)).count();
        [ghosts, dropped]
    }

    /// Removes ghosts, as the purge or a writer does (TTL-255): counts them and spends their cost.
    pub fn purged(&mut self, is_gone: impl Fn(&Version) -> bool) -> usize {
        self.events.begin_turn();
        self.purged_in_turn(is_gone)
    }

    /// As [`Model::purged`], as a part of a commit that removes other items too.
    fn purged_in_turn(&mut self, is_gone: impl Fn(&Version) -> bool) -> usize {
        let gone: Vec<Version> = self
            .versions
            .iter()
            .filter(|version| is_gone(version))
            .cloned()
            .collect();
        assert!(
            gone.iter().all(|version| !self.is_live(version)),
            "P6: only ghosts are purged"
        );
        self.versions.retain(|version| !is_gone(version));
        self.events.purged(self.now(), &gone);
        let (now, cost) = (self.now(), self.cost());
        for ghost in &gone {
            self.purged_total += 1;
            self.spent_total += cost;
            if self.budget == Budget::Serverless {
                self.billed_total += cost;
            }
            let range = self.range_of(&ghost.epk);
            self.ranges[range].windows.spend(now, cost);
        }
        gone.len()
    }

    fn cost(&self) -> f64 {
        self.delete_ru.unwrap_or(DELETE_RU)
    }

    /// Returns the index in [`Model::ranges`] of the range of a key.
    pub fn range_of(&self, epk: &Epk) -> usize {
        self.ranges
            .iter()
            .position(|range| range.epk.contains(epk))
            .expect("ranges hold every key")
    }

    fn range_at(&self, id: u32) -> Option<usize> {
        self.ranges.iter().position(|range| range.id == id)
    }
}
