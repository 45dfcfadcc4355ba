//! A group: writes that are carried out together.
//!
//! Writes are judged in their order, each on the heads the ones before it leave behind, so several commits of one partition may be in one
//! group. A joint commit is one write over several partitions: the group takes all of its batches or none. Rows are merged by key, the last one wins: the store does not promise an order between two rows of one key in one write.

use std::collections::{BTreeMap, HashMap, VecDeque};

use bolide_model::UnixMillis;
use bolide_storage::{
    Batch, CommitToken, EngineError, Head, JointOutcome, Key, Outcome, PartitionId, RecentCommits, Space, Ticket,
    rejection,
};
use bytes::Bytes;

use super::removal::Removal;
use super::{Answer, Write};
use crate::layout::{HeadRow, Kind, OWN, row_key};

/// Rows of one space; `None` deletes.
type Rows = BTreeMap<Bytes, Option<Bytes>>;

/// Space on the disk, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) free: u64,
    /// What must stay free.
    pub(super) reserve: u64,
}

/// See the module.
pub(super) struct Group {
    room: Room,
    rows: [Rows; Space::ALL.len()],
    /// Heads as the group leaves them; `None` is a partition it removes.
    heads: HashMap<PartitionId, Option<HeadRow>>,
    commits: Vec<(PartitionId, CommitToken, Head)>,
    bytes: u64,
    deletes: [usize; Space::ALL.len()],
    stamp: UnixMillis,
    answers: Vec<Pending>,
}

/// An answer that waits for the write.
enum Pending {
    Commit(Answer<Outcome>, Head, Ticket),
    Joint(Answer<JointOutcome>, Vec<Head>, Vec<Ticket>),
    Other(Answer<()>),
}

impl Group {
    pub(super) fn new(room: Room) -> Group {
        Group {
            room,
            rows: Default::default(),
            heads: HashMap::new(),
            commits: Vec::new(),
            bytes: 0,
            deletes: Default::default(),
            stamp: UnixMillis(i64::MIN),
            answers: Vec::new(),
        }
    }

    /// Takes a write in, or answers it right away if it changes nothing.
    pub(super) fn admit(
        &mut self,
        write: Write,
        partitions: &HashMap<PartitionId, RecentCommits>,
        removals: &VecDeque<Removal>,
    ) {
        match write {
            Write::Commit {
                partition,
                batch,
                answer,
            } => match self.judge(partition, &batch, partitions) {
                Ok(()) => {
                    let pending = Pending::Commit(answer, batch.head(), batch.ticket());
                    self.add_commit(partition, batch);
                    self.answers.push(pending);
                }
                Err(verdict) => drop(answer.send(verdict)),
            },
            Write::CommitTogether { batches, answer } => match self.judge_together(&batches, partitions) {
                Ok(()) => {
                    let heads = batches.iter().map(|(_, batch)| batch.head()).collect();
                    let tickets = batches.iter().map(|(_, batch)| batch.ticket()).collect();
                    for (partition, batch) in batches {
                        self.add_commit(partition, batch);
                    }
                    self.answers.push(Pending::Joint(answer, heads, tickets));
                }
                Err(verdict) => drop(answer.send(verdict)),
            },
            Write::Create {
                partition,
                head,
                answer,
            } => {
                if let Some(why) = self.why_not_create(partition, removals) {
                    drop(answer.send(Err(EngineError::Unavailable(why))));
                    return;
                }
                if self.head(partition, partitions).is_none() {
                    self.set_head(partition, Some(HeadRow::created(head)));
                }
                self.answers.push(Pending::Other(answer));
            }
            Write::Remove { partition, answer } => {
                if self.head(partition, partitions).is_some() {
                    self.set_head(partition, None);
                }
                self.answers.push(Pending::Other(answer));
            }
        }
    }

    /// Decides on a commit; an error is its answer.
    fn judge(
        &self,
        partition: PartitionId,
        batch: &Batch,
        partitions: &HashMap<PartitionId, RecentCommits>,
    ) -> Result<(), Result<Outcome, EngineError>> {
        let head = self
            .head(partition, partitions)
            .ok_or(Err(EngineError::NoPartition(partition)))?;
        if batch.base != head.lsn {
            return Err(Ok(Outcome::Stale));
        }
        match batch.validate(head).or_else(|| self.why_no_room([batch].into_iter())) {
            Some(why) => Err(Ok(Outcome::Refused(why))),
            None => Ok(()),
        }
    }

    /// Decides on a joint commit; an error is its answer.
    fn judge_together(
        &self,
        batches: &[(PartitionId, Batch)],
        partitions: &HashMap<PartitionId, RecentCommits>,
    ) -> Result<(), Result<JointOutcome, EngineError>> {
        if let Some(answer) = rejection(batches, |partition| self.head(partition, partitions)) {
            return Err(answer);
        }
        match self.why_no_room(batches.iter().map(|(_, batch)| batch)) {
            Some(why) => Err(Ok(JointOutcome::Refused(why))),
            None => Ok(()),
        }
    }

