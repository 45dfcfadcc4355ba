//! Open cursors: results that clients read in several batches.
//!
//! A cursor belongs to the user, and to the session if there was one, that opened it. It is closed after 10 minutes without use, when its session
//! ends, or when it has returned everything. While a batch is being made, the cursor is not in the registry, so two `getMore` cannot run at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_core::{Consumed, RequestContext};
use bolide_model::time::Monotonic;
use bolide_mql::context::Interrupt;
use bolide_mql::{Code, Error, Result};
use bson::RawDocumentBuf;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::limits;
use crate::namespace::Namespace;
use crate::sessions::SessionId;

/// The results of a query that are not returned yet.
pub trait CursorSource: Send + Sync {
    /// Makes the next batch, at the time of `request`.
    fn next_batch<'a>(&'a mut self, request: &'a BatchRequest) -> BoxFuture<'a, Result<Batch>>;
}

/// The limits of a batch.
pub struct BatchRequest {
    /// The time of the command.
    pub now: RequestContext,
    /// `batchSize`; `None`: as many as fit.
    pub max_documents: Option<usize>,
    /// Maximum size of all documents, in bytes; a batch has at least one document if there is one and `max_documents` is not 0.
    pub max_bytes: usize,
    /// `maxTimeMS` of `getMore`: how long a change stream waits for a document.
    pub max_wait: Option<Duration>,
    /// Ends work that lasts too long.
    pub interrupt: Arc<dyn Interrupt>,
    /// The request units that the command has consumed.
    pub consumed: Consumed,
}

/// A part of the results.
#[derive(Debug, Default)]
pub struct Batch {
    /// The documents.
    pub documents: Vec<RawDocumentBuf>,
    /// Whether nothing follows, so that the cursor is closed.
    pub is_last: bool,
    /// Of a change stream: where to go on.
    pub resume_token: Option<RawDocumentBuf>,
}

/// An open cursor.
pub struct Cursor {
    /// The collection, as `getMore` names it.
    pub namespace: Namespace,
    /// The user that opened it; `None` without authentication.
    pub user: Option<Arc<str>>,
    /// The session in which it was opened.
    pub session: Option<SessionId>,
    /// How long all further batches may take together: what the first one has left of `maxTimeMS`.
    pub time_left: Option<Duration>,
    /// Whether it stays open however long it is unused (`noCursorTimeout`); its session's end closes it all the same.
    pub has_no_timeout: bool,
    /// Whether it is a change stream: then it tells when its collection is dropped, and is not closed by that.
    pub is_change_stream: bool,
    /// The results.
    pub source: Box<dyn CursorSource>,
}

/// The state of a cursor in the registry.
enum Entry {
    Idle {
        cursor: Box<Cursor>,
        since: Instant,
    },
    /// A batch is being made; whether the cursor was killed meanwhile.
    InUse {
        user: Option<Arc<str>>,
        session: Option<SessionId>,
        is_change_stream: bool,
        is_killed: bool,
        killed: Arc<Notify>,
    },
}

/// The open cursors of a server.
pub struct Cursors {
    monotonic: Monotonic,
    open: Mutex<HashMap<i64, Entry>>,
}

impl Cursors {
    /// No cursors yet.
    pub fn new(monotonic: Monotonic) -> Cursors {
        Cursors {
            monotonic,
            open: Mutex::default(),
        }
    }

    /// Keeps a cursor for later batches; returns its id, which nobody can guess.
    ///
    /// # Errors
    /// There are too many.
    pub fn open(&self, cursor: Cursor) -> Result<i64> {
        let since = self.monotonic.now();
        if self.count() >= limits::CURSORS {
            self.expire();
        }
        let mut open = self.open.lock();
        if open.len() >= limits::CURSORS {
            let text = format!("too many open cursors. limit={}", limits::CURSORS);
            return Err(Error::new(Code::OPERATION_FAILED, text));
        }
        let id = loop {
            let id = random_id();
            if id != 0 && !open.contains_key(&id) {
                break id;
            }
        };
        let cursor = Box::new(cursor);
        open.insert(id, Entry::Idle { cursor, since });
        Ok(id)
    }

