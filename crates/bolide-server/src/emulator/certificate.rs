//! The certificate at its path in the classic emulator's image, where Testcontainers and scripts read it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::{self, Readers};

/// The classic emulator's data directory.
pub const CLASSIC_DIR: &str = "/tmp/cosmos/appdata";
/// The first folder of the certificate's path in it.
pub const CLASSIC_FOLDER: &str = ".system";
/// The rest of the path.
const CLASSIC_REST: &str = "profiles/Client/AppData/Local/CosmosDBEmulator/emulator.pem";

/// Writes the certificate, or logs why it cannot be written: nothing but such tools needs it there.
pub fn write(pem: &str) {
    let path: PathBuf = [CLASSIC_DIR, CLASSIC_FOLDER, CLASSIC_REST].iter().collect();
    if let Err(error) = write_to(&path, pem) {
        tracing::warn!(
            path = %path.display(),
            %error,
            "the certificate is not at the path of the official emulator; clients get it from /_explorer/emulator.pem"
        );
    }
}

fn write_to(path: &Path, pem: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    // Under a name of this process first: servers that start together would remove each other's drafts.
    let mut own = path.as_os_str().to_owned();
    own.push(format!(".{}", std::process::id()));
    files::write(Path::new(&own), pem, Readers::Everybody)?;
    fs::rename(&own, path)
}

#[cfg(test)]
mod tests;