    fn why_no_room<'a>(&self, batches: impl Iterator<Item = &'a Batch> + Clone) -> Option<String> {
        let Room { free, reserve } = self.room;
        let deletes: usize = batches.clone().map(|batch| batch.deletes.len()).sum();
        let puts: usize = batches.clone().map(|batch| batch.puts.len()).sum();
        // Commits that mostly delete may use half of the reserve: they are how space comes back.
        let reserve = if deletes > puts { reserve / 2 } else { reserve };
        let bytes: usize = batches.map(Batch::bytes).sum();
        let needed = reserve.saturating_add(2 * (self.bytes + bytes as u64));
        (free < needed).then(|| format!("the disk is full. free_bytes={free} needed_bytes={needed}"))
    }

    fn why_not_create(&self, partition: PartitionId, removals: &VecDeque<Removal>) -> Option<String> {
        let is_leaving = removals.iter().any(|removal| removal.partition() == partition)
            || self.heads.get(&partition).is_some_and(Option::is_none);
        if partition == OWN {
            Some(format!("the partition number is reserved. partition={partition}"))
        } else if is_leaving {
            Some(format!("the partition is still being removed. partition={partition}"))
        } else {
            None
        }
    }

    fn add_commit(&mut self, partition: PartitionId, batch: Batch) {
        self.bytes += batch.bytes() as u64;
        let head = batch.head();
        for Key { space, bytes } in batch.deletes {
            self.deletes[space as usize] += 1;
            self.rows[space as usize].insert(row_key(partition, &bytes), None);
        }
        for put in batch.puts {
            self.rows[put.key.space as usize].insert(row_key(partition, &put.key.bytes), Some(put.value));
        }
        self.set_head(
            partition,
            Some(HeadRow {
                head,
                base: batch.base,
                token: batch.token,
            }),
        );
        self.commits.push((partition, batch.token, head));
    }

    fn set_head(&mut self, partition: PartitionId, row: Option<HeadRow>) {
        let meta = &mut self.rows[Space::Meta as usize];
        meta.insert(Kind::Head.key(partition), row.map(HeadRow::encode));
        match row {
            Some(row) => self.stamp = self.stamp.max(row.head.stamp),
            None => drop(meta.insert(Kind::Removal.key(partition), Some(Bytes::new()))),
        }
        self.heads.insert(partition, row);
    }

    /// The head the next write of a partition is judged on.
    fn head(&self, partition: PartitionId, partitions: &HashMap<PartitionId, RecentCommits>) -> Option<Head> {
        match self.heads.get(&partition) {
            Some(row) => row.map(|row| row.head),
            None => partitions.get(&partition).map(RecentCommits::head),
        }
    }

    /// Whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Rows to write.
    pub(super) fn len(&self) -> usize {
        self.rows.iter().map(|rows| rows.len() + 1).sum()
    }

    /// The rows of each space that has any.
    pub(super) fn take_rows(&mut self) -> impl Iterator<Item = (Space, Rows)> {
        let rows = std::mem::take(&mut self.rows);
        Space::ALL.into_iter().zip(rows).filter(|(_, rows)| !rows.is_empty())
    }

    /// Heads as the group leaves them.
    pub(super) fn heads(&self) -> impl Iterator<Item = (PartitionId, Option<HeadRow>)> {
        self.heads.iter().map(|(partition, row)| (*partition, *row))
    }

    /// The commits in their order.
    pub(super) fn commits(&self) -> &[(PartitionId, CommitToken, Head)] {
        &self.commits
    }

    /// How many rows of each space it deletes.
    pub(super) fn deletes(&self) -> impl Iterator<Item = (Space, usize)> {
        Space::ALL.into_iter().zip(self.deletes)
    }

    /// About how many bytes it takes in a journal, before its rows are taken.
    pub(super) fn journal_bytes(&self) -> u64 {
        const ROW_OVERHEAD: usize = 40;
        self.bytes + (self.len() * ROW_OVERHEAD) as u64
    }

    /// The highest stamp of its commits.
    pub(super) fn stamp(&self) -> UnixMillis {
        self.stamp
    }

    /// The write is done.
    pub(super) fn answer(self) {
        self.answer_with(
            |head, _| Outcome::Done(head),
            |heads, _| JointOutcome::Done(heads),
            || Ok(()),
        );
    }

    /// The write surely did not happen.
    pub(super) fn answer_refused(self, reason: &str) {
        self.answer_with(
            |_, _| Outcome::Refused(reason.to_owned()),
            |_, _| JointOutcome::Refused(reason.to_owned()),
            || Err(EngineError::Unavailable(reason.to_owned())),
        );
    }

    /// The write may have happened.
    pub(super) fn answer_unknown(self) {
        let why = || {
            Err(EngineError::Unavailable(
                "the store failed in the middle of a write".into(),
            ))
        };
        self.answer_with(
            |_, ticket| Outcome::Unknown(ticket),
            |_, tickets| JointOutcome::Unknown(tickets),
            why,
        );
    }

    fn answer_with(
        self,
        outcome: impl Fn(Head, Ticket) -> Outcome,
        joint: impl Fn(Vec<Head>, Vec<Ticket>) -> JointOutcome,
        other: impl Fn() -> Result<(), EngineError>,
    ) {
        for pending in self.answers {
            // Nobody may be waiting any more.
            match pending {
                Pending::Commit(answer, head, ticket) => drop(answer.send(Ok(outcome(head, ticket)))),
                Pending::Joint(answer, heads, tickets) => drop(answer.send(Ok(joint(heads, tickets)))),
                Pending::Other(answer) => drop(answer.send(other())),
            }
        }
    }
}
