//! Merges tables, in the background and at a pace that leaves others room.
//!
//! The store's own threads write memtables out and nothing else: merges of theirs cannot be held back, and while one of them merges the other
//! one spins. What is done here, on a thread of its own, one merge at a time:
//!
//! - **Levelling**, as the store would do it: before the newest tables, which every read has to look into, become many.
//! - **Bringing space and speed back after deletes.** A deleted row stays in the store, with a tombstone over it, until merges have brought the
//!   tombstone down to where the row is. Levelling does that when a level has grown too large, and after a purge none grows. So once much of a key
//!   space is dead, its memtable is written out and its tables are pushed down to the last level:
//!
//! ```text
//!   memtable ──▶ level 0 ──spread──▶ level 5, small tables ──push, a few tables at a time──▶ level 6, where tombstones and what they hide go
//! ```
//!
//! Small tables on the way, because only those are merged that lie within the tables they are merged into: one that has tombstones for the whole
//! key space would have all of it rewritten at once. A merge rests between pieces while others read or write, unless writes would soon have to wait for
//! it, and ends when the store closes.
//!
//! A merge that fails (a damaged table, a full disk) takes away what it has written, and is tried again later. The store lets writes wait without end
//! where too many new tables are not merged, so they are refused before.

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
use run::{Merged, Run, is_full};

use crate::layout::SPACE_NAMES;
use crate::store::Store;
use crate::view::Views;

/// A key space is compacted when it has a tombstone for so many rows. A tombstone hides a row that is still there, mostly; so a quarter of the rows is dead
/// then, and a scan goes through a third more than what lives.
const ROWS_OF_TOMBSTONE: u64 = 8;
/// Fewer tombstones are no matter.
const MIN_TOMBSTONES: u64 = 2_000;
/// The expiry queue is compacted at so many tombstones, however long it is: it is emptied at its front, and whoever looks there walks over all of
/// them. That took 150 ms after 125,000 deletes.
const QUEUE_TOMBSTONES: u64 = 100_000;
/// How long after writes it is looked whether there is something to merge.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// How long after a merge failed the next is begun.
const RETRY: Duration = Duration::from_secs(30);
/// New tables of a key space at which writes are refused where merges fail. The store lets writes wait at thirty; some more may be on their way.
const MAX_NEW_TABLES: usize = 20;
/// Rows of a memtable that are looked at to tell how many are tombstones, after a start.
const SAMPLE: usize = 20_000;

/// Counts deletes, and compacts.
pub(super) struct Compactor {
    spaces: [Deletes; Space::ALL.len()],
    /// When to look whether a compaction is due.
    look_at: Option<Instant>,
    running: Option<JoinHandle<Merged>>,
    /// Of key spaces in which the last merge failed.
    failed: [Option<Failure>; Space::ALL.len()],
    pace: Arc<Pace>,
    monotonic: Monotonic,
    /// Whether memtables were looked at that a start has filled.
    has_looked: bool,
}

/// A merge that failed.
#[derive(Debug)]
struct Failure {
    reason: String,
    again_at: Instant,
}

/// What is known of the deletes in a key space.
#[derive(Debug, Clone, Copy, Default)]
struct Deletes {
    /// Deletes since it was last looked.
    new: u64,
    /// Tombstones in the memtable of this number.
    in_memtable: u64,
    memtable: u64,
    /// Tombstones that the last compaction had to leave.
    left: u64,
    /// When a compaction that was put off may be begun.
    again_at: Option<Instant>,
}

