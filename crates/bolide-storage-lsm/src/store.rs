//! The LSM store itself: opening it, and reading the engine's own rows.

use std::any::Any;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_model::Lsn;
use bolide_model::time::Monotonic;
use bolide_storage::{Head, PartitionId, Space};
use fjall::config::{BlockSizePolicy, CompressionPolicy, RestartIntervalPolicy};
use fjall::{
    AbstractTree as _, CompressionType, Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, Readable, SeqNo,
    Snapshot,
};

use crate::committer::{filter_of, idle};
use crate::deleted_journals::DeletedJournals;
use crate::durable_watermark::Numbers;
use crate::error::open_error;
use crate::layout::{HeadRow, Kind, SPACE_NAMES, Sequence, sequence_key};
use crate::memtables::Memtables;
use crate::tables::{self, Damage};
use crate::versions::Versions;
use crate::{Durability, LsmOptions, OpenError, journal, priority};

/// Memtable size per space. Small where rows are small: a space that is rarely flushed keeps old journals alive. With 16 MiB for items and indexes a
/// store is loaded 15 % more slowly, and the longest pause is no shorter since journals are written ahead.
const MEMTABLE_BYTES: [u64; Space::ALL.len()] = [64 << 20, 16 << 20, 8 << 20, 32 << 20, 4 << 20];
/// Bytes of a block of items, which are not compressed. Scans of a large store pay for each block (a read, a checksum, a cache entry) and for
/// decompression; they take half the time they take with the store's default of 4 KiB and LZ4, at one and a half times the disk space.
const ITEM_BLOCK_BYTES: u32 = 16 << 10;
/// Items that share the beginning of a key in a block. A block has few, and those before the one that is looked for would have to be decoded: with the store's default
/// of 16 all of them.
const ITEM_RESTART_INTERVAL: u8 = 1;
/// The minimum that the store accepts.
const MIN_JOURNAL_BYTES: u64 = 64 << 20;
/// The minimum that the store accepts.
const MIN_CACHED_FILES: usize = 10;
/// They flush memtables; tables are merged by the compactor.
const WORKERS: usize = 2;
/// Time between checks whether memtables are flushed, while somebody waits for it: a flush takes a few milliseconds.
const FLUSH_CHECK_INTERVAL: Duration = Duration::from_micros(200);

/// An open store.
pub(crate) struct Store {
    /// The first to be dropped, while the store is locked.
    versions: Versions,
    pub(crate) db: Database,
    /// In the order of [`Space::ALL`].
    pub(crate) spaces: [Keyspace; Space::ALL.len()],
    pub(crate) damage: Damage,
    memtables: Memtables,
    journals: DeletedJournals,
}

/// What the engine finds when it opens a store.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) heads: Vec<(PartitionId, HeadRow)>,
    /// Removed partitions whose rows are not all deleted yet.
    pub(crate) removals: Vec<PartitionId>,
    /// The newest write of each space.
    pub(crate) numbers: Numbers,
    /// The newest write of all spaces.
    pub(crate) newest: Sequence,
}

impl Store {
    /// Opens the store at `path`, or creates one.
    pub(crate) fn open(path: &Path, options: &LsmOptions) -> Result<Store, OpenError> {
        remove_unfinished(path)?;
        // In the other modes a power loss may leave gaps before data that it kept, which their promise allows.
        if options.durability == Durability::Sync && !options.accept_data_loss {
            journal::check(path)?;
        }
        // The store panics on some damaged files instead of returning an error.
        let opened = catch_unwind(AssertUnwindSafe(|| open_database(path, options)));
        match opened {
            Ok(opened) => {
                let store = opened.map_err(|error| open_error(path.to_owned(), error))?;
                if options.verify_tables {
                    tables::verify(&store).map_err(OpenError::Corrupt)?;
                }
                Ok(store)
            }
            Err(panic) => Err(OpenError::Corrupt(panic_text(panic.as_ref()))),
        }
    }

    pub(crate) fn space(&self, space: Space) -> &Keyspace {
        &self.spaces[space as usize]
    }

