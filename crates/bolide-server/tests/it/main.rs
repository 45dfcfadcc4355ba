//! The real binary, started and spoken to over sockets.

mod access;
mod admin;
mod all_versions;
mod bad_input;
mod client;
mod containers;
mod listening;
mod permissions;
mod queries;
mod querying;
mod resources;
mod rights;
mod script_processes;
mod scripts;
mod server;
mod starting;
mod stopping;
