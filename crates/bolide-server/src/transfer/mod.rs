//! `bolide import`, `bolide export` and `bolide copy`: their options, and where they read and write.

mod in_process;
mod options;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bolide_model::account_key::{AccountKey, WELL_KNOWN_KEY};
use bolide_transfer::copy::CopyOptions;
use bolide_transfer::export::ExportOptions;
use bolide_transfer::import::ImportOptions;
use bolide_transfer::{Client, HttpTransport};

use self::in_process::InProcess;
pub use self::options::{CopyArguments, ExportArguments, ImportArguments};
use crate::admin_client::AdminClient;
use crate::keys;
use crate::local_store::LocalStore;
use crate::postgres;
use crate::server::Failure;
use crate::store_copy::{self, TargetPlace};
use crate::target::{TargetOptions, TrustOptions};

/// The longest time that a server may take for an answer to a move of its store.
const LONGEST_ANSWER: Duration = Duration::from_secs(60);

/// A client of a server or of a store in this process.
struct Connected {
    client: Client,
    store: Option<Arc<InProcess>>,
}

impl Connected {
    fn to(target: &TargetOptions) -> Result<Connected, Failure> {
        match &target.data_dir {
            Some(directory) => Connected::to_directory(directory),
            None => Connected::to_endpoint(
                "--endpoint",
                &target.server.endpoint,
                &target.server.trust,
                &target.server.key()?,
            ),
        }
    }

    fn to_directory(directory: &Path) -> Result<Connected, Failure> {
        let key = AccountKey::parse(WELL_KNOWN_KEY).map_err(|error| Failure::new(error.to_string()))?;
        let name = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let store = LocalStore::open(directory)?;
        let store = Arc::new(InProcess::new(store, &key, name.display().to_string()));
        Ok(Connected {
            client: Client::new(store.clone(), WELL_KNOWN_KEY).map_err(failure)?,
            store: Some(store),
        })
    }

    fn to_endpoint(option: &str, endpoint: &str, trust: &TrustOptions, key: &str) -> Result<Connected, Failure> {
        let tls = trust.tls_for(option, endpoint)?;
        let transport = HttpTransport::new(option, endpoint, tls).map_err(failure)?;
        Ok(Connected {
            client: Client::new(Arc::new(transport), key).map_err(failure)?,
            store: None,
        })
    }

    /// Closes the store after a transfer, whatever its outcome.
    fn close<T>(&self, outcome: Result<T, bolide_transfer::Failure>) -> Result<T, Failure> {
        let closed = self.store.as_ref().map_or(Ok(()), |store| store.close());
        let outcome = outcome.map_err(failure)?;
        closed.map(|()| outcome)
    }
}

fn failure(failure: bolide_transfer::Failure) -> Failure {
    Failure::new(failure.to_string())
}

/// Runs `bolide import`.
///
/// # Errors
/// Why the import ended early, in one line.
pub fn import(arguments: &ImportArguments) -> Result<(), Failure> {
    let connected = Connected::to(&arguments.target)?;
    let outcome = bolide_transfer::import::run(
        &connected.client,
        &ImportOptions {
            file: file(&arguments.file),
            format: arguments.format.map(Into::into),
            into: arguments.target.container(),
            on_conflict: arguments.on_conflict.into(),
            keep_timestamps: arguments.keep_timestamps,
        },
    );
    let imported = connected.close(outcome)?;
    let mut parts = vec![format!("imported {} items", imported.written)];
    let more = [
        (imported.replaced, "of them replaced one"),
        (imported.skipped, "were there already and were skipped"),
        (imported.earlier, "were imported by an earlier run"),
    ];
    parts.extend(
        more.iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}")),
    );
    say(&parts.join(", "), false)
}

