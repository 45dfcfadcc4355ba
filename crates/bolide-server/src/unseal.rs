//! `bolide unseal`: lets a store that has moved be written again, through the admin API of a server that uses it.

use std::io::{self, Write as _};

use clap::Args;

use crate::admin_client::AdminClient;
use crate::server::Failure;
use crate::target::ServerOptions;

/// The options of `unseal`.
#[derive(Debug, Clone, Args)]
pub struct UnsealOptions {
    #[command(flatten)]
    pub server: ServerOptions,
}

/// Takes the seal away.
///
/// # Errors
/// Why it stays, in one line.
pub fn run(options: &UnsealOptions) -> Result<(), Failure> {
    AdminClient::new(&options.server)?.delete("seal")?;
    let written = writeln!(io::stdout().lock(), "The store is written here again.");
    written.map_err(|error| Failure::new(format!("cannot write to standard output: {error}")))
}
