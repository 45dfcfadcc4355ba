//! Small files that are written atomically, even on a power loss; and file settings of the process.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use crate::server::Failure;

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Its owner alone.
    Owner,
    /// Everybody on this machine.
    Everybody,
}

/// Replaces a file. On return the file and its name are on the disk.
///
/// # Errors
/// An error of the file system; the file is unchanged then.
pub fn write(path: &Path, text: &str, readers: Readers) -> io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    let draft = Path::new(&draft);
    // A file left by a crash may have other permissions.
    match fs::remove_file(draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = create(draft, readers)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(draft, path)?;
    sync_directory_of(path)
}

#[cfg(unix)]
fn create(path: &Path, readers: Readers) -> io::Result<File> {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
    if readers == Readers::Everybody {
        // Set after creation, because the process's umask would restrict it.
        file.set_permissions(fs::Permissions::from_mode(0o644))?;
    }
    Ok(file)
}

#[cfg(not(unix))]
fn create(path: &Path, _readers: Readers) -> io::Result<File> {
    File::create_new(path)
}

/// Some platforms cannot open a directory; there, names are durable by themselves.
fn sync_directory_of(path: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// Makes new files of this process readable for their owner only, because they contain documents and keys.
#[cfg(unix)]
pub fn keep_new_files_private() {
    use rustix::fs::Mode;
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

/// Makes new files of this process readable for their owner only, because they contain documents and keys.
#[cfg(not(unix))]
pub fn keep_new_files_private() {}

/// Lets everybody read the files that this process, and the commands that it runs, make from now on: undoes [`keep_new_files_private`].
#[cfg(unix)]
pub fn let_others_read_new_files() {
    use rustix::fs::Mode;
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
}

/// Lets everybody read the files that this process makes from now on.
#[cfg(not(unix))]
pub fn let_others_read_new_files() {}

/// Makes a write above a limit on file sizes fail, instead of ending the process. Must be called in a runtime.
///
/// # Errors
/// If the signal handler cannot be installed.
#[cfg(unix)]
pub fn survive_size_limit() -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let kind = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    // The handler stays installed when the listener is dropped.
    let installed = signal(kind).map(drop);
    installed.map_err(|error| Failure::new(format!("cannot watch for signals: {error}")))
}

/// Makes a write above a limit on file sizes fail, instead of ending the process. Must be called in a runtime.
///
/// # Errors
/// If the signal handler cannot be installed.
#[cfg(not(unix))]
pub fn survive_size_limit() -> Result<(), Failure> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests;
