//! Snapshot isolation: checks that a history of transactions has an order of their snapshots and commits that explains all they have read.
//!
//! Transactions append their numbers to registers, which are lists. So a read of a register shows which transactions it comes after, and in which order
//! they have written. Each transaction has a start, when its snapshot was taken, and a commit, if it has one. There must be one order of all of them:
//!
//! ```text
//!   start of t     before  commit of t
//!   commit of t    before  start of u     u has read or followed what t has written
//!   start of u     before  commit of t    u has not read what t has written next
//!   commit of t    before  start of u     t and u have written one register, t first: the first committer wins
//!   one            before  another        its answer came before the other was requested
//! ```
//!
//! These constraints are all: if they have no cycle, an order that fits them is one of snapshot isolation, because the writes of a register are known in
//! their order. Snapshots include all that was acknowledged before (TTL-290 needs the time of the start; mongo.md §7).

use std::collections::{BTreeMap, BTreeSet};

/// How a transaction has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Committed,
    Aborted,
    /// No answer to the commit came: all of it was written, or nothing.
    Unknown,
}

/// A read of a register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    pub register: usize,
    /// The lists that were found in the collections: none or one.
    pub found: Vec<Vec<u64>>,
    /// How often the transaction had appended to the register before.
    pub own: usize,
}

/// A transaction, or a single write, as its client knows it. Moments are from a counter that all clients share.
#[derive(Debug, Clone)]
pub struct Transaction {
    pub number: u64,
    /// The moments between which its snapshot was taken.
    pub snapshot: (u64, u64),
    /// The moments between which it was committed.
    pub commit: (u64, u64),
    pub reads: Vec<Read>,
    /// The registers to which it has appended its number, in their order.
    pub appended: Vec<usize>,
    /// The slots of all documents of a collection, each time that it has read them.
    pub slots_met: Vec<Vec<i64>>,
    pub end: End,
}

impl Read {
    /// Returns the list in the snapshot.
    fn base(&self, number: u64) -> Result<&[u64], String> {
        let list = match &self.found[..] {
            [] => &[][..],
            [list] => &list[..],
            _ => return Err(format!("{number} finds register {} twice", self.register)),
        };
        let (base, own) = list.split_at(list.len().saturating_sub(self.own));
        match own.len() == self.own && own.iter().all(|own| *own == number) && !base.contains(&number) {
            true => Ok(base),
            false => Err(format!("{number} does not see its own writes: {self:?}")),
        }
    }
}

impl Transaction {
    /// Returns the kind of its end, for counting.
    pub fn name(&self) -> &'static str {
        match self.end {
            _ if self.appended.is_empty() => "transaction without writes",
            End::Committed => "transaction committed",
            End::Aborted => "transaction aborted",
            End::Unknown => "transaction unknown",
        }
    }

    fn appends_to(&self, register: usize) -> usize {
        self.appended.iter().filter(|appended| **appended == register).count()
    }
}

/// The numbers of the transactions that have written each register, in their order.
type Orders = BTreeMap<usize, Vec<u64>>;

/// What a transaction had in its snapshot, by register.
type Bases<'h> = BTreeMap<usize, &'h [u64]>;

/// Checks a history, to which a transaction belongs that has read all registers after all others.
///
/// # Errors
/// Why it is not one of snapshot isolation.
pub fn check(history: &[Transaction]) -> Result<(), String> {
    let mut bases = Vec::with_capacity(history.len());
    for transaction in history {
        check_slots(transaction)?;
        bases.push(bases_of(transaction)?);
    }
    let lists = longest(&bases)?;
    let known: BTreeMap<u64, &Transaction> = history.iter().map(|known| (known.number, known)).collect();
    let mut orders = Orders::new();
    for (register, list) in &lists {
        orders.insert(*register, writers(*register, list, &known)?);
    }
    for (transaction, bases) in history.iter().zip(&bases) {
        check_whole(transaction, &orders)?;
        for (register, base) in bases {
            let is_cut = base
                .last()
                .is_some_and(|last| lists[register].get(base.len()) == Some(last));
            if is_cut {
                return Err(format!("{} has read a part of {:?}", transaction.number, base.last()));
            }
        }
    }
    Order::of(history, &bases, &orders).check()
}

