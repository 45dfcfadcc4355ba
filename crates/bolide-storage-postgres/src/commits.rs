//! Commits: compare-and-set on the newest commit record, in one flight; and the outcome of those that nobody saw end.
//!
//! ```text
//!   commit                    commit, one statement             fence, when the outcome is unknown
//!   ─────────────────────     ─────────────────────────────     ───────────────────────────────────────
//!   newest record as known ─▶ locks it, writes all rows and ─▶  changes the newest record: a flight that
//!                             the record that follows it        comes later no longer finds what it knows
//! ```
//!
//! Deletes take a second statement, in the same transaction and the same flight. They happen only if the new record is there.

use std::collections::HashSet;

use bolide_model::{Lsn, UnixMillis};
use bolide_storage::{Batch, EngineError, JointOutcome, Key, Outcome, PartitionId, Resolved, Ticket, rejection};
use tokio_postgres::Row;

use crate::connection::Connection;
use crate::engine::Inner;
use crate::error::{Failure, text, unavailable};
use crate::flights::{Flight, Landed};
use crate::locks::Locked;
use crate::partitions::Known;
use crate::reads::{self, newest, records};
use crate::rows::{self, CommitRecord};
use crate::statements::Query;

/// Flights of one commit, if the server says that the first was not carried out.
const FLIGHTS: usize = 3;
/// Fences of one resolution, if others commit meanwhile.
const FENCES: usize = 5;

impl Inner {
    /// See [`bolide_storage::Engine::commit`].
    pub(crate) async fn commit(&self, partition: PartitionId, mut batch: Batch) -> Result<Outcome, EngineError> {
        let state = self.partitions.get(partition);
        // Commits of one partition that are sent at once happen in their order.
        let _turn = state.turn().await;
        let new_keys: HashSet<Key> = batch.new_keys.drain(..).collect();
        let has_new_keys = !new_keys.is_empty();
        let batches = [(partition, batch)];
        // One that does not fit ends: the commit would wait for it.
        let locked = state.take_locked(|_| true);
        let locked = locked.filter(|locked| locked.record.head.lsn == batches[0].1.base);
        let known = match &locked {
            Some(locked) => Some(locked.record),
            None => self.known_at(partition, batches[0].1.base).await?,
        };
        let Some(known) = known else {
            return Err(EngineError::NoPartition(partition));
        };
        match self.commit_on(&batches, &[known], &new_keys, locked).await? {
            JointOutcome::Done(heads) => Ok(Outcome::Done(heads[0])),
            // The newest record was asked for again meanwhile. If it is still the base, a key that is to be new was there.
            JointOutcome::Stale
                if has_new_keys
                    && known.head.lsn == batches[0].1.base
                    && self.partitions.known(partition) == Some(known) =>
            {
                Ok(Outcome::Exists)
            }
            JointOutcome::Stale => Ok(Outcome::Stale),
            JointOutcome::Unknown(_) => Ok(Outcome::Unknown(batches[0].1.ticket())),
            JointOutcome::Refused(why) => Ok(Outcome::Refused(why)),
        }
    }

    /// See [`bolide_storage::Engine::commit_together`].
    pub(crate) async fn commit_together(
        &self,
        batches: Vec<(PartitionId, Batch)>,
    ) -> Result<JointOutcome, EngineError> {
        if batches.is_empty() {
            return Ok(JointOutcome::Done(Vec::new()));
        }
        // What is wrong with the batches themselves comes first.
        if let Some(Ok(JointOutcome::Refused(why))) = rejection(&batches, |_| None) {
            return Ok(JointOutcome::Refused(why));
        }
        let mut states: Vec<_> = batches.iter().map(|(id, _)| (*id, self.partitions.get(*id))).collect();
        // Always in the same order, so that two joint commits do not wait for each other.
        states.sort_unstable_by_key(|(id, _)| *id);
        let mut turns = Vec::with_capacity(states.len());
        for (_, state) in &states {
            turns.push(state.turn().await);
            drop(state.take_locked(|_| true));
        }
        let mut known = Vec::with_capacity(batches.len());
        for (partition, batch) in &batches {
            match self.known_at(*partition, batch.base).await? {
                Some(record) => known.push(record),
                None => return Err(EngineError::NoPartition(*partition)),
            }
        }
        self.commit_on(&batches, &known, &HashSet::new(), None).await
    }

    /// The newest record of a partition, as it is known if it is the one of `base`.
    async fn known_at(&self, partition: PartitionId, base: Lsn) -> Result<Option<CommitRecord>, EngineError> {
        let known = self.partitions.known(partition);
        if let Some(known) = known.filter(|known| known.head.lsn == base) {
            return Ok(Some(known));
        }
        self.look(partition).await
    }

