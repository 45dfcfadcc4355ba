//! The `bolide` binary: reads options, opens the store, listens, and stops in an orderly way.
//!
//!   options ──▶ bind ──▶ serve (answers "starting") ──▶ open the store ──▶ ready file, banner ──▶ … ──signal──▶ stop
//!
//! Listening comes first, so that a port in use is reported before a store is opened, and so that a health check gets a response while a large store
//! is recovered. `bolide query` works differently: see [`query`].

mod arguments;
mod banner;
mod body;
mod clock;
mod connection;
mod descriptors;
mod error_rewriter;
mod fair;
mod files;
mod host;
mod keys;
mod listeners;
mod machine;
mod mongo;
mod options;
mod query;
mod ready_file;
mod reset_time;
mod script_host;
mod server;
mod serving;
mod shutdown;
mod slots;
mod snapshot_commands;
mod store;
mod streams;
mod timeouts;
mod tls;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use crate::options::{Cli, Command};

/// Requests make many small, short-lived allocations on several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    files::keep_new_files_private();
    let cli = Cli::parse();
    // Only valid arguments are passed on.
    arguments::hide_keys();
    // Without a command the options are those of `serve`; clap prints help and usage errors itself.
    let outcome = match cli.into_command() {
        Command::Serve(options) => options.validate().and_then(server::run),
        Command::Query(options) => query::run(&options),
        Command::Snapshot(options) => snapshot_commands::take(&options),
        Command::Restore(options) => snapshot_commands::restore(&options),
        Command::Reset(options) => snapshot_commands::reset(&options),
        Command::ResetTime(options) => reset_time::run(&options),
        Command::ScriptHost => Err(script_host::serve()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // One line, so that tools that start many servers can show the reason.
            let line = failure.to_string().replace('\n', " ");
            let _ = writeln!(std::io::stderr(), "bolide: {line}");
            ExitCode::FAILURE
        }
    }
}
