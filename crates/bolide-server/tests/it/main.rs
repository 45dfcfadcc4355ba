//! The real binary, started and spoken to over sockets.

mod access;
mod admin;
mod all_versions;
mod bad_input;
mod client;
mod connections;
mod containers;
mod dotnet_suite;
mod http2;
mod keys;
mod listening;
mod logging;
mod memory;
mod names;
mod permissions;
mod queries;
mod querying;
mod reset_time;
mod resources;
mod rights;
mod script_processes;
mod scripts;
mod server;
mod starting;
mod stopping;