impl Compactor {
    /// `spare_bytes` tells how much room the disk has left beyond what must stay free.
    pub(super) fn new(
        views: Arc<Views>,
        monotonic: Monotonic,
        spare_bytes: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Compactor {
        Compactor {
            spaces: [Deletes::default(); Space::ALL.len()],
            look_at: None,
            running: None,
            failed: Default::default(),
            pace: Arc::new(Pace::new(views, monotonic.clone(), Box::new(spare_bytes))),
            monotonic,
            has_looked: false,
        }
    }

    /// Begins anew with a store that was just opened.
    pub(super) fn start(&mut self) {
        self.spaces = Default::default();
        self.failed = Default::default();
        self.has_looked = false;
        self.look_at = Some(self.monotonic.now() + LOOK_INTERVAL);
    }

    /// Counts deletes of a space.
    pub(super) fn note_deletes(&mut self, space: Space, deletes: usize) {
        self.spaces[space as usize].new += deletes as u64;
        self.note_write();
    }

    /// Something was written.
    pub(super) fn note_write(&mut self) {
        self.look_at.get_or_insert(self.monotonic.now() + LOOK_INTERVAL);
    }

    /// When to call [`Compactor::look`].
    pub(super) fn look_at(&self) -> Option<Instant> {
        self.look_at
    }

    /// Starts merging if there is something to merge.
    pub(super) fn look(&mut self, store: &Arc<Store>) {
        let now = self.monotonic.now();
        self.look_at = None;
        if self.is_running() {
            self.look_at = Some(now + LOOK_INTERVAL);
            return;
        }
        self.join();
        self.count_memtables(store);
        let waits = Space::ALL.map(|space| self.waits(space, now));
        let tried = || Space::ALL.into_iter().filter(|space| !waits[*space as usize]);
        let due: Vec<Space> = tried().filter(|space| self.is_due(*space, store, now)).collect();
        if due.is_empty() && tried().all(|space| !is_full(store, space)) {
            self.look_at = self.again_at(now);
            return;
        }
        for space in &due {
            self.spaces[*space as usize].in_memtable = 0;
        }
        let (store, pace) = (store.clone(), self.pace.clone());
        let thread = std::thread::Builder::new()
            .name("bolide-compactor".into())
            .spawn(move || Run::over(&store, &pace, waits).merge_all(&due));
        match thread {
            Ok(thread) => self.running = Some(thread),
            Err(error) => self.note_failures(Space::ALL.map(|_| Some(error.to_string()))),
        }
        self.look_at = Some(now + LOOK_INTERVAL);
    }

    /// Why nothing may be written now: merges fail, and tables become too many.
    pub(super) fn hindrance(&self, store: &Store) -> Option<&str> {
        let mut failed = Space::ALL.into_iter().zip(&self.failed);
        failed.find_map(|(space, failed)| {
            let failed = failed.as_ref()?;
            (store.space(space).l0_table_count() >= MAX_NEW_TABLES).then_some(failed.reason.as_str())
        })
    }

    /// Merges failed in these key spaces.
    pub(super) fn note_failures(&mut self, failed: [Option<String>; Space::ALL.len()]) {
        let again_at = self.monotonic.now() + RETRY;
        for ((space, failed), why) in SPACE_NAMES.iter().zip(&mut self.failed).zip(failed) {
            if let Some(why) = why {
                tracing::warn!(error = why, space, "tables were not merged");
                let reason = format!("tables of the key space {space} cannot be merged: {why}");
                *failed = Some(Failure { reason, again_at });
            }
        }
    }

    /// Whether a key space is left alone because merges of it failed a moment ago.
    fn waits(&self, space: Space, now: Instant) -> bool {
        let failed = &self.failed[space as usize];
        failed.as_ref().is_some_and(|failed| failed.again_at > now)
    }

    /// When something that is left alone now is to be tried again.
    fn again_at(&self, now: Instant) -> Option<Instant> {
        let failed = self.failed.iter().flatten().map(|failed| failed.again_at);
        let put_off = self.spaces.iter().filter_map(|known| known.again_at);
        failed.chain(put_off).filter(|at| *at > now).min()
    }

    /// Whether a compaction is under way.
    pub(super) fn is_running(&self) -> bool {
        self.running.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends a compaction under way, which must not outlive the store.
    pub(super) fn finish(&mut self) {
        self.pace.stop(true);
        self.join();
        self.pace.stop(false);
    }

    fn join(&mut self) {
        let Some(thread) = self.running.take() else { return };
        let merged = thread.join().unwrap_or_else(|_| Merged {
            failed: Space::ALL.map(|_| Some("a merge panicked".to_owned())),
            ..Merged::default()
        });
        let now = self.monotonic.now();
        for (space, left) in merged.left {
            let known = &mut self.spaces[space as usize];
            known.again_at = left.is_none().then(|| now + RETRY);
            known.left = left.unwrap_or(known.left);
        }
        for (failed, was_skipped) in self.failed.iter_mut().zip(merged.skipped) {
            failed.take_if(|_| !was_skipped);
        }
        self.note_failures(merged.failed);
    }

    fn is_due(&self, space: Space, store: &Store, now: Instant) -> bool {
        let known = self.spaces[space as usize];
        let tombstones = known.in_memtable + store.space(space).tree.tombstone_count();
        let is_put_off = known.again_at.is_some_and(|at| at > now);
        // What it could not remove it need not try again before there is more.
        !is_put_off && tombstones >= known.left + MIN_TOMBSTONES && is_much(space, tombstones, rows(store, space))
    }

    /// Counts the tombstones of memtables; those of memtables that were written out count among those of tables.
    fn count_memtables(&mut self, store: &Store) {
        for space in Space::ALL {
            let memtable = store.space(space).tree.active_memtable();
            let known = &mut self.spaces[space as usize];
            if !self.has_looked {
                let seen = memtable.iter().take(SAMPLE).filter(|row| row.is_tombstone()).count();
                let tombstones = seen * memtable.len() / memtable.len().clamp(1, SAMPLE);
                known.in_memtable = known.new.max(tombstones as u64);
            } else if known.memtable == memtable.id() {
                known.in_memtable += known.new;
            } else {
                // Some of them may be in tables by now, and count there, too.
                known.in_memtable = known.new;
            }
            (known.new, known.memtable) = (0, memtable.id());
        }
        self.has_looked = true;
    }
}

/// Whether so many tombstones among so many rows are worth a compaction.
fn is_much(space: Space, tombstones: u64, rows: u64) -> bool {
    tombstones.saturating_mul(ROWS_OF_TOMBSTONE) >= rows || (space == Space::Expiry && tombstones >= QUEUE_TOMBSTONES)
}

/// The strategy of the store's own threads: to leave tables where they are, unless nothing lies below them.
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
