//! The directory of a store: whose it is, in which format, and that only one engine has it open.
//!
//! ```text
//! FORMAT     "bolide store", the number of the format, and when the store was made (ms)
//! lock       held while the store is open
//! durable    the durable mark, see `mark`
//! store/     the LSM store
//! ```

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use bolide_model::UnixMillis;

use crate::OpenError;
use crate::mark::Mark;

/// The format this version writes, and the newest it reads.
/// 2: item keys have a tag of their partition key.
const FORMAT: u32 = 2;
const FORMAT_FILE: &str = "FORMAT";
/// `FORMAT` while it is written.
const FORMAT_DRAFT: &str = "FORMAT.new";
const LOCK_FILE: &str = "lock";
const MARK_FILE: &str = "durable";
const STORE_DIR: &str = "store";
/// Files that may be in a directory whose first open was interrupted.
const DRAFTS: [&str; 3] = [FORMAT_DRAFT, LOCK_FILE, MARK_FILE];
const TITLE: &str = "bolide store";

/// A directory that is ours, and locked.
#[derive(Debug)]
pub(crate) struct Home {
    path: PathBuf,
    /// Unlocked when closed.
    _lock: File,
}

impl Home {
    /// Takes possession of `path`: makes the directory and its files if there are none yet. `now` is written into a new store.
    pub(crate) fn enter(path: &Path, now: UnixMillis) -> Result<(Home, Option<Mark>), OpenError> {
        make_dir(path)?;
        let is_new = check_identity(path)?;
        let home = Home {
            path: path.to_owned(),
            _lock: lock(path)?,
        };
        let mark_path = path.join(MARK_FILE);
        let mark = if is_new {
            let mark = Mark::create(&mark_path).map_err(io_error("writing the durable mark", &mark_path))?;
            write_format(path, now)?;
            Some(mark)
        } else {
            match Mark::open(&mark_path) {
                Err(e) if e.kind() != ErrorKind::NotFound => {
                    return Err(io_error("reading the durable mark", &mark_path)(e));
                }
                found => found.ok().flatten(),
            }
        };
        Ok((home, mark))
    }

    /// A new mark in place of one that was lost.
    pub(crate) fn new_mark(&self) -> Result<Mark, OpenError> {
        let path = self.path.join(MARK_FILE);
        Mark::create(&path).map_err(io_error("writing the durable mark", &path))
    }

    /// Where the LSM store is.
    pub(crate) fn store_path(&self) -> PathBuf {
        self.path.join(STORE_DIR)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Wraps what the system said about `path`.
pub(crate) fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OpenError {
    let path = path.to_owned();
    move |source| OpenError::Io { doing, path, source }
}

fn make_dir(path: &Path) -> Result<(), OpenError> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(OpenError::NotADirectory(path.to_owned())),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            fs::create_dir_all(path).map_err(io_error("making the directory", path))
        }
        Err(e) if e.kind() == ErrorKind::NotADirectory => Err(OpenError::NotADirectory(path.to_owned())),
        Err(e) => Err(io_error("looking at the directory", path)(e)),
    }
}

/// Whether the directory is to become a store; an error if it is neither empty nor a store we can read.
fn check_identity(path: &Path) -> Result<bool, OpenError> {
    let format_path = path.join(FORMAT_FILE);
    match fs::read_to_string(&format_path) {
        Ok(text) => check_format(path, &text).map(|()| false),
        Err(e) if e.kind() == ErrorKind::NotFound => check_empty(path).map(|()| true),
        Err(e) if e.kind() == ErrorKind::InvalidData => Err(foreign(path, FORMAT_FILE)),
        Err(e) => Err(io_error("reading the format of the store", &format_path)(e)),
    }
}

fn check_format(path: &Path, text: &str) -> Result<(), OpenError> {
    let mut lines = text.lines();
    let is_ours = lines.next() == Some(TITLE);
    let format = lines
        .next()
        .and_then(|line| line.strip_prefix("format ")?.parse::<u32>().ok());
    match format {
        Some(found) if is_ours && found > FORMAT => Err(OpenError::TooNew {
            path: path.to_owned(),
            found,
            supported: FORMAT,
        }),
        Some(FORMAT) if is_ours => Ok(()),
        Some(found) if is_ours => Err(OpenError::TooOld {
            path: path.to_owned(),
            found,
            supported: FORMAT,
        }),
        _ => Err(foreign(path, FORMAT_FILE)),
    }
}

fn check_empty(path: &Path) -> Result<(), OpenError> {
    let listing = io_error("listing the directory", path);
    let names = fs::read_dir(path).and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
    let names: Vec<_> = names.map_err(listing)?;
    match names.iter().find(|name| !DRAFTS.iter().any(|draft| *name == draft)) {
        Some(name) => Err(foreign(path, &name.to_string_lossy())),
        None => Ok(()),
    }
}

fn foreign(path: &Path, found: &str) -> OpenError {
    OpenError::Foreign {
        path: path.to_owned(),
        found: found.to_owned(),
    }
}

fn lock(path: &Path) -> Result<File, OpenError> {
    let lock_path = path.join(LOCK_FILE);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&lock_path);
    let file = file.map_err(io_error("opening the lock file", &lock_path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse(path.to_owned())),
        Err(TryLockError::Error(e)) => Err(io_error("locking the store", &lock_path)(e)),
    }
}

/// Written last, and by rename: a directory with a format is a store whose other files are there.
fn write_format(path: &Path, now: UnixMillis) -> Result<(), OpenError> {
    let draft = path.join(FORMAT_DRAFT);
    let written = File::create(&draft).and_then(|mut file| {
        file.write_all(format!("{TITLE}\nformat {FORMAT}\ncreated {}\n", now.0).as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, path.join(FORMAT_FILE))?;
        sync_dir(path)
    });
    written.map_err(io_error("writing the format of the store", &draft))
}

/// Makes names in a directory durable. Not every platform lets a directory be opened; there, renames are durable by themselves.
fn sync_dir(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(path)?.sync_all()
    } else {
        Ok(())
    }
}