/// Checks that no two documents of a collection have had one slot.
fn check_slots(transaction: &Transaction) -> Result<(), String> {
    let is_taken_twice = |slots: &Vec<i64>| slots.iter().collect::<BTreeSet<_>>().len() < slots.len();
    match transaction.slots_met.iter().find(|slots| is_taken_twice(slots)) {
        Some(slots) => Err(format!("{} finds a slot twice: {slots:?}", transaction.number)),
        None => Ok(()),
    }
}

fn bases_of(transaction: &Transaction) -> Result<Bases<'_>, String> {
    let mut bases = Bases::new();
    for read in &transaction.reads {
        let base = read.base(transaction.number)?;
        if *bases.entry(read.register).or_insert(base) != base {
            return Err(format!("two reads of one transaction differ: {transaction:?}"));
        }
    }
    Ok(bases)
}

/// Returns the longest list of each register, which all other reads must begin.
fn longest<'h>(bases: &[Bases<'h>]) -> Result<Bases<'h>, String> {
    let mut longest = Bases::new();
    for (register, base) in bases.iter().flatten() {
        let known = longest.entry(*register).or_insert(base);
        let (short, long) = if base.len() > known.len() {
            (*known, *base)
        } else {
            (*base, *known)
        };
        if !long.starts_with(short) {
            return Err(format!(
                "register {register} was {short:?} and {long:?}: a write is lost"
            ));
        }
        *known = long;
    }
    Ok(longest)
}

/// Returns who has written a register: each must have, and with all of its writes.
fn writers(register: usize, list: &[u64], known: &BTreeMap<u64, &Transaction>) -> Result<Vec<u64>, String> {
    let mut writers = Vec::new();
    for run in list.chunk_by(|one, next| one == next) {
        let writer = known
            .get(&run[0])
            .ok_or_else(|| format!("nobody has written {}", run[0]))?;
        if writer.end == End::Aborted {
            return Err(format!("register {register} shows what was aborted: {writer:?}"));
        }
        if run.len() != writer.appends_to(register) || writers.contains(&run[0]) {
            return Err(format!("register {register} is {list:?} after {writer:?}"));
        }
        writers.push(run[0]);
    }
    Ok(writers)
}

/// Checks that a transaction has written all, or nothing if this is possible.
fn check_whole(transaction: &Transaction, orders: &Orders) -> Result<(), String> {
    let is_written = |register: &usize| {
        orders
            .get(register)
            .is_some_and(|order| order.contains(&transaction.number))
    };
    let written = transaction
        .appended
        .iter()
        .filter(|register| is_written(register))
        .count();
    match transaction.end {
        End::Committed if written < transaction.appended.len() => Err(format!("lost: {transaction:?}")),
        End::Unknown if written > 0 && written < transaction.appended.len() => Err(format!("torn: {transaction:?}")),
        _ => Ok(()),
    }
}

/// The constraints on the order of starts and commits. The start of the transaction at `at` is the point `2 * at`, its commit the one after.
struct Order<'h> {
    history: &'h [Transaction],
    /// What comes before each point.
    before: Vec<Vec<usize>>,
}

