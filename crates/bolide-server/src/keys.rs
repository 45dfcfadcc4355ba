//! The account's keys: from arguments, the environment or files.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use bolide_cosmos::Keys;
use bolide_model::account_key::{Access, AccountKey, WELL_KNOWN_KEY};
use clap::Args;

use crate::server::Failure;

/// Maximum size of a key file. Keys have some hundred bytes.
const FILE_BYTES: usize = 64 * 1024;

/// The sources of the keys.
#[derive(Debug, Clone, Args)]
pub struct KeyOptions {
    /// Primary account key, base64. Without it, the emulator's well-known key, on loopback addresses only.
    #[arg(long, env = "BOLIDE_KEY", hide_env_values = true, value_name = "BASE64")]
    pub key: Option<String>,
    /// File with the primary account key; only its owner should be able to read it.
    #[arg(long, env = "BOLIDE_KEY_FILE", value_name = "FILE", conflicts_with = "key")]
    pub key_file: Option<PathBuf>,
    /// Secondary account key, for rotating keys.
    #[arg(long, env = "BOLIDE_SECONDARY_KEY", hide_env_values = true, value_name = "BASE64")]
    pub secondary_key: Option<String>,
    /// File with the secondary account key.
    #[arg(
        long,
        env = "BOLIDE_SECONDARY_KEY_FILE",
        value_name = "FILE",
        conflicts_with = "secondary_key"
    )]
    pub secondary_key_file: Option<PathBuf>,
    /// Key that allows reads, feeds and queries only.
    #[arg(long, env = "BOLIDE_READONLY_KEY", hide_env_values = true, value_name = "BASE64")]
    pub readonly_key: Option<String>,
    /// File with the key that allows reads, feeds and queries only.
    #[arg(
        long,
        env = "BOLIDE_READONLY_KEY_FILE",
        value_name = "FILE",
        conflicts_with = "readonly_key"
    )]
    pub readonly_key_file: Option<PathBuf>,
    /// A second key that allows reads, feeds and queries only.
    #[arg(
        long,
        env = "BOLIDE_SECONDARY_READONLY_KEY",
        hide_env_values = true,
        value_name = "BASE64"
    )]
    pub secondary_readonly_key: Option<String>,
    /// File with the second key that allows reads, feeds and queries only.
    #[arg(
        long,
        env = "BOLIDE_SECONDARY_READONLY_KEY_FILE",
        value_name = "FILE",
        conflicts_with = "secondary_readonly_key"
    )]
    pub secondary_readonly_key_file: Option<PathBuf>,
}

/// The validated keys.
#[derive(Debug)]
pub struct AccountKeys {
    /// The text of the primary key.
    pub primary: String,
    /// The rights of each key.
    pub keys: Keys,
    /// Whether one of them is the well-known key of the emulator.
    pub is_public: bool,
    /// Key files that other users can read.
    exposed_files: Vec<PathBuf>,
}

impl KeyOptions {
    /// Reads the keys.
    ///
    /// # Errors
    /// Files that cannot be read, and keys that are malformed or too short.
    pub fn read(&self) -> Result<AccountKeys, Failure> {
        let primary = given("--key", self.key.as_deref(), self.key_file.as_deref())?;
        let primary = primary.unwrap_or_else(|| WELL_KNOWN_KEY.to_owned());
        let key = parse_key("--key", &primary)?;
        let mut is_public = key.is_well_known();
        let mut keys = Keys::new(key);
        let others = [
            (
                "--secondary-key",
                Access::Full,
                &self.secondary_key,
                &self.secondary_key_file,
            ),
            (
                "--readonly-key",
                Access::ReadOnly,
                &self.readonly_key,
                &self.readonly_key_file,
            ),
            (
                "--secondary-readonly-key",
                Access::ReadOnly,
                &self.secondary_readonly_key,
                &self.secondary_readonly_key_file,
            ),
        ];
        for (option, access, text, file) in others {
            if let Some(text) = given(option, text.as_deref(), file.as_deref())? {
                let key = parse_key(option, &text)?;
                is_public |= key.is_well_known();
                keys = keys.with(access, key);
            }
        }
        Ok(AccountKeys {
            primary,
            keys,
            is_public,
            exposed_files: self.files().filter(|file| is_exposed(file)).cloned().collect(),
        })
    }

    fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let files = [
            &self.key_file,
            &self.secondary_key_file,
            &self.readonly_key_file,
            &self.secondary_readonly_key_file,
        ];
        files.into_iter().flatten()
    }
}

impl AccountKeys {
    /// Logs warnings. Containers often mount secrets so that all of their users can read them, so this is not an error.
    pub fn warn(&self) {
        for file in &self.exposed_files {
            tracing::warn!(file = %file.display(), "users other than its owner can read this key file");
        }
    }
}

/// The text of a key, from an option or from a file.
///
/// # Errors
/// A file that cannot be read.
pub fn given(option: &str, text: Option<&str>, file: Option<&Path>) -> Result<Option<String>, Failure> {
    let Some(file) = file else {
        return Ok(text.map(str::to_owned));
    };
    let text = read_key_file(file).map_err(|error| {
        // A user who confuses the options passes the key itself, and errors go into logs.
        let name = file.to_str().filter(|name| AccountKey::parse(name).is_err());
        let name = name.unwrap_or("the file (its name is a key: keys themselves are given without `-file`)");
        Failure::new(format!("{option}-file: cannot read {name}: {error}"))
    })?;
    Ok(Some(text.trim().to_owned()))
}

/// The text of a key file. It may be a pipe or a device, without a known length or end.
fn read_key_file(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    let max_bytes = FILE_BYTES as u64 + 1;
    fs::File::open(file)?.take(max_bytes).read_to_string(&mut text)?;
    if text.len() > FILE_BYTES {
        return Err(io::Error::other(format!(
            "it is longer than {FILE_BYTES} bytes, so it is no key"
        )));
    }
    Ok(text)
}

/// Reads a key.
///
/// # Errors
/// If it is not base64, or too short.
fn parse_key(option: &str, text: &str) -> Result<AccountKey, Failure> {
    AccountKey::parse(text).map_err(|error| Failure::new(format!("{option}: {error}")))
}

#[cfg(unix)]
fn is_exposed(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_exposed(_file: &Path) -> bool {
    false
}