    /// Reads the engine's own rows.
    pub(crate) fn find(&self, path: &Path) -> Result<Found, OpenError> {
        let snapshot = self.db.snapshot();
        let failed = |error| open_error(path.to_owned(), error);
        let mut found = Found {
            heads: Vec::new(),
            removals: Vec::new(),
            numbers: Numbers::default(),
            newest: Sequence::NONE,
        };
        for space in Space::ALL {
            let row = snapshot.get(self.space(space), sequence_key()).map_err(failed)?;
            let Some(row) = row else { continue };
            let sequence = Sequence::decode(&row).ok_or_else(|| corrupt_row("sequence"))?;
            found.numbers[space as usize] = sequence.number;
            if sequence.number > found.newest.number {
                found.newest = sequence;
            }
        }
        for row in self.own_rows(&snapshot, Kind::Head) {
            let (key, value) = row.map_err(failed)?;
            let head = Kind::partition(&key).zip(HeadRow::decode(&value));
            found.heads.push(head.ok_or_else(|| corrupt_row("head"))?);
        }
        for row in self.own_rows(&snapshot, Kind::Removal) {
            let (key, _) = row.map_err(failed)?;
            found
                .removals
                .push(Kind::partition(&key).ok_or_else(|| corrupt_row("removal"))?);
        }
        Ok(found)
    }

    /// Gives each partition whose head has a lower number than `least` a head with that number. It is durable
    /// with the next write; until then it is done again at each open.
    pub(crate) fn raise_heads(&self, found: &mut Found, least: Lsn) -> fjall::Result<()> {
        let mut batch = OwnedWriteBatch::with_capacity(self.db.clone(), found.heads.len() + 1)
            .durability(Some(fjall::PersistMode::Buffer));
        let meta = self.space(Space::Meta);
        let mut is_raised = false;
        for (partition, row) in found.heads.iter_mut().filter(|(_, row)| row.head.lsn < least) {
            *row = HeadRow::created(Head { lsn: least, ..row.head });
            batch.insert(meta, Kind::Head.key(*partition), row.encode());
            is_raised = true;
        }
        if !is_raised {
            return Ok(());
        }
        found.newest.number += 1;
        batch.insert(meta, sequence_key(), found.newest.encode());
        batch.commit()?;
        found.numbers[Space::Meta as usize] = found.newest.number;
        Ok(())
    }

    /// Whether memtables are being flushed.
    pub(crate) fn is_flushing(&self) -> bool {
        self.spaces.iter().any(|space| space.sealed_memtable_count() > 0)
    }

    /// Whether tables are being written.
    pub(crate) fn is_busy(&self) -> bool {
        self.db.outstanding_flushes() > 0 || self.db.active_compactions() > 0
    }

    /// Flushes all memtables, so that everything is in tables, and waits for it until `deadline`. Returns whether it is done. Call it only while nothing
    /// is written.
    pub(crate) fn write_out_all(&self, monotonic: &Monotonic, deadline: Instant) -> fjall::Result<bool> {
        self.begin_writing_out()?;
        let has_rows = |space: &Keyspace| space.sealed_memtable_count() > 0 || space.tree.active_memtable().size() > 0;
        while self.spaces.iter().any(has_rows) {
            if monotonic.now() >= deadline {
                return Ok(false);
            }
            // Fails if a flush has failed.
            self.db.persist(fjall::PersistMode::Buffer)?;
            std::thread::sleep(FLUSH_CHECK_INTERVAL);
        }
        Ok(true)
    }

    /// Starts flushing memtables if they have more than `bytes`, or if they keep journals besides the current one. Returns whether it did.
    pub(crate) fn write_out_above(&self, bytes: u64) -> fjall::Result<bool> {
        let is_above = self.db.write_buffer_size() > bytes || self.db.journal_count() > 1;
        if is_above {
            self.begin_writing_out()?;
        }
        Ok(is_above)
    }

    /// Deletes tables that were merged into others, and frees memtables that were flushed, if no reader at `oldest` or later can read them. Returns whether
    /// some are kept: call it again a little later.
    pub(crate) fn release_versions(&self, oldest: SeqNo) -> bool {
        self.memtables.note_active(&self.spaces);
        let is_kept = self.versions.release(&self.spaces, oldest);
        self.memtables.free_unused();
        is_kept
    }

