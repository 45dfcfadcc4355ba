//! The gates of a container, the guards of those who have passed them, and the right to replace its state.

use std::sync::Arc;

use bolide_model::UnixMillis;
use parking_lot::Mutex;
use tokio::sync::{OwnedRwLockReadGuard, RwLockReadGuard, RwLockWriteGuard};

use super::{Container, ContainerState, history};
use crate::partition::SettingsNumber;

/// A request inside a container, and the state of the container that it uses.
pub(crate) struct ReadGuard<'a> {
    pub(super) _gate: RwLockReadGuard<'a, ()>,
    pub state: Arc<ContainerState>,
}

/// Like [`ReadGuard`], without borrowing the container.
pub(crate) struct OwnedReadGuard {
    pub(super) _gate: OwnedRwLockReadGuard<()>,
    pub state: Arc<ContainerState>,
}

/// A gate for each kind of request. A change takes the gates in the order of how long it may wait for each, the longest first: while it waits for a
/// script, pages and short requests continue; while it waits for a page, short requests continue. New requests of a kind wait together with the
/// change for old ones of their kind, never for those of a longer kind.
#[derive(Default)]
pub(super) struct Gates {
    pub(super) uninterruptible: tokio::sync::RwLock<()>,
    pub(super) interruptible: Arc<tokio::sync::RwLock<()>>,
    pub(super) short: tokio::sync::RwLock<()>,
}

/// Keeps long requests out of a container. See [`Container::hold_long_work`].
pub(crate) struct LongWorkHold<'a> {
    pub(super) gates: Vec<RwLockWriteGuard<'a, ()>>,
    pub(super) container: &'a Container,
}

impl<'a> LongWorkHold<'a> {
    /// Waits until no short request is in progress, and keeps new ones out, too.
    pub async fn lock(self) -> WriteGuard<'a> {
        WriteGuard {
            _short: self.container.gates.short.write().await,
            _long: self.gates,
            container: self.container,
            sealed: Mutex::new(None),
        }
    }
}

/// A change of settings that other servers wait for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sealed {
    /// The number that the settings will have.
    pub number: SettingsNumber,
    /// The latest stamp of the heads that have it.
    pub stamp: UnixMillis,
}

/// The right to replace a container's state.
pub(crate) struct WriteGuard<'a> {
    _short: RwLockWriteGuard<'a, ()>,
    _long: Vec<RwLockWriteGuard<'a, ()>>,
    container: &'a Container,
    /// Present while other servers wait for the change, too.
    sealed: Mutex<Option<Sealed>>,
}

impl WriteGuard<'_> {
    /// Returns the state of the container; once the change is sealed, as it alone may use it.
    pub fn state(&self) -> Arc<ContainerState> {
        match self.sealed() {
            None => self.container.state(),
            Some(sealed) => Arc::new(self.container.state().over(sealed.number)),
        }
    }

    /// Returns how other servers wait for the change; `None` if they do not.
    pub fn sealed(&self) -> Option<Sealed> {
        *self.sealed.lock()
    }

    pub fn seal(&self, sealed: Option<Sealed>) {
        *self.sealed.lock() = sealed;
    }

    /// Replaces the state by that of a deleted container: requests that still find it end.
    pub fn mark_deleted(&self) {
        self.replace(ContainerState {
            is_deleted: true,
            ..(*self.state()).clone()
        });
    }

    pub fn replace(&self, state: ContainerState) {
        let since = state.layout.partitions.first().map(|partition| partition.given_time());
        history::tell_endings(Some(&self.container.state()), &state, since.unwrap_or_default());
        *self.container.state.write() = Arc::new(state);
    }
}
