//! Stores in PostgreSQL: the options for them, and `bolide init`.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bolide_model::time::Clock;
use bolide_storage_postgres::{Init, OpenError, PostgresEngine, PostgresOptions};
use clap::Args;

use crate::options::ServeOptions;
use crate::server::Failure;

/// The options of `init`.
#[derive(Debug, Clone, Args)]
pub struct InitOptions {
    /// The database, such as `postgres://user:password@host/database`.
    #[arg(long, env = "BOLIDE_STORE", value_name = "URL")]
    pub store: String,
    /// With `sslmode=require`: a PEM file with the authorities that have signed the certificates of its servers. By default those that the system trusts.
    #[arg(long, env = "BOLIDE_STORE_CA", value_name = "FILE")]
    pub store_ca: Option<PathBuf>,
}

/// Makes a store.
///
/// # Errors
/// Why there is none, in one line.
pub fn init(options: &InitOptions) -> Result<(), Failure> {
    let options = self::options("--store", &options.store, options.store_ca.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("cannot start: {error}")))?;
    let made = runtime.block_on(bolide_storage_postgres::init(&options));
    let place = place(&options);
    let line = match made.map_err(|error| failed(&error))? {
        Init::Present => format!("{place} has a store already."),
        Init::Created { on_citus: false } => format!("{place} has a new store."),
        Init::Created { on_citus: true } => format!("{place} has a new store, spread over the nodes of Citus."),
    };
    writeln!(io::stdout(), "{line}").map_err(|error| Failure::new(format!("cannot write the result: {error}")))
}

/// Reads the options of the store; `None` if it is not in PostgreSQL.
///
/// # Errors
/// As [`options`]; and authorities without a store.
pub fn options_of(given: &ServeOptions) -> Result<Option<PostgresOptions>, Failure> {
    match (given.store.as_deref(), given.store_ca.as_deref()) {
        (Some(store), authorities) => {
            let mut options = options("--store", store, authorities)?;
            options.timeout = Duration::from_secs(given.store_timeout);
            options.cache_bytes = usize::try_from(given.cache_bytes()).unwrap_or(usize::MAX);
            Ok(Some(options))
        }
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Failure::new(
            "--store-ca says whom to trust as the server of --store, which is not given",
        )),
    }
}

/// Reads an address, which the user gives with `option` and which may have a password, so that no message repeats it, and the authorities to trust.
///
/// # Errors
/// If it does not name a database of PostgreSQL, or the file has no certificates.
pub fn options(option: &str, address: &str, authorities: Option<&Path>) -> Result<PostgresOptions, Failure> {
    let mut options = PostgresOptions::parse(address).map_err(|error| {
        Failure::new(format!(
            "{option}: expected an address such as postgres://user:password@host/database: {error}"
        ))
    })?;
    if let Some(file) = authorities {
        let failed = |why: String| Failure::new(format!("{option}-ca: {}: {why}", file.display()));
        let pem = std::fs::read(file).map_err(|error| failed(error.to_string()))?;
        options.trust(&pem).map_err(|error| failed(error.to_string()))?;
    }
    Ok(options)
}

/// Opens a store; makes it if it is missing.
///
/// # Errors
/// Why it cannot be opened.
pub async fn open(options: &PostgresOptions, clock: Arc<Clock>) -> Result<PostgresEngine, Failure> {
    let opened = match PostgresEngine::open(options, clock.clone()).await {
        Err(OpenError::NoStore) => {
            let made = bolide_storage_postgres::init(options).await;
            made.map_err(|error| failed(&error))?;
            PostgresEngine::open(options, clock).await
        }
        opened => opened,
    };
    opened.map_err(|error| failed(&error))
}

/// Where a store is, for people: hosts, ports and the database.
pub fn place(options: &PostgresOptions) -> String {
    format!("PostgreSQL at {}", options.place())
}

fn failed(error: &OpenError) -> Failure {
    Failure::new(format!("--store: {error}"))
}
