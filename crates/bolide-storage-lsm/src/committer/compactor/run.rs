//! One run of the compactor's thread: levels key spaces, and pushes down those that are due.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bolide_storage::Space;
use fjall::AbstractTree as _;
use fjall::compaction::Leveled;

use super::pace::Pace;
use super::{MIN_TOMBSTONES, is_worth_compacting, rows};
use crate::store::Store;

/// Number of level 0 tables that are merged into the next level.
pub(super) const NEWEST_TABLES: u8 = 4;
/// How often to check whether the store is idle, or still works on tables that block a merge.
const POLL: Duration = Duration::from_millis(10);
/// Number of checks after which blocked tables are left for the next run.
const POLLS: usize = 40;
/// The longest time to flush a memtable and push a key space down; the rest is left for the next run.
const RUN_TIMEOUT: Duration = Duration::from_secs(60);
/// Size of a table that levelling writes. A table is written to the disk at once, and a fsync waits for it.
const TABLE_BYTES: u64 = 32 << 20;
/// The last level.
const LAST_LEVEL: usize = 6;
/// Target number of tables in the last level, as long as their size is reasonable.
const LAST_LEVEL_TABLES: u64 = 128;
const MIN_TABLE_BYTES: u64 = 8 << 20;
const MAX_TABLE_BYTES: u64 = 64 << 20;
/// The minimum size of tables on their way down.
const MIN_SMALL_TABLE_BYTES: u64 = 64 << 10;
/// A key space with more bytes is not merged as a whole, because that needs the same space again.
const MAX_WHOLE_BYTES: u64 = 4 << 30;
/// How long to wait for the store's own threads to become idle, before the output of a failed merge is deleted.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(5);

/// The result of a run.
#[derive(Debug, Default)]
pub(super) struct MergeReport {
    /// The key spaces that were pushed down.
    pub(super) compactions: Vec<(Space, Compaction)>,
    /// Key spaces that were skipped.
    pub(super) skipped: [bool; Space::ALL.len()],
    /// For each key space, why a merge failed.
    pub(super) failed: [Option<String>; Space::ALL.len()],
}

/// The result of pushing a key space down.
#[derive(Debug)]
pub(super) struct Compaction {
    /// Tombstones left in its tables; `None` if a part of the work was left for later.
    pub(super) left: Option<u64>,
    pub(super) took: Duration,
}

/// One run of the thread.
pub(super) struct Run<'a> {
    store: &'a Store,
    pace: &'a Arc<Pace>,
    /// Key spaces in which a level may exceed its size.
    unlevelled: [bool; Space::ALL.len()],
    /// Key spaces to skip.
    skipped: [bool; Space::ALL.len()],
    /// For each key space, why a merge failed; it is skipped from then on.
    failed: [Option<String>; Space::ALL.len()],
}

/// The progress of a key space.
#[derive(PartialEq, Eq)]
enum Progress {
    /// There is more to do.
    Further,
    /// The store is busy with these tables.
    Blocked,
    /// All tables are in the last level.
    Done,
}

