//! Folders of the tests of packages.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;

/// Makes a folder that is empty.
pub fn emptied(folder: &Path) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    Ok(folder.to_path_buf())
}

/// Copies a folder with everything in it.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// The only file in a folder whose name begins and ends so.
pub fn only_file(folder: &Path, begin: &str, end: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
    let mut found = entries.iter().map(fs::DirEntry::path).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(begin) && name.ends_with(end)
    });
    match (found.next(), found.next()) {
        (Some(path), None) => Ok(path),
        (first, _) => Err(format!(
            "expected one file {begin}…{end} in {}, found {}",
            folder.display(),
            if first.is_some() { "several" } else { "none" }
        )
        .into()),
    }
}

/// The paths of all files and links below a folder, relative to it.
pub fn listing(folder: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            } else {
                found.insert(entry.path().strip_prefix(folder)?.to_path_buf());
            }
        }
    }
    Ok(found)
}

/// Compares the files before an installation with those after it was undone.
///
/// # Errors
/// Names files that were left, and those that are missing.
pub fn compare(before: &BTreeSet<PathBuf>, after: &BTreeSet<PathBuf>) -> Result<()> {
    let left = after.difference(before).map(|path| format!("left: {}", path.display()));
    let missing = before
        .difference(after)
        .map(|path| format!("missing: {}", path.display()));
    let problems: Vec<String> = left.chain(missing).take(5).collect();
    if problems.is_empty() {
        Ok(())
    } else {
        Err(format!("after the package was uninstalled: {}", problems.join(", ")).into())
    }
}

#[cfg(test)]
mod tests;
