//! Finds tables that were changed on the disk.
//!
//! The store checks each block it reads, and reports only that a checksum does not match. An administrator needs to know which file it is and what to
//! do. So all tables of the key space are then read in full, on a thread of their own, and compared with the checksums that were recorded when they
//! were written.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bolide_storage::Space;
use fjall::AbstractTree as _;
use parking_lot::Mutex;
use xxhash_rust::xxh3::Xxh3;

use crate::layout::SPACE_NAMES;
use crate::store::Store;

/// What to do about damage.
pub(crate) const ADVICE: &str = "restore a backup of the data directory";
/// Bytes per read.
const CHUNK_BYTES: usize = 1 << 18;

/// A table whose bytes differ from those that were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DamagedTable {
    space: Space,
    path: PathBuf,
    /// Why it could not be read to its end; `None` if it could.
    error: Option<String>,
}

impl fmt::Display for DamagedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = self.error.as_deref().unwrap_or("its checksum differs");
        let (space, path) = (SPACE_NAMES[self.space as usize], self.path.display());
        write!(f, "a table is damaged: {why}. space={space} file={path}")
    }
}

/// Reads every table of a key space, and returns those that are damaged.
pub(crate) fn find_damaged(store: &Store, space: Space) -> Vec<DamagedTable> {
    let version = store.space(space).tree.current_version();
    let damaged = version.iter_tables().filter_map(|table| {
        let error = match checksum(&table.path) {
            Ok(found) if found == table.checksum().into_u128() => return None,
            // It was compacted meanwhile, and its rows are in other tables.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !is_current(store, space, &table.path) => {
                return None;
            }
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        };
        let path = table.path.to_path_buf();
        Some(DamagedTable { space, path, error })
    });
    damaged.collect()
}

/// Reads every table of a store.
///
/// # Errors
/// Names the damaged tables.
pub(crate) fn verify(store: &Store) -> Result<(), String> {
    let damaged: Vec<_> = Space::ALL
        .into_iter()
        .flat_map(|space| find_damaged(store, space))
        .map(|table| table.to_string())
        .collect();
    if damaged.is_empty() {
        return Ok(());
    }
    Err(format!("{} ({ADVICE})", damaged.join("; ")))
}

fn is_current(store: &Store, space: Space, path: &Path) -> bool {
    let version = store.space(space).tree.current_version();
    version.iter_tables().any(|table| table.path.as_path() == path)
}

fn checksum(path: &Path) -> io::Result<u128> {
    let mut file = File::open(path)?;
    let mut sum = Xxh3::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(sum.digest128()),
            read => sum.update(&chunk[..read]),
        }
    }
}

/// The damage known in an open store.
#[derive(Debug, Default)]
pub(crate) struct Damage {
    tables: Mutex<Vec<DamagedTable>>,
    /// Key spaces whose tables were searched.
    searched: [AtomicBool; Space::ALL.len()],
}

impl Damage {
    /// The message for a read that found damage. The first one in a key space starts the search for damaged tables; they are named here and in the
    /// log once they are found.
    pub(crate) fn report(&self, error: &fjall::Error, space: Space, store: &Arc<Store>) -> String {
        if !self.searched[space as usize].swap(true, Ordering::Relaxed) {
            tracing::error!(%error, space = SPACE_NAMES[space as usize], "stored data is damaged; its tables are being checked");
            let store = store.clone();
            let search = std::thread::Builder::new().name("bolide-tables".into());
            if let Err(error) = search.spawn(move || store.damage.search(space, &store)) {
                tracing::warn!(%error, "damaged tables were not looked for");
            }
        }
        let tables = self.tables.lock();
        let mut named: Vec<_> = tables
            .iter()
            .filter(|table| table.space == space)
            .map(DamagedTable::to_string)
            .collect();
        if named.is_empty() {
            named.push(format!(
                "{error}. space={} (the log names the file once it is found)",
                SPACE_NAMES[space as usize]
            ));
        }
        format!("{} ({ADVICE})", named.join("; "))
    }

    fn search(&self, space: Space, store: &Store) {
        let found = find_damaged(store, space);
        for table in &found {
            tracing::error!("{table} ({ADVICE})");
        }
        self.tables.lock().extend(found);
    }
}
