//! A worker's part of a joint commit: it lends its partition until the outcome is known (`super::super::joint`).

use std::panic::AssertUnwindSafe;

use bolide_model::time::CommitTime;
use bolide_model::{Error, Result, UnixMillis};
use bolide_storage::{Batch, Key};
use futures_util::FutureExt;

use super::Worker;
use crate::clock;
use crate::partition::after_commit::AfterCommit;
use crate::partition::exclusive::{ExclusiveEnd, ExclusiveTransaction};
use crate::partition::joint::{Drafted, JointDecision, JointPart, PartDraft, PartOutcome};
use crate::partition::state::PartitionState;
use crate::partition::text_changes::TextChange;
use crate::partition::write_batch::Decided;

/// What takes effect once a part is committed: the state, what is to be done after the commit, the changed keys, and the changed texts.
type Committable = (PartitionState, AfterCommit, Vec<Key>, Vec<TextChange>);

impl Worker {
    /// Lends the partition to a joint commit.
    pub(super) async fn run_joint(&mut self, part: JointPart) {
        let Ok(now) = clock::exact_now(self.engine.as_ref()).await else {
            return;
        };
        // If a channel is closed, the commit was given up, and nothing was committed.
        if part.entered.send(now.max(self.head.stamp)).is_err() {
            return;
        }
        let Ok((stamp, time)) = part.stamp.await else { return };
        let mut decide = part.decide;
        let checked = self.check_settings(part.settings).await;
        // Not those after the stamp: they come after the commit.
        self.tell_endings(stamp).await;
        let decided = match checked {
            Ok(()) => self.decide_part((stamp, time), part.waits_out, &mut decide).await,
            Err(error) => Err(error),
        };
        let (result, decided) = match decided {
            Ok(Some(decided)) => self.draft_of(decided),
            Ok(None) => (Ok(PartDraft::Stale), None),
            Err(error) => (Err(error), None),
        };
        let is_stale = matches!(result, Ok(PartDraft::Stale));
        let sent = part.drafted.send(Drafted { decide, result }).is_ok();
        if is_stale {
            // What is read again is the state of the new head, or the error shows at the next commit.
            let _ = self.refresh().await;
        }
        let (Some((state, after, keys, texts)), true) = (decided, sent) else {
            return;
        };
        match part.outcome.await {
            // Dropped once the new head is visible.
            Ok(PartOutcome::Done(head, _begun)) => {
                self.unresolved.clear();
                self.shared.dirty_keys.record(keys);
                self.shared.committed(&after, stamp.seconds(), &state);
                self.shared.ranked.apply(self.head.lsn, head.lsn, texts);
                self.advance(head, state);
            }
            Ok(PartOutcome::Unknown(begun)) => {
                self.undecided.push(begun);
                self.unresolved.extend(keys);
                self.shared.perhaps_committed(&after, stamp.seconds());
            }
            Ok(PartOutcome::NotDone) | Err(_) => {}
        }
    }

    /// Decides a part of a joint commit at `stamp`. Returns `None` if the partition's head has moved.
    async fn decide_part(
        &mut self,
        (stamp, time): (UnixMillis, CommitTime),
        waits_out: bool,
        decide: &mut JointDecision,
    ) -> Result<Option<Decided>> {
        let mut exclusive = ExclusiveTransaction::new(
            self.engine.clone(),
            self.partition,
            self.head,
            stamp,
            self.state.clone(),
        )
        .at(time)
        .waiting_out(waits_out && self.shared.waits_out());
        let decided = AssertUnwindSafe(exclusive.decide(&mut **decide)).catch_unwind().await;
        match decided {
            Ok(Ok(())) => Ok(Some(exclusive.into_decided(&self.state))),
            Ok(Err(ExclusiveEnd::Stale)) => Ok(None),
            Ok(Err(ExclusiveEnd::Refused(error))) => Err(error),
            Err(_) => Err(Error::internal(
                "a part of a transaction panicked; nothing of it was stored",
            )),
        }
    }

    /// Returns the batch of a decided part, and what is left to be done once it is committed.
    fn draft_of(&mut self, decided: Decided) -> (Result<PartDraft>, Option<Committable>) {
        let Decided {
            changes,
            state,
            stamp,
            after,
            texts,
        } = decided;
        let Some(changes) = changes else {
            return (Ok(PartDraft::Nothing), None);
        };
        let edition = match self.pass_seal(&changes, (stamp, self.next_edition(&state))) {
            Ok(edition) => edition,
            Err(error) => return (Err(error), None),
        };
        let keys = self.shared.dirty_keys.keys_of(&changes);
        let batch = Batch {
            base: self.head.lsn,
            next: changes.next,
            stamp,
            edition,
            token: self.tokens.next(),
            puts: changes.puts,
            deletes: changes.deletes,
            new_keys: Vec::new(),
            may_block: false,
        };
        (Ok(PartDraft::Changes(batch)), Some((state, after, keys, texts)))
    }
}
