//! `bolide snapshot`, `bolide restore`, `bolide reset`: snapshots of a running server, through its admin API.

use std::io::{self, Write as _};

use bolide_model::SnapshotName;
use clap::Args;

use crate::admin_client::AdminClient;
use crate::server::Failure;
use crate::target::ServerOptions;

/// The options of `snapshot` and `restore`.
#[derive(Debug, Clone, Args)]
pub struct SnapshotOptions {
    /// The name of the snapshot: letters, digits, `.`, `_` and `-`.
    #[arg(value_name = "NAME", value_parser = name)]
    pub name: SnapshotName,
    #[command(flatten)]
    pub server: ServerOptions,
}

/// The options of `reset`.
#[derive(Debug, Clone, Args)]
pub struct ResetOptions {
    #[command(flatten)]
    pub server: ServerOptions,
}

fn name(text: &str) -> Result<SnapshotName, String> {
    SnapshotName::parse(text).map_err(|error| error.to_string())
}

/// Takes a snapshot.
///
/// # Errors
/// Why there is none, in one line.
pub fn take(options: &SnapshotOptions) -> Result<(), Failure> {
    post(&options.server, &format!("snapshots/{}", options.name))?;
    say(&format!("The snapshot {} is taken.", options.name))
}

/// Restores a snapshot.
///
/// # Errors
/// Why it is not restored, in one line.
pub fn restore(options: &SnapshotOptions) -> Result<(), Failure> {
    post(&options.server, &format!("snapshots/{}/restore", options.name))?;
    say(&format!("The content is that of the snapshot {}.", options.name))
}

/// Removes everything.
///
/// # Errors
/// Why it is not removed, in one line.
pub fn reset(options: &ResetOptions) -> Result<(), Failure> {
    post(&options.server, "reset")?;
    say("The server is empty.")
}

fn say(line: &str) -> Result<(), Failure> {
    let written = writeln!(io::stdout().lock(), "{line}");
    written.map_err(|error| Failure::new(format!("cannot write to standard output: {error}")))
}

/// Sends a request without a body to a route of the admin API.
fn post(server: &ServerOptions, route: &str) -> Result<(), Failure> {
    AdminClient::new(server)?.post(route, None).map(|_| ())
}
