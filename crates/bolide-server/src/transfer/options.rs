//! The options of `import`, `export` and `copy`.

use std::path::PathBuf;

use bolide_transfer::{ContainerName, Format, OnConflict};
use clap::{Args, ValueEnum};

use crate::target::{TargetOptions, TrustOptions};

/// The options of `import`.
#[derive(Debug, Clone, Args)]
pub struct ImportArguments {
    /// The file with the items; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    pub file: PathBuf,
    /// The format of the file, if its ending does not say it.
    #[arg(long, value_enum)]
    pub format: Option<FormatOption>,
    #[command(flatten)]
    pub target: TargetOptions,
    /// What to do with an item that is there already.
    #[arg(long, value_enum, default_value_t = OnConflictOption::Fail)]
    pub on_conflict: OnConflictOption,
    /// Keep the `_ts` of the items, so that their countdowns go on. Only on Bolide, and only into a container that was never written.
    #[arg(long, conflicts_with = "on_conflict")]
    pub keep_timestamps: bool,
}

/// The options of `export`.
#[derive(Debug, Clone, Args)]
pub struct ExportArguments {
    /// The file for the items, which must not be there; `-` for standard output.
    #[arg(long, value_name = "FILE")]
    pub file: PathBuf,
    /// The format of the file, if its ending does not say it.
    #[arg(long, value_enum)]
    pub format: Option<FormatOption>,
    #[command(flatten)]
    pub target: TargetOptions,
}

/// The options of `copy`.
#[derive(Debug, Clone, Args)]
#[command(group(clap::ArgGroup::new("target").required(true).args(["to", "to_store", "to_data_dir"])))]
pub struct CopyArguments {
    /// The server to read.
    #[arg(long, value_name = "URL")]
    pub from: String,
    /// Account key of that server, base64; a read-only key is enough with --to. By default the emulator's well-known key.
    #[arg(long, env = "BOLIDE_FROM_KEY", hide_env_values = true, value_name = "BASE64")]
    pub from_key: Option<String>,
    /// File with that key.
    #[arg(long, env = "BOLIDE_FROM_KEY_FILE", value_name = "FILE", conflicts_with = "from_key")]
    pub from_key_file: Option<PathBuf>,
    /// The server to write.
    #[arg(long, value_name = "URL")]
    pub to: Option<String>,
    /// Move the whole store of a Bolide server, while it is in use, into this database of PostgreSQL, such as `postgres://user:password@host/database`. At the
    /// end the old store refuses writes.
    #[arg(long, env = "BOLIDE_TO_STORE", hide_env_values = true, value_name = "URL")]
    pub to_store: Option<String>,
    /// With `sslmode=require` in --to-store: a PEM file with the authorities that have signed the certificates of its servers.
    #[arg(long, value_name = "FILE", requires = "to_store")]
    pub to_store_ca: Option<PathBuf>,
    /// Move the whole store of a Bolide server, while it is in use, into this new data directory. At the end the old store refuses writes.
    #[arg(long, value_name = "DIR")]
    pub to_data_dir: Option<PathBuf>,
    /// With --to-store or --to-data-dir: let the old store be written again at the end, in place of refusing writes until `bolide unseal`.
    #[arg(long, conflicts_with = "to")]
    pub unseal: bool,
    /// Account key of that server, base64. By default the emulator's well-known key.
    #[arg(long, env = "BOLIDE_TO_KEY", hide_env_values = true, value_name = "BASE64")]
    pub to_key: Option<String>,
    /// File with that key.
    #[arg(long, env = "BOLIDE_TO_KEY_FILE", value_name = "FILE", conflicts_with = "to_key")]
    pub to_key_file: Option<PathBuf>,
    #[command(flatten)]
    pub trust: TrustOptions,
    /// Copy this database only.
    #[arg(long, value_name = "ID", conflicts_with_all = ["to_store", "to_data_dir"])]
    pub database: Option<String>,
    /// Copy this container of it only.
    #[arg(long, value_name = "ID", requires = "database")]
    pub container: Option<String>,
    /// Give the container this partition key: a path, or up to three with commas between them for a hierarchy.
    #[arg(long, value_name = "PATH", requires = "container")]
    pub partition_key: Option<String>,
    /// What to do with an item or a definition that is there already and differs. Equal ones are always left as they are.
    #[arg(long, value_enum, default_value_t = OnConflictOption::Fail, conflicts_with_all = ["to_store", "to_data_dir"])]
    pub on_conflict: OnConflictOption,
    /// Keep the `_ts` of the items, so that their countdowns go on. Only into Bolide, and only into containers that were never written.
    #[arg(long, conflicts_with_all = ["to_store", "to_data_dir"])]
    pub keep_timestamps: bool,
}

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatOption {
    /// A JSON object in each line.
    Jsonl,
    /// One JSON array of objects.
    Json,
    /// Comma-separated values; the first row has the names of the properties.
    Csv,
}

/// What to do with an item that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnConflictOption {
    /// Name it and end.
    Fail,
    /// Leave it as it is.
    Skip,
    /// Replace it.
    Replace,
}

impl From<FormatOption> for Format {
    fn from(option: FormatOption) -> Format {
        match option {
            FormatOption::Jsonl => Format::Jsonl,
            FormatOption::Json => Format::Json,
            FormatOption::Csv => Format::Csv,
        }
    }
}

impl From<OnConflictOption> for OnConflict {
    fn from(option: OnConflictOption) -> OnConflict {
        match option {
            OnConflictOption::Fail => OnConflict::Fail,
            OnConflictOption::Skip => OnConflict::Skip,
            OnConflictOption::Replace => OnConflict::Replace,
        }
    }
}

impl TargetOptions {
    /// The container, as the client names it.
    pub fn container(&self) -> ContainerName {
        ContainerName {
            database: self.database.clone(),
            container: self.container.clone(),
        }
    }
}
