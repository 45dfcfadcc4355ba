//! Logical sessions. A session exists from the first command that names it until it was unused for 30 minutes.
//!
//! Source: mongo.md §7.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use bolide_model::time::Monotonic;
use bolide_mql::{Code, Error, Result};
use parking_lot::Mutex;
use ring::digest;
use uuid::Uuid;

use crate::limits;

/// A session: its id, which the client chose, and its user, whom nobody else can take it from. Without authentication there is one user.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionId {
    /// `lsid.id`.
    pub id: Uuid,
    /// The name of the user.
    pub user: Option<Arc<str>>,
}

impl SessionId {
    /// Whether it belongs to a user of a database. An account key has no database.
    pub fn is_of(&self, database: &str, name: &str) -> bool {
        let user = self.user.as_deref();
        user.is_some_and(|user| user == name || user.strip_prefix(database) == Some(&format!(".{name}")))
    }

    /// What stands for its user in ids that are shown: SHA-256 of the name.
    pub fn digest(&self) -> Vec<u8> {
        let user = self.user.as_deref().unwrap_or_default();
        digest::digest(&digest::SHA256, user.as_bytes()).as_ref().to_vec()
    }
}

/// The sessions of a server.
#[derive(Debug)]
pub struct Sessions {
    monotonic: Monotonic,
    last_uses: Mutex<HashMap<SessionId, Instant>>,
}

impl Sessions {
    /// No sessions yet.
    pub fn new(monotonic: Monotonic) -> Sessions {
        Sessions {
            monotonic,
            last_uses: Mutex::default(),
        }
    }

    /// Records that a session is used, and creates it if it does not exist.
    ///
    /// # Errors
    /// `TooManyLogicalSessions`.
    pub fn touch(&self, session: &SessionId) -> Result<()> {
        let now = self.monotonic.now();
        let mut last_uses = self.last_uses.lock();
        if let Some(last_use) = last_uses.get_mut(session) {
            *last_use = now;
            return Ok(());
        }
        if last_uses.len() >= limits::SESSIONS {
            last_uses.retain(|_, last_use| now.duration_since(*last_use) < limits::SESSION_IDLE);
        }
        if last_uses.len() >= limits::SESSIONS {
            let text = "Unable to add session into the cache because the number of active sessions is too high";
            return Err(Error::new(Code::TOO_MANY_LOGICAL_SESSIONS, text));
        }
        last_uses.insert(session.clone(), now);
        Ok(())
    }

    /// Ends a session; returns whether it existed.
    pub fn end(&self, session: &SessionId) -> bool {
        self.last_uses.lock().remove(session).is_some()
    }

    /// Ends the sessions that are chosen; returns them.
    pub fn end_all(&self, is_chosen: impl Fn(&SessionId) -> bool) -> Vec<SessionId> {
        let mut last_uses = self.last_uses.lock();
        let chosen: Vec<SessionId> = last_uses.keys().filter(|session| is_chosen(session)).cloned().collect();
        last_uses.retain(|session, _| !is_chosen(session));
        chosen
    }

    /// Whether a session exists and is not idle for too long.
    pub fn is_open(&self, session: &SessionId) -> bool {
        let now = self.monotonic.now();
        let last_uses = self.last_uses.lock();
        let last_use = last_uses.get(session);
        last_use.is_some_and(|last_use| now.duration_since(*last_use) < limits::SESSION_IDLE)
    }

    /// Forgets idle sessions; returns them.
    pub fn expire(&self) -> Vec<SessionId> {
        let now = self.monotonic.now();
        let mut last_uses = self.last_uses.lock();
        let is_idle = |last_use: &Instant| now.duration_since(*last_use) >= limits::SESSION_IDLE;
        let idle = last_uses.iter().filter(|(_, last_use)| is_idle(last_use));
        let idle: Vec<SessionId> = idle.map(|(session, _)| session.clone()).collect();
        last_uses.retain(|_, last_use| !is_idle(last_use));
        idle
    }

    /// The sessions, each with the time of its last use.
    pub fn all(&self) -> Vec<(SessionId, Instant)> {
        let last_uses = self.last_uses.lock();
        let mut all: Vec<_> = last_uses.iter().map(|(session, at)| (session.clone(), *at)).collect();
        all.sort_by_key(|(session, _)| session.id);
        all
    }

    /// The number of sessions.
    pub fn count(&self) -> usize {
        self.last_uses.lock().len()
    }
}

#[cfg(test)]
mod tests;
