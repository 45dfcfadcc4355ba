//! The query language without a server: its own scripts, and the conformance cases of queries and of query plans.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and counts by topic"
)]

mod cases;
mod compare;
mod container;
mod plans;
mod script;
mod sql;
mod testscripts;
