//! Maintenance: what the committer does between writes without a request, and when.

use std::io;
use std::time::{Duration, Instant};

use bolide_model::UnixMillis;
use fjall::PersistMode;

use super::failure::REOPEN_INTERVAL;
use super::{Committer, WATERMARK_INTERVAL, removal};
use crate::durable_watermark::Position;
use crate::presence::Presence;

/// How often to check whether the store has written tables since the last view.
pub(super) const REFRESH_INTERVAL: Duration = Duration::from_millis(250);
/// Memtables above this size are flushed while the store is idle: a fsync of the journal waits for tables that are being written, 150 ms for the
/// largest memtable here. The next open also has less to replay.
const RESTING_BYTES: u64 = 8 << 20;

impl Committer {
    /// When the thread must wake up for maintenance, if it gets no job before. Called before it sleeps.
    pub(super) fn prepare_sleep(&mut self) -> Option<Instant> {
        self.wakes_at = self.next_maintenance();
        self.wakes_at
    }

    /// Whether maintenance became due earlier than expected when the thread went to sleep; the thread must then be woken, and counts as woken.
    pub(super) fn must_wake_early(&mut self) -> bool {
        let Some(due) = self.next_maintenance() else {
            return false;
        };
        let is_late = self.wakes_at.is_none_or(|wakes_at| due < wakes_at);
        if is_late {
            self.wakes_at = Some(due);
        }
        is_late
    }

    /// The next time maintenance is due.
    pub(super) fn next_maintenance(&self) -> Option<Instant> {
        if self.is_closed {
            return None;
        }
        if let Some(failure) = &self.failure {
            return Some(failure.retry_at);
        }
        let watermark_at =
            (self.durable != self.watermark.position().numbers).then(|| self.watermark_written_at + WATERMARK_INTERVAL);
        let removal_at = (!self.removals.is_empty()).then_some(self.removal_at);
        let next_check_at = self.compactor.next_check_at();
        [
            self.persist_at,
            watermark_at,
            removal_at,
            next_check_at,
            self.refresh_at,
            self.rested_at,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    pub(super) fn do_maintenance(&mut self) {
        let now = self.monotonic.now();
        if self.next_maintenance().is_none_or(|at| at > now) {
            return;
        }
        if self.failure.is_some() {
            return self.reopen();
        }
        if self.persist_at.is_some_and(|at| at <= now) {
            self.persist(PersistMode::SyncData);
        }
        if self.durable != self.watermark.position().numbers && self.watermark_written_at + WATERMARK_INTERVAL <= now {
            // If this fails the watermark lags, which is allowed; the next write may succeed.
            let _ = self.write_watermark(self.durable_time.get());
        }
        if !self.removals.is_empty() && self.removal_at <= now {
            self.remove_some();
        }
        if self.rested_at.is_some_and(|at| at <= now) {
            self.use_rest(now);
        }
        if self.compactor.next_check_at().is_some_and(|at| at <= now)
            && let Some(store) = &self.store
        {
            self.compactor.compact_if_due(store);
            self.refresh_at.get_or_insert(now + REFRESH_INTERVAL);
        }
        if self.refresh_at.is_some_and(|at| at <= now) {
            self.refresh(now);
        }
    }

    /// Starts flushing memtables, if they are large.
    fn use_rest(&mut self, now: Instant) {
        self.rested_at = None;
        let Some(store) = &self.store else { return };
        match store.write_out_above(RESTING_BYTES) {
            Ok(true) => self.refresh_at = Some(now + REFRESH_INTERVAL),
            Ok(false) => {}
            Err(error) => {
                self.fail(&error.to_string());
            }
        }
    }

    /// Publishes a new view if the store has written tables since the last one, and checks again later if it is still writing.
    fn refresh(&mut self, now: Instant) {
        let Some(store) = &self.store else { return };
        let is_moving = store.is_busy() || self.compactor.is_running();
        self.views.expire(self.time.now());
        let is_behind = self.views.is_behind(store);
        if is_behind {
            self.views.publish(store, []);
        }
        // Tables that were merged stay on the disk for readers of earlier snapshots.
        let is_kept = store.release_versions(self.views.oldest());
        let journal = self.presence.as_ref().and_then(Presence::journal);
        let is_freeing = store.free_journals(&self.store_dir.store_path(), journal);
        self.refresh_at = (is_moving || is_behind || is_kept || is_freeing).then(|| now + REFRESH_INTERVAL);
    }

    /// Makes everything written so far durable. Returns whether this succeeded.
    pub(super) fn persist(&mut self, mode: PersistMode) -> bool {
        self.persist_at = None;
        let Some(store) = &self.store else { return false };
        match store.db.persist(mode) {
            Ok(()) => {
                self.durable = self.written;
                true
            }
            Err(error) => {
                self.fail(&self.cause_of(&error));
                false
            }
        }
    }

    /// Records how far the store and server time are durable; server time at least up to `time`.
    pub(super) fn write_watermark(&mut self, time: UnixMillis) -> io::Result<()> {
        self.watermark_written_at = self.monotonic.now();
        let position = Position {
            numbers: self.durable,
            time: time.max(self.durable_time.get()),
        };
        let written = self.watermark.write(position);
        match &written {
            Ok(()) => self.durable_time.raise(position.time),
            Err(error) => tracing::warn!(
                %error,
                "the durable watermark was not written: until it is, a crash may set server time back"
            ),
        }
        self.watermark_failed = written.is_err();
        written
    }

    /// Deletes some rows of a removed partition; only a few at a time, so that commits do not wait.
    fn remove_some(&mut self) {
        let is_tight = self.options.free_space.at(self.store_dir.path()) < self.options.reserve_bytes / 2;
        self.removal_at = self.monotonic.now() + if is_tight { REOPEN_INTERVAL } else { removal::PAUSE };
        let (false, Some(store), Some(removal)) = (is_tight, self.store.clone(), self.removals.front_mut()) else {
            return;
        };
        match removal.advance(&store) {
            Ok(None) => {
                self.removals.pop_front();
            }
            Ok(Some((space, deletes))) => self.compactor.note_deletes(space, deletes),
            Err(error) => {
                self.fail(&error.to_string());
            }
        }
    }
}