    /// Takes a cursor to make a batch. Give it back with [`Taken::put_back`]; otherwise it is closed.
    ///
    /// # Errors
    /// `CursorNotFound`, also for the cursors of other users; `Unauthorized` for those of other collections and sessions; 12051 while another
    /// `getMore` uses it.
    pub fn take(
        &self,
        id: i64,
        namespace: &Namespace,
        user: Option<&str>,
        session: Option<&SessionId>,
    ) -> Result<Taken<'_>> {
        let now = self.monotonic.now();
        let mut open = self.open.lock();
        let not_found = || Error::new(Code::CURSOR_NOT_FOUND, format!("cursor id {id} not found"));
        let is_change_stream = match open.get(&id) {
            Some(Entry::Idle { cursor, since }) if is_overdue(cursor, *since, now) => {
                open.remove(&id);
                return Err(not_found());
            }
            Some(Entry::Idle { cursor, .. }) if cursor.user.as_deref() == user => {
                check_use(id, cursor, namespace, session)?;
                cursor.is_change_stream
            }
            Some(Entry::InUse { user: owner, .. }) if owner.as_deref() == user => {
                return Err(Error::new(12051, format!("cursor id {id} is already in use")));
            }
            _ => return Err(not_found()),
        };
        let killed = Arc::new(Notify::new());
        let user = user.map(Arc::from);
        let in_use = Entry::InUse {
            user,
            session: session.cloned(),
            is_change_stream,
            is_killed: false,
            killed: killed.clone(),
        };
        match open.insert(id, in_use) {
            Some(Entry::Idle { cursor, .. }) => Ok(Taken {
                id,
                cursor: Some(cursor),
                cursors: self,
                killed,
            }),
            _ => Err(not_found()),
        }
    }

    /// Closes a cursor of a user; returns whether there was one.
    pub fn kill(&self, id: i64, user: Option<&str>) -> bool {
        let mut open = self.open.lock();
        match open.get_mut(&id) {
            Some(Entry::Idle { cursor, .. }) if cursor.user.as_deref() == user => {
                open.remove(&id);
                true
            }
            Some(Entry::InUse {
                user: owner,
                is_killed,
                killed,
                ..
            }) if owner.as_deref() == user => {
                *is_killed = true;
                killed.notify_one();
                true
            }
            _ => false,
        }
    }

    /// Closes the cursors of a session that has ended.
    pub fn end_session(&self, session: &SessionId) {
        self.open.lock().retain(|_, entry| match entry {
            Entry::Idle { cursor, .. } => cursor.session.as_ref() != Some(session),
            Entry::InUse {
                session: of,
                is_killed,
                killed,
                ..
            } => {
                if of.as_ref() == Some(session) {
                    *is_killed = true;
                    // It may wait for long.
                    killed.notify_one();
                }
                true
            }
        });
    }

    /// Closes the cursors of a collection, or of a whole database if `collection` is `None`: it was dropped.
    pub fn close_all_of(&self, database: &str, collection: Option<&str>) {
        self.open.lock().retain(|_, entry| match entry {
            Entry::Idle { cursor, .. } => {
                let namespace = &cursor.namespace;
                let is_its =
                    namespace.database == database && collection.is_none_or(|name| name == namespace.collection);
                !is_its || cursor.is_change_stream
            }
            Entry::InUse { .. } => true,
        });
    }

    /// Closes cursors that were unused for too long.
    pub fn expire(&self) {
        let now = self.monotonic.now();
        self.open.lock().retain(|_, entry| match entry {
            Entry::Idle { cursor, since } => !is_overdue(cursor, *since, now),
            Entry::InUse { .. } => true,
        });
    }

    /// Closes all cursors.
    pub fn clear(&self) {
        let open = std::mem::take(&mut *self.open.lock());
        // Dropped without the lock: a cursor may have the last reference to much.
        drop(open);
    }

    /// Whether a cursor is that of a change stream.
    pub fn is_change_stream(&self, id: i64) -> bool {
        match self.open.lock().get(&id) {
            Some(Entry::Idle { cursor, .. }) => cursor.is_change_stream,
            Some(Entry::InUse { is_change_stream, .. }) => *is_change_stream,
            None => false,
        }
    }

    /// The number of open cursors.
    pub fn count(&self) -> usize {
        self.open.lock().len()
    }
}

/// A cursor that was taken. It is closed when this is dropped.
pub struct Taken<'a> {
    id: i64,
    /// Set until it is put back.
    cursor: Option<Box<Cursor>>,
    cursors: &'a Cursors,
    killed: Arc<Notify>,
}

impl Taken<'_> {
    /// Makes the next batch.
    ///
    /// # Errors
    /// Errors of the query.
    pub async fn next_batch(&mut self, request: &BatchRequest) -> Result<Batch> {
        match &mut self.cursor {
            Some(cursor) => cursor.source.next_batch(request).await,
            None => Ok(Batch {
                is_last: true,
                ..Batch::default()
            }),
        }
    }

    /// How long all further batches may take together.
    pub fn time_left(&mut self) -> Option<&mut Duration> {
        self.cursor.as_mut().and_then(|cursor| cursor.time_left.as_mut())
    }

    /// Resolves when the cursor is killed.
    pub fn killed(&self) -> impl Future<Output = ()> + use<> {
        self.killed.clone().notified_owned()
    }

    /// Gives back a cursor that has more results. Returns false if it was killed meanwhile.
    pub fn put_back(mut self) -> bool {
        let since = self.cursors.monotonic.now();
        let mut open = self.cursors.open.lock();
        match (open.get_mut(&self.id), self.cursor.take()) {
            (Some(entry @ Entry::InUse { is_killed: false, .. }), Some(cursor)) => {
                *entry = Entry::Idle { cursor, since };
                true
            }
            (_, cursor) => {
                open.remove(&self.id);
                drop(open);
                drop(cursor);
                false
            }
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if self.cursor.is_some() {
            self.cursors.open.lock().remove(&self.id);
        }
    }
}

/// A random number that is not negative, from a source that cannot be predicted.
fn random_id() -> i64 {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    // The fixed bits of a UUID are at different positions in its halves.
    i64::try_from((high ^ low.rotate_left(7)) >> 1).unwrap_or_default()
}

/// Whether a cursor was unused for too long.
fn is_overdue(cursor: &Cursor, since: Instant, now: Instant) -> bool {
    !cursor.has_no_timeout && now.duration_since(since) >= limits::CURSOR_IDLE
}

fn check_use(id: i64, cursor: &Cursor, namespace: &Namespace, session: Option<&SessionId>) -> Result<()> {
    if cursor.namespace != *namespace {
        let text = format!(
            "Requested getMore on namespace '{namespace}', but cursor belongs to a different namespace {}",
            cursor.namespace
        );
        return Err(Error::new(Code::UNAUTHORIZED, text));
    }
    match (&cursor.session, session) {
        (Some(owner), Some(session)) if owner != session => Err(Error::new(
            50738,
            format!("Cannot run getMore on cursor {id}, which was created in another session"),
        )),
        (Some(_), None) => Err(Error::new(
            50737,
            format!("Cannot run getMore on cursor {id}, which was created in a session, without an lsid"),
        )),
        (None, Some(_)) => Err(Error::new(
            50736,
            format!("Cannot run getMore on cursor {id}, which was not created in a session, in a session"),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
