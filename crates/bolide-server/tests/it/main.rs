//! The real binary, started and spoken to over sockets.

mod access;
mod admin;
mod bad_input;
mod client;
mod listening;
mod resources;
mod server;
mod starting;
mod stopping;
