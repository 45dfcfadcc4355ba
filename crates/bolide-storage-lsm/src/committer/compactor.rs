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

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bolide_storage::Space;
use fjall::AbstractTree as _;
use fjall::compaction::Leveled;

use pace::Pace;
pub(crate) use pace::filter_of;

use crate::layout::SPACE_NAMES;
use crate::store::Store;
use crate::view::Views;

/// A key space is compacted when it has a tombstone for so many rows. A tombstone hides a row that is still there, mostly; so a quarter of the rows is dead
/// then, and a scan goes through a third more than what lives.
const ROWS_OF_TOMBSTONE: u64 = 8;
/// Fewer tombstones are no matter.
const LEAST_TOMBSTONES: u64 = 2_000;
/// The expiry queue is compacted at so many tombstones, however long it is: it is emptied at its front, and whoever looks there walks over all of
/// them. That took 150 ms after 125,000 deletes.
const QUEUE_TOMBSTONES: u64 = 100_000;
/// How long after writes it is looked whether there is something to merge.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// How often to look whether the store has come to rest, or goes on with tables that are in the way.
const POLL: Duration = Duration::from_millis(10);
/// Looks in a row after which tables that are in the way are left to the next time.
const POLLS: usize = 40;
/// How long a memtable may take to be written out, and a key space to be brought down, before the rest is left to the next time.
const TURN: Duration = Duration::from_secs(60);
/// Tables of level 0 that are merged into the next.
const NEWEST_TABLES: u8 = 4;
/// Bytes of a table that levelling writes. A table is on its way to the disk at once, and a fsync waits for it.
const TABLE_BYTES: u64 = 32 << 20;
/// The level where rows end.
const LAST_LEVEL: usize = 6;
/// Tables of the last level that tombstones are pushed into: so many, as long as they have a handy size.
const TABLES: u64 = 128;
const LEAST_TABLE_BYTES: u64 = 8 << 20;
const MOST_TABLE_BYTES: u64 = 64 << 20;
/// Tables on their way down are no smaller.
const LEAST_SMALL_TABLE_BYTES: u64 = 64 << 10;
/// A key space of more bytes is not merged as a whole: that takes as much space again.
const MOST_WHOLE_BYTES: u64 = 4 << 30;
/// How long after a merge failed the next is begun.
const RETRY: Duration = Duration::from_secs(30);
/// New tables of a key space at which writes are refused where merges fail. The store lets writes wait at thirty; some more may be on their way.
const MOST_NEW_TABLES: usize = 20;
/// How long the store's own threads may take to come to rest before what a failed merge has left is taken away.
const CLEARING: Duration = Duration::from_secs(5);
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
    /// Whether memtables were looked at that a start has filled.
    has_looked: bool,
}

/// What a run came to.
#[derive(Debug, Default)]
struct Merged {
    /// Tombstones that are left in the tables of the key spaces that were brought down; `None`: that was put off.
    left: Vec<(Space, Option<u64>)>,
    /// Key spaces that were left alone.
    skipped: [bool; Space::ALL.len()],
    /// Of key spaces in which a merge failed, why.
    failed: [Option<String>; Space::ALL.len()],
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
    pub(super) fn new(views: Arc<Views>, spare_bytes: impl Fn() -> u64 + Send + Sync + 'static) -> Compactor {
        Compactor {
            spaces: [Deletes::default(); Space::ALL.len()],
            look_at: None,
            running: None,
            failed: Default::default(),
            pace: Arc::new(Pace::new(views, Box::new(spare_bytes))),
            has_looked: false,
        }
    }

    /// Begins anew with a store that was just opened.
    pub(super) fn start(&mut self, now: Instant) {
        self.spaces = Default::default();
        self.failed = Default::default();
        self.has_looked = false;
        self.look_at = Some(now + LOOK_INTERVAL);
    }

    /// Counts deletes of a space.
    pub(super) fn note_deletes(&mut self, space: Space, deletes: usize) {
        self.spaces[space as usize].new += deletes as u64;
        self.note_write();
    }

    /// Something was written.
    pub(super) fn note_write(&mut self) {
        self.look_at.get_or_insert_with(|| Instant::now() + LOOK_INTERVAL);
    }

    /// When to call [`Compactor::look`].
    pub(super) fn look_at(&self) -> Option<Instant> {
        self.look_at
    }

