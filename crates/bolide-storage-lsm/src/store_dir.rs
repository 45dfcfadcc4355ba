//! The directory of a store: that it belongs to us, its format, and that only one engine has it open.
//!
//! ```text
//! FORMAT     "bolide store", the number of the format, and when the store was made (ms)
//! lock       held while the store is open
//! probe      exists briefly, to check whether the directory accepts files again
//! durable    the durable watermark, see `durable_watermark`
//! store/     the LSM store
//! snapshots/, incoming/, next/, old-…/, issued    see `snapshots`
//! ```

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bolide_model::UnixMillis;

use crate::OpenError;
use crate::durable_watermark::DurableWatermark;
use crate::presence::Presence;
use crate::snapshots;

/// The format this version writes, and the newest it reads.
/// 2: item keys have a tag of their partition key.
/// 3: head rows have an edition.
const FORMAT: u32 = 3;
/// The oldest format this version reads. Head rows of format 2 are read with the first edition, so nothing is rewritten.
const OLDEST_FORMAT: u32 = 2;
const FORMAT_FILE: &str = "FORMAT";
/// The name of `FORMAT` while it is written.
const FORMAT_DRAFT: &str = "FORMAT.new";
const LOCK_FILE: &str = "lock";
pub(crate) const WATERMARK_FILE: &str = "durable";
const PROBE_FILE: &str = "probe";
pub(crate) const STORE_DIR: &str = "store";
/// The initial size of a journal. Journals and tables may become larger.
const JOURNAL_BYTES: u64 = 64 << 20;
/// The largest file that the store makes: a journal ends at the next flush after its initial size, and may contain all memtables together.
const LARGEST_FILE_BYTES: u64 = 256 << 20;
/// Descriptors that must be free before the store is opened again.
const SPARE_DESCRIPTORS: usize = 32;
/// Files that may exist in a directory whose first open was interrupted.
const DRAFTS: [&str; 3] = [FORMAT_DRAFT, LOCK_FILE, WATERMARK_FILE];
const TITLE: &str = "bolide store";

/// A locked directory of a store. All clones share the lock, so that a store can take the place of another while the directory stays locked.
#[derive(Debug, Clone)]
pub(crate) struct StoreDir {
    path: PathBuf,
    /// Unlocked when the last one is closed.
    _lock: Arc<File>,
    /// A message about the directory, logged once the store is open.
    notice: Option<String>,
}

impl StoreDir {
    /// Locks `path`; creates the directory and its files if there are none yet. `now` is written into a new store.
    pub(crate) fn enter(path: &Path, now: UnixMillis) -> Result<(StoreDir, Option<DurableWatermark>), OpenError> {
        check_file_size_limit()?;
        make_dir(path)?;
        let is_new = check_identity(path)?;
        let store_dir = StoreDir {
            path: path.to_owned(),
            _lock: Arc::new(lock(path)?),
            notice: keep_private(path),
        };
        snapshots::complete(path).map_err(io_error("completing the replacement of the store", path))?;
        let watermark_path = path.join(WATERMARK_FILE);
        let watermark = if is_new {
            let watermark = DurableWatermark::create(&watermark_path)
                .map_err(io_error("writing the durable watermark", &watermark_path))?;
            write_format(path, &format_text(now))?;
            Some(watermark)
        } else {
            store_dir.watermark()?
        };
        Ok((store_dir, watermark))
    }

    /// Reads the durable watermark; `None` if it is missing or damaged.
    pub(crate) fn watermark(&self) -> Result<Option<DurableWatermark>, OpenError> {
        let path = self.path.join(WATERMARK_FILE);
        match DurableWatermark::open(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(io_error("reading the durable watermark", &path)(e)),
            found => Ok(found.ok().flatten()),
        }
    }

    /// Gives a store of an older format the number of the current one, so that earlier versions refuse it by its format and do not report new rows as
    /// corrupt. Must be called before the first write.
    ///
    /// A crash before it is done leaves the old number on a store that is still completely of the old format.
    pub(crate) fn raise_format(&self) -> Result<(), OpenError> {
        let path = self.path.join(FORMAT_FILE);
        let text = fs::read_to_string(&path).map_err(io_error("reading the format of the store", &path))?;
        let found = check_format(&self.path, &text)?;
        if found == FORMAT {
            return Ok(());
        }
        let text = text.replacen(&format_line(found), &format_line(FORMAT), 1);
        write_format(&self.path, &text)?;
        tracing::info!(from = found, to = FORMAT, "the format of the store was raised");
        Ok(())
    }

    /// Replaces a watermark that was lost.
    pub(crate) fn new_watermark(&self) -> Result<DurableWatermark, OpenError> {
        let path = self.path.join(WATERMARK_FILE);
        let made = DurableWatermark::create(&path).and_then(|watermark| sync_dir(&self.path).map(|()| watermark));
        made.map_err(io_error("writing the durable watermark", &path))
    }

