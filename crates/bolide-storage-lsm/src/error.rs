//! Errors at open, and how errors of the store are reported to callers.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bolide_storage::{EngineError, Space};

use crate::store::Store;
use crate::tables;

/// Why a store could not be opened. The content of the directory is unchanged, except for a last write that a crash cut off.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path is not a directory.
    #[error("not a directory. path={}", .0.display())]
    NotADirectory(PathBuf),
    /// The directory holds files, and they are not a Bolide store.
    #[error("the directory is not empty and holds no Bolide store. path={} found=`{found}`", .path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The first entry that is not part of a store.
        found: String,
    },
    /// A later version of Bolide wrote the store.
    #[error("the store has a newer format than this version reads. path={} found={found} supported={supported}", .path.display())]
    TooNew {
        /// The directory.
        path: PathBuf,
        /// The store's format.
        found: u32,
        /// The newest format this version reads.
        supported: u32,
    },
    /// An earlier version of Bolide wrote the store in a format that can no longer be read.
    #[error(
        "the store has an older format than this version reads: export its containers with the version that wrote it, and import them \
         into a new directory. path={} found={found} supported={supported}", .path.display()
    )]
    TooOld {
        /// The directory.
        path: PathBuf,
        /// The store's format.
        found: u32,
        /// The oldest format this version reads.
        supported: u32,
    },
    /// Another process, or another engine in this one, has the store open.
    #[error("the store is in use by another process. path={}", .0.display())]
    InUse(PathBuf),
    /// Durable commits are missing: the end of the journal was cut off or damaged, or the directory was replaced by an older copy. Opening with
    /// `accept_data_loss` keeps the rest, in which the last commits may be incomplete.
    #[error(
        "acknowledged commits are missing: the journal of the store was truncated or damaged. \
         expected={expected} found={found} (restore a backup, or open with accept_data_loss)"
    )]
    LostCommits {
        /// Number of the newest commit that was known to be durable.
        expected: u64,
        /// Number of the newest commit found.
        found: u64,
    },
    /// The process may not write files as large as the store needs.
    #[error(
        "the limit on the size of files is below what the store needs (see `ulimit -f`). limit_bytes={limit} needed_bytes={needed}"
    )]
    FileSizeLimit {
        /// The limit, in bytes.
        limit: u64,
        /// What the store needs, in bytes.
        needed: u64,
    },
    /// Stored bytes differ from what was written.
    #[error("the store is corrupt: {0}")]
    Corrupt(String),
    /// The disk or the permissions refused an operation.
    #[error("cannot open the store: {doing}. path={}: {source}", .path.display())]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// Whether an error of the store means that stored bytes were changed.
fn is_corruption(error: &fjall::Error) -> bool {
    use fjall::{Error, LsmError};
    match error {
        Error::Io(e) | Error::Storage(LsmError::Io(e)) => {
            matches!(
                e.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::Other
            )
        }
        Error::Storage(_) | Error::JournalRecovery(_) | Error::InvalidVersion(_) | Error::Decompress(_) => true,
        Error::InvalidTrailer | Error::InvalidTag(_) | Error::Unrecoverable => true,
        _ => false,
    }
}

/// An error while reading a key space. Damaged tables are searched for and named.
pub(crate) fn engine_error(error: &fjall::Error, space: Space, store: &Arc<Store>) -> EngineError {
    if is_corruption(error) {
        EngineError::Corrupt(store.damage.report(error, space, store))
    } else {
        EngineError::Unavailable(error.to_string())
    }
}

/// An error while opening the store at `path`.
pub(crate) fn open_error(path: PathBuf, error: fjall::Error) -> OpenError {
    match error {
        fjall::Error::Locked => OpenError::InUse(path),
        error if is_corruption(&error) => {
            OpenError::Corrupt(format!("{error}. path={} ({})", path.display(), tables::ADVICE))
        }
        fjall::Error::Io(source) => OpenError::Io {
            doing: "opening it",
            path,
            source,
        },
        error => OpenError::Io {
            doing: "opening it",
            path,
            source: io::Error::other(error),
        },
    }
}
