//! The worker and the seal of its partition.

use bolide_model::{Error, Lsn, Reason, Result, UnixMillis};
use bolide_storage::{Edition, Head, PartitionId, Put};
use bytes::Bytes;

use super::queues::ChangeSeal;
use super::{Committed, TRIES, Worker, overtaken};
use crate::clock;
use crate::format::keys::{self, LogPosition};
use crate::partition::edition;
use crate::partition::transaction::Transaction;
use crate::partition::write_batch::Changes;
use crate::partition::write_seal::{CopyId, LEASE, SealChange, Sealing, WriteSeal};

/// Tells whether a commit changes the seal. It changes nothing else then.
pub(super) fn is_of_seal(changes: &Changes) -> bool {
    let seal = keys::write_seal();
    changes.puts.iter().any(|put| put.key == seal) || changes.deletes.contains(&seal)
}

impl Worker {
    /// Returns the edition of a commit that would have `edition`, where the seal has to be looked at first: a commit after the end of its lease takes it
    /// away.
    ///
    /// # Errors
    /// [`Reason::WritesSealed`], [`Reason::StoreMoved`].
    pub(super) fn pass_seal(&self, changes: &Changes, (stamp, edition): (UnixMillis, Edition)) -> Result<Edition> {
        if !edition::is_sealed(self.head.edition) || is_of_seal(changes) {
            return Ok(edition);
        }
        match self.state.seal {
            Some(seal) if seal.is_over(stamp) => Ok(edition::unsealed(edition)),
            Some(seal) => Err(seal.refusal()),
            // Without its row nobody can say that it is over.
            None => Err(Reason::StoreMoved.into()),
        }
    }

    /// Reads the head again if it has a seal: another server may have taken it away.
    ///
    /// # Errors
    /// From the engine.
    pub(super) async fn follow_seal(&mut self) -> Result<()> {
        match self.engine.is_shared() && edition::is_sealed(self.head.edition) {
            true => self.refresh().await,
            false => Ok(()),
        }
    }

    /// Returns the transactions that are decided together: while there is a seal it is each alone, so that one that writes nothing is not refused because
    /// of the others.
    ///
    /// # Errors
    /// From the engine.
    pub(super) async fn alone_while_sealed<'t>(
        &mut self,
        transactions: &'t mut [Box<dyn Transaction>],
    ) -> Result<&'t mut [Box<dyn Transaction>]> {
        self.follow_seal().await?;
        Ok(match edition::is_sealed(self.head.edition) {
            true => &mut transactions[..1],
            false => transactions,
        })
    }

    /// Changes the seal, and tells whoever has asked.
    pub(super) async fn change_seal(&mut self, request: ChangeSeal) {
        let changed = self.changed_seal(request.change).await;
        // Whoever has asked may be gone.
        let _ = request.reply.send(changed);
    }

    async fn changed_seal(&mut self, change: SealChange) -> Result<Sealing> {
        // Another server may have changed it.
        let mut is_stale = self.engine.is_shared();
        for attempt in 0..TRIES {
            // Held until the commit, so that servers that write all the time come to their end.
            let _lock = self.take_turn(attempt, is_stale).await?;
            let now = clock::exact_now(self.engine.as_ref()).await?.max(self.head.stamp);
            let Some(seal) = self.next_seal(change, now)? else {
                return Ok(self.sealing());
            };
            if self.commit_seal(seal, now).await? {
                return Ok(self.sealing());
            }
            is_stale = true;
        }
        Err(overtaken())
    }

    /// Returns the seal after a change; `None` if nothing is to be written.
    fn next_seal(&self, change: SealChange, now: UnixMillis) -> Result<Option<Option<WriteSeal>>> {
        let stands = self.standing_seal();
        let leased = |copy| {
            let until = UnixMillis(now.0.saturating_add(LEASE.as_millis() as i64));
            Some(WriteSeal {
                copy,
                until: Some(until),
            })
        };
        let has_no_end = stands.is_some_and(|seal| seal.until.is_none());
        let is_of = |copy: CopyId| stands.is_some_and(|seal| seal.copy == copy);
        match change {
            SealChange::Look => Ok(None),
            SealChange::Set(copy) => match stands {
                _ if has_no_end => Err(Reason::StoreMoved.into()),
                Some(seal) if seal.copy != copy && !seal.is_over(now) => {
                    Err(Error::conflict("another copy has sealed the store"))
                }
                _ => Ok(Some(leased(copy))),
            },
            SealChange::Renew(copy) | SealChange::Keep(copy) | SealChange::Lift(copy) | SealChange::Undo(copy)
                if !is_of(copy) =>
            {
                Err(Error::conflict("the seal of the copy does not stand any more"))
            }
            SealChange::Renew(_) | SealChange::Keep(_) if has_no_end => Ok(None),
            SealChange::Lift(_) if has_no_end => Err(Error::conflict("the store has moved")),
            SealChange::Renew(copy) => Ok(Some(leased(copy))),
            SealChange::Keep(copy) => Ok(Some(Some(WriteSeal { copy, until: None }))),
            SealChange::Lift(_) | SealChange::Undo(_) => Ok(Some(None)),
            SealChange::LiftAny => Ok(edition::is_sealed(self.head.edition).then_some(None)),
        }
    }

    /// Returns the seal that nothing was written after.
    fn standing_seal(&self) -> Option<WriteSeal> {
        self.state.seal.filter(|_| edition::is_sealed(self.head.edition))
    }

    fn sealing(&self) -> Sealing {
        Sealing {
            head: Head {
                edition: edition::unsealed(self.head.edition),
                ..self.head
            },
            items: self.state.stored.items,
            seal: self.standing_seal(),
        }
    }

    /// Commits a seal, or that there is none. Returns false if the partition's head was not the expected one.
    async fn commit_seal(&mut self, seal: Option<WriteSeal>, now: UnixMillis) -> Result<bool> {
        let next = self.head.lsn.next();
        let row = seal.map(|seal| Put {
            key: keys::write_seal(),
            value: seal.encode(),
        });
        let edition = match seal {
            Some(_) => edition::sealed(self.head.edition),
            None => edition::unsealed(self.head.edition),
        };
        let changes = Changes {
            next,
            puts: row.into_iter().chain(self.catalog_entry(next)).collect(),
            deletes: if seal.is_some() {
                Vec::new()
            } else {
                vec![keys::write_seal()]
            },
            new_keys: Vec::new(),
        };
        match self.commit_changes(changes, (now, edition)).await {
            Ok(Committed::Done(head)) => {
                let mut state = self.state.clone();
                state.seal = seal;
                self.shared.ranked.apply(self.head.lsn, head.lsn, Vec::new());
                self.advance(head, state);
                Ok(true)
            }
            Ok(Committed::Stale | Committed::Exists) => Ok(false),
            Err(error) => {
                if error.kind == bolide_model::ErrorKind::Timeout {
                    // Counting finds out whether it was committed.
                    self.shared.schedule.expect_count(i64::MIN);
                }
                Err(error)
            }
        }
    }

    /// Returns the entry that each commit of the catalog has in the log of its changes: a seal changes no row of it.
    fn catalog_entry(&self, lsn: Lsn) -> Option<Put> {
        let entry = || Put {
            key: LogPosition { lsn, seq: 0 }.key(),
            value: Bytes::new(),
        };
        (self.partition == PartitionId::CATALOG).then(entry)
    }
}
