//! Random programs: the operations on a container, and how programs are made from a seed.

use std::collections::BTreeMap;

use crate::model::{Budget, Change, Doc, Ttl};

/// A container, and the operations on it.
#[derive(Debug, Clone)]
pub struct Program {
    pub setup: Setup,
    pub ops: Vec<Op>,
}

/// The container of a program at its creation.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    pub default_ttl: Option<i64>,
    pub has_unique_key: bool,
    pub has_several_ranges: bool,
    /// Whether the container keeps the history of the all-versions feed.
    pub keeps_history: bool,
}

/// One step of a program.
#[derive(Debug, Clone)]
pub enum Op {
    Create(Doc),
    Upsert(Doc, Match),
    /// Replaces the item with this id by the document, whose id may be another.
    Replace(&'static str, Doc, Match),
    Patch(&'static str, &'static str, Vec<Change>, Match),
    Delete(&'static str, &'static str, Match),
    /// Creates, upserts, replaces, patches and deletes of one key.
    Batch(&'static str, Vec<Op>),
    /// A stored procedure that makes such writes in a key, and then lists the items that it sees.
    Script(&'static str, Vec<Op>, Ending),
    /// Deletes all items of a key.
    DropKey(&'static str),
    Read(&'static str, &'static str, Match),
    /// Begins a read feed, and keeps its position in a slot.
    List(usize, Where, usize),
    /// Reads the next page of the read feed in a slot.
    ListOn(usize, usize),
    Changes(usize, Where, Since, usize),
    ChangesOn(usize, usize),
    /// Begins an all-versions feed now.
    Versions(usize, Where, usize),
    VersionsOn(usize, usize),
    /// Returns the ids of items whose `n` is at least this, in pages of a size.
    Select(Where, i64, usize),
    Count(&'static str),
    /// Returns this many of the highest `n`.
    Top(&'static str, usize),
    Usage,
    Report,
    Preview(Option<i64>),
    Why(&'static str, &'static str),
    Verify,
    PurgeAll,
    PurgeSome(u64),
    PurgePaced(Option<u64>),
    Consume(f64),
    /// Sets a budget, the cost of purging an item, and whether only `Consume` counts as use.
    Pace(Budget, Option<f64>, bool),
    SetDefault(Option<i64>),
    /// Moves the clock by milliseconds.
    Clock(i64),
    /// Splits the n-th range, modulo their number.
    Split(usize),
    /// Closes and opens the account.
    Restart,
    /// Opens the account without closing it before.
    Crash,
    /// A purge that is cut off after this many commits, then a crash.
    CrashInPurge(i64),
}

/// How a stored procedure ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ending {
    /// It completes with the writes that succeeded, and handles the errors of the others.
    Tolerant,
    /// It ends at the first error, which it does not handle.
    Strict,
    /// It throws an error of its own, after all writes.
    Throws,
}

/// The version that a write's condition names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Match {
    None,
    Any,
    /// The newest version of this name so far, live or not.
    Newest,
    Oldest,
    Foreign,
}

/// The part of the container that a feed reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Where {
    All,
    Key(&'static str),
    /// The n-th range so far, modulo their number; it may have been split.
    Range(usize),
}

/// Where a change feed begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Since {
    Beginning,
    Now,
    /// This many seconds before now.
    Ago(i64),
}

/// The kinds of steps that a program may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Theme {
    Everything,
    /// Without steps that depend on how much the purge was allowed to spend.
    WithoutPacing,
}

pub const KEYS: [&str; 4] = ["ant", "bee", "cat", "dog"];
pub const IDS: [&str; 6] = ["i0", "i1", "i2", "i3", "i4", "i5"];
/// Number of slots in which feeds keep their positions.
pub const SLOTS: usize = 3;

/// Random choices that can be repeated.
pub struct RandomChoices(fastrand::Rng);

impl RandomChoices {
    pub fn new(seed: u64) -> RandomChoices {
        RandomChoices(fastrand::Rng::with_seed(seed))
    }

    /// Returns a number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0.u64(..sides)
    }

    pub fn percent(&mut self, chance: u64) -> bool {
        self.roll(100) < chance
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len() as u64) as usize]
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.roll((high - low + 1) as u64) as i64
    }
}

