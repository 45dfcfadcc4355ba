//! The snapshots that are kept: their names and their contents.

use std::collections::HashSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use bolide_model::SnapshotName;

use super::{BLANK_DIR, BLANK_DRAFT_DIR, SnapshotError, Steps, content_dir, failed, image, sync_tree};
use crate::store_dir::sync_dir;

/// Maximum number of snapshots.
pub const MAX_SNAPSHOTS: usize = 100;
const DIR: &str = "snapshots";
/// The name of a snapshot's file while it is written. No snapshot has it, because names do not begin with a dot.
const NAME_DRAFT: &str = ".new";

/// A snapshot that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its name.
    pub name: SnapshotName,
    /// What the layer above keeps with it.
    pub about: String,
    /// The number of its content.
    number: u64,
}

pub(super) fn dir_of(dir: &Path) -> PathBuf {
    dir.join(DIR)
}

/// Creates the directory of snapshots, if it does not exist.
pub(super) fn make_dir_of(dir: &Path) -> io::Result<()> {
    match image::make_dir(&dir_of(dir)) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// The snapshots of the store in `dir`, by name. Files that are none are left out.
///
/// # Errors
/// An error of the file system.
pub(crate) fn list(dir: &Path) -> io::Result<Vec<Kept>> {
    let entries = match fs::read_dir(dir_of(dir)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut kept = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        if let Some(name) = name.to_str().and_then(|name| SnapshotName::parse(name).ok()) {
            kept.extend(find(dir, &name)?);
        }
    }
    kept.sort_by(|a: &Kept, b| a.name.cmp(&b.name));
    Ok(kept)
}

/// A snapshot by its name.
fn find(dir: &Path, name: &SnapshotName) -> io::Result<Option<Kept>> {
    let text = match fs::read_to_string(dir_of(dir).join(name.as_str())) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let (number, about) = text.split_once('\n').unwrap_or_default();
    Ok(number.parse().ok().map(|number| Kept {
        name: name.clone(),
        about: about.trim_end_matches('\n').to_owned(),
        number,
    }))
}

/// The directory with the content of a snapshot.
pub(crate) fn content_of(dir: &Path, name: &SnapshotName) -> Result<PathBuf, SnapshotError> {
    let found = find(dir, name).map_err(failed("reading a snapshot"))?;
    let found = found.ok_or_else(|| SnapshotError::NotFound(name.clone()))?;
    Ok(content_dir(dir, found.number))
}

/// Makes the directory for the content of a new snapshot. Returns its number. Until [`publish`] no snapshot has it.
pub(crate) fn draft(dir: &Path, name: &SnapshotName, steps: &Steps) -> Result<u64, SnapshotError> {
    let doing = "making a snapshot";
    let kept = list(dir).map_err(failed(doing))?;
    if kept.len() >= MAX_SNAPSHOTS && kept.iter().all(|kept| kept.name != *name) {
        return Err(SnapshotError::TooMany);
    }
    let mut number = kept.iter().map(|kept| kept.number + 1).max().unwrap_or(0);
    while content_dir(dir, number).try_exists().map_err(failed(doing))? {
        number += 1;
    }
    let made = make_dir_of(dir).and_then(|()| image::make_dir(&content_dir(dir, number)));
    made.map_err(failed(doing))?;
    steps.done();
    Ok(number)
}

/// Makes a content that is complete durable, and gives it its name, in the place of any other content.
pub(crate) fn publish(dir: &Path, name: &SnapshotName, number: u64, about: &str, steps: &Steps) -> io::Result<()> {
    let snapshots = dir_of(dir);
    let draft = snapshots.join(NAME_DRAFT);
    fs::write(&draft, format!("{number}\n{about}\n"))?;
    sync_tree(&snapshots)?;
    steps.done();
    fs::rename(&draft, snapshots.join(name.as_str()))?;
    sync_dir(&snapshots)?;
    steps.done();
    Ok(())
}

/// Removes a snapshot; its content is deleted by [`sweep`].
///
/// # Errors
/// There is none of this name; an error of the file system.
pub(crate) fn remove(dir: &Path, name: &SnapshotName) -> Result<(), SnapshotError> {
    let snapshots = dir_of(dir);
    match fs::remove_file(snapshots.join(name.as_str())) {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(SnapshotError::NotFound(name.clone())),
        removed => removed
            .and_then(|()| sync_dir(&snapshots))
            .map_err(failed("removing a snapshot")),
    }
}

/// Deletes the contents that no snapshot has: those of removed, replaced and unfinished ones. No snapshot may be taken meanwhile.
pub(crate) fn sweep(dir: &Path) {
    let (Ok(kept), Ok(entries)) = (list(dir), fs::read_dir(dir_of(dir))) else {
        return;
    };
    let mut kept: HashSet<PathBuf> = kept.iter().map(|kept| content_dir(dir, kept.number)).collect();
    kept.extend([BLANK_DIR, BLANK_DRAFT_DIR].map(|name| dir_of(dir).join(name)));
    for entry in entries.flatten().filter(|entry| !kept.contains(&entry.path())) {
        let is_content = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_content && let Err(error) = fs::remove_dir_all(entry.path()) {
            tracing::warn!(%error, path = %entry.path().display(), "the content of a removed snapshot is still on the disk");
        }
    }
}
