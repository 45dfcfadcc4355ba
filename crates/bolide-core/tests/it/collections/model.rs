//! A literal model of expiry in a collection (mongo.md §18.4, TTL-225): keeps all versions that were not deleted or replaced, and all periods of all
//! rules, and evaluates the definition version by version.

/// A place in the order of writes and changes.
pub type Order = u64;

#[derive(Debug, Clone)]
pub struct Version {
    pub id: i32,
    /// The order of insertion of the document.
    pub number: Order,
    pub written: Order,
    /// `_ts`, in seconds.
    pub last_modified: i64,
    /// Its own ttl as it counts: −1 or seconds.
    pub own: Option<i64>,
    /// The earliest date in each of the fields `a` and `b`, which may have TTL indexes; in milliseconds.
    pub dates: [Option<i64>; 2],
    /// Whether partial indexes have it.
    pub is_flagged: bool,
    /// Its value in the unique index.
    pub unique: Option<i32>,
    pub bytes: u64,
}

/// A time to live of a TTL index on a date field, as long as it was in force.
#[derive(Debug, Clone)]
pub struct Period {
    pub start: (Order, i64),
    /// `None`: it is in force.
    pub end: Option<(Order, i64)>,
    pub seconds: i64,
}

#[derive(Debug, Clone)]
pub struct Index {
    pub name: String,
    /// 0 for the field `a`, 1 for `b`.
    pub field: usize,
    pub is_partial: bool,
    pub periods: Vec<Period>,
}

/// A default of the core rule, from a change on.
#[derive(Debug, Clone, Copy)]
pub struct CorePeriod {
    pub start: (Order, i64),
    pub default: Option<i64>,
}

#[derive(Debug, Clone, Default)]
pub struct Model {
    /// Server time in milliseconds.
    pub now: i64,
    pub order: Order,
    pub core: Vec<CorePeriod>,
    /// Dropped ones included.
    pub indexes: Vec<Index>,
    /// What is stored: live versions, and ghosts that are not purged.
    pub stored: Vec<Version>,
    pub purged_total: u64,
}

impl Period {
    /// Whether it ended the version: the version existed in the period, and its end was reached before the period was over.
    fn ends(&self, version: &Version, date: i64, now: i64) -> bool {
        let existed = self.end.is_none_or(|(order, _)| version.written < order);
        let until = self.end.map_or(now, |(_, at)| at.min(now));
        existed && date.saturating_add(self.seconds * 1_000) <= until
    }
}

impl Index {
    pub fn in_force(&self) -> Option<&Period> {
        self.periods.last().filter(|period| period.end.is_none())
    }

    fn date(&self, version: &Version) -> Option<i64> {
        version.dates[self.field].filter(|_| version.is_flagged || !self.is_partial)
    }
}

impl Model {
    pub fn seconds(&self) -> i64 {
        self.now.div_euclid(1_000)
    }

    pub fn next_order(&mut self) -> Order {
        self.order += 1;
        self.order
    }

    /// Effective ttl of a version under a default of the core rule.
    fn effective(version: &Version, default: Option<i64>) -> Option<i64> {
        match (default, version.own) {
            (None, _) | (Some(_), Some(-1)) | (Some(-1), None) => None,
            (Some(_), Some(own)) => Some(own),
            (Some(default), None) => Some(default),
        }
    }

    pub fn core_default(&self) -> Option<i64> {
        self.core.last().and_then(|period| period.default)
    }

    /// Returns the moments at which the periods of the core rule that began before `before` ended a version (TTL-225), in seconds.
    fn core_ends<'m>(&'m self, version: &'m Version, before: Order, now: i64) -> impl Iterator<Item = i64> + 'm {
        let now = now.div_euclid(1_000);
        let periods = self.core.iter().enumerate();
        let periods = periods.filter(move |(_, period)| period.start.0 < before);
        periods.filter_map(move |(at, period)| {
            let until = self
                .core
                .get(at + 1)
                .map_or(now, |next| next.start.1.div_euclid(1_000).min(now));
            let end = version.last_modified + Model::effective(version, period.default)?;
            (until >= end).then_some(end.max(period.start.1.div_euclid(1_000)))
        })
    }

