//! Tests of the real binary over sockets.
#![expect(
    clippy::disallowed_methods,
    reason = "tests of a process wait for it by the machine's clock"
)]

mod access;
mod admin;
mod all_versions;
mod bad_input;
mod client;
mod connections;
mod containers;
mod demo;
mod direct;
mod doctor;
mod dotnet_suite;
mod emulator;
mod forwarding;
mod gateway_v2;
mod health;
mod http2;
mod keys;
mod listening;
mod logging;
mod memory;
mod mongo;
mod mongo_bad_input;
mod mongo_client;
mod mongo_commands;
mod mongo_sharded;
mod names;
mod permissions;
mod plans;
mod postgres;
mod queries;
mod querying;
mod reset_time;
mod resources;
mod rights;
mod script_processes;
mod scripts;
mod sdk_suites;
mod server;
mod snapshots;
mod starting;
mod stopping;
mod store_copy;
mod system_key;
mod transfer;
mod trust;
mod usage;