    /// Starts merging if there is something to merge.
    pub(super) fn look(&mut self, store: &Arc<Store>, now: Instant) {
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
            (store.space(space).l0_table_count() >= MOST_NEW_TABLES).then_some(failed.reason.as_str())
        })
    }

    /// Merges failed in these key spaces.
    pub(super) fn note_failures(&mut self, failed: [Option<String>; Space::ALL.len()]) {
        let again_at = Instant::now() + RETRY;
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
        for (space, left) in merged.left {
            let known = &mut self.spaces[space as usize];
            known.again_at = left.is_none().then(|| Instant::now() + RETRY);
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
        !is_put_off && tombstones >= known.left + LEAST_TOMBSTONES && is_much(space, tombstones, rows(store, space))
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

/// Whether the newest tables of a key space are many enough to be merged.
fn is_full(store: &Store, space: Space) -> bool {
    store.space(space).l0_table_count() >= usize::from(NEWEST_TABLES)
}

/// The strategy of the store's own threads: to leave tables where they are, unless nothing lies below them.
pub(crate) fn idle() -> Leveled {
    const NEVER: u64 = 1 << 40;
    Leveled::default()
        .with_l0_threshold(u8::MAX)
        .with_table_target_size(NEVER)
}

/// One run of the thread.
struct Run<'a> {
    store: &'a Store,
    pace: &'a Arc<Pace>,
    /// Key spaces in which a level may hold more than it should.
    unlevelled: [bool; Space::ALL.len()],
    /// Key spaces that are left alone.
    skipped: [bool; Space::ALL.len()],
    /// Of key spaces in which a merge failed, why: these are left alone from then on.
    failed: [Option<String>; Space::ALL.len()],
}

/// How far a key space was brought.
#[derive(PartialEq, Eq)]
enum Down {
    /// There is more to do.
    Further,
    /// The store is busy with these tables.
    Blocked,
    /// To the bottom.
    Done,
}

impl Run<'_> {
    fn over<'a>(store: &'a Store, pace: &'a Arc<Pace>, skipped: [bool; Space::ALL.len()]) -> Run<'a> {
        Run {
            store,
            pace,
            unlevelled: [true; Space::ALL.len()],
            skipped,
            failed: Default::default(),
        }
    }

    /// Merges what is to be merged, and brings down what is due.
    fn merge_all(mut self, due: &[Space]) -> Merged {
        let _paced = self.pace.enter(self.store);
        let mut left = Vec::new();
        self.level();
        for space in due.iter().copied() {
            if self.pace.is_stopped() {
                break;
            }
            if self.is_left_alone(space) {
                continue;
            }
            match self.push_down(space) {
                Ok(is_done) => {
                    let tombstones = self.store.space(space).tree.tombstone_count();
                    left.push((space, is_done.then_some(tombstones)));
                }
                Err(error) => self.fail(space, &error),
            }
            self.level();
        }
        Merged {
            left,
            skipped: self.skipped,
            failed: self.failed,
        }
    }

    fn is_left_alone(&self, space: Space) -> bool {
        self.skipped[space as usize] || self.failed[space as usize].is_some()
    }

    fn fail(&mut self, space: Space, error: &fjall::Error) {
        // A merge that was ended has not failed.
        if !self.pace.is_stopped() {
            self.failed[space as usize] = Some(error.to_string());
        }
    }

    /// Levels all key spaces: those first that writes would have to wait for first. One that cannot be levelled does not keep it from the others.
    fn level(&mut self) {
        let mut blocked = [false; Space::ALL.len()];
        while !self.pace.is_stopped() {
            let space = Space::ALL
                .into_iter()
                .filter(|space| !blocked[*space as usize] && !self.is_left_alone(*space))
                .filter(|space| self.unlevelled[*space as usize] || is_full(self.store, *space))
                .max_by_key(|space| self.store.space(*space).l0_table_count());
            let Some(space) = space else { break };
            let strategy = Leveled::default()
                .with_l0_threshold(NEWEST_TABLES)
                .with_table_target_size(TABLE_BYTES);
            match self.merge(space, strategy) {
                Ok(has_moved) => {
                    self.unlevelled[space as usize] = has_moved;
                    blocked[space as usize] = !has_moved;
                }
                Err(error) => self.fail(space, &error),
            }
        }
    }

    /// One merge; tells whether there was one.
    fn merge(&self, space: Space, strategy: Leveled) -> fjall::Result<bool> {
        let tree = &self.store.space(space).tree;
        let before = tree.current_version().id();
        self.attempt(space, || tree.compact(Arc::new(strategy), self.pace.watermark()))?;
        let has_merged = tree.current_version().id() != before;
        if has_merged {
            self.pace.rest();
        }
        Ok(has_merged)
    }

    /// Writes the memtable of a key space out and brings its tables down to the last level. `false` if a part of it is better done later.
    fn push_down(&mut self, space: Space) -> fjall::Result<bool> {
        let (keyspace, began) = (self.store.space(space), Instant::now());
        keyspace.rotate_memtable()?;
        while keyspace.sealed_memtable_count() > 0 && !self.pace.is_stopped() && began.elapsed() < TURN {
            std::thread::sleep(POLL);
        }
        let mut polls = 0;
        while polls < POLLS && !self.pace.is_stopped() && began.elapsed() < TURN {
            // Where tables lie across many below them, larger merges are allowed.
            let most_bytes = if polls < POLLS / 2 {
                table_bytes(self.store, space)
            } else {
                MOST_TABLE_BYTES
            };
            match self.step_down(space, most_bytes)? {
                Down::Further => polls = 0,
                Down::Blocked => {
                    polls += 1;
                    std::thread::sleep(POLL);
                }
                Down::Done => break,
            }
            self.level_others(space);
        }
        self.merge_whole(space)
    }

    /// Merges all tables of a key space into one run, if much of it is dead still: tombstones of rows that were never there before them come to the
    /// last level without meeting any, and a table that reaches beyond the ends of those below it is not taken down. In a large store that
    /// is never much. `false` if there is no room or no time for it now.
    fn merge_whole(&self, space: Space) -> fjall::Result<bool> {
        let tree = &self.store.space(space).tree;
        let (tombstones, bytes) = (tree.tombstone_count(), tree.disk_space());
        let is_much = tombstones >= LEAST_TOMBSTONES && is_much(space, tombstones, rows(self.store, space));
        if !is_much || bytes > MOST_WHOLE_BYTES || self.pace.is_stopped() {
            return Ok(true);
        }
        if !self.pace.has_room(bytes) {
            return Ok(false);
        }
        // It may take so long that writes would wait for what it leaves undone.
        self.pace.give_way(true);
        let merged = self.attempt(space, || {
            tree.major_compact(table_bytes(self.store, space), self.pace.watermark())
        });
        self.pace.give_way(false);
        if self.pace.gave_way() {
            return Ok(false);
        }
        merged.map(|()| true)
    }

    /// Merges, and takes away what a merge has written that did not come to its end: the store would leave it lying until it is opened again.
    fn attempt(&self, space: Space, merge: impl FnOnce() -> Result<(), fjall::LsmError>) -> fjall::Result<()> {
        let before = self.table_files(space)?;
        self.pace.begin();
        let merged = merge();
        if merged.is_err() && self.pace.is_cut_short() {
            let cleared = self.clear_away(space, &before);
            if let Err(error) = cleared {
                tracing::warn!(%error, "what a merge has left is there until the store is opened again");
            }
        }
        Ok(merged?)
    }

    fn clear_away(&self, space: Space, before: &HashSet<PathBuf>) -> io::Result<()> {
        let keyspace = self.store.space(space);
        let written: Vec<PathBuf> = self.table_files(space)?.difference(before).cloned().collect();
        // Among these may be tables that the store's own threads are writing, and which belong to it when that is done.
        let deadline = Instant::now() + CLEARING;
        while keyspace.sealed_memtable_count() > 0 || self.store.is_busy() {
            if self.pace.is_stopped() || Instant::now() > deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::sleep(POLL);
        }
        let version = keyspace.tree.current_version();
        let tables: HashSet<PathBuf> = version.iter_tables().map(|table| table.path.to_path_buf()).collect();
        let is_ours = |path: &&PathBuf| !tables.contains(*path);
        written.iter().filter(is_ours).try_for_each(fs::remove_file)
    }

    fn table_files(&self, space: Space) -> io::Result<HashSet<PathBuf>> {
        let tables = self.store.space(space).path().join("tables");
        fs::read_dir(tables)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect()
    }

    fn step_down(&self, space: Space, most_bytes: u64) -> fjall::Result<Down> {
        let Some(strategy) = next_strategy(self.store, space, most_bytes) else {
            return Ok(Down::Done);
        };
        let has_merged = self.merge(space, strategy)?;
        Ok(if has_merged { Down::Further } else { Down::Blocked })
    }

    /// What has become full meanwhile does not wait for the end.
    fn level_others(&mut self, space: Space) {
        let is_waiting = |other: &Space| *other != space && !self.is_left_alone(*other) && is_full(self.store, *other);
        if Space::ALL.iter().any(is_waiting) {
            self.level();
        }
    }
}