/// Maximum number of deletions of one partition key in a program: the container refuses more before the purge has removed any items, and some runs
/// never purge.
const MAX_DELETIONS: u32 = 4;

impl Program {
    /// Returns the program of a seed.
    pub fn of_seed(seed: u64, length: usize, theme: Theme) -> Program {
        let mut choices = RandomChoices::new(seed);
        let setup = Setup {
            default_ttl: default_ttl(&mut choices),
            has_unique_key: choices.percent(40),
            has_several_ranges: choices.percent(40),
            keeps_history: choices.percent(60),
        };
        // With few names, the operations often meet the same items.
        let names = Names {
            keys: &KEYS[..choices.between(1, 4) as usize],
            ids: &IDS[..choices.between(2, 6) as usize],
        };
        let mut ops: Vec<Op> = (0..length).map(|_| op(&mut choices, names, theme)).collect();
        let mut deletions = BTreeMap::new();
        ops.retain(|op| match op {
            Op::DropKey(pk) => {
                let count = deletions.entry(*pk).or_insert(0);
                *count += 1;
                *count <= MAX_DELETIONS
            }
            _ => true,
        });
        Program { setup, ops }
    }
}

#[derive(Clone, Copy)]
struct Names {
    keys: &'static [&'static str],
    ids: &'static [&'static str],
}

fn op(choices: &mut RandomChoices, names: Names, theme: Theme) -> Op {
    let (pk, id) = (choices.pick(names.keys), choices.pick(names.ids));
    match choices.roll(100) {
        _ if choices.percent(5) => {
            let count = choices.between(1, 4);
            Op::Batch(pk, (0..count).map(|_| write(choices, names, pk)).collect())
        }
        _ if choices.percent(4) => {
            let count = choices.between(1, 4);
            let ending = choices.pick(&[Ending::Tolerant, Ending::Tolerant, Ending::Strict, Ending::Throws]);
            Op::Script(pk, (0..count).map(|_| write(choices, names, pk)).collect(), ending)
        }
        _ if choices.percent(2) => Op::DropKey(pk),
        _ if choices.percent(3) => Op::Versions(slot(choices), part(choices, pk), page_size(choices)),
        _ if choices.percent(7) => Op::VersionsOn(slot(choices), page_size(choices)),
        0..12 => Op::Create(doc(choices, pk, id)),
        12..22 => Op::Upsert(doc(choices, pk, id), rare_match(choices)),
        22..29 => {
            let new_id = if choices.percent(30) {
                choices.pick(names.ids)
            } else {
                id
            };
            Op::Replace(id, doc(choices, pk, new_id), rare_match(choices))
        }
        29..36 => Op::Patch(pk, id, changes(choices), rare_match(choices)),
        36..40 => Op::Delete(pk, id, rare_match(choices)),
        40..43 => Op::Read(pk, id, rare_match(choices)),
        43 => Op::Count(pk),
        44 => Op::Top(pk, page_size(choices)),
        45 => Op::Select(part(choices, pk), choices.between(0, 9), page_size(choices)),
        46..49 => Op::List(slot(choices), part(choices, pk), page_size(choices)),
        49..52 => Op::ListOn(slot(choices), page_size(choices)),
        52..55 => Op::Changes(slot(choices), part(choices, pk), since(choices), page_size(choices)),
        55..58 => Op::ChangesOn(slot(choices), page_size(choices)),
        58..60 => Op::Usage,
        60..62 => Op::Report,
        62..63 => Op::Preview(default_ttl(choices)),
        63..65 => Op::Why(pk, id),
        65..66 => Op::Verify,
        66..68 => Op::PurgeAll,
        68..71 => Op::PurgeSome(choices.roll(4)),
        71..75 => Op::PurgePaced(choices.percent(30).then(|| choices.roll(4))),
        75..77 if theme == Theme::Everything => Op::Consume(choices.pick(&[1.0, 40.0, 395.0, 400.0, 6_000.0])),
        77..79 if theme == Theme::Everything => pace(choices),
        79..86 => Op::SetDefault(default_ttl(choices)),
        86..96 => Op::Clock(step(choices)),
        96..97 => Op::Split(choices.roll(8) as usize),
        97..98 => Op::Restart,
        98..99 => Op::Crash,
        99..100 => Op::CrashInPurge(choices.between(0, 2)),
        _ => Op::Clock(step(choices)),
    }
}

