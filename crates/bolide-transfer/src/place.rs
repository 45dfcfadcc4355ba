//! The place that a transfer has reached, in a small file beside the data file, so that the same command goes on there.
//!
//! ```text
//!   items.jsonl                 the data
//!   items.jsonl.bolide-import   what is done, what may be in progress, and of which command; removed at the end
//! ```
//!
//! The file is replaced as a whole: written beside, synced, renamed. So after a kill or a power loss it has an earlier place, never half of one.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::failure::{Failure, Result};

/// Bytes at the start of a data file that its identity includes.
const HEAD_BYTES: u64 = 64 * 1024;
/// Most bytes of a file of this module: the names of a CSV file's columns are the largest part.
const FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Tells files apart: another file, or a changed one, has another identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Identity {
    bytes: u64,
    modified_nanos: u128,
    head_sha256: String,
}

impl Identity {
    /// The identity of a file.
    pub fn of(path: &Path) -> Result<Identity> {
        Identity::read(path).map_err(|error| Failure::of_file(path, &error))
    }

    fn read(path: &Path) -> io::Result<Identity> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let modified = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut head = Vec::new();
        file.take(HEAD_BYTES).read_to_end(&mut head)?;
        Ok(Identity {
            bytes: metadata.len(),
            modified_nanos: modified.as_nanos(),
            head_sha256: hex::encode(Sha256::digest(&head)),
        })
    }
}

/// The file of a place.
pub(crate) struct PlaceFile {
    path: PathBuf,
}

impl PlaceFile {
    /// The file beside `data` for this kind of transfer, `import` or `export`.
    pub fn beside(data: &Path, kind: &str) -> PlaceFile {
        let mut name = data.file_name().map(OsString::from).unwrap_or_default();
        name.push(format!(".bolide-{kind}"));
        PlaceFile {
            path: data.with_file_name(name),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The place; `None` if there is no file.
    ///
    /// # Errors
    /// The file cannot be read, or is not one of this module.
    pub fn read<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::of_file(&self.path, &error)),
        };
        let mut text = Vec::new();
        let read = file.take(FILE_BYTES).read_to_end(&mut text);
        read.map_err(|error| Failure::of_file(&self.path, &error))?;
        serde_json::from_slice(&text).map(Some).map_err(|error| {
            Failure::new(format!(
                "{}: it does not say where to go on ({error}); remove it to start from the beginning",
                self.path.display()
            ))
        })
    }

    /// Replaces the place, durably.
    pub fn write(&self, place: &impl Serialize) -> Result<()> {
        let text = serde_json::to_vec(place).map_err(|error| Failure::new(format!("a place has no text: {error}")))?;
        self.replace(&text)
            .map_err(|error| Failure::of_file(&self.path, &error))
    }

    fn replace(&self, text: &[u8]) -> io::Result<()> {
        let mut draft = self.path.clone().into_os_string();
        draft.push(".new");
        let mut file = File::create(&draft)?;
        file.write_all(text)?;
        file.sync_data()?;
        fs::rename(&draft, &self.path)?;
        // Without it, a power loss could bring back an earlier place, with items in progress that it does not know of.
        match self.path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => File::open(parent)?.sync_all(),
            None => File::open(".")?.sync_all(),
        }
    }

    /// Removes the file.
    pub fn remove(&self) -> Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Failure::of_file(&self.path, &error)),
            _ => Ok(()),
        }
    }
}

/// Keeps other processes from the same transfer of a file until it is dropped.
///
/// # Errors
/// Another process has it. File systems without locks give no error.
pub(crate) fn lock(file: &File, path: &Path) -> Result<()> {
    match file.try_lock() {
        Err(fs::TryLockError::WouldBlock) => Err(Failure::new(format!(
            "{}: another import or export of this file is running",
            path.display()
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