impl<'h> Order<'h> {
    fn of(history: &'h [Transaction], bases: &[Bases<'h>], orders: &Orders) -> Order<'h> {
        let at: BTreeMap<u64, usize> = history
            .iter()
            .enumerate()
            .map(|(at, known)| (known.number, at))
            .collect();
        let start = |number: &u64| 2 * at[number];
        let commit = |number: &u64| 2 * at[number] + 1;
        let mut before = vec![Vec::new(); 2 * history.len()];
        for order in orders.values() {
            for pair in order.windows(2) {
                before[start(&pair[1])].push(commit(&pair[0]));
            }
        }
        for (transaction, bases) in history.iter().zip(bases) {
            let own = start(&transaction.number);
            before[own + 1].push(own);
            for (register, base) in bases {
                let order = &orders[register];
                before[own].extend(base.last().map(commit));
                let next = base
                    .last()
                    .map_or(0, |last| 1 + order.iter().take_while(|number| *number != last).count());
                if let Some(next) = order.get(next).filter(|next| **next != transaction.number) {
                    before[commit(next)].push(own);
                }
            }
        }
        let mut order = Order { history, before };
        order.add_answers(orders);
        order
    }

    /// Adds what was answered before others were requested. What is not committed has no commit.
    fn add_answers(&mut self, orders: &Orders) {
        let mut points = Vec::new();
        for (at, transaction) in self.history.iter().enumerate() {
            points.push((2 * at, transaction.snapshot));
            let is_written = orders.values().any(|order| order.contains(&transaction.number));
            if is_written || transaction.end == End::Committed {
                points.push((2 * at + 1, transaction.commit));
            }
        }
        for (later, (requested, _)) in &points {
            let earlier = points.iter().filter(|(_, (_, answered))| answered < requested);
            self.before[*later].extend(earlier.map(|(earlier, _)| *earlier));
        }
    }

    fn check(mut self) -> Result<(), String> {
        let mut left: Vec<usize> = (0..self.before.len()).collect();
        loop {
            let (free, bound): (Vec<usize>, Vec<usize>) =
                left.iter().partition(|point| self.before[**point].is_empty());
            if free.is_empty() {
                break;
            }
            let mut is_free = vec![false; self.before.len()];
            free.iter().for_each(|point| is_free[*point] = true);
            bound
                .iter()
                .for_each(|point| self.before[*point].retain(|earlier| !is_free[*earlier]));
            left = bound;
        }
        match left.first() {
            None => Ok(()),
            Some(first) => Err(self.describe_cycle(*first)),
        }
    }

    /// Describes a cycle; each point that is left comes after another.
    fn describe_cycle(&self, mut point: usize) -> String {
        let mut path = Vec::new();
        while !path.contains(&point) {
            path.push(point);
            point = self.before[point][0];
        }
        path.retain({
            let mut is_in_cycle = false;
            move |passed| {
                is_in_cycle |= *passed == point;
                is_in_cycle
            }
        });
        path.reverse();
        let name = |point: &usize| {
            let what = if point.is_multiple_of(2) { "start" } else { "commit" };
            format!("{what} of {:?}", self.history[point / 2])
        };
        let names: Vec<String> = path.iter().map(name).collect();
        format!(
            "no order of snapshots and commits, each must come before the next:\n  {}",
            names.join("\n  ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transaction between two moments that has read lists and appended to registers.
    fn made(number: u64, moments: (u64, u64), reads: &[(usize, &[u64])], appended: &[usize]) -> Transaction {
        let reads = reads.iter().map(|(register, list)| Read {
            register: *register,
            found: vec![list.to_vec()],
            own: 0,
        });
        Transaction {
            number,
            snapshot: moments,
            commit: moments,
            reads: reads.collect(),
            appended: appended.to_vec(),
            slots_met: Vec::new(),
            end: End::Committed,
        }
    }

    fn refused(history: &[Transaction]) -> String {
        check(history).expect_err("not snapshot isolation")
    }

    #[test]
    fn write_skew_is_allowed() {
        let history = [
            made(1, (0, 9), &[(0, &[]), (1, &[])], &[0]),
            made(2, (1, 8), &[(0, &[]), (1, &[])], &[1]),
            made(3, (20, 30), &[(0, &[1]), (1, &[2])], &[]),
        ];
        check(&history).expect("snapshot isolation");
    }

    #[test]
    fn a_lost_update_is_none() {
        let lost = [
            made(1, (0, 9), &[(0, &[])], &[0]),
            made(2, (1, 8), &[(0, &[])], &[0]),
            made(3, (20, 30), &[(0, &[2])], &[]),
        ];
        assert!(refused(&lost).contains("lost"));
        let concurrent = [
            made(1, (0, 9), &[(0, &[])], &[0]),
            made(2, (1, 8), &[(0, &[])], &[0]),
            made(3, (20, 30), &[(0, &[1, 2])], &[]),
        ];
        assert!(refused(&concurrent).contains("no order"));
    }

    #[test]
    fn a_slot_of_two_documents_is_none() {
        let with = |slots: &[i64]| {
            let slots_met = vec![vec![3], slots.to_vec()];
            [Transaction {
                slots_met,
                ..made(1, (0, 9), &[], &[])
            }]
        };
        check(&with(&[1, 3])).expect("snapshot isolation");
        assert!(refused(&with(&[1, 3, 1])).contains("twice"));
    }

    #[test]
    fn a_read_skew_is_none() {
        let history = |later: &[u64]| {
            [
                made(1, (0, 9), &[(0, &[]), (1, &[])], &[0, 1]),
                made(2, (1, 8), &[(0, &[1]), (1, later)], &[]),
                made(3, (20, 30), &[(0, &[1]), (1, &[1])], &[]),
            ]
        };
        check(&history(&[1])).expect("snapshot isolation");
        assert!(refused(&history(&[])).contains("no order"));
    }

    #[test]
    fn two_readers_that_disagree_on_the_order_of_writers_are_none() {
        let history = [
            made(1, (0, 9), &[(0, &[])], &[0]),
            made(2, (0, 9), &[(1, &[])], &[1]),
            made(3, (0, 9), &[(0, &[1]), (1, &[])], &[]),
            made(4, (0, 9), &[(0, &[]), (1, &[2])], &[]),
            made(5, (20, 30), &[(0, &[1]), (1, &[2])], &[]),
        ];
        assert!(refused(&history).contains("no order"));
        check(&[
            history[0].clone(),
            history[1].clone(),
            history[2].clone(),
            history[4].clone(),
        ])
        .expect("snapshot isolation");
    }

    #[test]
    fn a_snapshot_of_before_an_acknowledged_commit_is_none() {
        let history = [
            made(1, (0, 3), &[(0, &[])], &[0]),
            made(2, (4, 8), &[(0, &[])], &[]),
            made(3, (20, 30), &[(0, &[1])], &[]),
        ];
        assert!(refused(&history).contains("no order"));
    }

    #[test]
    fn what_has_no_answer_is_written_as_a_whole_or_not_at_all() {
        let history = |seen: [&[u64]; 2]| {
            let unknown = Transaction {
                end: End::Unknown,
                commit: (8, u64::MAX),
                ..made(1, (0, 9), &[], &[0, 1])
            };
            [unknown, made(2, (20, 30), &[(0, seen[0]), (1, seen[1])], &[])]
        };
        check(&history([&[1], &[1]])).expect("snapshot isolation");
        check(&history([&[], &[]])).expect("snapshot isolation");
        assert!(refused(&history([&[1], &[]])).contains("torn"));
    }

    #[test]
    fn aborted_unfinished_and_lost_writes_are_none() {
        let last = made(3, (20, 30), &[(0, &[1])], &[]);
        let aborted = Transaction {
            end: End::Aborted,
            ..made(1, (0, 9), &[], &[0])
        };
        assert!(refused(&[aborted, last.clone()]).contains("aborted"));
        assert!(refused(&[made(1, (0, 9), &[], &[0, 0]), last.clone()]).contains("after"));
        let twice = [
            made(1, (0, 9), &[], &[0, 0]),
            made(2, (1, 8), &[(0, &[1])], &[]),
            made(3, (20, 30), &[(0, &[1, 1])], &[]),
        ];
        assert!(refused(&twice).contains("a part"));
        assert!(refused(&[made(1, (0, 9), &[], &[0, 1]), last]).contains("lost"));
    }

    #[test]
    fn a_transaction_sees_its_own_writes_in_one_collection() {
        let with = |found: Vec<Vec<u64>>| {
            let read = Read {
                register: 0,
                found,
                own: 1,
            };
            let writer = Transaction {
                reads: vec![read],
                ..made(1, (0, 9), &[], &[0])
            };
            [writer, made(2, (20, 30), &[(0, &[1])], &[])]
        };
        check(&with(vec![vec![1]])).expect("snapshot isolation");
        assert!(refused(&with(vec![])).contains("own"));
        assert!(refused(&with(vec![vec![1], vec![1]])).contains("twice"));
    }
}
