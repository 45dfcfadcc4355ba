//! The retryable writes and commits of MongoDB sessions: what a session has written last, so that a retry returns the result instead of writing again
//! (mongo.md §7).
//!
//! The record of a session is written in the same commit as the documents, so it survives every crash that they survive. What it contains is the front
//! end's. A session that was not used for half an hour, after which clients do not use it again, is forgotten.

use bolide_model::{Error, Reason, UnixSeconds};
use bytes::{BufMut, Bytes, BytesMut};

use super::{DocumentBatch, Undecided};
use crate::format::keys;

/// How long a session is remembered after its last retryable write, in seconds: longer than the 30 minutes after which sessions end.
pub(crate) const REMEMBERED: i64 = 60 * 60;

const TIME_BYTES: usize = 8;

/// What a session is to remember of a transaction, written in its commit.
#[derive(Debug, Clone)]
pub struct SessionRecord {
    /// The key of the session.
    pub session: Vec<u8>,
    /// What [`DocumentBatch::session`] then returns.
    pub content: Vec<u8>,
    /// If [`DocumentBatch::session`] returns this at the commit, the transaction is refused: its client was told that it is not committed.
    pub refusal: Vec<u8>,
}

impl DocumentBatch<'_, '_> {
    /// Returns what [`DocumentBatch::set_session`] has last stored for a session.
    ///
    /// # Errors
    /// [`Undecided`].
    pub fn session(&mut self, session: &[u8]) -> Result<Option<Bytes>, Undecided> {
        let stored = self.batch().entry(&keys::session(session))?;
        Ok(stored.map(|stored| stored.slice(TIME_BYTES.min(stored.len())..)))
    }

    /// Stores the record of a transaction, in its commit.
    ///
    /// # Errors
    /// [`Undecided`]; [`Reason::WriteConflict`] if the session has stored that it is refused.
    pub(super) fn note_commit(&mut self, record: &SessionRecord) -> Result<(), Undecided> {
        if self.session(&record.session)?.as_deref() == Some(&*record.refusal) {
            return Err(Undecided::from(Error::from(Reason::WriteConflict)));
        }
        self.set_session(&record.session, &record.content)
    }

    /// Stores the retryable writes of a session, in the commit of this decision.
    ///
    /// # Errors
    /// [`Undecided`].
    pub fn set_session(&mut self, session: &[u8], writes: &[u8]) -> Result<(), Undecided> {
        let batch = self.batch();
        let (key, now) = (keys::session(session), batch.seconds());
        if let Some(last_use) = batch.entry(&key)?.as_deref().and_then(last_use) {
            batch.delete(keys::session_use(last_use, session));
        }
        let mut value = BytesMut::with_capacity(TIME_BYTES + writes.len());
        value.put_i64(now.0);
        value.put_slice(writes);
        batch.put(key, value.freeze());
        batch.put(keys::session_use(now, session), Bytes::new());
        batch.after.expect_forget(now.0.saturating_add(REMEMBERED));
        Ok(())
    }
}

fn last_use(value: &[u8]) -> Option<UnixSeconds> {
    let seconds = value.get(..TIME_BYTES)?.try_into().ok()?;
    Some(UnixSeconds(i64::from_be_bytes(seconds)))
}
