//! An image of a store that shares its files.
//!
//! ```text
//! version, lock             a mark, and an empty file
//! N.jnl                     the journal, or an empty one if everything is in tables
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
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};

const KEYSPACES_DIR: &str = "keyspaces";
const TABLES_DIR: &str = "tables";
const CURRENT_FILE: &str = "current";
const VERSION_FILE: &str = "version";
const LOCK_FILE: &str = "lock";
const FIRST_JOURNAL: &str = "0.jnl";

/// What the journal of an image has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Journal {
    /// Nothing: everything is in tables.
    Empty,
    /// The first bytes of a journal, which are whole batches.
    Start { path: PathBuf, bytes: u64 },
}

/// Makes an image of the store at `from`, which does not change meanwhile, at `to`, which does not exist. It is not durable yet ([`sync_tree`]).
pub(crate) fn link_store(from: &Path, to: &Path, journal: &Journal) -> io::Result<()> {
    make_dir(to)?;
    File::create_new(to.join(LOCK_FILE))?;
    match journal {
        Journal::Empty => drop(File::create_new(to.join(FIRST_JOURNAL))?),
        Journal::Start { path, bytes } => {
            let mut copy = File::create_new(to.join(path.file_name().unwrap_or(FIRST_JOURNAL.as_ref())))?;
            let copied = io::copy(&mut File::open(path)?.take(*bytes), &mut copy)?;
            if copied != *bytes {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }
    let keyspaces = to.join(KEYSPACES_DIR);
    make_dir(&keyspaces)?;
    for entry in fs::read_dir(from.join(KEYSPACES_DIR))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            link_keyspace(&entry.path(), &keyspaces.join(entry.file_name()))?;
        }
    }
    link(&from.join(VERSION_FILE), &to.join(VERSION_FILE))
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
    Ok(())
}

/// The name of the file of the current version.
fn current_version(path: &Path) -> io::Result<String> {
    let bytes = fs::read(path)?;
    let number = bytes.first_chunk::<8>().map(|number| u64::from_le_bytes(*number));
    let number =
        number.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "the number of the version is cut off"))?;
    Ok(format!("v{number}"))
}

/// A hard link, or a copy where the file system has no links.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(error),
        Err(_) => fs::copy(from, to).map(drop),
        linked => linked,
    }
}

/// Creates a directory that only its owner may enter. Its name is not durable yet.
pub(super) fn make_dir(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Makes everything below a directory durable, at once: an image has dozens of new names, and each fsync takes as long as all of them together.
#[cfg(target_os = "linux")]
pub(crate) fn sync_tree(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(path)?)?)
}

/// Makes everything below a directory durable.
#[cfg(not(target_os = "linux"))]
pub(crate) fn sync_tree(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_tree(&entry.path())?;
        } else {
            File::open(entry.path())?.sync_all()?;
        }
    }
    crate::store_dir::sync_dir(path)
}