impl Run<'_> {
    pub(super) fn over<'a>(store: &'a Store, pace: &'a Arc<Pace>, skipped: [bool; Space::ALL.len()]) -> Run<'a> {
        Run {
            store,
            pace,
            unlevelled: [true; Space::ALL.len()],
            skipped,
            failed: Default::default(),
        }
    }

    /// Levels all key spaces, and pushes down those that are due.
    pub(super) fn merge_all(mut self, due: &[Space]) -> MergeReport {
        let _paced = self.pace.enter(self.store);
        let mut compactions = Vec::new();
        self.level();
        for space in due.iter().copied() {
            if self.pace.is_stopped() {
                break;
            }
            if self.is_left_alone(space) {
                continue;
            }
            let began = self.pace.monotonic.now();
            match self.push_down(space) {
                Ok(is_done) => {
                    let tombstones = self.store.space(space).tree.tombstone_count();
                    let took = self.pace.monotonic.since(began);
                    let left = is_done.then_some(tombstones);
                    compactions.push((space, Compaction { left, took }));
                }
                Err(error) => self.fail(space, &error),
            }
            self.level();
        }
        MergeReport {
            compactions,
            skipped: self.skipped,
            failed: self.failed,
        }
    }

    fn is_left_alone(&self, space: Space) -> bool {
        self.skipped[space as usize] || self.failed[space as usize].is_some()
    }

    fn fail(&mut self, space: Space, error: &fjall::Error) {
        // A merge that was ended on purpose has not failed.
        if !self.pace.is_stopped() {
            self.failed[space as usize] = Some(error.to_string());
        }
    }

    /// Levels all key spaces, beginning with those for which writes would have to wait first. If one cannot be levelled, the others still are.
    pub(super) fn level(&mut self) {
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

    /// Does one merge; returns whether there was one to do.
    fn merge(&self, space: Space, strategy: Leveled) -> fjall::Result<bool> {
        let tree = &self.store.space(space).tree;
        let before = tree.current_version().id();
        self.attempt(space, || tree.compact(Arc::new(strategy), self.pace.gc_watermark()))?;
        let has_merged = tree.current_version().id() != before;
        if has_merged {
            self.store.note_version(space);
            self.pace.rest();
        }
        Ok(has_merged)
    }

    /// Flushes the memtable of a key space and pushes its tables down to the last level. Returns `false` if a part is left for later.
    fn push_down(&mut self, space: Space) -> fjall::Result<bool> {
        let (keyspace, began) = (self.store.space(space), self.pace.monotonic.now());
        keyspace.rotate_memtable()?;
        while keyspace.sealed_memtable_count() > 0
            && !self.pace.is_stopped()
            && self.pace.monotonic.since(began) < RUN_TIMEOUT
        {
            std::thread::sleep(POLL);
        }
        let mut polls = 0;
        while polls < POLLS && !self.pace.is_stopped() && self.pace.monotonic.since(began) < RUN_TIMEOUT {
            // If tables span many tables below them, larger merges are allowed.
            let max_bytes = if polls < POLLS / 2 {
                table_bytes(self.store, space)
            } else {
                MAX_TABLE_BYTES
            };
            match self.step_down(space, max_bytes)? {
                Progress::Further => polls = 0,
                Progress::Blocked => {
                    polls += 1;
                    std::thread::sleep(POLL);
                }
                Progress::Done => break,
            }
            self.level_others(space);
        }
        self.merge_whole(space)
    }

    /// Merges all tables of a key space into one run, if much of it is still dead. This happens when tombstones of rows that never existed reach the
    /// last level without meeting any, or when a table spans beyond the ends of those below it and is not moved down. In a large store that is never
    /// much. Returns `false` if there is no space or no time for it now.
    pub(super) fn merge_whole(&self, space: Space) -> fjall::Result<bool> {
        let tree = &self.store.space(space).tree;
        let (tombstones, bytes) = (tree.tombstone_count(), tree.disk_space());
        let is_worth_compacting =
            tombstones >= MIN_TOMBSTONES && is_worth_compacting(space, tombstones, rows(self.store, space));
        if !is_worth_compacting || bytes > MAX_WHOLE_BYTES || self.pace.is_stopped() {
            return Ok(true);
        }
        if !self.pace.has_room(bytes) {
            return Ok(false);
        }
        // It may take so long that writes would wait for other merges.
        self.pace.give_way(true);
        let merged = self.attempt(space, || {
            tree.major_compact(table_bytes(self.store, space), self.pace.gc_watermark())
        });
        self.pace.give_way(false);
        if self.pace.gave_way() {
            return Ok(false);
        }
        merged.map(|()| true)
    }

    /// Merges, and deletes the output of a merge that failed: the store would keep it until it is opened again.
    fn attempt(&self, space: Space, merge: impl FnOnce() -> Result<(), fjall::LsmError>) -> fjall::Result<()> {
        let before = self.table_files(space)?;
        self.pace.begin();
        let merged = merge();
        if merged.is_err() && self.pace.is_incomplete() {
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
        // Some of these may be tables that the store's own threads are writing; they become part of the store when they are finished.
        let deadline = self.pace.monotonic.now() + CLEANUP_TIMEOUT;
        while keyspace.sealed_memtable_count() > 0 || self.store.is_busy() {
            if self.pace.is_stopped() || self.pace.monotonic.now() > deadline {
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

    fn step_down(&self, space: Space, max_bytes: u64) -> fjall::Result<Progress> {
        let Some(strategy) = next_strategy(self.store, space, max_bytes) else {
            return Ok(Progress::Done);
        };
        let has_merged = self.merge(space, strategy)?;
        Ok(if has_merged {
            Progress::Further
        } else {
            Progress::Blocked
        })
    }

    /// Levels other key spaces that have become full meanwhile.
    fn level_others(&mut self, space: Space) {
        let is_waiting = |other: &Space| *other != space && !self.is_left_alone(*other) && is_full(self.store, *other);
        if Space::ALL.iter().any(is_waiting) {
            self.level();
        }
    }
}

/// The merge that brings the tables of a key space one step further down; `None` if all are in the last level.
fn next_strategy(store: &Store, space: Space, max_bytes: u64) -> Option<Leveled> {
    let version = store.space(space).tree.current_version();
    let tables = |level: usize| version.level(level).map_or(0, |level| level.table_count());
    if (1..LAST_LEVEL).any(|level| tables(level) > 0) {
        // With a threshold of 0 no level but the last may hold anything, and lower levels come first.
        return Some(
            Leveled::default()
                .with_l0_threshold(0)
                .with_table_target_size(max_bytes),
        );
    }
    if tables(0) == 0 {
        return None;
    }
    let bytes = version.level(0).map_or(0, |level| level.size());
    // Several for each table below, because a table that overlaps two of those draws both into its merge.
    let share = bytes / (tables(LAST_LEVEL).max(1) as u64 * 8);
    let small = share.clamp(MIN_SMALL_TABLE_BYTES, max_bytes);
    Some(Leveled::default().with_l0_threshold(1).with_table_target_size(small))
}

fn table_bytes(store: &Store, space: Space) -> u64 {
    (store.space(space).tree.disk_space() / LAST_LEVEL_TABLES).clamp(MIN_TABLE_BYTES, MAX_TABLE_BYTES)
}

/// Whether a key space has enough new tables to merge.
pub(super) fn is_full(store: &Store, space: Space) -> bool {
    store.space(space).l0_table_count() >= usize::from(NEWEST_TABLES)
}