/// What brings the tables of a key space one step further down; `None` if all are at the bottom.
fn next_strategy(store: &Store, space: Space, most_bytes: u64) -> Option<Leveled> {
    let version = store.space(space).tree.current_version();
    let tables = |level: usize| version.level(level).map_or(0, |level| level.table_count());
    if (1..LAST_LEVEL).any(|level| tables(level) > 0) {
        // With a threshold of 0 no level may hold anything but the last, and lower ones come first.
        return Some(
            Leveled::default()
                .with_l0_threshold(0)
                .with_table_target_size(most_bytes),
        );
    }
    if tables(0) == 0 {
        return None;
    }
    let bytes = version.level(0).map_or(0, |level| level.size());
    // Several for each table below them, since one that lies across two draws both in.
    let share = bytes / (tables(LAST_LEVEL).max(1) as u64 * 8);
    let small = share.clamp(LEAST_SMALL_TABLE_BYTES, most_bytes);
    Some(Leveled::default().with_l0_threshold(1).with_table_target_size(small))
}

fn rows(store: &Store, space: Space) -> u64 {
    store.space(space).approximate_len() as u64
}

fn table_bytes(store: &Store, space: Space) -> u64 {
    (store.space(space).tree.disk_space() / TABLES).clamp(LEAST_TABLE_BYTES, MOST_TABLE_BYTES)
}

#[cfg(test)]
mod tests;
