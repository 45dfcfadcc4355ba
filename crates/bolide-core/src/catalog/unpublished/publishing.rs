//! The moment between the commit of a transaction and the publication of its collections.

use std::sync::atomic::{AtomicBool, Ordering};

use bolide_model::Result;
use tokio::sync::{RwLock, RwLockWriteGuard};

use super::super::Catalog;
use crate::partition::commit_times::InProgress;

/// Keeps requests from beginning in that moment.
#[derive(Default)]
pub(super) struct Gate {
    /// Held for writing between the commit of documents of other collections and the publication.
    requests: RwLock<()>,
    is_publishing: AtomicBool,
}

/// While the collections of a transaction are committed and published.
pub(crate) struct Publishing<'a> {
    is_publishing: &'a AtomicBool,
    _requests: Option<RwLockWriteGuard<'a, ()>>,
    _readers: InProgress,
}

impl Drop for Publishing<'_> {
    fn drop(&mut self) {
        self.is_publishing.store(false, Ordering::SeqCst);
    }
}

impl Catalog {
    /// Keeps readers of changes, and with `writes_others` requests that are about to begin, from seeing a commit before its collections are published.
    ///
    /// # Errors
    /// The engine's clock is too uncertain.
    pub async fn begin_publishing(&self, writes_others: bool) -> Result<Publishing<'_>> {
        let now = self.now().await?;
        let requests = match writes_others {
            true => Some(self.unpublished.gate.requests.write().await),
            false => None,
        };
        self.unpublished
            .gate
            .is_publishing
            .store(writes_others, Ordering::SeqCst);
        Ok(Publishing {
            is_publishing: &self.unpublished.gate.is_publishing,
            _requests: requests,
            _readers: self.partition.times().begin(now),
        })
    }

    /// Waits until what is committed is published. A request that begins afterwards sees all of what an earlier one has seen.
    pub async fn settled(&self) {
        if self.unpublished.gate.is_publishing.load(Ordering::SeqCst) {
            drop(self.unpublished.gate.requests.read().await);
        }
    }
}
