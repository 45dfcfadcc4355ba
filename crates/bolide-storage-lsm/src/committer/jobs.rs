//! What the committer is asked to do, and how it refuses.

use bolide_model::UnixMillis;
use bolide_storage::{Batch, EngineError, Head, JointOutcome, Outcome, PartitionId, Resolved, Ticket};
use tokio::sync::oneshot;

/// Where an answer goes. Nobody may be waiting any more; the job is done all the same.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, EngineError>>;

/// A change of the store. What waits at the same time is carried out together.
pub(crate) enum Write {
    Commit {
        partition: PartitionId,
        batch: Batch,
        answer: Answer<Outcome>,
    },
    CommitTogether {
        batches: Vec<(PartitionId, Batch)>,
        answer: Answer<JointOutcome>,
    },
    Create {
        partition: PartitionId,
        head: Head,
        answer: Answer<()>,
    },
    Remove {
        partition: PartitionId,
        answer: Answer<()>,
    },
}

/// What the committer is asked to do, in the order it was asked.
pub(crate) enum Job {
    Write(Write),
    Resolve {
        partition: PartitionId,
        ticket: Ticket,
        answer: Answer<Resolved>,
    },
    KeepTime {
        until: UnixMillis,
        answer: Answer<()>,
    },
    Close(Answer<()>),
    /// Look when the next chore is due: earlier than the thread thinks.
    Look,
}

/// Why writes are turned away before they are looked at.
pub(crate) enum Refusal {
    Closed,
    Broken(String),
}

impl Write {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Write::Commit { batch, .. } => batch.bytes(),
            Write::CommitTogether { batches, .. } => batches.iter().map(|(_, batch)| batch.bytes()).sum(),
            Write::Create { .. } | Write::Remove { .. } => 0,
        }
    }

    pub(super) fn refuse(self, refusal: &Refusal) {
        let error = match refusal {
            Refusal::Closed => EngineError::Unavailable("the store is closed".into()),
            Refusal::Broken(reason) => EngineError::Unavailable(reason.clone()),
        };
        // Nobody may be waiting any more.
        let _ = match (self, refusal) {
            (Write::Commit { answer, .. }, Refusal::Broken(reason)) => {
                answer.send(Ok(Outcome::Refused(reason.clone()))).is_ok()
            }
            (Write::Commit { answer, .. }, Refusal::Closed) => answer.send(Err(error)).is_ok(),
            (Write::CommitTogether { answer, .. }, Refusal::Broken(reason)) => {
                answer.send(Ok(JointOutcome::Refused(reason.clone()))).is_ok()
            }
            (Write::CommitTogether { answer, .. }, Refusal::Closed) => answer.send(Err(error)).is_ok(),
            (Write::Create { answer, .. } | Write::Remove { answer, .. }, _) => answer.send(Err(error)).is_ok(),
        };
    }
}
