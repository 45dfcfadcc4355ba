//! Joint commits: writes of several partitions of one home, all of them or none.
//!
//! ```text
//!   commit_jointly ──▶ worker of the 1st partition: "entered at this time", waits
//!                  ──▶ worker of the 2nd partition: "entered", waits …            in the order of their ids, so that no two wait for each other
//!                  ──▶ the latest of their times is the stamp; each decides its part on its own head, and hands over a batch
//!                  ──▶ Engine::commit_together
//!                  ──▶ the outcome: each worker goes on from its new head
//! ```
//!
//! A worker that lends its partition writes nothing else meanwhile. If one part is refused, nothing is committed.

use std::sync::Arc;

use bolide_model::time::CommitTime;
use bolide_model::{Error, ErrorKind, Result, UnixMillis};
use bolide_storage::{Batch, Engine, Head, JointOutcome, PartitionId, Resolved};
use tokio::sync::oneshot;

use super::Partition;
use super::commit_times::InProgress;
use super::edition::SettingsNumber;
use super::pending::{closed, refused};
use super::worker::{Queued, engine_error};
use super::write_batch::{Decision, WriteBatch};

/// Maximum number of attempts, if others write the same partitions through another process.
const TRIES: usize = 20;

/// The part of a joint commit that one partition decides. May be called any number of times.
pub(crate) type JointDecision = Box<dyn FnMut(&mut WriteBatch<'_>) -> Decision<()> + Send>;

/// A part as a worker runs it.
pub(super) struct JointPart {
    /// By which it decides.
    pub settings: SettingsNumber,
    /// Whether it may wait for versions that are about to end.
    pub waits_out: bool,
    pub decide: JointDecision,
    /// Tells the time at which the worker has entered.
    pub entered: oneshot::Sender<UnixMillis>,
    /// The stamp of the commit and its place in the order of all commits, once all have entered.
    pub stamp: oneshot::Receiver<(UnixMillis, CommitTime)>,
    /// Receives what the partition has decided.
    pub drafted: oneshot::Sender<Drafted>,
    /// The outcome of the commit; nothing was committed if the sender is dropped.
    pub outcome: oneshot::Receiver<PartOutcome>,
}

/// What a worker decided, together with its decision, which may have to be made again.
pub(super) struct Drafted {
    pub decide: JointDecision,
    pub result: Result<PartDraft>,
}

pub(super) enum PartDraft {
    Changes(Batch),
    /// The part changes nothing.
    Nothing,
    /// The head has moved meanwhile.
    Stale,
}

/// The outcome of a commit. Readers of changes see it once every worker has dropped its part of the commit in progress.
#[derive(Clone)]
pub(super) enum PartOutcome {
    Done(Head, Arc<InProgress>),
    NotDone,
    Unknown(Arc<InProgress>),
}

/// A partition with its part, while the commit is made.
struct Participant {
    partition: Arc<Partition>,
    decide: JointDecision,
}

/// Commits writes of several partitions of one home together. The caller must let it run to its end.
///
/// # Errors
/// The error with which a part was refused; `Timeout` if the outcome is unknown; after all other errors nothing was committed.
pub(crate) async fn commit_jointly(engine: Arc<dyn Engine>, parts: Vec<(Arc<Partition>, JointDecision)>) -> Result<()> {
    let mut participants: Vec<Participant> = parts
        .into_iter()
        .map(|(partition, decide)| Participant { partition, decide })
        .collect();
    participants.sort_by_key(|participant| participant.partition.id);
    for nth in 0..TRIES {
        match attempt(engine.as_ref(), participants, nth == 0).await? {
            Attempt::Done => return Ok(()),
            Attempt::Stale(again) => participants = again,
        }
    }
    Err(Error::new(
        ErrorKind::Unavailable,
        "the transaction could not be committed: others write the partitions at the same time",
    ))
}

enum Attempt {
    Done,
    Stale(Vec<Participant>),
}

/// The ends of the channels to a worker that has entered.
struct Entered {
    partition: Arc<Partition>,
    stamp: oneshot::Sender<(UnixMillis, CommitTime)>,
    drafted: oneshot::Receiver<Drafted>,
    outcome: oneshot::Sender<PartOutcome>,
}

async fn attempt(engine: &dyn Engine, participants: Vec<Participant>, waits_out: bool) -> Result<Attempt> {
    let (mut entered, mut stamp) = (Vec::with_capacity(participants.len()), UnixMillis(i64::MIN));
    for participant in participants {
        let (worker, at) = enter(participant, waits_out).await?;
        stamp = stamp.max(at);
        entered.push(worker);
    }
    let Some(first) = entered.first() else {
        return Ok(Attempt::Done);
    };
    let begun = Arc::new(first.partition.times().begin(stamp));
    let (mut drafts, mut again, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
    let mut is_stale = false;
    for worker in entered {
        // A worker that has ended shows below.
        let _ = worker.stamp.send((stamp, begun.time()));
        let Drafted { decide, result } = worker.drafted.await.map_err(|_| closed())?;
        match result? {
            PartDraft::Changes(batch) => {
                drafts.push((worker.partition.id, batch));
                waiting.push(worker.outcome);
            }
            PartDraft::Nothing => {}
            PartDraft::Stale => is_stale = true,
        }
        again.push(Participant {
            partition: worker.partition,
            decide,
        });
    }
    if is_stale {
        return Ok(Attempt::Stale(again));
    }
    match commit(engine, drafts).await {
        Ok(Some(heads)) => {
            for (outcome, head) in waiting.into_iter().zip(heads) {
                let _ = outcome.send(PartOutcome::Done(head, begun.clone()));
            }
            Ok(Attempt::Done)
        }
        Ok(None) => {
            waiting
                .into_iter()
                .for_each(|outcome| drop(outcome.send(PartOutcome::NotDone)));
            Ok(Attempt::Stale(again))
        }
        Err(error) => {
            let ended = match error.kind {
                ErrorKind::Timeout => PartOutcome::Unknown(begun.clone()),
                _ => PartOutcome::NotDone,
            };
            for outcome in waiting {
                let _ = outcome.send(ended.clone());
            }
            Err(error)
        }
    }
}

async fn enter(participant: Participant, waits_out: bool) -> Result<(Entered, UnixMillis)> {
    let ((entered, at), (stamp, start)) = (oneshot::channel(), oneshot::channel());
    let ((drafted, draft), (outcome, end)) = (oneshot::channel(), oneshot::channel());
    let part = JointPart {
        settings: participant.partition.settings,
        waits_out,
        decide: participant.decide,
        entered,
        stamp: start,
        drafted,
        outcome: end,
    };
    let queue = &participant.partition.writes;
    queue.send(Queued::Joint(Box::new(part))).await.map_err(|_| closed())?;
    let at = at.await.map_err(|_| closed())?;
    let entered = Entered {
        partition: participant.partition,
        stamp,
        drafted: draft,
        outcome,
    };
    Ok((entered, at))
}

/// Commits the batches. Returns the new heads; `None` if nothing was committed because a head has moved.
async fn commit(engine: &dyn Engine, batches: Vec<(PartitionId, Batch)>) -> Result<Option<Vec<Head>>> {
    let ids: Vec<(PartitionId, Head)> = batches.iter().map(|(id, batch)| (*id, batch.head())).collect();
    match engine.commit_together(batches).await.map_err(engine_error)? {
        JointOutcome::Done(heads) => Ok(Some(heads)),
        JointOutcome::Stale => Ok(None),
        JointOutcome::Refused(why) => Err(refused(why)),
        JointOutcome::Unknown(tickets) => {
            let first = ids.first().zip(tickets.into_iter().next());
            let Some(((partition, _), ticket)) = first else {
                return Ok(Some(Vec::new()));
            };
            match engine.resolve(*partition, ticket).await {
                Ok(Resolved::Done(_)) => Ok(Some(ids.into_iter().map(|(_, head)| head).collect())),
                Ok(Resolved::NotDone) => Ok(None),
                Err(why) => Err(Error::new(
                    ErrorKind::Timeout,
                    format!("the outcome of the transaction is unknown: {why}"),
                )),
            }
        }
    }
}
