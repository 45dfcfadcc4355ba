//! The transactions of sessions: at most one for each session, the newest.
//!
//! Source: mongo.md §7.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_core::{Account, CollectionChange, CollectionDefinition, Container, OpenTransaction, SessionRecord};
use bolide_model::UnixMillis;
use bolide_model::time::Monotonic;
use bolide_model::ttl::Policy;
use bolide_mql::{Code, Error, Result};
use parking_lot::Mutex;

use crate::codes;
use crate::namespace::Namespace;
use crate::sessions::SessionId;

/// The longest time of a transaction (`transactionLifetimeLimitSeconds`).
const LIFETIME: Duration = Duration::from_secs(60);
/// Maximum number of transactions that are known, ended ones included.
const TRANSACTIONS: usize = 10_000;

/// The transactions of a server.
pub struct Transactions {
    monotonic: Monotonic,
    newest: Mutex<HashMap<SessionId, Arc<SessionTransaction>>>,
}

/// The transaction of a session.
pub struct SessionTransaction {
    number: i64,
    began: Instant,
    state: Mutex<State>,
    /// Held by the command that uses it, so that its commands run one after the other.
    view: tokio::sync::Mutex<Option<Arc<OpenTransaction>>>,
    /// The collections that it has created: nobody else knows them.
    created: Mutex<HashMap<Namespace, Arc<Container>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    InProgress,
    Committed,
    Aborted,
}

impl Transactions {
    /// No transactions yet.
    pub fn new(monotonic: Monotonic) -> Transactions {
        Transactions {
            monotonic,
            newest: Mutex::default(),
        }
    }

    /// Begins a transaction; an earlier one of the session ends.
    ///
    /// # Errors
    /// `TransactionTooOld`, `ConflictingOperationInProgress`; too many transactions.
    pub fn begin(&self, session: &SessionId, number: i64) -> Result<Arc<SessionTransaction>> {
        let now = self.monotonic.now();
        let mut newest = self.newest.lock();
        if let Some(known) = newest.get(session) {
            known.check_newer(number)?;
            if known.number == number {
                let text = format!("Given transaction number {number} is already in progress or has ended");
                return Err(Error::new(Code::CONFLICTING_OPERATION_IN_PROGRESS, text));
            }
            known.fail();
        }
        if newest.len() >= TRANSACTIONS {
            newest.retain(|_, known| !known.is_over(now));
        }
        if newest.len() >= TRANSACTIONS {
            let text = format!("too many transactions are open. limit={TRANSACTIONS}");
            return Err(Error::new(Code::EXCEEDED_TIME_LIMIT, text));
        }
        let transaction = Arc::new(SessionTransaction {
            number,
            began: now,
            state: Mutex::new(State::InProgress),
            view: tokio::sync::Mutex::default(),
            created: Mutex::default(),
        });
        newest.insert(session.clone(), transaction.clone());
        Ok(transaction)
    }

    /// Returns the transaction of a session for another of its commands.
    ///
    /// # Errors
    /// `NoSuchTransaction`, `TransactionTooOld`, `TransactionCommitted`.
    pub fn find(&self, session: &SessionId, number: i64) -> Result<Arc<SessionTransaction>> {
        let known = self.newest.lock().get(session).cloned();
        let known = known.ok_or_else(|| no_such_transaction(number))?;
        known.check_newer(number)?;
        if known.number != number {
            return Err(no_such_transaction(number));
        }
        if *known.state.lock() == State::InProgress && self.monotonic.since(known.began) >= LIFETIME {
            known.fail();
        }
        Ok(known)
    }

    /// Notes that the session has sent a retryable write, which ends its transaction.
    ///
    /// # Errors
    /// `TransactionTooOld` if the session has begun a newer transaction.
    pub fn supersede(&self, session: &SessionId, number: i64) -> Result<()> {
        let known = self.newest.lock().get(session).cloned();
        let Some(known) = known else { return Ok(()) };
        known.check_newer(number)?;
        if known.number < number {
            known.fail();
        }
        Ok(())
    }

