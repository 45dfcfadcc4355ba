//! The named workloads, and which operation comes next.
//!
//! Workloads A to F are those of the Yahoo! Cloud Serving Benchmark (Cooper et al., 2010), with documents of 1 KB that are written whole.

use std::sync::Arc;

use super::document::IN_PARTITION;

/// The exponent of the Zipf distribution in YCSB.
const EXPONENT: f64 = 0.99;
/// The longest scan in YCSB.
const LONGEST_SCAN: u64 = 100;
/// Readings of a range of times.
const READINGS: u64 = 10;
/// Keys between the first inserts of two workers: more than a worker can insert.
const INSERTS_OF_WORKER: u64 = 1_000_000;
/// How long items with a TTL live: longer than a run, so that all sides do the same work.
const SESSION_SECONDS: i32 = 3_600;

/// A named workload.
#[derive(Debug)]
pub struct Workload {
    pub name: &'static str,
    pub description: &'static str,
    /// Operations and their percentages.
    pub mix: &'static [(Kind, u32)],
    pub choice: Choice,
    /// The TTL of every item, in seconds.
    pub ttl: Option<i32>,
    /// Operations per second when latencies are measured.
    pub rate: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    Update,
    Upsert,
    Insert,
    Scan,
    Range,
    ReadModifyWrite,
}

/// Which items are read and updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// A few of them most of the time, spread over the keys.
    Zipfian,
    /// Those that this worker inserted last most of the time.
    Latest,
    /// All alike.
    Uniform,
}

/// One operation on given items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Read {
        key: u64,
    },
    /// Replaces an item as a whole.
    Update {
        key: u64,
        version: u64,
    },
    /// The same, and creates the item if there is none.
    Upsert {
        key: u64,
        version: u64,
    },
    Insert {
        key: u64,
    },
    ReadModifyWrite {
        key: u64,
        version: u64,
    },
    /// `items` items in the order of their ids, from `from` on, which are all in its partition.
    Scan {
        from: u64,
        items: u64,
    },
    /// The items of the partition of `from` with times from that of `from` on, for `items` seconds.
    Range {
        from: u64,
        items: u64,
    },
}

impl Operation {
    /// How many documents it returns if all sides do the same.
    pub fn documents(&self) -> u64 {
        match self {
            Operation::Read { .. } | Operation::ReadModifyWrite { .. } => 1,
            Operation::Update { .. } | Operation::Upsert { .. } | Operation::Insert { .. } => 0,
            Operation::Scan { items, .. } | Operation::Range { items, .. } => *items,
        }
    }
}

/// All workloads, in the order of the report.
pub const WORKLOADS: [Workload; 8] = [
    Workload {
        name: "ycsb-a",
        description: "half reads, half updates, zipfian",
        mix: &[(Kind::Read, 50), (Kind::Update, 50)],
        choice: Choice::Zipfian,
        ttl: None,
        rate: 500,
    },
    Workload {
        name: "ycsb-b",
        description: "95 % reads, 5 % updates, zipfian",
        mix: &[(Kind::Read, 95), (Kind::Update, 5)],
        choice: Choice::Zipfian,
        ttl: None,
        rate: 500,
    },
    Workload {
        name: "ycsb-c",
        description: "reads only, zipfian",
        mix: &[(Kind::Read, 100)],
        choice: Choice::Zipfian,
        ttl: None,
        rate: 500,
    },
    Workload {
        name: "ycsb-d",
        description: "95 % reads of the latest items, 5 % inserts",
        mix: &[(Kind::Read, 95), (Kind::Insert, 5)],
        choice: Choice::Latest,
        ttl: None,
        rate: 500,
    },
    Workload {
        name: "ycsb-e",
        description: "95 % scans of at most 100 items in a partition, 5 % inserts, zipfian",
        mix: &[(Kind::Scan, 95), (Kind::Insert, 5)],
        choice: Choice::Zipfian,
        ttl: None,
        rate: 100,
    },
    Workload {
        name: "ycsb-f",
        description: "half reads, half reads followed by a write of the same item, zipfian",
        mix: &[(Kind::Read, 50), (Kind::ReadModifyWrite, 50)],
        choice: Choice::Zipfian,
        ttl: None,
        rate: 500,
    },
    Workload {
        name: "sessions",
        description: "a session store: 70 % reads, 30 % writes that renew the TTL of an hour, zipfian",
        mix: &[(Kind::Read, 70), (Kind::Upsert, 30)],
        choice: Choice::Zipfian,
        ttl: Some(SESSION_SECONDS),
        rate: 500,
    },
    Workload {
        name: "telemetry",
        description: "80 % inserts of readings with a TTL of an hour, 20 % ranges of ten readings by their time",
        mix: &[(Kind::Insert, 80), (Kind::Range, 20)],
        choice: Choice::Uniform,
        ttl: Some(SESSION_SECONDS),
        rate: 500,
    },
];

