//! The data directory that the official emulators' users mount.

use std::fs;
use std::path::{Path, PathBuf};

use super::certificate;

/// Where the emulators keep data: the newer one first.
const USUAL: [&str; 2] = ["/data", certificate::CLASSIC_DIR];

/// The first directory of the emulators that can be written, if there is one.
pub fn usual() -> Option<PathBuf> {
    first_usable(&USUAL.map(Path::new))
}

fn first_usable(candidates: &[&Path]) -> Option<PathBuf> {
    let usable = candidates
        .iter()
        .find(|dir| is_writable(dir) && !has_only_certificate(dir));
    usable.map(|dir| dir.to_path_buf())
}

#[cfg(unix)]
fn is_writable(dir: &Path) -> bool {
    use rustix::fs::Access;
    dir.is_dir() && rustix::fs::access(dir, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn is_writable(dir: &Path) -> bool {
    fs::metadata(dir).is_ok_and(|metadata| metadata.is_dir() && !metadata.permissions().readonly())
}

/// Whether a directory exists only because an earlier start wrote the certificate there, after it had chosen another directory for the data.
fn has_only_certificate(dir: &Path) -> bool {
    let Ok(entries) = fs::read_dir(dir) else {
        return false;
    };
    let mut names = entries.flatten().map(|entry| entry.file_name());
    names.next().is_some_and(|name| name == certificate::CLASSIC_FOLDER) && names.next().is_none()
}

#[cfg(all(test, unix))]
mod tests;
