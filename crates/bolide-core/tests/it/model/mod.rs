//! A literal model of one container: what every answer must be, from the words of the TTL specification alone.
//!
//! It keeps the whole history of settings and evaluates TTL-225 item by item, has no floors, cursors, queues or counters, and calls no
//! product code for a verdict. Of the product it takes over only labels it cannot know: etags, resource ids, and what requests were
//! charged.
//!
//!   history    settings and verdicts          versions   what is stored, ghosts included
//!   writes     what a write comes to          feeds      what pages hold and where the next one goes on
//!   windows    what the purge may spend       figures    counts, previews, reasons
//!   events     what the all-versions feed shows       drops      what was deleted with its partition key

mod drops;
mod events;
mod feeds;
mod figures;
mod history;
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

/// What purging an item costs: an explicit delete of one below 1 KB. Source: the published table of charges.
const DELETE_RU: f64 = 4.95;

/// A container and everything that ever happened to its settings.
#[derive(Debug, Clone)]
pub struct Model {
    /// Server time in milliseconds (TTL-201).
    pub now_ms: i64,
    pub history: History,
    /// Live items and ghosts.
    pub versions: Vec<Version>,
    /// Deleted with their partition key, and not removed yet.
    pub dropped: Vec<Version>,
    pub ranges: Vec<Range>,
    pub purged_total: u64,
    pub spent_total: f64,
    pub billed_total: f64,
    budget: Budget,
    delete_ru: Option<f64>,
    /// Whether no two items of a logical partition may share `u`.
    has_unique_key: bool,
    /// Writes and insertions so far.
    writes: u64,
    transactions: u64,
    is_in_transaction: bool,
    /// For the all-versions feed.
    pub events: Events,
}

/// How many items a paced purge may remove in a range.
#[derive(Debug, Clone, Copy)]
pub struct Affordable {
    pub range: u32,
    /// Ghosts, if nothing else is removed.
    pub ghosts: usize,
    /// Ghosts, and what was deleted with its key.
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
    /// A container created now.
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

    /// *T* in whole seconds.
    pub fn now(&self) -> i64 {
        self.now_ms.div_euclid(1000)
    }

    /// The wall clock shows `clock_ms`: server time follows forwards, and stands still when the clock is behind (TTL-202).
    pub fn clock_shows(&mut self, clock_ms: i64) {
        self.now_ms = self.now_ms.max(clock_ms);
    }

    /// TTL-225.
    pub fn is_live(&self, version: &Version) -> bool {
        !self.history.is_expired(version.written, version.own, self.now())
    }

    /// The live item of this name.
    pub fn live(&self, pk: &str, id: &str) -> Option<&Version> {
        self.stored(pk, id).filter(|version| self.is_live(version))
    }

    /// The live item or ghost of this name.
    pub fn stored(&self, pk: &str, id: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.is_called(pk, id))
    }

    pub fn live_items(&self) -> impl Iterator<Item = &Version> {
        self.versions.iter().filter(|version| self.is_live(version))
    }

    pub fn ghosts(&self) -> impl Iterator<Item = &Version> {
        self.versions.iter().filter(|version| !self.is_live(version))
    }

    /// A settings change at *T* (TTL-227). No item is touched.
    pub fn set_default(&mut self, default_ttl: Option<i64>) {
        let now = self.now();
        self.history.change(now, default_ttl);
    }

    /// A range was split in two (TTL-277): items and their places stay, the new ranges start without credit (TTL-259).
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

    /// A new budget, and what purging an item costs if that is not what deleting it costs.
    pub fn pace(&mut self, budget: Budget, delete_ru: Option<f64>) {
        (self.budget, self.delete_ru) = (budget, delete_ru);
        let (now, share) = (self.now(), budget.share(self.ranges.len()));
        for range in &mut self.ranges {
            range.windows.set_budget(now, share);
        }
    }

    /// The server was started again: credit is 0 (TTL-259), everything else as it was (TTL-269).
    pub fn restarted(&mut self) {
        let now = self.now();
        for range in &mut self.ranges {
            range.windows.restart(now);
        }
    }

    /// A user's request was charged `units` in a range.
    pub fn charged(&mut self, units: f64, range: u32) {
        let now = self.now();
        if let Some(range) = self.ranges.iter_mut().find(|known| known.id == range) {
            range.windows.charge(now, units);
        }
    }

    /// Users want to consume `units`: tells whether the budget of every range lets them, and then they do.
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

    /// What the purge may spend now, over all ranges; `None` without a limit.
    pub fn credit(&mut self) -> Option<f64> {
        let now = self.now();
        self.ranges.iter_mut().map(|range| range.windows.credit(now)).sum()
    }

    /// How many items a paced purge may remove in each range: the next one while there is credit left (TTL-259).
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

    /// Ghosts, and what was deleted with its key, in a range.
    fn waiting_in(&self, range: usize) -> [usize; 2] {
        let epk = &self.ranges[range].epk;
        let ghosts = self.ghosts().filter(|ghost| epk.contains(&ghost.epk)).count();
        let dropped = self.dropped.iter().filter(|dropped| epk.contains(&dropped.epk)).count();
        [ghosts, dropped]
    }

    /// Ghosts are gone, removed by the purge or by a writer (TTL-255): counted, and what they cost is spent.
    pub fn purged(&mut self, is_gone: impl Fn(&Version) -> bool) -> usize {
        self.events.begin_turn();
        self.purged_in_turn(is_gone)
    }

    /// As [`Model::purged`], together with what else goes in this turn.
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

    /// Where in [`Model::ranges`] a key belongs.
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