/// Runs `bolide export`.
///
/// # Errors
/// Why the export ended early, in one line.
pub fn export(arguments: &ExportArguments) -> Result<(), Failure> {
    let connected = Connected::to(&arguments.target)?;
    let file = file(&arguments.file);
    let outcome = bolide_transfer::export::run(
        &connected.client,
        &ExportOptions {
            file: file.clone(),
            format: arguments.format.map(Into::into),
            from: arguments.target.container(),
        },
    );
    let exported = connected.close(outcome)?;
    let mut summary = format!("exported {} items", exported.items);
    if exported.earlier > 0 {
        summary.push_str(&format!(", {} of them by an earlier run", exported.earlier));
    }
    // Standard output has the items.
    say(&summary, file.is_none())
}

/// Runs `bolide copy`.
///
/// # Errors
/// Why the copy ended early, in one line.
pub fn copy(arguments: &CopyArguments) -> Result<(), Failure> {
    let from_key = keys::given(
        "--from-key",
        arguments.from_key.as_deref(),
        arguments.from_key_file.as_deref(),
    )?;
    let key = |key: Option<String>| key.unwrap_or_else(|| WELL_KNOWN_KEY.to_owned());
    let from_key = key(from_key);
    let Some(to) = &arguments.to else {
        return move_store(arguments, from_key);
    };
    let to_key = keys::given(
        "--to-key",
        arguments.to_key.as_deref(),
        arguments.to_key_file.as_deref(),
    )?;
    let from = Connected::to_endpoint("--from", &arguments.from, &arguments.trust, &from_key)?;
    let to = Connected::to_endpoint("--to", to, &arguments.trust, &key(to_key))?;
    let outcome = bolide_transfer::copy::run(
        &from.client,
        &to.client,
        &CopyOptions {
            database: arguments.database.clone(),
            container: arguments.container.clone(),
            partition_key: arguments.partition_key.clone(),
            on_conflict: arguments.on_conflict.into(),
            keep_timestamps: arguments.keep_timestamps,
        },
    );
    let copied = outcome.map_err(failure)?;
    for note in &copied.notes {
        say(note, false)?;
    }
    let mut summary = format!(
        "copied {} databases, {} containers, {} items",
        copied.databases, copied.containers, copied.items
    );
    if copied.there > 0 {
        summary.push_str(&format!(", {} items were there already", copied.there));
    }
    say(&summary, false)
}

/// Moves a whole store, row by row.
fn move_store(arguments: &CopyArguments, from_key: String) -> Result<(), Failure> {
    let place = match (&arguments.to_store, &arguments.to_data_dir) {
        (Some(store), _) => {
            let options = postgres::options("--to-store", store, arguments.to_store_ca.as_deref())?;
            TargetPlace::Postgres(Box::new(options))
        }
        (None, Some(directory)) => TargetPlace::Directory(directory.clone()),
        (None, None) => return Err(Failure::new("--to, --to-store or --to-data-dir says where to copy")),
    };
    let from = AdminClient::to(
        ("--from", &arguments.from),
        from_key,
        &arguments.trust,
        Some(LONGEST_ANSWER),
    )?;
    let moved = store_copy::run(from, &place, arguments.unseal)?;
    let rest = match arguments.unseal {
        true => "the old store is written on",
        false => "the old store refuses writes from now on (`bolide unseal` lets it be written)",
    };
    say(
        &format!(
            "moved {} partitions with {} items; writes were refused for {} ms; {rest}",
            moved.partitions,
            moved.items,
            moved.sealed.as_millis()
        ),
        false,
    )
}

/// The file of an option; `None` for `-`.
fn file(path: &Path) -> Option<PathBuf> {
    (path != Path::new("-")).then(|| path.to_owned())
}

fn say(line: &str, on_stderr: bool) -> Result<(), Failure> {
    let said = match on_stderr {
        true => writeln!(io::stderr(), "{line}"),
        false => writeln!(io::stdout(), "{line}"),
    };
    match said {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write the summary: {error}")))
        }
        _ => Ok(()),
    }
}
