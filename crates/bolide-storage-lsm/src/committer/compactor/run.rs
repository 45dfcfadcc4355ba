//! One run of the compactor's thread: merges what is to be merged, and brings down what is due.

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
use super::{MIN_TOMBSTONES, is_much, rows};
use crate::store::Store;

/// Tables of level 0 that are merged into the next.
pub(super) const NEWEST_TABLES: u8 = 4;
/// How often to look whether the store has come to rest, or goes on with tables that are in the way.
const POLL: Duration = Duration::from_millis(10);
/// Looks in a row after which tables that are in the way are left to the next time.
const POLLS: usize = 40;
/// How long a memtable may take to be written out, and a key space to be brought down, before the rest is left to the next time.
const TURN: Duration = Duration::from_secs(60);
/// Bytes of a table that levelling writes. A table is on its way to the disk at once, and a fsync waits for it.
const TABLE_BYTES: u64 = 32 << 20;
/// The level where rows end.
const LAST_LEVEL: usize = 6;
/// Tables of the last level that tombstones are pushed into: so many, as long as they have a handy size.
const TABLES: u64 = 128;
const MIN_TABLE_BYTES: u64 = 8 << 20;
const MAX_TABLE_BYTES: u64 = 64 << 20;
/// Tables on their way down are no smaller.
const MIN_SMALL_TABLE_BYTES: u64 = 64 << 10;
/// A key space of more bytes is not merged as a whole: that takes as much space again.
const MAX_WHOLE_BYTES: u64 = 4 << 30;
/// How long the store's own threads may take to come to rest before what a failed merge has left is taken away.
const CLEARING: Duration = Duration::from_secs(5);

/// What a run came to.
#[derive(Debug, Default)]
pub(super) struct Merged {
    /// Tombstones that are left in the tables of the key spaces that were brought down; `None`: that was put off.
    pub(super) left: Vec<(Space, Option<u64>)>,
    /// Key spaces that were left alone.
    pub(super) skipped: [bool; Space::ALL.len()],
    /// Of key spaces in which a merge failed, why.
    pub(super) failed: [Option<String>; Space::ALL.len()],
}

/// One run of the thread.
pub(super) struct Run<'a> {
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
enum Progress {
    /// There is more to do.
    Further,
    /// The store is busy with these tables.
    Blocked,
    /// To the bottom.
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

    /// Merges what is to be merged, and brings down what is due.
    pub(super) fn merge_all(mut self, due: &[Space]) -> Merged {
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

    /// One merge; tells whether there was one.
    fn merge(&self, space: Space, strategy: Leveled) -> fjall::Result<bool> {
        let tree = &self.store.space(space).tree;
        let before = tree.current_version().id();
        self.attempt(space, || tree.compact(Arc::new(strategy), self.pace.gc_watermark()))?;
        let has_merged = tree.current_version().id() != before;
        if has_merged {
            self.pace.rest();
        }
        Ok(has_merged)
    }

    /// Writes the memtable of a key space out and brings its tables down to the last level. `false` if a part of it is better done later.
    fn push_down(&mut self, space: Space) -> fjall::Result<bool> {
        let (keyspace, began) = (self.store.space(space), self.pace.monotonic.now());
        keyspace.rotate_memtable()?;
        while keyspace.sealed_memtable_count() > 0 && !self.pace.is_stopped() && self.pace.monotonic.since(began) < TURN
        {
            std::thread::sleep(POLL);
        }
        let mut polls = 0;
        while polls < POLLS && !self.pace.is_stopped() && self.pace.monotonic.since(began) < TURN {
            // Where tables lie across many below them, larger merges are allowed.
            let most_bytes = if polls < POLLS / 2 {
                table_bytes(self.store, space)
            } else {
                MAX_TABLE_BYTES
            };
            match self.step_down(space, most_bytes)? {
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

    /// Merges all tables of a key space into one run, if much of it is dead still: tombstones of rows that were never there before them come to the
    /// last level without meeting any, and a table that reaches beyond the ends of those below it is not taken down. In a large store that
    /// is never much. `false` if there is no room or no time for it now.
    pub(super) fn merge_whole(&self, space: Space) -> fjall::Result<bool> {
        let tree = &self.store.space(space).tree;
        let (tombstones, bytes) = (tree.tombstone_count(), tree.disk_space());
        let is_much = tombstones >= MIN_TOMBSTONES && is_much(space, tombstones, rows(self.store, space));
        if !is_much || bytes > MAX_WHOLE_BYTES || self.pace.is_stopped() {
            return Ok(true);
        }
        if !self.pace.has_room(bytes) {
            return Ok(false);
        }
        // It may take so long that writes would wait for what it leaves undone.
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
        let deadline = self.pace.monotonic.now() + CLEARING;
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

    fn step_down(&self, space: Space, most_bytes: u64) -> fjall::Result<Progress> {
        let Some(strategy) = next_strategy(self.store, space, most_bytes) else {
            return Ok(Progress::Done);
        };
        let has_merged = self.merge(space, strategy)?;
        Ok(if has_merged {
            Progress::Further
        } else {
            Progress::Blocked
        })
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
    let small = share.clamp(MIN_SMALL_TABLE_BYTES, most_bytes);
    Some(Leveled::default().with_l0_threshold(1).with_table_target_size(small))
}

fn table_bytes(store: &Store, space: Space) -> u64 {
    (store.space(space).tree.disk_space() / TABLES).clamp(MIN_TABLE_BYTES, MAX_TABLE_BYTES)
}

/// Whether the newest tables of a key space are many enough to be merged.
pub(super) fn is_full(store: &Store, space: Space) -> bool {
    store.space(space).l0_table_count() >= usize::from(NEWEST_TABLES)
}