    /// The path of the LSM store.
    pub(crate) fn store_path(&self) -> PathBuf {
        self.path.join(STORE_DIR)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Logs what was changed in the directory.
    pub(crate) fn log_notice(&self) {
        if let Some(notice) = &self.notice {
            tracing::warn!(path = %self.path.display(), "{notice}");
        }
    }

    /// The check that files are still in their place.
    pub(crate) fn presence(&self) -> Option<Presence> {
        Presence::of(self.path.join(LOCK_FILE), self.store_path())
    }

    /// Checks whether the store could be opened and written now: whether descriptors are free, and the directory accepts a file of the size of a journal.
    pub(crate) fn probe(&self) -> io::Result<()> {
        let format = self.path.join(FORMAT_FILE);
        let spare: io::Result<Vec<File>> = (0..SPARE_DESCRIPTORS).map(|_| File::open(&format)).collect();
        drop(spare?);
        let path = self.path.join(PROBE_FILE);
        let tried = File::create(&path).and_then(|mut file| {
            file.set_len(JOURNAL_BYTES)?;
            file.write_all(TITLE.as_bytes())?;
            file.sync_all()
        });
        let removed = fs::remove_file(&path);
        tried.and(removed)
    }
}

/// Adds the operation and the path to an error of the operating system.
pub(crate) fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OpenError {
    let path = path.to_owned();
    move |source| OpenError::Io { doing, path, source }
}

fn make_dir(path: &Path) -> Result<(), OpenError> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(OpenError::NotADirectory(path.to_owned())),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            make_private_dir(path).map_err(io_error("making the directory", path))
        }
        Err(e) if e.kind() == ErrorKind::NotADirectory => Err(OpenError::NotADirectory(path.to_owned())),
        Err(e) => Err(io_error("looking at the directory", path)(e)),
    }
}

/// Creates a directory that only its owner may enter, and its parents.
fn make_private_dir(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    // Empty for a name without a directory.
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    sync_dir(parent.unwrap_or(Path::new(".")))
}

/// Restricts a directory made by an earlier version, or by hand, to its owner, because it contains documents and keys. Returns a message about the change.
#[cfg(unix)]
fn keep_private(path: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = fs::metadata(path).ok()?.permissions().mode();
    if mode & 0o077 == 0 {
        return None;
    }
    let closed = fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o7700));
    Some(match closed {
        Ok(()) => "others could enter the data directory; it is closed to them now".to_owned(),
        Err(error) => format!("others may enter the data directory, and it cannot be closed to them: {error}"),
    })
}

#[cfg(not(unix))]
fn keep_private(_path: &Path) -> Option<String> {
    None
}

#[cfg(unix)]
fn check_file_size_limit() -> Result<(), OpenError> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    match limit {
        Some(limit) if limit < LARGEST_FILE_BYTES => Err(OpenError::FileSizeLimit {
            limit,
            needed: LARGEST_FILE_BYTES,
        }),
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn check_file_size_limit() -> Result<(), OpenError> {
    Ok(())
}

/// Whether the directory must become a store; an error if it is neither empty nor a store that can be read.
fn check_identity(path: &Path) -> Result<bool, OpenError> {
    let format_path = path.join(FORMAT_FILE);
    match fs::read_to_string(&format_path) {
        Ok(text) => check_format(path, &text).map(|_| false),
        Err(e) if e.kind() == ErrorKind::NotFound => check_empty(path).map(|()| true),
        Err(e) if e.kind() == ErrorKind::InvalidData => Err(foreign(path, FORMAT_FILE)),
        Err(e) => Err(io_error("reading the format of the store", &format_path)(e)),
    }
}

/// The format of a store, if this version can read it.
fn check_format(path: &Path, text: &str) -> Result<u32, OpenError> {
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
        Some(found) if is_ours && found < OLDEST_FORMAT => Err(OpenError::TooOld {
            path: path.to_owned(),
            found,
            supported: OLDEST_FORMAT,
        }),
        Some(found) if is_ours => Ok(found),
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

/// The content of the format file of a new store.
fn format_text(now: UnixMillis) -> String {
    format!("{TITLE}\n{}created {}\n", format_line(FORMAT), now.0)
}

fn format_line(format: u32) -> String {
    format!("format {format}\n")
}

/// Written last, and by rename: if a directory has a format file, the other files of the store exist.
fn write_format(path: &Path, text: &str) -> Result<(), OpenError> {
    let draft = path.join(FORMAT_DRAFT);
    let written = File::create(&draft).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&draft, path.join(FORMAT_FILE))?;
        sync_dir(path)
    });
    written.map_err(io_error("writing the format of the store", &draft))
}

/// Makes names in a directory durable. Some platforms cannot open a directory; there, renames are durable by themselves.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(path)?.sync_all()
    } else {
        Ok(())
    }
}
