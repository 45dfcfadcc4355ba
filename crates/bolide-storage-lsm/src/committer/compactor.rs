//! Merges tables in the background, at a pace that leaves resources to requests.
//!
//! The store's own threads only flush memtables: their merges cannot be slowed down, and while one of them merges the other spins. Merges run here,
//! on a separate thread, one at a time:
//!
//! - **Levelling**, as the store would do it: before the newest tables, which every read has to check, become many.
//! - **Recovering space and speed after deletes.** A deleted row stays in the store, with a tombstone over it, until merges have moved the tombstone
//!   down to the level of the row. Levelling does that when a level has grown too large, and after a purge none grows. So when much of a key space is
//!   dead, its memtable is flushed and its tables are pushed down to the last level:
//!
//! ```text
//!   memtable ──▶ level 0 ──spread──▶ level 5, small tables ──push, a few tables at a time──▶ level 6, where tombstones and deleted rows are dropped
//! ```
//!
//! Tables on the way down are small because a merge rewrites the tables below that it overlaps: a table with tombstones for the whole key space would
//! have all of it rewritten at once. A merge pauses between pieces while requests read or write, unless writes would soon have to wait for it, and
//! ends when the store closes.
//!
//! A merge that fails (a damaged table, a full disk) deletes what it has written, and is retried later. If too many new tables are not merged, the
//! store makes writes wait without a limit, so they are refused before that.

mod pace;
mod run;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bolide_model::time::Monotonic;
use bolide_storage::Space;
use fjall::AbstractTree as _;
use fjall::compaction::Leveled;

use pace::Pace;
pub(crate) use pace::filter_of;
use run::{MergeReport, Run, is_full};

use crate::layout::SPACE_NAMES;
use crate::priority;
use crate::store::Store;
use crate::view::Views;

/// A key space is compacted when it has one tombstone for this many rows. Usually a tombstone hides a row that is still stored; then a quarter of the
/// rows is dead, and a scan reads a third more than the live rows.
const ROWS_OF_TOMBSTONE: u64 = 8;
/// With fewer tombstones no compaction is needed.
const MIN_TOMBSTONES: u64 = 2_000;
/// The expiry queue is compacted at this many tombstones, however long it is: rows are deleted at its front, and whoever reads there steps over all
/// of them. That took 150 ms after 125,000 deletes.
const QUEUE_TOMBSTONES: u64 = 100_000;
/// How long after writes to check whether there is something to merge.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// After a compaction, its key space rests for this many times as long as that took, while there are reads or commits, those of the purge included. Beside
/// them a compaction takes seconds, most of which are pauses, and all the time commits are slower: without rests a purge of a small store is one compaction
/// after the other.
const RESTS_OF_COMPACTION: u32 = 100;
/// While there are reads or commits, a compaction waits until its key space has one tombstone for this many rows, at most for the longest rest: during a
/// purge there is then one compaction instead of two.
const ROWS_OF_TOMBSTONE_BESIDE_REQUESTS: u64 = 4;
/// The longest rest.
const MAX_REST: Duration = Duration::from_secs(180);
/// A key space with this many tombstones does not rest if four fifths of its rows are dead: a scan of it would read ten times as much as lives.
const MAX_RESTING_TOMBSTONES: u64 = 25_000;
/// How often to check whether there are still reads or commits, while a key space rests.
const REST_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How long after a failed merge the next one starts.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);
/// Number of new tables in a key space at which writes are refused if merges fail. The store makes writes wait at thirty; some more may be in progress.
const MAX_NEW_TABLES: usize = 20;
/// Number of memtable rows sampled after a start, to estimate the tombstones among them.
const SAMPLE: usize = 20_000;

/// Counts deletes, and starts compactions.
pub(super) struct Compactor {
    spaces: [DeleteStats; Space::ALL.len()],
    /// When to check whether a compaction is due.
    next_check_at: Option<Instant>,
    running: Option<JoinHandle<MergeReport>>,
    /// For each key space, the failure of its last merge.
    failed: [Option<Failure>; Space::ALL.len()],
    pace: Arc<Pace>,
    monotonic: Monotonic,
    /// Whether the memtables that were filled at start have been sampled.
    has_sampled: bool,
}

/// A merge that failed.
#[derive(Debug)]
struct Failure {
    reason: String,
    retry_at: Instant,
}

/// The deletes known in a key space.
#[derive(Debug, Clone, Copy, Default)]
struct DeleteStats {
    /// Deletes since the last check.
    new: u64,
    /// Tombstones in the memtable with this number.
    in_memtable: u64,
    memtable: u64,
    /// Tombstones that the last compaction could not remove.
    left: u64,
    /// When a postponed compaction may start.
    retry_at: Option<Instant>,
    /// Since when a compaction has been due.
    due_since: Option<Instant>,
    /// The end of the rest after the last compaction.
    rests_until: Option<Instant>,
}

