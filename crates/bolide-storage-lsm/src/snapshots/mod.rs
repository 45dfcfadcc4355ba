//! Snapshots of a store in its directory, and the replacement of the store by one of them or by an empty one.
//!
//! ```text
//! snapshots/NAME      names the content of a snapshot: its number, and what the layer above keeps with it
//! snapshots/.N/       that content: store/ and durable, as in the directory itself
//! snapshots/.blank/   an empty store, from which others are made: making one takes dozens of fsyncs
//! incoming/           a replacement that is being made: store/, durable, issued
//! next/               the same once it is decided
//! old-N/              what was replaced and is to be deleted
//! issued              numbers that the account has issued and must not issue again
//! ```
//!
//! A snapshot is taken by the committer, between two writes ([`image`]). Files of tables never change, so snapshots share them as hard links.
//!
//! The store is replaced in one step: `incoming` is renamed to `next`. Before it, a start finds the old store; after it, [`complete`] moves the parts of
//! `next` to their places, at once or at the next start. Each of its steps can be repeated, so they need not be durable one after the other: whichever of
//! them a power loss undoes, the next start does again.

mod image;
mod kept;
mod steps;

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use bolide_model::{Lsn, SnapshotName, UnixMillis};

use crate::LsmOptions;
use crate::durable_watermark::{DurableWatermark, Numbers, Position};
use crate::journal;
use crate::store::Store;
use crate::store_dir::{STORE_DIR, WATERMARK_FILE, sync_dir};

pub(crate) use image::{Journal, link_store, sync_tree};
pub use kept::{Kept, MAX_SNAPSHOTS};
pub(crate) use kept::{content_of, draft, list, publish, remove, sweep};
pub use steps::Steps;

const INCOMING_DIR: &str = "incoming";
const NEXT_DIR: &str = "next";
const OLD_PREFIX: &str = "old-";
const ISSUED_FILE: &str = "issued";
const BLANK_DIR: &str = ".blank";
const BLANK_DRAFT_DIR: &str = ".blank.new";

/// What replaces the content of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replacement {
    /// That of a snapshot.
    Snapshot(SnapshotName),
    /// Nothing.
    Empty,
}

/// Why a snapshot cannot be taken, restored or removed.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// There is no snapshot of this name.
    #[error("no such snapshot. name=`{0}`")]
    NotFound(SnapshotName),
    /// There are as many as there may be.
    #[error("there are too many snapshots; remove one. limit={MAX_SNAPSHOTS}")]
    TooMany,
    /// The disk is nearly full.
    #[error("the disk has too little space for it. free_bytes={0}")]
    NoSpace(u64),
    /// The store does not take writes, or readers hold it.
    #[error("{0}")]
    Unavailable(String),
    /// An error of the file system.
    #[error("{doing} failed: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// The error.
        source: io::Error,
    },
}

/// Adds the operation to an error of the file system.
pub(crate) fn failed(doing: &'static str) -> impl FnOnce(io::Error) -> SnapshotError {
    move |source| SnapshotError::Io { doing, source }
}

/// Numbers that an account has issued. After a replacement none is issued again, because clients may have kept what was made with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    /// The log sequence number from which every partition counts.
    pub lsn: Lsn,
    /// The numbers that the layer above has issued, in its own form, without line ends.
    pub above: String,
}

impl Issued {
    fn encode(&self) -> String {
        format!("{}\n{}\n", self.lsn, self.above)
    }

    fn decode(text: &str) -> Option<Issued> {
        let (lsn, above) = text.split_once('\n')?;
        Some(Issued {
            lsn: Lsn(lsn.parse().ok()?),
            above: above.trim_end_matches('\n').to_owned(),
        })
    }

    /// Reads those of the store in `dir`, if its content was replaced and nobody has taken note of them since.
    pub(crate) fn read(dir: &Path) -> io::Result<Option<Issued>> {
        let text = match fs::read_to_string(dir.join(ISSUED_FILE)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let issued = Issued::decode(&text);
        issued
            .map(Some)
            .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "the file `issued` cannot be read"))
    }

    /// Removes them: they are part of the account's content now.
    pub(crate) fn forget(dir: &Path) -> io::Result<()> {
        match fs::remove_file(dir.join(ISSUED_FILE)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            // A power loss may bring them back, which does no harm.
            removed => removed,
        }
    }
}

/// The store of a replacement, ready to be installed.
#[derive(Debug)]
pub struct Prepared {
    position: Position,
}

impl Prepared {
    /// The durable watermark of the store; server time is not below `least`.
    pub(crate) fn position(&self, least: UnixMillis) -> Position {
        Position {
            time: self.position.time.max(least),
            ..self.position
        }
    }
}

/// Puts the store of a replacement into `incoming`, while the current one is still in use.
pub(crate) fn prepare(dir: &Path, replacement: &Replacement, options: &LsmOptions) -> Result<Prepared, SnapshotError> {
    let doing = "making the store that is to be restored";
    let content = match replacement {
        Replacement::Snapshot(name) => Some((name, content_of(dir, name)?)),
        Replacement::Empty => None,
    };
    let incoming = dir.join(INCOMING_DIR);
    discard(dir, &incoming).map_err(failed(doing))?;
    image::make_dir(&incoming).map_err(failed(doing))?;
    options.steps.done();
    let store = incoming.join(STORE_DIR);
    let position = match content {
        None => {
            make_empty(dir, &store, options)?;
            Position {
                numbers: Numbers::default(),
                time: UnixMillis(i64::MIN),
            }
        }
        Some((name, content)) => {
            copy_store(&content.join(STORE_DIR), &store).map_err(failed(doing))?;
            let watermark = DurableWatermark::open(&content.join(WATERMARK_FILE)).map_err(failed(doing))?;
            let watermark = watermark.ok_or_else(|| {
                SnapshotError::Unavailable(format!(
                    "the snapshot is damaged: it has no durable watermark. name=`{name}`"
                ))
            })?;
            watermark.position()
        }
    };
    options.steps.done();
    // Most of it, while requests go on.
    sync_tree(&incoming).map_err(failed(doing))?;
    options.steps.done();
    Ok(Prepared { position })
}

