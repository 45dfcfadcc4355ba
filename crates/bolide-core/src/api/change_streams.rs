//! Change streams over MongoDB collections.

use std::sync::Arc;
use std::time::Duration;

use bolide_model::time::CommitTime;
use bolide_model::{Result, UnixMillis};

use super::Account;
use crate::catalog::Catalog;
use crate::change_streams::{ChangeStream, IsHidden, StreamPosition, StreamScope};

impl Account {
    /// Opens a change stream that goes on after a position; `None`: with what is committed from now on. From the first stream on, all collections keep
    /// their history.
    ///
    /// # Errors
    /// From the engine.
    pub async fn open_change_stream(
        &self,
        scope: StreamScope,
        after: Option<StreamPosition>,
        is_hidden: IsHidden,
    ) -> Result<ChangeStream> {
        let catalog = self.catalog();
        if !catalog.are_changes_kept() {
            let keep = |catalog: Arc<Catalog>| async move { catalog.keep_changes().await };
            catalog.carry_out(keep).await?;
        }
        let times = &catalog.signals().times;
        let position = after.unwrap_or_else(|| StreamPosition::after(times.settled(self.server_time())));
        Ok(ChangeStream::new(catalog.clone(), scope, position, is_hidden))
    }

    /// Returns a time in the order of commits: that of the newest commit at server time `now`, or a later one.
    pub fn commit_time(&self, now: UnixMillis) -> CommitTime {
        self.catalog().signals().times.latest(now)
    }

    /// Returns how long it takes until a server time; `None` if time does not pass by itself.
    pub fn time_until(&self, at: UnixMillis) -> Option<Duration> {
        if self.runtime().has_virtual_clock() {
            return None;
        }
        let left = at.0.saturating_sub(self.server_time().0);
        Some(Duration::from_millis(u64::try_from(left).unwrap_or(0)))
    }

    /// Wakes the change streams that wait: the clock was moved.
    pub fn wake_change_streams(&self) {
        self.catalog().signals().times.wake();
    }
}