impl Workload {
    /// Whether it reads items in an order, for which some systems need an index that they maintain with writes.
    pub fn reads_ranges(&self) -> bool {
        let is_range = |(kind, _): &(Kind, u32)| matches!(kind, Kind::Scan | Kind::Range);
        self.mix.iter().any(is_range)
    }
}

/// Ranks from 0, the n-th with a probability in proportion to 1 / n^0.99.
pub struct Popularity {
    /// The sums of the weights up to each rank.
    sums: Vec<f64>,
}

impl Popularity {
    /// Over this many ranks, at least one.
    pub fn of(ranks: u64) -> Popularity {
        let mut sum = 0.0;
        let weights = (1..=ranks.max(1)).map(|rank| (rank as f64).powf(-EXPONENT));
        let sums = weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        Popularity { sums }
    }

    /// The rank at a point between 0 and 1, exclusive.
    pub fn rank(&self, point: f64) -> u64 {
        let total = self.sums.last().copied().unwrap_or_default();
        let rank = self.sums.partition_point(|sum| *sum <= point * total);
        rank.min(self.sums.len() - 1) as u64
    }
}

/// Chooses the operations of one worker. It does one at a time, so all that it inserted is stored when the next one is chosen.
pub struct Planner {
    workload: &'static Workload,
    popularity: Arc<Popularity>,
    /// Items that were loaded: keys below this.
    loaded: u64,
    first_insert: u64,
    inserted: u64,
    version: u64,
    random: fastrand::Rng,
}

impl Planner {
    /// `number`: of the worker, counted over all measurements on the same store, so that none inserts what another one did.
    pub fn new(workload: &'static Workload, popularity: Arc<Popularity>, loaded: u64, number: u64) -> Planner {
        // A partition of its own, too, so that inserts change no range that is read.
        let first_free = loaded.next_multiple_of(IN_PARTITION);
        Planner {
            workload,
            popularity,
            loaded,
            first_insert: first_free + number * INSERTS_OF_WORKER,
            inserted: 0,
            version: 0,
            random: fastrand::Rng::with_seed(number),
        }
    }

    /// The next operation.
    pub fn next(&mut self) -> Operation {
        self.version += 1;
        let version = self.version;
        match self.kind() {
            Kind::Read => Operation::Read { key: self.key() },
            Kind::Update => Operation::Update {
                key: self.key(),
                version,
            },
            Kind::Upsert => Operation::Upsert {
                key: self.key(),
                version,
            },
            Kind::ReadModifyWrite => Operation::ReadModifyWrite {
                key: self.key(),
                version,
            },
            Kind::Insert => {
                self.inserted += 1;
                Operation::Insert {
                    key: self.first_insert + self.inserted - 1,
                }
            }
            Kind::Scan => {
                let from = self.key();
                let items = self.random.u64(1..=LONGEST_SCAN).min(self.left_in_partition(from));
                Operation::Scan { from, items }
            }
            Kind::Range => {
                let from = self.key();
                let items = READINGS.min(self.left_in_partition(from));
                Operation::Range { from, items }
            }
        }
    }

    fn kind(&mut self) -> Kind {
        let mut point = self.random.u32(0..100);
        for (kind, percent) in self.workload.mix {
            if point < *percent {
                return *kind;
            }
            point -= percent;
        }
        Kind::Read
    }

    /// The key of an item that is stored.
    fn key(&mut self) -> u64 {
        let rank = self.popularity.rank(self.random.f64());
        match self.workload.choice {
            Choice::Uniform => self.random.u64(0..self.loaded),
            // Popular items are spread over the keys, as in YCSB.
            Choice::Zipfian => fastrand::Rng::with_seed(rank).u64(0..self.loaded),
            Choice::Latest => match rank.checked_sub(self.inserted) {
                None => self.first_insert + self.inserted - 1 - rank,
                Some(older) => self.loaded - 1 - older.min(self.loaded - 1),
            },
        }
    }

    /// Loaded items from this one to the end of its partition.
    fn left_in_partition(&self, key: u64) -> u64 {
        (IN_PARTITION - key % IN_PARTITION).min(self.loaded - key)
    }
}

#[cfg(test)]
mod tests;