    /// Aborts the transaction of a session that has ended.
    pub fn end_session(&self, session: &SessionId) {
        if let Some(known) = self.newest.lock().remove(session) {
            known.fail();
        }
    }

    /// Aborts all transactions.
    pub fn clear(&self) {
        for (_, known) in self.newest.lock().drain() {
            known.fail();
        }
    }

    /// Aborts the transactions that last too long.
    pub fn expire(&self) {
        let now = self.monotonic.now();
        for known in self.newest.lock().values().filter(|known| known.is_over(now)) {
            known.fail();
        }
    }
}

impl SessionTransaction {
    /// Whether its next commands may read and write.
    ///
    /// # Errors
    /// `NoSuchTransaction`, `TransactionCommitted`.
    pub fn check_in_progress(&self) -> Result<()> {
        match *self.state.lock() {
            State::InProgress => Ok(()),
            State::Aborted => Err(aborted(self.number)),
            State::Committed => {
                let text = format!("Transaction with {{ txnNumber: {} }} has been committed.", self.number);
                Err(Error::new(Code::TRANSACTION_COMMITTED, text))
            }
        }
    }

    /// Returns what the transaction reads and writes; begins it on the database of a collection, if this is its first.
    ///
    /// # Errors
    /// As [`SessionTransaction::check_in_progress`]; too many snapshots are held.
    pub async fn view(
        &self,
        account: &Account,
        container: &Arc<Container>,
        now: UnixMillis,
    ) -> Result<Arc<OpenTransaction>> {
        let mut view = self.view.lock().await;
        self.check_in_progress()?;
        if let Some(view) = &*view {
            return Ok(view.clone());
        }
        let begun = account.begin_transaction(container, now, end(now)).await;
        let begun = begun.map_err(|error| codes::error(&error))?;
        let begun = Arc::new(OpenTransaction::new(begun));
        *view = Some(begun.clone());
        Ok(begun)
    }

    /// Returns what the transaction reads and writes; `None` if it has not begun on any database.
    ///
    /// # Errors
    /// As [`SessionTransaction::check_in_progress`].
    pub async fn begun_view(&self) -> Result<Option<Arc<OpenTransaction>>> {
        let view = self.view.lock().await;
        self.check_in_progress()?;
        Ok(view.clone())
    }

    /// Returns the collection of a namespace if the transaction has created it.
    pub fn created(&self, namespace: &Namespace) -> Option<Arc<Container>> {
        self.created.lock().get(namespace).cloned()
    }

    /// Whether the transaction has created the collection.
    pub fn has_created(&self, container: &Arc<Container>) -> bool {
        self.created
            .lock()
            .values()
            .any(|created| Arc::ptr_eq(created, container))
    }

    /// Creates a collection in the transaction, which begins on its database if this is its first command.
    ///
    /// # Errors
    /// Those of the core: `Conflict` if the database has a collection or a container with this name. `Unavailable` if the transaction has ended.
    pub async fn create(
        &self,
        account: &Account,
        namespace: &Namespace,
        definition: (CollectionDefinition, Policy),
        now: UnixMillis,
    ) -> bolide_model::Result<Arc<Container>> {
        let mut view = self.view.lock().await;
        if *self.state.lock() != State::InProgress {
            return Err(bolide_model::Reason::SnapshotEnded.into());
        }
        let name = (&namespace.database[..], &namespace.collection[..]);
        let container = match &*view {
            Some(view) => account.create_collection_in(view, name, definition).await?,
            None => {
                let begun = account.begin_transaction_with(name, definition, now, end(now)).await?;
                *view = Some(Arc::new(OpenTransaction::new(begun.0)));
                begun.1
            }
        };
        self.created.lock().insert(namespace.clone(), container.clone());
        Ok(container)
    }