    /// Whether a version has ended at `now`, by the periods that began before `before`.
    fn is_dead_before(&self, version: &Version, before: Order, now: i64) -> bool {
        let by_dates = self.indexes.iter().any(|index| {
            let periods = index.periods.iter().filter(|period| period.start.0 < before);
            let date = index.date(version);
            date.is_some_and(|date| periods.into_iter().any(|period| period.ends(version, date, now)))
        });
        by_dates || self.core_ends(version, before, now).next().is_some()
    }

    pub fn is_live(&self, version: &Version) -> bool {
        !self.is_dead_before(version, Order::MAX, self.now)
    }

    pub fn live(&self) -> Vec<&Version> {
        let mut live: Vec<&Version> = self.stored.iter().filter(|version| self.is_live(version)).collect();
        live.sort_by_key(|version| version.number);
        live
    }

    pub fn ghosts(&self) -> Vec<&Version> {
        self.stored.iter().filter(|version| !self.is_live(version)).collect()
    }

    pub fn find(&self, id: i32) -> Option<&Version> {
        self.stored.iter().find(|version| version.id == id)
    }

    pub fn find_live(&self, id: i32) -> Option<&Version> {
        self.find(id).filter(|version| self.is_live(version))
    }

    /// Returns when a live version will end under this default and the rules in force, in milliseconds.
    pub fn end(&self, version: &Version, default: Option<i64>) -> Option<i64> {
        let core = Model::effective(version, default).map(|ttl| (version.last_modified + ttl) * 1_000);
        let by_dates = self.indexes.iter().filter_map(|index| {
            let date = index.date(version)?;
            Some(date.saturating_add(index.in_force()?.seconds * 1_000))
        });
        by_dates.chain(core).min()
    }

    /// Removes a version that is a ghost.
    pub fn purge(&mut self, id: i32) {
        self.stored.retain(|version| version.id != id);
        self.purged_total += 1;
    }

    /// Returns the seconds since the oldest ghost ended: by a date, at the date plus the time to live that ended it, or at the change that ended it.
    /// `None`: a rule was changed more than once, and then the server does not know it exactly.
    pub fn oldest_pending_seconds(&self) -> Option<i64> {
        if self.indexes.iter().any(|index| index.periods.len() > 2) {
            return None;
        }
        let twice = |index: &&Index| index.periods.len() == 2 && index.in_force().is_none();
        if self.indexes.iter().any(|index| twice(&index)) {
            return None;
        }
        let mut oldest: Option<i64> = None;
        for ghost in self.ghosts() {
            let core = self.core_ends(ghost, Order::MAX, self.now);
            let dates = self.indexes.iter().filter_map(|index| {
                let first = index.periods.first()?;
                let existed = ghost.written > first.start.0;
                if !existed && self.is_dead_before(ghost, first.start.0, first.start.1) {
                    // It was a ghost when the index was created.
                    return None;
                }
                let date = index.date(ghost)?;
                let mut periods = index.periods.iter().enumerate();
                let (at, period) = periods.find(|(_, period)| period.ends(ghost, date, self.now))?;
                let mut end = date.saturating_add(period.seconds * 1_000);
                if at > 0 {
                    end = end.max(period.start.1);
                }
                Some(end.saturating_add(999).div_euclid(1_000))
            });
            oldest = core.chain(dates).chain(oldest).min();
        }
        Some(oldest.map_or(0, |oldest| (self.seconds().saturating_sub(oldest)).max(0)))
    }

    pub fn set_default(&mut self, default: Option<i64>) {
        if default != self.core_default() {
            let start = (self.next_order(), self.now);
            self.core.push(CorePeriod { start, default });
        }
    }

    pub fn create_index(&mut self, name: String, field: usize, is_partial: bool, seconds: i64) {
        let start = (self.next_order(), self.now);
        self.indexes.push(Index {
            name,
            field,
            is_partial,
            periods: vec![Period {
                start,
                end: None,
                seconds,
            }],
        });
    }

    /// Changes the time to live of an index; `None` drops it.
    pub fn change_index(&mut self, at: usize, seconds: Option<i64>) {
        let change = (self.next_order(), self.now);
        let periods = &mut self.indexes[at].periods;
        if let Some(last) = periods.last_mut() {
            if seconds == Some(last.seconds) {
                return;
            }
            last.end = Some(change);
        }
        periods.extend(seconds.map(|seconds| Period {
            start: change,
            end: None,
            seconds,
        }));
    }
}