/// Returns a write inside a batch.
fn write(choices: &mut RandomChoices, names: Names, pk: &'static str) -> Op {
    let id = choices.pick(names.ids);
    match choices.roll(8) {
        0..3 => Op::Create(doc(choices, pk, id)),
        3..5 => Op::Upsert(doc(choices, pk, id), rare_match(choices)),
        5 => Op::Replace(id, doc(choices, pk, id), rare_match(choices)),
        6 => Op::Patch(pk, id, changes(choices), rare_match(choices)),
        _ => Op::Delete(pk, id, rare_match(choices)),
    }
}

fn doc(choices: &mut RandomChoices, pk: &'static str, id: &'static str) -> Doc {
    Doc {
        pk,
        id,
        ttl: ttl(choices),
        n: choices.between(0, 9),
        u: choices.percent(90).then(|| choices.between(0, 5)),
        pad: choices.roll(30) as usize,
    }
}

fn ttl(choices: &mut RandomChoices) -> Ttl {
    match choices.roll(20) {
        0..8 => Ttl::Absent,
        8..14 => Ttl::Whole(choices.between(1, 12)),
        14 => Ttl::Whole(-1),
        15 => Ttl::Whole(2_147_483_647),
        16 => Ttl::WholeSpelledLong(choices.between(1, 12)),
        17 => Ttl::Whole(choices.pick(&[0, -2, 2_147_483_648])),
        18 => choices.pick(&[Ttl::Fraction, Ttl::Text]),
        _ => Ttl::Null,
    }
}

fn changes(choices: &mut RandomChoices) -> Vec<Change> {
    let count = choices.between(1, 2);
    let change = |_| match choices.roll(6) {
        0 => Change::SetTtl(match ttl(choices) {
            Ttl::Absent => Ttl::Whole(5),
            ttl => ttl,
        }),
        1 => Change::RemoveTtl,
        2 => Change::SetU(choices.between(0, 5)),
        3 => Change::IncrementN(choices.between(-3, 3)),
        _ => Change::SetN(choices.between(0, 9)),
    };
    (0..count).map(change).collect()
}

fn default_ttl(choices: &mut RandomChoices) -> Option<i64> {
    match choices.roll(10) {
        0..3 => None,
        3..5 => Some(-1),
        5..9 => Some(choices.between(1, 12)),
        _ => Some(2_147_483_647),
    }
}

/// Returns a clock step in milliseconds: mostly seconds, so that many items expire; sometimes backwards, a fraction, or hours.
fn step(choices: &mut RandomChoices) -> i64 {
    match choices.roll(20) {
        0..3 => choices.between(1, 999),
        3..12 => 1000 * choices.between(1, 3),
        12..16 => choices.between(1_000, 12_000),
        16..18 => -choices.between(1, 5_000),
        18 => 1000 * choices.between(60, 4_000),
        _ => 1000 * choices.between(5, 15) + 500,
    }
}

fn rare_match(choices: &mut RandomChoices) -> Match {
    match choices.roll(10) {
        0 => Match::Any,
        1..3 => Match::Newest,
        3 => Match::Oldest,
        4 => Match::Foreign,
        _ => Match::None,
    }
}

fn pace(choices: &mut RandomChoices) -> Op {
    let budget = match choices.roll(4) {
        0 => Budget::Unlimited,
        1 => Budget::Provisioned(400.0),
        2 => Budget::Autoscale(1_000.0),
        _ => Budget::Serverless,
    };
    let price = choices.percent(50).then(|| choices.pick(&[10.0, 150.0, 1_000.0]));
    Op::Pace(budget, price, choices.percent(50))
}

fn part(choices: &mut RandomChoices, pk: &'static str) -> Where {
    match choices.roll(4) {
        0..2 => Where::All,
        2 => Where::Key(pk),
        _ => Where::Range(choices.roll(8) as usize),
    }
}

fn since(choices: &mut RandomChoices) -> Since {
    match choices.roll(4) {
        0..2 => Since::Beginning,
        2 => Since::Now,
        _ => Since::Ago(choices.between(-1, 8)),
    }
}

fn slot(choices: &mut RandomChoices) -> usize {
    choices.roll(SLOTS as u64) as usize
}

fn page_size(choices: &mut RandomChoices) -> usize {
    choices.between(1, 5) as usize
}
