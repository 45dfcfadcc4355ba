//! An image of a store that shares its files.
//!
//! ```text
//! version, lock             a mark, and an empty file
//! 0.jnl                     an empty journal: the image has everything in tables
//! keyspaces/N/current       the number of the version of a key space, then a checksum of it
//! keyspaces/N/vM            the version: the tables that the key space consists of
//! keyspaces/N/tables/       the tables
//! ```
//!
//! All of these but the journal are written once and only ever replaced by other files, so an image has hard links to them. Of versions it has the
//! current one only: the store that is opened on the image makes later ones, and must not write through a link.
//!
//! Source: fjall 3.1.13, lsm-tree 3.1.10 (`file.rs`, `version/persist.rs`, `journal/recovery.rs`); the versions are pinned.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::store_dir::sync_dir;

const KEYSPACES_DIR: &str = "keyspaces";
const TABLES_DIR: &str = "tables";
const CURRENT_FILE: &str = "current";
const VERSION_FILE: &str = "version";
const LOCK_FILE: &str = "lock";
const JOURNAL_FILE: &str = "0.jnl";

/// Makes an image of the store at `from`, which has everything in tables and does not change meanwhile, at `to`, which does not exist. It is durable on
/// return.
pub(crate) fn link_store(from: &Path, to: &Path) -> io::Result<()> {
    make_dir(to)?;
    File::create_new(to.join(LOCK_FILE))?;
    File::create_new(to.join(JOURNAL_FILE))?.sync_all()?;
    let keyspaces = to.join(KEYSPACES_DIR);
    make_dir(&keyspaces)?;
    for entry in fs::read_dir(from.join(KEYSPACES_DIR))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            link_keyspace(&entry.path(), &keyspaces.join(entry.file_name()))?;
        }
    }
    sync_dir(&keyspaces)?;
    // Last: without it the directory is no store.
    link(&from.join(VERSION_FILE), &to.join(VERSION_FILE))?;
    sync_dir(to)
}

fn link_keyspace(from: &Path, to: &Path) -> io::Result<()> {
    make_dir(to)?;
    let tables = to.join(TABLES_DIR);
    make_dir(&tables)?;
    let version = current_version(&from.join(CURRENT_FILE))?;
    for name in [version.as_str(), CURRENT_FILE] {
        link(&from.join(name), &to.join(name))?;
    }
    for entry in fs::read_dir(from.join(TABLES_DIR))? {
        let entry = entry?;
        match link(&entry.path(), &tables.join(entry.file_name())) {
            // A table that was merged into others.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            linked => linked?,
        }
    }
    sync_dir(&tables)?;
    sync_dir(to)
}

/// The name of the file of the current version.
fn current_version(path: &Path) -> io::Result<String> {
    let bytes = fs::read(path)?;
    let number = bytes.first_chunk::<8>().map(|number| u64::from_le_bytes(*number));
    let number = number.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "the number of the version is cut off"))?;
    Ok(format!("v{number}"))
}

/// A hard link, or a copy where the file system has no links.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(error),
        Err(_) => {
            fs::copy(from, to)?;
            File::open(to)?.sync_all()
        }
        linked => linked,
    }
}

/// Its parent is synced by the caller.
fn make_dir(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