impl Compactor {
    /// `spare_bytes` returns the free bytes of the disk beyond the reserve.
    pub(super) fn new(
        views: Arc<Views>,
        monotonic: Monotonic,
        spare_bytes: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Compactor {
        Compactor {
            spaces: [DeleteStats::default(); Space::ALL.len()],
            next_check_at: None,
            running: None,
            failed: Default::default(),
            pace: Arc::new(Pace::new(views, monotonic.clone(), Box::new(spare_bytes))),
            monotonic,
            has_sampled: false,
        }
    }

    /// Resets the state for a store that was just opened.
    pub(super) fn start(&mut self) {
        self.spaces = Default::default();
        self.failed = Default::default();
        self.has_sampled = false;
        self.next_check_at = Some(self.monotonic.now() + CHECK_INTERVAL);
    }

    /// Counts deletes of a space.
    pub(super) fn note_deletes(&mut self, space: Space, deletes: usize) {
        self.spaces[space as usize].new += deletes as u64;
        self.note_write();
    }

    /// Called after a write.
    pub(super) fn note_write(&mut self) {
        self.next_check_at.get_or_insert(self.monotonic.now() + CHECK_INTERVAL);
    }

    /// When to call [`Compactor::compact_if_due`].
    pub(super) fn next_check_at(&self) -> Option<Instant> {
        self.next_check_at
    }

    /// Starts merging if there is something to merge.
    pub(super) fn compact_if_due(&mut self, store: &Arc<Store>) {
        let now = self.monotonic.now();
        self.next_check_at = None;
        if self.is_running() {
            self.next_check_at = Some(now + CHECK_INTERVAL);
            return;
        }
        self.join();
        self.count_memtables(store);
        let waits = Space::ALL.map(|space| self.waits(space, now));
        for space in Space::ALL {
            let is_due = self.is_due(space, store, now);
            let known = &mut self.spaces[space as usize];
            known.due_since = is_due.then(|| known.due_since.unwrap_or(now));
        }
        let tried = || Space::ALL.into_iter().filter(|space| !waits[*space as usize]);
        let (resting, due): (Vec<Space>, Vec<Space>) = {
            let due = tried().filter(|space| self.spaces[*space as usize].due_since.is_some());
            let has_requests = self.pace.has_foreground_load();
            due.partition(|space| has_requests && self.rests(*space, store, now))
        };
        if due.is_empty() && tried().all(|space| !is_full(store, space)) {
            let next_look = (!resting.is_empty()).then(|| now + REST_CHECK_INTERVAL);
            self.next_check_at = self.retry_at(now).into_iter().chain(next_look).min();
            return;
        }
        for space in &due {
            self.spaces[*space as usize].in_memtable = 0;
        }
        let (store, pace) = (store.clone(), self.pace.clone());
        let merge = move || Run::over(&store, &pace, waits).merge_all(&due);
        match priority::spawn("bolide-compactor", merge) {
            Ok(thread) => self.running = Some(thread),
            Err(error) => self.note_failures(Space::ALL.map(|_| Some(error.to_string()))),
        }
        self.next_check_at = Some(now + CHECK_INTERVAL);
    }

    /// Why writes must be refused now: merges fail, and there are too many new tables.
    pub(super) fn blocked_reason(&self, store: &Store) -> Option<&str> {
        let mut failed = Space::ALL.into_iter().zip(&self.failed);
        failed.find_map(|(space, failed)| {
            let failed = failed.as_ref()?;
            (store.space(space).l0_table_count() >= MAX_NEW_TABLES).then_some(failed.reason.as_str())
        })
    }

    /// Records the key spaces in which merges failed.
    pub(super) fn note_failures(&mut self, failed: [Option<String>; Space::ALL.len()]) {
        let retry_at = self.monotonic.now() + RETRY_INTERVAL;
        for ((space, failed), why) in SPACE_NAMES.iter().zip(&mut self.failed).zip(failed) {
            if let Some(why) = why {
                tracing::warn!(error = why, space, "tables were not merged");
                let reason = format!("tables of the key space {space} cannot be merged: {why}");
                *failed = Some(Failure { reason, retry_at });
            }
        }
    }

    /// Whether merges of a key space wait because the last one failed a short time ago.
    fn waits(&self, space: Space, now: Instant) -> bool {
        let failed = &self.failed[space as usize];
        failed.as_ref().is_some_and(|failed| failed.retry_at > now)
    }

    /// When to retry the key spaces that are waiting.
    fn retry_at(&self, now: Instant) -> Option<Instant> {
        let failed = self.failed.iter().flatten().map(|failed| failed.retry_at);
        let postponed = self.spaces.iter().filter_map(|known| known.retry_at);
        failed.chain(postponed).filter(|at| *at > now).min()
    }

    /// Whether a compaction is in progress.
    pub(super) fn is_running(&self) -> bool {
        self.running.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends the current compaction, which must not outlive the store.
    pub(super) fn finish(&mut self) {
        self.pace.stop(true);
        self.join();
        self.pace.stop(false);
    }

    fn join(&mut self) {
        let Some(thread) = self.running.take() else { return };
        let merged = thread.join().unwrap_or_else(|_| MergeReport {
            failed: Space::ALL.map(|_| Some("a merge panicked".to_owned())),
            ..MergeReport::default()
        });
        let now = self.monotonic.now();
        for (space, compaction) in merged.compactions {
            let known = &mut self.spaces[space as usize];
            known.retry_at = compaction.left.is_none().then(|| now + RETRY_INTERVAL);
            known.rests_until = Some(now + (compaction.took * RESTS_OF_COMPACTION).min(MAX_REST));
            known.left = compaction.left.unwrap_or(known.left);
        }
        for (failed, was_skipped) in self.failed.iter_mut().zip(merged.skipped) {
            failed.take_if(|_| !was_skipped);
        }
        self.note_failures(merged.failed);
    }

    fn tombstones(&self, space: Space, store: &Store) -> u64 {
        self.spaces[space as usize].in_memtable + store.space(space).tree.tombstone_count()
    }

    /// Whether a key space that is due rests after its last compaction, or waits for more tombstones.
    fn rests(&self, space: Space, store: &Store, now: Instant) -> bool {
        let (known, tombstones, rows) = (
            self.spaces[space as usize],
            self.tombstones(space, store),
            rows(store, space),
        );
        let rests = known.rests_until.is_some_and(|until| until > now);
        let is_new = known.due_since.is_some_and(|since| now < since + MAX_REST);
        let waits = is_new && tombstones.saturating_mul(ROWS_OF_TOMBSTONE_BESIDE_REQUESTS) < rows;
        (rests || waits) && !is_nearly_dead(space, tombstones, rows)
    }

    fn is_due(&self, space: Space, store: &Store, now: Instant) -> bool {
        let known = self.spaces[space as usize];
        let tombstones = self.tombstones(space, store);
        let is_postponed = known.retry_at.is_some_and(|at| at > now);
        // Do not retry what could not be removed before there is more.
        !is_postponed
            && tombstones >= known.left + MIN_TOMBSTONES
            && is_worth_compacting(space, tombstones, rows(store, space))
    }

    /// Counts the tombstones of memtables; those of flushed memtables count as part of the tables.
    fn count_memtables(&mut self, store: &Store) {
        for space in Space::ALL {
            let memtable = store.space(space).tree.active_memtable();
            let known = &mut self.spaces[space as usize];
            if !self.has_sampled {
                let seen = memtable.iter().take(SAMPLE).filter(|row| row.is_tombstone()).count();
                let tombstones = seen * memtable.len() / memtable.len().clamp(1, SAMPLE);
                known.in_memtable = known.new.max(tombstones as u64);
            } else if known.memtable == memtable.id() {
                known.in_memtable += known.new;
            } else {
                // Some of them may be in tables by now, and are then counted twice.
                known.in_memtable = known.new;
            }
            (known.new, known.memtable) = (0, memtable.id());
        }
        self.has_sampled = true;
    }
}

/// Whether this many tombstones among this many rows are worth a compaction.
fn is_worth_compacting(space: Space, tombstones: u64, rows: u64) -> bool {
    tombstones.saturating_mul(ROWS_OF_TOMBSTONE) >= rows || (space == Space::Expiry && tombstones >= QUEUE_TOMBSTONES)
}

/// Whether so much of a key space is dead that it must not rest. Of the rows a tombstone each, and the row under it, are dead.
fn is_nearly_dead(space: Space, tombstones: u64, rows: u64) -> bool {
    let live = rows.saturating_sub(tombstones.saturating_mul(2));
    tombstones >= MAX_RESTING_TOMBSTONES && tombstones >= live.saturating_mul(4)
        || (space == Space::Expiry && tombstones >= QUEUE_TOMBSTONES)
}

/// The strategy for the store's own threads: move tables only if nothing lies below them.
pub(crate) fn idle() -> Leveled {
    const NEVER: u64 = 1 << 40;
    Leveled::default()
        .with_l0_threshold(u8::MAX)
        .with_table_target_size(NEVER)
}

fn rows(store: &Store, space: Space) -> u64 {
    store.space(space).approximate_len() as u64
}

#[cfg(test)]
mod tests;
