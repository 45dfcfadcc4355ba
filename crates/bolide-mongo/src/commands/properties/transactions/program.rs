//! The commands of several sessions, and the orders in which they can run.

use super::super::RandomChoices;

/// The collections. `dated` has a TTL index on `at` and a unique one, `aged` that on `_ts` and one on `at`, `plain` none.
pub const COLLECTIONS: [&str; 3] = ["dated", "aged", "plain"];
/// Documents have the ids 1 to this.
pub const IDS: i32 = 4;

/// A document of the programs.
#[derive(Debug, Clone, PartialEq)]
pub struct Doc {
    pub id: i32,
    pub n: i32,
    /// Milliseconds after the start of the program.
    pub at: Option<i64>,
    pub ttl: Option<i32>,
    /// The unique key.
    pub u: Option<i32>,
}

/// One command on a collection.
#[derive(Debug, Clone)]
pub enum Op {
    /// All documents, with this number in a batch.
    FindAll(i32),
    FindOne(i32),
    Count,
    Insert(Doc),
    /// `$inc` of a document's `n`.
    Increment(i32),
    /// `$set` of a document's `at`.
    SetDate(i32, i64),
    /// An update that matches and changes nothing.
    Touch(i32),
    Replace(Doc, Upsert),
    Delete(i32),
    /// `$inc` of all whose `n` is at least this.
    IncrementMany(i32),
    /// Deletes all whose `n` is below this.
    DeleteMany(i32),
    /// `$inc` of a document's `n`; returns the new document.
    FindAndIncrement(i32),
}

/// Whether a replacement of a missing document inserts it.
pub type Upsert = bool;

/// One step of a session.
#[derive(Debug, Clone)]
pub enum Step {
    /// A command of the session's transaction, which it begins if there is none.
    InTransaction(usize, Op),
    /// A command outside of transactions.
    Outside(usize, Op),
    Commit,
    Abort,
    /// Lets milliseconds pass.
    Wait(i64),
}

/// What each session does.
#[derive(Debug, Clone)]
pub struct Program {
    /// The documents at the start, by collection.
    pub stored: Vec<(usize, Doc)>,
    pub sessions: Vec<Vec<Step>>,
}

impl Program {
    /// Returns the program of a seed: each session runs about this many commands, and commits.
    pub fn of_seed(seed: u64, sessions: usize, commands: usize) -> Program {
        let mut choices = RandomChoices::new(seed);
        let mut stored = Vec::new();
        for collection in 0..COLLECTIONS.len() {
            for id in 1..=IDS {
                if choices.percent(60) {
                    // Distinct unique keys.
                    let u = choices.percent(50).then_some(id);
                    stored.push((
                        collection,
                        Doc {
                            u,
                            ..doc(&mut choices, id)
                        },
                    ));
                }
            }
        }
        let sessions = (0..sessions).map(|_| script(&mut choices, commands)).collect();
        Program { stored, sessions }
    }

    /// Number of steps of each session.
    pub fn lengths(&self) -> Vec<usize> {
        self.sessions.iter().map(Vec::len).collect()
    }

    /// Returns an order of the sessions' steps.
    pub fn random_order(&self, choices: &mut RandomChoices) -> Vec<usize> {
        let mut left = self.lengths();
        let mut order = Vec::new();
        while left.iter().any(|left| *left > 0) {
            let session = choices.pick(&(0..left.len()).filter(|at| left[*at] > 0).collect::<Vec<_>>());
            left[session] -= 1;
            order.push(session);
        }
        order
    }
}

fn script(choices: &mut RandomChoices, commands: usize) -> Vec<Step> {
    // Few commands are to meet in few documents.
    let is_short = commands < 5;
    let (ids, collections) = if is_short { (2, 2) } else { (4, 3) };
    let mut steps = Vec::new();
    for _ in 0..commands {
        let collection = usize::try_from(choices.roll(collections)).expect("small");
        steps.push(match choices.roll(100) {
            0..70 => Step::InTransaction(collection, op(choices, ids)),
            70..80 => Step::Outside(collection, op(choices, ids)),
            80..90 => Step::Wait(choices.pick(&[1, 500, 1_000, 2_500])),
            90..97 if !is_short => Step::Commit,
            97..100 if !is_short => Step::Abort,
            _ => Step::InTransaction(collection, op(choices, ids)),
        });
    }
    steps.push(Step::Commit);
    steps
}

fn op(choices: &mut RandomChoices, ids: u64) -> Op {
    let id = 1 + i32::try_from(choices.roll(ids)).expect("small");
    match choices.roll(20) {
        0 | 1 => Op::FindAll(choices.pick(&[1, 2, 101])),
        2 => Op::FindOne(id),
        3 => Op::Count,
        4..7 => Op::Insert(doc(choices, id)),
        7..10 => Op::Increment(id),
        10 | 11 => Op::SetDate(id, date(choices)),
        12 => Op::Touch(id),
        13 | 14 => Op::Replace(doc(choices, id), choices.percent(50)),
        15 | 16 => Op::Delete(id),
        17 => Op::IncrementMany(choices.pick(&[0, 1, 2])),
        18 => Op::DeleteMany(choices.pick(&[1, 2])),
        _ => Op::FindAndIncrement(id),
    }
}

fn date(choices: &mut RandomChoices) -> i64 {
    choices.pick(&[-3_000, -2_000, 0, 250, 1_000, 2_500, 5_000])
}

fn doc(choices: &mut RandomChoices, id: i32) -> Doc {
    Doc {
        id,
        n: choices.pick(&[0, 1, 2, 3]),
        at: choices.percent(40).then(|| date(choices)),
        ttl: choices.percent(30).then(|| choices.pick(&[-1, 1, 2, 6])),
        u: choices.percent(70).then(|| choices.pick(&[1, 2, 3])),
    }
}

/// Returns all orders of the steps of sessions with these numbers of steps.
pub fn orders(lengths: &[usize]) -> Vec<Vec<usize>> {
    if lengths.iter().all(|length| *length == 0) {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for session in 0..lengths.len() {
        let mut rest = lengths.to_vec();
        if rest[session] > 0 {
            rest[session] -= 1;
            all.extend(orders(&rest).into_iter().map(|order| [vec![session], order].concat()));
        }
    }
    all
}
