//! Free space of the disk, read before every write.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

type Probe = dyn Fn(&Path) -> io::Result<u64> + Send + Sync;

/// Reads the bytes that an ordinary user may still write below a directory. Tests supply their own function.
#[derive(Clone)]
pub struct FreeSpace(Arc<Probe>);

impl FreeSpace {
    /// Asks the file system.
    pub fn of_disk() -> FreeSpace {
        FreeSpace::by(disk)
    }

    /// Asks `probe`.
    pub fn by(probe: impl Fn(&Path) -> io::Result<u64> + Send + Sync + 'static) -> FreeSpace {
        FreeSpace(Arc::new(probe))
    }

    /// Bytes free for the store at `path`. If the disk does not answer, writes are not stopped: they will report the error themselves.
    pub(crate) fn at(&self, path: &Path) -> u64 {
        (self.0)(path).unwrap_or(u64::MAX)
    }
}

impl fmt::Debug for FreeSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FreeSpace")
    }
}

#[cfg(unix)]
fn disk(path: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(path)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(not(unix))]
fn disk(_path: &Path) -> io::Result<u64> {
    Ok(u64::MAX)
}
