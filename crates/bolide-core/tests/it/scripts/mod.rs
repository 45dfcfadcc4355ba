//! Server-side JavaScript: transactions, ghosts, triggers and functions, through the core's public API.

mod functions;
mod leaving;
mod limits;
mod procedures;
mod resources;
mod run_script;
mod triggers;