    /// Changes the definition of a collection that the transaction has created.
    ///
    /// # Errors
    /// The errors of `decide`; as [`SessionTransaction::check_in_progress`].
    pub async fn change_created<T>(
        &self,
        container: &Arc<Container>,
        mut decide: impl FnMut(&mut CollectionChange<'_>) -> Result<T>,
    ) -> Result<T> {
        let view = self.begun_view().await?;
        let view = view.ok_or_else(|| no_such_transaction(self.number))?;
        let changed = view.change_collection(container, |change| {
            let decided = decide(change);
            change.is_cancelled |= decided.is_err();
            Ok(decided)
        });
        changed.await.map_err(|error| codes::error(&error))?
    }

    /// Commits it, and leaves the record with what it has written; doing so again succeeds.
    ///
    /// # Errors
    /// `WriteConflict`, after which it is aborted; `NoSuchTransaction`; of the storage. After an error of the storage it may have been committed: the
    /// record tells.
    pub async fn commit(&self, account: &Account, record: SessionRecord) -> Result<()> {
        let mut view = self.view.lock().await;
        match *self.state.lock() {
            State::InProgress => {}
            State::Committed => return Ok(()),
            State::Aborted => return Err(aborted(self.number)),
        }
        let Some(view) = view.take() else {
            self.end(State::Committed);
            return Ok(());
        };
        let Some(transaction) = view.take().await else {
            self.end(State::Aborted);
            return Err(aborted(self.number));
        };
        match account.commit_transaction(transaction, Some(record)).await {
            Ok(()) => {
                self.end(State::Committed);
                Ok(())
            }
            Err(error) => {
                self.end(State::Aborted);
                Err(codes::error(&error))
            }
        }
    }

    /// Aborts it: nothing of it is written.
    ///
    /// # Errors
    /// `TransactionCommitted`, `NoSuchTransaction`.
    pub async fn abort(&self) -> Result<()> {
        self.check_in_progress()?;
        self.end(State::Aborted);
        self.give_back(&mut *self.view.lock().await);
        Ok(())
    }

    /// Aborts it after one of its commands has failed, or its session has ended, if it is in progress. One that is committing goes on.
    pub fn fail(&self) {
        let mut state = self.state.lock();
        if *state == State::InProgress {
            *state = State::Aborted;
        }
        drop(state);
        if let Ok(mut view) = self.view.try_lock() {
            self.give_back(&mut view);
        }
    }

    fn end(&self, ended: State) {
        *self.state.lock() = ended;
        self.created.lock().clear();
        if let Ok(mut view) = self.view.try_lock() {
            self.give_back(&mut view);
        }
    }

    /// Gives back the snapshot and what the transaction has claimed and created, although cursors, and a command that runs, may still know it.
    fn give_back(&self, view: &mut Option<Arc<OpenTransaction>>) {
        self.created.lock().clear();
        if let Some(view) = view.take() {
            view.end();
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.began) >= LIFETIME
    }

    fn check_newer(&self, number: i64) -> Result<()> {
        if number >= self.number {
            return Ok(());
        }
        let text = format!(
            "Cannot start transaction {number} on session because a newer transaction with txnNumber {} has already \
             started on this session.",
            self.number
        );
        Err(Error::new(Code::TRANSACTION_TOO_OLD, text))
    }
}

/// The time at which a transaction that begins now must have ended.
fn end(now: UnixMillis) -> UnixMillis {
    let lifetime = i64::try_from(LIFETIME.as_millis()).unwrap_or(i64::MAX);
    UnixMillis(now.0.saturating_add(lifetime))
}

/// The error for a transaction that nobody knows.
pub fn no_such_transaction(number: i64) -> Error {
    let text = format!("Given transaction number {number} does not match any in-progress transactions.");
    Error::new(Code::NO_SUCH_TRANSACTION, text)
}

fn aborted(number: i64) -> Error {
    let text = format!("Transaction with {{ txnNumber: {number} }} has been aborted.");
    Error::new(Code::NO_SUCH_TRANSACTION, text)
}

#[cfg(test)]
mod tests;