    /// Asks for the newest record of a partition.
    pub(crate) async fn look(&self, partition: PartitionId) -> Result<Option<CommitRecord>, EngineError> {
        let mut asked = self.look_once(partition).await?;
        if matches!(&asked, Err(error) if error.was_closed()) {
            asked = self.look_once(partition).await?;
        }
        let record = asked.map_err(|error| error.of(partition))?;
        match record {
            Some(record) => self.partitions.learn(partition, Known::Newest(record)),
            None => self.forget(partition),
        }
        Ok(record)
    }

    async fn look_once(
        &self,
        partition: PartitionId,
    ) -> Result<Result<Option<CommitRecord>, reads::ReadError>, EngineError> {
        let mut connection = self.connection(partition.home()).await?;
        self.in_time(newest(&mut connection, partition)).await
    }

    /// Commits batches of one home on the records that are known. A joint commit has no new keys, and no lock.
    async fn commit_on(
        &self,
        batches: &[(PartitionId, Batch)],
        known: &[CommitRecord],
        new_keys: &HashSet<Key>,
        mut locked: Option<Locked>,
    ) -> Result<JointOutcome, EngineError> {
        let record = |wanted| with_records(batches, known).find(|(id, ..)| *id == wanted);
        if let Some(rejected) = rejection(batches, |id| record(id).map(|(.., record)| record.head)) {
            return rejected;
        }
        self.cover(batches).await?;
        let flight = Flight::of(with_records(batches, known), new_keys);
        if flight.new_keys.len() != new_keys.len() {
            // Of one that is put twice the server would say that it is there.
            return Ok(JointOutcome::Refused(
                "a new key is put twice, or not at all".to_owned(),
            ));
        }
        let home = batches[0].0.home();
        let _expected = self.row_cache.expect(batches);
        let mut left = FLIGHTS;
        loop {
            left -= 1;
            let Some(mut carrier) = self.carrier(home, locked.take()).await? else {
                // The lock had ended, and nothing was sent yet.
                continue;
            };
            let (connection, has_lock) = (&mut carrier.connection, carrier.lock.is_some());
            let landed = match self.in_time(flight.send(connection, home, has_lock)).await {
                Ok(Ok(landed)) => landed,
                // The lock had ended.
                Ok(Err(_)) if has_lock => continue,
                // Before anything was sent.
                Ok(Err(error)) => return Err(unavailable(&error)),
                // The flight may arrive yet; the connection is not used again.
                Err(_) => Landed::Failed(Failure::Unknown("no answer in time".to_owned())),
            };
            if matches!(landed, Landed::Failed(_)) {
                // It may lead to a server that is no longer the primary.
                carrier.connection.close();
            }
            match landed {
                Landed::Done => return Ok(self.committed(batches, known)),
                Landed::Stale => return self.look_again(batches).await,
                Landed::Failed(Failure::NotDone(_)) if left > 0 => {}
                Landed::Failed(Failure::NotDone(why)) => return Err(EngineError::Unavailable(why)),
                Landed::Failed(Failure::Refused(why)) => return Ok(JointOutcome::Refused(why)),
                Landed::Failed(Failure::Conflict) => return Ok(JointOutcome::Stale),
                Landed::Failed(Failure::Unknown(why)) => {
                    tracing::warn!(why, "the outcome of a commit is unknown");
                    return Ok(JointOutcome::unknown(batches));
                }
            }
        }
    }

    fn committed(&self, batches: &[(PartitionId, Batch)], bases: &[CommitRecord]) -> JointOutcome {
        for ((id, batch), base) in batches.iter().zip(bases) {
            self.row_cache.committed(*id, *base, batch);
            self.partitions.learn(*id, Known::Committed(CommitRecord::of(batch)));
            self.trim(*id);
        }
        JointOutcome::done(batches)
    }

    /// What a commit is that others came before: stale, or of a partition that is gone. What was known of the partitions is not used again.
    async fn look_again(&self, batches: &[(PartitionId, Batch)]) -> Result<JointOutcome, EngineError> {
        for (id, _) in batches {
            if self.look(*id).await?.is_none() {
                return Err(EngineError::NoPartition(*id));
            }
        }
        Ok(JointOutcome::Stale)
    }