/// Makes an empty store at a path, from the blank one if there is one.
fn make_empty(dir: &Path, store: &Path, options: &LsmOptions) -> Result<(), SnapshotError> {
    let doing = "making an empty store";
    let blank = kept::dir_of(dir).join(BLANK_DIR);
    if blank.try_exists().map_err(failed(doing))? {
        return copy_store(&blank, store).map_err(failed(doing));
    }
    // Closed again when it is dropped.
    Store::open(store, options).map_err(|error| SnapshotError::Unavailable(error.to_string()))?;
    keep_blank(dir, store).map_err(failed(doing))
}

/// Keeps a store that is empty, and that nobody writes to meanwhile, as the blank one. Needs [`publish_blank`].
pub(crate) fn draft_blank(dir: &Path, store: &Path) -> io::Result<()> {
    let snapshots = kept::dir_of(dir);
    kept::make_dir_of(dir)?;
    let draft = snapshots.join(BLANK_DRAFT_DIR);
    discard(dir, &draft)?;
    link_store(store, &draft, &Journal::Empty)
}

/// Makes the draft of a blank store durable, and puts it in its place.
pub(crate) fn publish_blank(dir: &Path) -> io::Result<()> {
    let snapshots = kept::dir_of(dir);
    let draft = snapshots.join(BLANK_DRAFT_DIR);
    if !draft.try_exists()? || snapshots.join(BLANK_DIR).try_exists()? {
        return Ok(());
    }
    sync_tree(&draft)?;
    fs::rename(&draft, snapshots.join(BLANK_DIR))
}

fn keep_blank(dir: &Path, store: &Path) -> io::Result<()> {
    draft_blank(dir, store)?;
    publish_blank(dir)
}

/// An image of a store that nobody has open, with its journal.
fn copy_store(from: &Path, to: &Path) -> io::Result<()> {
    let journal = match journal::newest_number(from) {
        None => Journal::Empty,
        Some(number) => {
            let path = journal::path(from, number);
            let bytes = fs::metadata(&path)?.len();
            Journal::Start { path, bytes }
        }
    };
    link_store(from, to, &journal)
}

/// Replaces the store of `dir`, which nobody has open, by the one that was prepared. `position` is its durable watermark.
pub(crate) fn install(dir: &Path, position: Position, issued: &Issued, steps: &Steps) -> io::Result<()> {
    let incoming = dir.join(INCOMING_DIR);
    DurableWatermark::draft(&incoming.join(WATERMARK_FILE), position)?;
    fs::write(incoming.join(ISSUED_FILE), issued.encode())?;
    sync_tree(&incoming)?;
    steps.done();
    fs::rename(&incoming, dir.join(NEXT_DIR))?;
    sync_dir(dir)?;
    steps.done();
    complete_with(dir, steps)
}

/// Completes a replacement that was decided, if there is one.
pub(crate) fn complete(dir: &Path) -> io::Result<()> {
    complete_with(dir, &Steps::default())
}

fn complete_with(dir: &Path, steps: &Steps) -> io::Result<()> {
    let next = dir.join(NEXT_DIR);
    if !next.try_exists()? {
        return Ok(());
    }
    // The store goes last: as long as it is in `next`, the one in its place is the old one.
    for name in [WATERMARK_FILE, ISSUED_FILE] {
        match fs::rename(next.join(name), dir.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            renamed => renamed?,
        }
        steps.done();
    }
    if next.join(STORE_DIR).try_exists()? {
        discard(dir, &dir.join(STORE_DIR))?;
        steps.done();
        fs::rename(next.join(STORE_DIR), dir.join(STORE_DIR))?;
    }
    steps.done();
    // Not durable before the moves: both are changes of the same two directories.
    fs::remove_dir(&next)
}

/// Moves a file or directory aside, to be deleted by [`sweep_old`]. Does nothing if it does not exist.
fn discard(dir: &Path, path: &Path) -> io::Result<()> {
    if !path.try_exists()? {
        return Ok(());
    }
    for number in 0_u64.. {
        let aside = dir.join(format!("{OLD_PREFIX}{number}"));
        if !aside.try_exists()? {
            return fs::rename(path, aside);
        }
    }
    Ok(())
}

/// Deletes what was replaced, and replacements that were never decided. What cannot be deleted is left for the next time.
pub(crate) fn sweep_old(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let is_old = entry
            .file_name()
            .to_str()
            .is_some_and(|name| name.starts_with(OLD_PREFIX));
        if is_old && let Err(error) = fs::remove_dir_all(entry.path()) {
            tracing::warn!(%error, path = %entry.path().display(), "what was replaced is still on the disk");
        }
    }
}

/// Moves a replacement aside that was interrupted before it was decided.
pub(crate) fn discard_undecided(dir: &Path) -> io::Result<()> {
    discard(dir, &dir.join(INCOMING_DIR))
}

/// The content directory of a snapshot.
pub(crate) fn content_dir(dir: &Path, number: u64) -> PathBuf {
    kept::dir_of(dir).join(format!(".{number}"))
}

#[cfg(test)]
mod tests;