    /// Frees journals that the store has deleted. `journal`: the current one of the store at `path`. Returns whether to call it again a little later.
    pub(crate) fn free_journals(&self, path: &Path, journal: Option<u64>) -> bool {
        if let Some(number) = journal {
            self.journals.note(path, number);
        }
        self.journals.free()
    }

    /// Called when tables of a key space were merged.
    pub(crate) fn note_version(&self, space: Space) {
        self.versions.note_current(space, self.space(space));
    }

    /// As [`Store::release_versions`], until nothing is kept for a reader that is gone.
    #[cfg(test)]
    pub(crate) fn release_all_versions(&self, oldest: SeqNo) {
        while self.release_versions(oldest) {
            self.versions.wait();
        }
    }

    fn begin_writing_out(&self) -> fjall::Result<()> {
        self.spaces
            .iter()
            .try_for_each(|space| space.rotate_memtable().map(drop))
    }

    fn own_rows(&self, snapshot: &Snapshot, kind: Kind) -> impl Iterator<Item = fjall::Result<fjall::KvPair>> {
        let (from, to) = kind.range();
        snapshot
            .range(self.space(Space::Meta), from..to)
            .map(fjall::Guard::into_inner)
    }
}

fn open_database(path: &Path, options: &LsmOptions) -> fjall::Result<Store> {
    let builder = Database::builder(path)
        .cache_size(options.cache_bytes)
        .max_journaling_size(options.journal_bytes.max(MIN_JOURNAL_BYTES))
        .worker_threads(WORKERS)
        .max_cached_files(Some(options.cached_files.max(MIN_CACHED_FILES)))
        .with_compaction_filter_factories(Arc::new(filter_of));
    let db = with_lower_priority(|| builder.open())?;
    let open = |space: Space| {
        let options = || {
            let options = KeyspaceCreateOptions::default()
                .max_memtable_size(MEMTABLE_BYTES[space as usize])
                .compaction_strategy(Arc::new(idle()));
            match space {
                Space::Item => options
                    .data_block_size_policy(BlockSizePolicy::all(ITEM_BLOCK_BYTES))
                    .data_block_restart_interval_policy(RestartIntervalPolicy::all(ITEM_RESTART_INTERVAL))
                    // Items are looked up by keys that indexes have.
                    .expect_point_read_hits(true)
                    .data_block_compression_policy(CompressionPolicy::all(CompressionType::None)),
                _ => options,
            }
        };
        db.keyspace(SPACE_NAMES[space as usize], options)
    };
    let [item, log, expiry, index, meta] = Space::ALL;
    let spaces = [open(item)?, open(log)?, open(expiry)?, open(index)?, open(meta)?];
    Ok(Store {
        versions: Versions::default(),
        db,
        spaces,
        damage: Damage::default(),
        memtables: Memtables::default(),
        journals: DeletedJournals::default(),
    })
}

/// Runs `open` on a thread of lower priority, which the threads that it starts inherit: a flush of a memtable uses a processor for tenths of a second, in shares
/// of up to 4 ms that a thread of the same priority has to wait for.
fn with_lower_priority<T: Send>(open: impl FnOnce() -> T + Send) -> T {
    let opening = || {
        priority::lower();
        open()
    };
    std::thread::scope(|scope| scope.spawn(opening).join()).unwrap_or_else(|panic| resume_unwind(panic))
}

/// Removes a store whose creation was interrupted before it could hold anything; the LSM store cannot open it.
fn remove_unfinished(path: &Path) -> Result<(), OpenError> {
    let exists = |path: PathBuf| {
        path.try_exists()
            .map_err(crate::store_dir::io_error("looking for the store", &path))
    };
    // The file is created before it is written.
    let is_versioned = fs::metadata(path.join("version")).is_ok_and(|version| version.len() > 0);
    if exists(path.to_owned())? && !is_versioned {
        let is_used = exists(path.join("keyspaces").join("1"))?;
        if is_used {
            return Err(OpenError::Corrupt("the store's version file is missing".into()));
        }
        fs::remove_dir_all(path).map_err(crate::store_dir::io_error("clearing an unfinished store", path))?;
    }
    Ok(())
}

fn corrupt_row(what: &str) -> OpenError {
    OpenError::Corrupt(format!("a {what} row cannot be read"))
}

/// The message of a panic.
fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("the store gave up without a reason").to_owned()
}

#[cfg(test)]
mod tests;
