//! The committer's jobs, and how it refuses them.

use std::path::PathBuf;

use bolide_model::UnixMillis;
use bolide_storage::{Batch, EngineError, Head, JointOutcome, Outcome, PartitionId, Resolved, Ticket};
use tokio::sync::oneshot;

use crate::SnapshotError;
use crate::store_dir::StoreDir;

/// Where a reply goes. If the receiver is gone, the job is done anyway.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, EngineError>>;

/// A change of the store. Changes that wait at the same time are carried out together.
pub(crate) enum Write {
    Commit {
        partition: PartitionId,
        batch: Batch,
        reply: Reply<Outcome>,
    },
    CommitTogether {
        batches: Vec<(PartitionId, Batch)>,
        reply: Reply<JointOutcome>,
    },
    Create {
        partition: PartitionId,
        head: Head,
        reply: Reply<()>,
    },
    Remove {
        partition: PartitionId,
        reply: Reply<()>,
    },
}

/// A job for the committer. Jobs are done in the order in which they were sent.
pub(crate) enum Job {
    Write(Write),
    Resolve {
        partition: PartitionId,
        ticket: Ticket,
        reply: Reply<Resolved>,
    },
    MakeTimeDurable {
        until: UnixMillis,
        reply: Reply<()>,
    },
    Close(Reply<()>),
    /// Make an image of the store and its watermark in a directory.
    Image {
        to: PathBuf,
        reply: oneshot::Sender<Result<(), SnapshotError>>,
    },
    /// Close the store and keep the directory locked, for the store that takes its place.
    Release(oneshot::Sender<Result<StoreDir, SnapshotError>>),
    /// Check when maintenance is due: earlier than the thread expects.
    CheckMaintenance,
}

/// Why writes are refused before they are checked.
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
        // The receiver may be gone.
        let _ = match (self, refusal) {
            (Write::Commit { reply, .. }, Refusal::Broken(reason)) => {
                reply.send(Ok(Outcome::Refused(reason.clone()))).is_ok()
            }
            (Write::Commit { reply, .. }, Refusal::Closed) => reply.send(Err(error)).is_ok(),
            (Write::CommitTogether { reply, .. }, Refusal::Broken(reason)) => {
                reply.send(Ok(JointOutcome::Refused(reason.clone()))).is_ok()
            }
            (Write::CommitTogether { reply, .. }, Refusal::Closed) => reply.send(Err(error)).is_ok(),
            (Write::Create { reply, .. } | Write::Remove { reply, .. }, _) => reply.send(Err(error)).is_ok(),
        };
    }
}
