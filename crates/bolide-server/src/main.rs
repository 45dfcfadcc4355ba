//! The `bolide` binary: reads options, opens the store, listens, and stops in an orderly way.
//!
//!   options ──▶ bind ──▶ serve (answers "starting") ──▶ open the store ──▶ ready file, banner ──▶ … ──signal──▶ stop
//!
//! Listening comes first, so that a port in use is reported before a store is opened, and so that a health check gets a response while a large store
//! is recovered. `bolide query` works differently: see [`query`].

mod admin_client;
mod arguments;
mod banner;
mod begun;
mod body;
mod clock;
mod connection;
mod demo;
mod descriptors;
mod direct;
mod doctor;
mod emulator;
mod endpoint;
mod error_rewriter;
mod fair;
mod files;
mod gateway_v2;
mod health;
mod host;
mod http2;
mod keys;
mod listeners;
mod local_store;
mod machine;
mod mongo;
mod nodes;
mod options;
mod own_endpoint;
mod peers;
mod pfx;
mod postgres;
mod protocol;
mod query;
mod rare;
mod ready_file;
mod reset_time;
mod responding;
mod script_host;
mod server;
mod serving;
mod shutdown;
mod slots;
mod snapshot_commands;
mod store;
mod store_copy;
mod streams;
mod target;
mod timeouts;
mod tls;
mod tls_client;
mod transfer;
mod trust;
mod unseal;
mod usage;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

use crate::options::{Cli, Command};

/// Requests make many small, short-lived allocations on several threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    files::keep_new_files_private();
    machine::avoid_huge_pages();
    let cli = Cli::parse();
    // Only valid arguments are passed on.
    arguments::hide_keys();
    // Without a command the options are those of `serve`; clap prints help and usage errors itself.
    let outcome = match cli.into_command() {
        Command::Serve(options) => options.validate().and_then(server::run),
        Command::Query(options) => query::run(&options),
        Command::Import(options) => transfer::import(&options),
        Command::Export(options) => transfer::export(&options),
        Command::Copy(options) => transfer::copy(&options),
        Command::Init(options) => postgres::init(&options),
        Command::Snapshot(options) => snapshot_commands::take(&options),
        Command::Restore(options) => snapshot_commands::restore(&options),
        Command::Unseal(options) => unseal::run(&options),
        Command::Reset(options) => snapshot_commands::reset(&options),
        Command::ResetTime(options) => reset_time::run(&options),
        Command::Nodes(options) => nodes::run(&options),
        Command::Health(options) => health::run(&options),
        Command::Demo(options) => options.into_serve().validate().and_then(server::run),
        Command::Doctor(options) => doctor::run(&options),
        Command::Trust(options) => trust::run(&options),
        Command::Completions(options) => usage::print_completions(&options),
        Command::Man(options) => usage::write_man_pages(&options),
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