    /// See [`bolide_storage::Engine::resolve`].
    pub(crate) async fn resolve(&self, partition: PartitionId, ticket: &Ticket) -> Result<Resolved, EngineError> {
        drop(self.partitions.get(partition).take_locked(|_| true));
        for _ in 0..FENCES {
            let Some(newest) = self.look(partition).await? else {
                return Err(EngineError::NoPartition(partition));
            };
            let mut connection = self.connection(partition.home()).await?;
            let asked = self.in_time(record_of(&mut connection, partition, ticket)).await?;
            if let Some(record) = asked.map_err(|error| error.of(partition))? {
                return Ok(outcome(&record, ticket));
            }
            if newest.head.lsn != ticket.base {
                let old = "the commit is too old to be resolved";
                return Err(EngineError::Unavailable(old.to_owned()));
            }
            let fenced = self.in_time(fence(&mut connection, partition, &newest, ticket)).await?;
            match fenced.map_err(|error| error.of(partition))? {
                Fenced::Done => {
                    self.partitions.learn(partition, Known::Newest(newest.fenced()));
                    return Ok(Resolved::NotDone);
                }
                Fenced::Found(record) => return Ok(outcome(&record, ticket)),
                Fenced::Moved => {}
            }
        }
        Err(EngineError::Unavailable("others commit all the time".to_owned()))
    }

    /// Makes sure that server time does not fall below the stamps of batches, before anything is stored with them (TTL-203).
    async fn cover(&self, batches: &[(PartitionId, Batch)]) -> Result<(), EngineError> {
        let stamp = batches.iter().map(|(_, batch)| batch.stamp).max().unwrap_or_default();
        if stamp > self.time.durable() {
            self.make_time_durable(UnixMillis(stamp.0.saturating_add(TIME_AHEAD_MS)))
                .await?;
        }
        // Before they can be read: no reader may see a commit before server time has reached its stamp.
        self.time.observe(stamp);
        Ok(())
    }

    /// Deletes commit records that nobody asks for any more, in the background.
    fn trim(&self, partition: PartitionId) {
        let Some(until) = self.partitions.get(partition).trimmable() else {
            return;
        };
        let Some(inner) = self.this.upgrade() else { return };
        tokio::spawn(async move {
            let (from, to) = rows::records_before(partition, until.key(partition));
            if let Ok(mut connection) = inner.connection(partition.home()).await {
                let trimmed = connection.execute(Query::Trim, partition.home(), &[&from, &to]).await;
                if let Err(error) = trimmed {
                    tracing::debug!(%partition, error = text(&error), "old commit records are still there");
                }
            }
        });
    }
}

/// Batches with the newest records of their partitions.
fn with_records<'b>(
    batches: &'b [(PartitionId, Batch)],
    known: &'b [CommitRecord],
) -> impl Iterator<Item = (PartitionId, &'b Batch, CommitRecord)> + Clone {
    let batches = batches.iter().zip(known);
    batches.map(|((id, batch), record)| (*id, batch, *record))
}

/// Server time is made durable this far ahead, so that not every commit has to.
const TIME_AHEAD_MS: i64 = 1_000;

fn outcome(record: &CommitRecord, ticket: &Ticket) -> Resolved {
    if record.token == ticket.token {
        Resolved::Done(record.head)
    } else {
        Resolved::NotDone
    }
}

/// How a fence ended.
enum Fenced {
    /// A flight that was decided on the newest record can no longer happen.
    Done,
    /// It had happened, or another one in its place.
    Found(CommitRecord),
    /// The newest record is another one by now.
    Moved,
}

/// Changes the newest record, unless the commit that a ticket names has happened.
async fn fence(
    connection: &mut Connection,
    partition: PartitionId,
    newest: &CommitRecord,
    ticket: &Ticket,
) -> Result<Fenced, reads::ReadError> {
    let (key, value, fenced) = (newest.key(partition), newest.value(), newest.fenced().value());
    connection.begin();
    connection.client().batch_execute("begin").await?;
    // Waits for a flight that has begun to write: it has locked the record.
    let changed = connection
        .execute(Query::Fence, partition.home(), &[&key, &&value[..], &&fenced[..]])
        .await;
    let (ended, how) = match changed {
        Ok(0) => ("rollback", Ok(Fenced::Moved)),
        // What that flight has written shows now.
        Ok(_) => match record_of(connection, partition, ticket).await {
            Ok(None) => ("commit", Ok(Fenced::Done)),
            Ok(Some(record)) => ("rollback", Ok(Fenced::Found(record))),
            Err(error) => ("rollback", Err(error)),
        },
        Err(error) => ("rollback", Err(error.into())),
    };
    connection.client().batch_execute(ended).await?;
    connection.end();
    how
}

/// The record of the commit that has the place of a ticket.
async fn record_of(
    connection: &mut Connection,
    partition: PartitionId,
    ticket: &Ticket,
) -> Result<Option<CommitRecord>, reads::ReadError> {
    let key = rows::ticket_key(partition, ticket);
    let found: Vec<Row> = connection.rows(Query::Record, partition.home(), &[&key]).await?;
    records(&found).map(|records| records.first().copied())
}
