//! A group of writes that are carried out together.
//!
//! Writes are checked in their order, each on the heads after the writes before it, so one group may contain several commits of one partition. A
//! joint commit is one write over several partitions: the group takes all of its batches or none. Rows are merged by key, and the last one wins,
//! because the store does not promise an order between two rows of one key in one write.

use std::collections::{BTreeMap, HashMap, VecDeque};

use bolide_model::UnixMillis;
use bolide_storage::{
    Batch, CommitToken, EngineError, Head, JointOutcome, Key, Outcome, PartitionId, RecentCommits, Space, Ticket,
    rejection,
};
use bytes::Bytes;

use super::removal::Removal;
use super::{Reply, Write};
use crate::layout::{HeadRow, Kind, OWN, row_key};

/// Rows of one space; `None` deletes.
type Rows = BTreeMap<Bytes, Option<Bytes>>;

/// Space on the disk, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpaceLimits {
    pub(super) free: u64,
    /// Bytes that must stay free.
    pub(super) reserve: u64,
}

/// See the module.
pub(super) struct Group {
    limits: SpaceLimits,
    rows: [Rows; Space::ALL.len()],
    /// Heads after the group; `None` is a partition that it removes.
    heads: HashMap<PartitionId, Option<HeadRow>>,
    commits: Vec<(PartitionId, CommitToken, Head)>,
    bytes: u64,
    deletes: [usize; Space::ALL.len()],
    stamp: UnixMillis,
    replies: Vec<Pending>,
}

/// A reply that waits for the write.
enum Pending {
    Commit(Reply<Outcome>, Head, Ticket),
    Joint(Reply<JointOutcome>, Vec<Head>, Vec<Ticket>),
    Other(Reply<()>),
}

impl Group {
    pub(super) fn new(limits: SpaceLimits) -> Group {
        Group {
            limits,
            rows: Default::default(),
            heads: HashMap::new(),
            commits: Vec::new(),
            bytes: 0,
            deletes: Default::default(),
            stamp: UnixMillis(i64::MIN),
            replies: Vec::new(),
        }
    }

    /// Adds a write to the group, or replies at once if it changes nothing.
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
                reply,
            } => match self.check_commit(partition, &batch, partitions) {
                Ok(()) => {
                    let pending = Pending::Commit(reply, batch.head(), batch.ticket());
                    self.add_commit(partition, batch);
                    self.replies.push(pending);
                }
                Err(verdict) => drop(reply.send(verdict)),
            },
            Write::CommitTogether { batches, reply } => match self.check_joint_commit(&batches, partitions) {
                Ok(()) => {
                    let heads = batches.iter().map(|(_, batch)| batch.head()).collect();
                    let tickets = batches.iter().map(|(_, batch)| batch.ticket()).collect();
                    for (partition, batch) in batches {
                        self.add_commit(partition, batch);
                    }
                    self.replies.push(Pending::Joint(reply, heads, tickets));
                }
                Err(verdict) => drop(reply.send(verdict)),
            },
            Write::Create { partition, head, reply } => {
                if let Some(why) = self.why_not_create(partition, removals) {
                    drop(reply.send(Err(EngineError::Unavailable(why))));
                    return;
                }
                if self.head(partition, partitions).is_none() {
                    self.set_head(partition, Some(HeadRow::created(head)));
                }
                self.replies.push(Pending::Other(reply));
            }
            Write::Remove { partition, reply } => {
                if self.head(partition, partitions).is_some() {
                    self.set_head(partition, None);
                }
                self.replies.push(Pending::Other(reply));
            }
        }
    }

    /// Checks a commit; the error is its reply.
    fn check_commit(
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
        if !batch.new_keys.is_empty() {
            return Err(Ok(Outcome::Refused(
                "this engine does not check for new keys".to_owned(),
            )));
        }
        match batch.validate(head).or_else(|| self.space_refusal([batch].into_iter())) {
            Some(why) => Err(Ok(Outcome::Refused(why))),
            None => Ok(()),
        }
    }

    /// Checks a joint commit; the error is its reply.
    fn check_joint_commit(
        &self,
        batches: &[(PartitionId, Batch)],
        partitions: &HashMap<PartitionId, RecentCommits>,
    ) -> Result<(), Result<JointOutcome, EngineError>> {
        if let Some(reply) = rejection(batches, |partition| self.head(partition, partitions)) {
            return Err(reply);
        }
        match self.space_refusal(batches.iter().map(|(_, batch)| batch)) {
            Some(why) => Err(Ok(JointOutcome::Refused(why))),
            None => Ok(()),
        }
    }

    fn space_refusal<'a>(&self, batches: impl Iterator<Item = &'a Batch> + Clone) -> Option<String> {
        let SpaceLimits { free, reserve } = self.limits;
        let deletes: usize = batches.clone().map(|batch| batch.deletes.len()).sum();
        let puts: usize = batches.clone().map(|batch| batch.puts.len()).sum();
        // Commits that mostly delete may use half of the reserve, because they free space.
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

    /// The head on which the next write of a partition is checked.
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

    /// Number of rows to write.
    pub(super) fn len(&self) -> usize {
        self.rows.iter().map(|rows| rows.len() + 1).sum()
    }

    /// The rows of each space that has any.
    pub(super) fn take_rows(&mut self) -> impl Iterator<Item = (Space, Rows)> {
        let rows = std::mem::take(&mut self.rows);
        Space::ALL.into_iter().zip(rows).filter(|(_, rows)| !rows.is_empty())
    }

    /// Heads after the group.
    pub(super) fn heads(&self) -> impl Iterator<Item = (PartitionId, Option<HeadRow>)> {
        self.heads.iter().map(|(partition, row)| (*partition, *row))
    }

    /// The commits, in order.
    pub(super) fn commits(&self) -> &[(PartitionId, CommitToken, Head)] {
        &self.commits
    }

    /// Number of rows deleted in each space.
    pub(super) fn deletes(&self) -> impl Iterator<Item = (Space, usize)> {
        Space::ALL.into_iter().zip(self.deletes)
    }

    /// Approximate size in the journal, in bytes. Call it before the rows are taken.
    pub(super) fn journal_bytes(&self) -> u64 {
        const ROW_OVERHEAD: usize = 40;
        self.bytes + (self.len() * ROW_OVERHEAD) as u64
    }

    /// The highest stamp of its commits.
    pub(super) fn stamp(&self) -> UnixMillis {
        self.stamp
    }

    /// Replies that the write is done.
    pub(super) fn reply(self) {
        self.answer_with(
            |head, _| Outcome::Done(head),
            |heads, _| JointOutcome::Done(heads),
            || Ok(()),
        );
    }

    /// Replies that the write certainly did not happen.
    pub(super) fn reply_refused(self, reason: &str) {
        self.answer_with(
            |_, _| Outcome::Refused(reason.to_owned()),
            |_, _| JointOutcome::Refused(reason.to_owned()),
            || Err(EngineError::Unavailable(reason.to_owned())),
        );
    }

    /// Replies that the write may have happened.
    pub(super) fn reply_unknown(self) {
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
        for pending in self.replies {
            // The receiver may be gone.
            match pending {
                Pending::Commit(reply, head, ticket) => drop(reply.send(Ok(outcome(head, ticket)))),
                Pending::Joint(reply, heads, tickets) => drop(reply.send(Ok(joint(heads, tickets)))),
                Pending::Other(reply) => drop(reply.send(other())),
            }
        }
    }
}
