//! Archives that are the same for the same content: order, owners, modes and times are fixed.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use sha2::{Digest as _, Sha256};

use crate::Result;

/// The operating system in the header of gzip (RFC 1952): unknown, on every machine.
const UNKNOWN_SYSTEM: u8 = 255;

/// A file of an archive.
pub struct Entry {
    path: String,
    content: Vec<u8>,
    mode: u32,
}

impl Entry {
    /// A file that everybody may read.
    pub fn file(path: impl Into<String>, content: Vec<u8>) -> Entry {
        Entry {
            path: path.into(),
            content,
            mode: 0o644,
        }
    }

    /// A file that everybody may run.
    pub fn program(path: impl Into<String>, content: Vec<u8>) -> Entry {
        Entry {
            path: path.into(),
            content,
            mode: 0o755,
        }
    }
}

/// Writes `NAME.tar.gz`, with a folder `NAME` in it, and `NAME.tar.gz.sha256`; returns the path of the archive. `time`: Unix seconds, of all entries.
pub fn write(directory: &Path, name: &str, mut entries: Vec<Entry>, time: u64) -> Result<PathBuf> {
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    let bytes = compressed(name, &entries, time)?;
    let file = format!("{name}.tar.gz");
    let path = directory.join(&file);
    fs::write(&path, &bytes)?;
    let digest: String = Sha256::digest(&bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut sum = File::create(directory.join(format!("{file}.sha256")))?;
    writeln!(sum, "{digest}  {file}")?;
    Ok(path)
}

/// The bytes of an archive.
fn compressed(name: &str, entries: &[Entry], time: u64) -> Result<Vec<u8>> {
    let gzip = GzBuilder::new().mtime(0).operating_system(UNKNOWN_SYSTEM);
    let mut tar = tar::Builder::new(gzip.write(Vec::new(), Compression::best()));
    for entry in entries {
        let mut header = tar::Header::new_ustar();
        header.set_size(entry.content.len() as u64);
        header.set_mode(entry.mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(time);
        header.set_entry_type(tar::EntryType::Regular);
        tar.append_data(&mut header, format!("{name}/{}", entry.path), entry.content.as_slice())?;
    }
    Ok(tar.into_inner()?.finish()?)
}

#[cfg(test)]
mod tests;
