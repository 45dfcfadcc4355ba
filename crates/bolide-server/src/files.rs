//! Small files that are there whole after a power loss, or not at all; and what the process may do with files.

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

/// Replaces a file. It is on the disk when this returns, its name too.
///
/// # Errors
/// From the file system; the file is as it was then.
pub fn write(path: &Path, text: &str, readers: Readers) -> io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".new");
    let draft = Path::new(&draft);
    // Left by a crash, it may have another mode.
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
        // Past the mask of the process.
        file.set_permissions(fs::Permissions::from_mode(0o644))?;
    }
    Ok(file)
}

#[cfg(not(unix))]
fn create(path: &Path, _readers: Readers) -> io::Result<File> {
    File::create_new(path)
}

/// Not every platform lets a directory be opened; there, names are durable by themselves.
fn sync_directory_of(path: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// Closes files that this process makes to everybody but its owner: documents and keys are in them.
#[cfg(unix)]
pub fn keep_new_files_private() {
    use rustix::fs::Mode;
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

/// Closes files that this process makes to everybody but its owner: documents and keys are in them.
#[cfg(not(unix))]
pub fn keep_new_files_private() {}

/// Lets a write above a limit on file sizes fail, instead of ending the process. To be called in a runtime.
///
/// # Errors
/// When the signal cannot be taken over.
#[cfg(unix)]
pub fn survive_size_limit() -> Result<(), Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let kind = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    // The handler stays when the listener goes.
    let installed = signal(kind).map(drop);
    installed.map_err(|error| Failure::new(format!("cannot watch for signals: {error}")))
}

/// Lets a write above a limit on file sizes fail, instead of ending the process. To be called in a runtime.
///
/// # Errors
/// When the signal cannot be taken over.
#[cfg(not(unix))]
pub fn survive_size_limit() -> Result<(), Failure> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests;
